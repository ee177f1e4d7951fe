/*
 * A headless Chromium driven over its DevTools pipe: pages that are opened, asked and photographed.
 */
'use strict';
const { spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

/* The path of a Chromium, or null. */
function findChromium() {
    for (const name of [process.env.CHROMIUM, 'chromium', 'chromium-browser', 'google-chrome'])
        if (name && spawnSync('sh', ['-c', 'command -v "$0"', name]).status === 0)
            return name;
    return null;
}

class Chromium {
    constructor(name) {
        this.profile = fs.mkdtempSync(path.join(os.tmpdir(), 'clrperf-chromium-'));
        this.process = spawn(name, [
            '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
            '--disable-component-update', '--disable-sync', '--disable-extensions', '--hide-scrollbars', '--user-data-dir=' + this.profile,
            '--remote-debugging-pipe', 'about:blank',
        ], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
        this.waiting = new Map();
        this.process.once('error', error => this.end(error));
        this.process.once('exit', code => this.end(new Error('Chromium ended with ' + code)));
        this.process.stdio[3].on('error', error => this.end(error));
        this.listeners = [];
        this.lastId = 0;
        const pieces = [];
        this.process.stdio[4].on('data', data => {
            for (let at; (at = data.indexOf(0)) >= 0; data = data.subarray(at + 1)) {
                pieces.push(data.subarray(0, at));
                this.receive(JSON.parse(Buffer.concat(pieces.splice(0)).toString()));
            }
            pieces.push(data);
        });
    }
    /* Whoever waits for an answer gets none. */
    end(error) {
        this.gone = error;
        for (const waiting of this.waiting.values())
            waiting.reject(error);
        this.waiting.clear();
    }
    receive(message) {
        const waiting = this.waiting.get(message.id);
        if (!waiting)
            return this.listeners.forEach(listen => listen(message));
        this.waiting.delete(message.id);
        if (message.error)
            waiting.reject(new Error(waiting.method + ': ' + message.error.message));
        else
            waiting.resolve(message.result);
    }
    call(method, params = {}, sessionId = undefined) {
        if (this.gone)
            return Promise.reject(this.gone);
        const id = ++this.lastId;
        this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + '\0');
        return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject, method }));
    }
    async page(width, height) {
        const { targetId } = await this.call('Target.createTarget', { url: 'about:blank' });
        const { sessionId } = await this.call('Target.attachToTarget', { targetId, flatten: true });
        const page = new Page(this, sessionId, targetId);
        this.listeners.push(message => message.sessionId === sessionId && page.receive(message));
        for (const domain of ['Page', 'Runtime', 'Network', 'Log'])
            await page.call(domain + '.enable');
        await page.call('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
        return page;
    }
    async close() {
        const gone = new Promise(resolve => this.process.once('exit', resolve));
        this.call('Browser.close').catch(() => {});
        const timer = setTimeout(() => this.process.kill('SIGKILL'), 20000);
        if (!this.gone)
            await gone;
        clearTimeout(timer);
        /* its children may write a little longer */
        fs.rmSync(this.profile, { recursive: true, force: true, maxRetries: 20 });
    }
}

class Page {
    constructor(browser, sessionId, targetId) {
        Object.assign(this, { browser, sessionId, targetId, requests: [], problems: [], loaded: null });
    }
    receive({ method, params }) {
        if (method === 'Network.requestWillBeSent')
            this.requests.push(params.request.url);
        if (method === 'Runtime.exceptionThrown')
            this.problems.push(params.exceptionDetails.exception?.description || params.exceptionDetails.text);
        if (method === 'Runtime.consoleAPICalled' && ['error', 'warning'].includes(params.type))
            this.problems.push(params.args.map(arg => arg.value ?? arg.description).join(' '));
        if (method === 'Log.entryAdded' && ['error', 'warning'].includes(params.entry.level))
            this.problems.push(params.entry.text);
        if (method === 'Page.loadEventFired')
            this.loaded?.();
    }
    call(method, params) {
        return this.browser.call(method, params, this.sessionId);
    }
    async navigate(url) {
        const loaded = new Promise(resolve => this.loaded = resolve);
        await this.call('Page.navigate', { url });
        await loaded;
    }
    async open(file, hash = '') {
        await this.navigate('about:blank'); /* another fragment of the same page would load nothing */
        this.requests = [];
        this.problems = [];
        await this.navigate('file://' + path.resolve(file) + hash);
    }
    /* The value of an expression in the page, promises awaited. */
    async ask(expression) {
        const { result, exceptionDetails } = await this.call('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true, userGesture: true });
        if (exceptionDetails)
            throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
        return result.value;
    }
    async mouse(type, x, y, more = {}) {
        await this.call('Input.dispatchMouseEvent', { type, x, y, button: type === 'mouseMoved' ? 'none' : 'left', clickCount: 1, ...more });
    }
    async click(x, y) {
        await this.mouse('mousePressed', x, y);
        await this.mouse('mouseReleased', x, y);
    }
    async key(key, text = key) {
        await this.call('Input.dispatchKeyEvent', { type: 'keyDown', key, text: text.length === 1 ? text : undefined });
        await this.call('Input.dispatchKeyEvent', { type: 'keyUp', key });
    }
    async dark(on) {
        await this.call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: on ? 'dark' : 'light' }] });
    }
    async photograph(file) {
        const { data } = await this.call('Page.captureScreenshot', { format: 'png' });
        fs.writeFileSync(file, Buffer.from(data, 'base64'));
    }
    close() {
        return this.browser.call('Target.closeTarget', { targetId: this.targetId });
    }
}

module.exports = { Chromium, findChromium };

/*
 * The flame graph's files in a real browser: what they show is compared with sums made another way.
 *
 * usage: html_test.js BIG_PROFILE [FOLDER-FOR-PICTURES]
 * CLRPERF_LOAD_LIMIT_MS: how long a million samples may take to load, the best of a few times (60000).
 * Exits with 77 when there is no Chromium.
 */
'use strict';
const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { Chromium, findChromium } = require('./chromium.js');

const [bigProfile, pictures] = process.argv.slice(2);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'clrperf-html-'));
const file = name => path.join(folder, name);
/* Judged where somebody names a bar, on a machine that does nothing else; anywhere, what takes minutes has grown wrong. */
const LOAD_LIMIT_MS = Number(process.env.CLRPERF_LOAD_LIMIT_MS || 60000);
const LOAD_TRIES = 4;

/* Runs in the page: sums over the samples, walking up from each one's node. */
const BRUTE_FORCE = `(pattern, threads, fromTick, toTick) => {
    const { nodes, samples, frames, meta } = __clrperf;
    const hit = frames.name.map((name, f) => pattern && (pattern.test(name) || (frames.module[f] && pattern.test(frames.module[f] + '!' + name))));
    let all = 0, matched = 0, count = 0;
    for (let i = 0; i < samples.count; i++) {
        if (threads && !threads.includes(samples.thread[i]) || samples.tick[i] < fromTick || samples.tick[i] >= toTick)
            continue;
        const weight = samples.weight ? samples.weight[i] : meta.weight_step;
        all += weight;
        count++;
        let found = false;
        for (let n = samples.node[i]; n > 0; n = nodes.parent[n])
            found ||= hit[nodes.frame[n]];
        matched += found ? weight : 0;
    }
    return { all, share: all ? matched / all : 0, count };
}`;

const near = (a, b, what) => assert.ok(Math.abs(a - b) < 1e-9 * Math.max(1, Math.abs(b)), `${what}: ${a} is not ${b}`);

async function picture(page, name) {
    if (pictures)
        await page.photograph(path.join(pictures, name + '.png'));
}

async function openHtml(page, name, hash) {
    await page.open(file(name), hash);
    await page.ask('__clrperf.ready');
}

function assertQuiet(page, name) {
    assert.deepStrictEqual(page.problems, [], 'problems in ' + name);
    assert.deepStrictEqual(page.requests.filter(url => !url.startsWith('file:') && !url.startsWith('data:')), [], 'requests of ' + name);
    assert.strictEqual(page.requests.filter(url => url.startsWith('file:')).length, 1, 'files read by ' + name);
}

async function graphPoint(page, rect) {
    const [left, top] = await page.ask('(r => [r.left, r.top])(document.getElementById("canvas").getBoundingClientRect())');
    return [left + rect.x + rect.width / 2, top + rect.y + 8];
}

async function testTotals(page) {
    await openHtml(page, 'small.html');
    await page.ask('new Promise(done => setTimeout(done, 300))'); /* the table's strips come late */
    await picture(page, 'light');
    const sums = await page.ask(`(${BRUTE_FORCE})(null, null, 0, Infinity)`);
    near(await page.ask('__clrperf.total'), sums.all, 'total');
    assert.strictEqual(sums.count, 20000);
    assert.match(await page.ask('document.getElementById("facts").textContent'), /20,000 samples5 lost/);
    const widths = await page.ask('(r => [r[0].width, r.filter(b => b.depth === 1).reduce((sum, b) => sum + b.width, 0)])(__clrperf.visibleRects())');
    assert.ok(widths[1] <= widths[0] + 0.01 && widths[1] > widths[0] * 0.98, 'first row: ' + widths);
}

async function testSearch(page) {
    for (const pattern of ['Discounts', '^System\\.', 'coreclr!', 'gc_heap|memmove', 'no such thing', '.']) {
        const { matched_share: share } = await page.ask(`__clrperf.search(${JSON.stringify(pattern)})`);
        const sums = await page.ask(`(${BRUTE_FORCE})(new RegExp(${JSON.stringify(pattern)}, 'i'), null, 0, Infinity)`);
        near(share, sums.share, 'share of ' + pattern);
    }
    await page.ask('__clrperf.search("Discounts")');
    await picture(page, 'search');
    await page.ask('__clrperf.search("(")');
    assert.match(await page.ask('document.getElementById("matched").textContent'), /not a regular/);
    await page.ask('__clrperf.search("gc_heap"); document.activeElement.blur()');
    await page.key('n');
    const found = await page.ask('document.getElementById("live").textContent');
    assert.match(found, /gc_heap/);
    await page.key('0');
    await page.ask('__clrperf.search("")');
}

async function testZoom(page) {
    const rects = await page.ask('__clrperf.visibleRects()');
    const rect = rects.filter(r => r.depth === 5).sort((a, b) => b.width - a.width)[0];
    const [x, y] = await graphPoint(page, rect);
    await page.mouse('mouseMoved', x, y);
    await picture(page, 'hover');
    assert.ok((await page.ask('document.getElementById("tip").textContent')).startsWith(rect.name), 'tip');
    await page.click(x, y);
    await picture(page, 'zoom');
    assert.strictEqual(await page.ask('__clrperf.zoomed'), rect.node);
    const width = await page.ask(`__clrperf.visibleRects().find(r => r.node === ${rect.node}).width`);
    assert.ok(width > rect.width * 2, 'zoom widens');
    assert.match(await page.ask('location.hash'), new RegExp('z=' + rect.node));
    await page.key('i');
    assert.ok(await page.ask('__clrperf.state.icicle'));
    await page.key('i');
    await page.key('Escape', '');
    assert.strictEqual(await page.ask('__clrperf.zoomed'), 0);
    await page.ask('document.getElementById("canvas").focus()');
    await page.key('ArrowUp', '');
    await page.key('ArrowUp', '');
    await page.key('Enter', '\r');
    assert.ok(await page.ask('__clrperf.zoomed') > 0, 'keyboard zoom');
    await page.key('0');
}

async function testFilters(page) {
    await page.ask('__clrperf.showThreads([2, 5])');
    near(await page.ask('__clrperf.total'), (await page.ask(`(${BRUTE_FORCE})(null, [2, 5], 0, Infinity)`)).all, 'threads');
    const [left, top, width] = await page.ask('(r => [r.left, r.top, r.width])(document.getElementById("timeline").getBoundingClientRect())');
    await page.mouse('mousePressed', left + width * 0.25, top + 20);
    await page.mouse('mouseMoved', left + width * 0.3, top + 20, { button: 'left', buttons: 1 });
    await page.mouse('mouseMoved', left + width * 0.5, top + 20, { button: 'left', buttons: 1 });
    await page.ask('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))');
    await page.mouse('mouseReleased', left + width * 0.5, top + 20);
    const { from, to } = await page.ask('({ from: __clrperf.state.from, to: __clrperf.state.to })');
    assert.ok(Math.abs(from / to - 0.5) < 0.01, `range ${from} to ${to}`);
    const sums = await page.ask(`(${BRUTE_FORCE})(/Json/i, [2, 5], ${from}, ${to})`);
    near(await page.ask('__clrperf.total'), sums.all, 'range and threads');
    assert.ok(sums.count > 100 && sums.count < 5000, 'samples in the range: ' + sums.count);
    near(await page.ask('__clrperf.search("Json").matched_share'), sums.share, 'search in the range');
    const selves = await page.ask('[...__clrperf.frames.self].reduce((a, b) => a + b, 0)');
    near(selves, sums.all, 'self weights');
    await picture(page, 'range');
    const hash = await page.ask('location.hash');
    await openHtml(page, 'small.html', hash);
    near(await page.ask('__clrperf.total'), sums.all, 'state from the address');
    await page.ask('__clrperf.showThreads([])');
    assert.strictEqual(await page.ask('__clrperf.total'), 0);
}

async function testTable(page) {
    await openHtml(page, 'small.html');
    const rows = () => page.ask('[...document.querySelectorAll("#rows tbody tr")].map(row => [Number(row.dataset.frame), row.cells[0].firstChild.title])');
    const self = await rows();
    const best = await page.ask('(self => self.indexOf(Math.max(...self)))([...__clrperf.frames.self])');
    assert.strictEqual(self[0][0], best);
    near(await page.ask(`__clrperf.when(${best}).reduce((a, b) => a + b, 0)`), await page.ask(`__clrperf.frames.total[${best}]`), 'when');
    await page.ask('document.querySelector("[data-sort=total]").click()');
    const top = await page.ask('(total => total.slice(0, -1).indexOf(Math.max(...total.slice(0, -1))))([...__clrperf.frames.total])');
    assert.strictEqual((await rows())[0][0], top);
    await page.ask('filter.value = "ranking"; filter.dispatchEvent(new Event("input"))');
    assert.ok((await rows()).every(row => /Ranking/.test(row[1])));
    await page.ask('document.querySelector("#rows tbody tr").click()');
    assert.match(await page.ask('document.getElementById("matched").textContent'), /% matched/);
}

async function testNasty(page) {
    await openHtml(page, 'nasty.html');
    assertQuiet(page, 'nasty.html');
    assert.strictEqual(await page.ask('document.scripts.length - document.querySelectorAll("script[type]").length'), 1);
    assert.ok(!await page.ask('/[\\u0000-\\u0008\\u202e\\u2028]/.test(document.documentElement.textContent + JSON.stringify(__clrperf.frames.name))'));
    assert.strictEqual(await page.ask('__clrperf.frames.name.includes("</script><!-- &amp;")'), true);
    await page.open(file('nasty.svg'));
    assertQuiet(page, 'nasty.svg');
    assert.strictEqual(await page.ask('document.querySelectorAll("script").length'), 1);
}

async function testTimeline(page) {
    await openHtml(page, 'small.html');
    const labels = async (seconds, width) => (await page.ask(`__clrperf.axisLabels(${seconds * 1e9}, ${width})`)).map(label => label.text).join(' ');
    assert.strictEqual(await labels(5.16, 500), '0 2 s 4 s 5.16 s');
    assert.strictEqual(await labels(2, 500), '0 500 ms 1 s 1.5 s 2.00 s');
    assert.strictEqual(await labels(0.0042, 330), '0 2 ms 4.2 ms');
    assert.strictEqual(await labels(100, 600), '0 30 s 1 min 0 s 1 min 40 s');
    assert.strictEqual(await labels(8 * 3600, 600), '0 120 min 0 s 240 min 0 s 360 min 0 s 480 min 0 s');
    assert.strictEqual(await page.ask('__clrperf.duration(119.7e9)'), '2 min 0 s');
    /* a long title leaves the buttons beside it their width */
    const button = 'document.getElementById("help").getBoundingClientRect().width', usual = await page.ask(button);
    assert.strictEqual(await page.ask(`document.getElementById("title").textContent = "x".repeat(500), ${button}`), usual);
    const peak = 'document.getElementById("peak").textContent';
    assert.match(await page.ask(peak), / CPUs$/);
    /* where threads are that wait uses no CPU */
    await page.ask('__clrperf.meta.event = "thread-time"; __clrperf.showThreads([1])');
    assert.match(await page.ask(peak), / threads$/);
}

async function testSvg(page) {
    await page.open(file('small.svg'));
    await picture(page, 'svg');
    const count = await page.ask('__clrperf.nodeCount');
    assert.ok(count > 5000, 'frames in the picture: ' + count);
    const share = await page.ask('__clrperf.search("gc_heap")');
    assert.ok(share > 0.05 && share < 0.3, 'share ' + share);
    await page.ask('__clrperf.search("")');
    const rect = await page.ask(`(r => [r.x + r.width / 2, r.y + r.height / 2])(document.getElementById('flame').children[1].getBoundingClientRect())`);
    await page.click(...rect);
    await picture(page, 'svg-zoom');
    assert.ok(await page.ask('__clrperf.visibleRects()') < count);
    assertQuiet(page, 'small.svg');
}

async function testBig(page, figures) {
    figures.load_ms = Infinity;
    for (let n = 0; n < LOAD_TRIES && (n === 0 || figures.load_ms > LOAD_LIMIT_MS); n++) {
        await openHtml(page, 'big.html');
        const timings = await page.ask('__clrperf.timings');
        if (timings.ready < figures.load_ms)
            Object.assign(figures, { load_ms: timings.ready, picture_ms: timings.picture, timings });
    }
    await picture(page, 'big');
    const timed = async code => page.ask(`(() => { const start = performance.now(); ${code}; return Math.round(performance.now() - start); })()`);
    figures.search_ms = await timed('__clrperf.search("Discounts")');
    figures.zoom_ms = await timed('__clrperf.zoom(__clrperf.frames.name[__clrperf.nodes.frame[5]])');
    await timed('__clrperf.zoom("all")');
    figures.range_ms = await timed('__clrperf.range(50e9, 120e9)');
    figures.heap_mb = Math.round(await page.ask('performance.memory.usedJSHeapSize / 1e6'));
    const { from, to } = await page.ask('({ from: __clrperf.state.from, to: __clrperf.state.to })');
    near(await page.ask('__clrperf.total'), (await page.ask(`(${BRUTE_FORCE})(null, null, ${from}, ${to})`)).all, 'range of the big one');
    assertQuiet(page, 'big.html');
}

async function main() {
    const chromium = findChromium();
    if (!chromium) {
        console.log('skipped: no Chromium (apt-get install chromium, or set CHROMIUM)');
        return 77;
    }
    const make = (samples, variety, name) => execFileSync(bigProfile, [samples, variety, file(name + '.html'), file(name + '.svg')]).toString();
    make('20000', '6', 'small');
    make('nasty', '-', 'nasty');
    make('0', '0', 'empty');
    const figures = JSON.parse(make('1000000', '12', 'big'));
    figures.html_mb = fs.statSync(file('big.html')).size / 1e6;
    const browser = new Chromium(chromium);
    try {
        const page = await browser.page(1440, 900);
        await page.dark(false);
        for (const test of [testTotals, testSearch, testZoom, testFilters, testTimeline, testTable, testSvg, testNasty]) {
            await test(page);
            if (test !== testNasty)
                assertQuiet(page, test.name);
            console.log('ok', test.name);
        }
        await openHtml(page, 'empty.html');
        assertQuiet(page, 'empty.html');
        await page.open(file('empty.svg'));
        assertQuiet(page, 'empty.svg');
        await page.dark(true);
        await openHtml(page, 'small.html', '#v=icicle&q=Json');
        await picture(page, 'dark');
        await page.open(file('small.svg'));
        await picture(page, 'svg-dark');
        await page.dark(false);
        await testBig(page, figures);
        console.log(JSON.stringify(figures));
        assert.ok(figures.load_ms <= LOAD_LIMIT_MS, `1 M samples took ${figures.load_ms} ms to load`);
    } finally {
        await browser.close();
    }
    return 0;
}

main().catch(error => {
    console.error(error);
    return 1;
}).then(code => {
    fs.rmSync(folder, { recursive: true, force: true });
    process.exitCode = code;
});

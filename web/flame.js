/*
 * The flame graph page: one call tree, looked at from several sides.
 *
 * The data is written by src/render/flame_html.c, whose header specifies every column: "meta" is JSON,
 * "frames", "nodes" and "samples" are deflated columns of varints. Nodes come depth first with siblings
 * by name, so a subtree is a run of nodes [i, end[i]) and a node's callers have smaller numbers; node 0
 * is the root. Everything shown is derived from `self`, the weight per node of the samples that the
 * range and the threads leave in; aggregate() fills it.
 *
 * Names come from strangers: they reach the page by textContent and fillText() only.
 */
'use strict';
(() => {
const byId = id => document.getElementById(id);
const REORDERING = /[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/g;
const ROW = 20, BOX = 19, NARROWEST = 0.5, TEXT_FROM = 26;

/* Reading the data. */

function bytesOfBase64(text) {
    if (Uint8Array.fromBase64)
        return Uint8Array.fromBase64(text);
    const binary = atob(text), bytes = new Uint8Array(binary.length);
    for (let i = 0; i < bytes.length; i++)
        bytes[i] = binary.charCodeAt(i);
    return bytes;
}

async function section(id) {
    const element = byId(id), packed = bytesOfBase64(element.textContent);
    element.remove();
    const inflate = new DecompressionStream('deflate-raw'), writer = inflate.writable.getWriter();
    const written = writer.write(packed).then(() => writer.close());
    const bytes = await new Response(inflate.readable).arrayBuffer();
    await written;
    return new Reader(new Uint8Array(bytes));
}

class Reader {
    constructor(bytes) {
        this.bytes = bytes;
        this.at = 0;
        this.decoder = new TextDecoder();
    }
    byte() {
        return this.bytes[this.at++];
    }
    varint() {
        let value = 0, scale = 1, byte;
        do {
            byte = this.bytes[this.at++];
            value += (byte & 127) * scale;
            scale *= 128;
        } while (byte > 127);
        return value;
    }
    take(count) {
        this.at += count;
        return this.bytes.subarray(this.at - count, this.at);
    }
    texts() {
        return Array.from({ length: this.varint() }, () => this.decoder.decode(this.take(this.varint())));
    }
    /* Fills `out`, whose items are at most 32 bits wide, with varints. */
    column(out) {
        const bytes = this.bytes;
        let at = this.at;
        for (let i = 0; i < out.length; i++) {
            let value = bytes[at++];
            if (value > 127) {
                value &= 127;
                let shift = 7, byte;
                do {
                    byte = bytes[at++];
                    value |= (byte & 127) << shift;
                    shift += 7;
                } while (byte > 127);
            }
            out[i] = value;
        }
        this.at = at;
        return out;
    }
    wideColumn(out) {
        const bytes = this.bytes;
        for (let i = 0; i < out.length; i++)
            out[i] = bytes[this.at] < 128 ? bytes[this.at++] : this.varint();
        return out;
    }
}

const meta = JSON.parse(byId('meta').textContent,
    (key, value) => typeof value === 'string' ? value.replace(REORDERING, '\ufffd') : value);
const frames = { count: 0, name: [], module: [], file: [], line: [] };
const nodes = { count: 1 };
const samples = { count: 0 };

function readFrames(r) {
    const modules = r.texts(), files = r.texts(), count = frames.count = r.varint();
    for (const column of ['kind', 'tier', 'family', 'colour'])
        frames[column] = new Uint8Array(count + 1);
    let before = new Uint8Array(0);
    for (let i = 0; i < count; i++) {
        const shared = r.varint(), rest = r.take(r.varint());
        const bytes = new Uint8Array(shared + rest.length);
        bytes.set(before.subarray(0, shared));
        bytes.set(rest, shared);
        before = bytes;
        frames.name.push(r.decoder.decode(bytes));
        frames.module.push(modules[r.varint()]);
        frames.kind[i] = r.byte();
        frames.tier[i] = r.byte();
        frames.family[i] = r.byte();
        frames.colour[i] = r.varint();
        frames.file.push(files[r.varint()]);
        frames.line.push(r.varint());
    }
    frames.name.push('all');
    frames.module.push('');
    frames.family[count] = meta.families.length - 1; /* stacks without a frame */
}

function readNodes(r) {
    const count = nodes.count = r.varint() + 1;
    const up = r.column(new Uint16Array(count - 1));
    nodes.frame = new Uint32Array(count);
    nodes.frame[0] = frames.count;
    r.column(nodes.frame.subarray(1));
    nodes.selfAll = new Float64Array(count);
    r.wideColumn(nodes.selfAll);
    for (let i = 0; i < count; i++)
        nodes.selfAll[i] *= meta.weight_step;
    const parent = nodes.parent = new Uint32Array(count), end = nodes.end = new Uint32Array(count);
    const depth = nodes.depth = new Uint16Array(count);
    const open = new Uint32Array(65536); /* by depth */
    let d = 0;
    for (let i = 1; i < count; i++) {
        for (let n = up[i - 1]; n > 0; n--)
            end[open[d--]] = i;
        parent[i] = open[d];
        depth[i] = ++d;
        open[d] = i;
    }
    while (d >= 0)
        end[open[d--]] = count;
    nodes.self = nodes.selfAll;
    nodes.total = new Float64Array(count);
    nodes.start = new Float64Array(count);
}

function readSamples(r) {
    const count = samples.count = r.varint(), weighted = r.byte();
    const tick = samples.tick = r.column(new Uint32Array(count));
    for (let i = 1; i < count; i++)
        tick[i] += tick[i - 1];
    samples.thread = r.column(new (meta.threads.length > 65535 ? Uint32Array : Uint16Array)(count));
    const node = samples.node = r.column(new Uint32Array(count)), last = new Int32Array(meta.threads.length);
    for (let i = 0; i < count; i++) {
        const delta = node[i] >>> 1 ^ -(node[i] & 1), thread = samples.thread[i];
        node[i] = last[thread] += delta;
    }
    samples.weight = null;
    if (weighted) {
        samples.weight = r.wideColumn(new Float64Array(count));
        for (let i = 0; i < count; i++)
            samples.weight[i] *= meta.weight_step;
    }
}

/* What is looked at. */

const state = {
    zoom: 0, icicle: false, table: true, sort: 'self', descending: true, filter: '',
    from: 0, to: Infinity, /* ticks */
    hidden: new Set(), /* threads */
    mark: null, /* { kind: 'regex' | 'frame' | 'family', value }: what is highlighted */
};
let focused = -1;

function firstAtOrAfter(tick) {
    let low = 0, high = samples.count;
    while (low < high) {
        const middle = low + high >> 1;
        if (samples.tick[middle] < tick)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

function shownThreads() {
    return Uint8Array.from(meta.threads, (thread, i) => state.hidden.has(i) ? 0 : 1);
}

function filterSamples() {
    const whole = state.from <= 0 && state.to === Infinity;
    if (whole && state.hidden.size === 0) {
        nodes.self = nodes.selfAll;
        nodes.samples = meta.counts.samples;
        return;
    }
    const self = nodes.self === nodes.selfAll ? new Float64Array(nodes.count) : nodes.self.fill(0);
    const shown = shownThreads(), { thread, node, weight } = samples, step = meta.weight_step;
    let kept = 0;
    for (let i = firstAtOrAfter(state.from), to = firstAtOrAfter(state.to); i < to; i++) {
        if (!shown[thread[i]])
            continue;
        self[node[i]] += weight ? weight[i] : step;
        kept++;
    }
    nodes.self = self;
    nodes.samples = kept;
}

/* Totals, places and the sums by frame, from `self`. */
function aggregate() {
    filterSamples();
    const { count, self, total, start, parent, end, frame, depth } = nodes;
    total.set(self);
    for (let i = count - 1; i > 0; i--)
        total[parent[i]] += total[i];
    const next = new Float64Array(65536); /* by depth: where the next callee starts */
    for (let i = 0; i < count; i++) {
        const d = depth[i];
        start[i] = next[d];
        next[d] += total[i];
        next[d + 1] = start[i];
    }
    const frameSelf = frames.self = new Float64Array(frames.count + 1);
    const frameTotal = frames.total = new Float64Array(frames.count + 1);
    const behind = new Uint32Array(frames.count + 1); /* recursion counts once: inside until here */
    for (let i = 0; i < count; i++) {
        const f = frame[i];
        frameSelf[f] += self[i];
        if (i >= behind[f]) {
            frameTotal[f] += total[i];
            behind[f] = end[i];
        }
    }
    measureMark();
}

/* Marking: search, a function, a kind. */

let marked = null; /* by frame, or null */
let markedShare = 0;

function applyMark() {
    const mark = state.mark;
    marked = null;
    byId('matched').className = '';
    if (mark) {
        let test;
        if (mark.kind === 'regex') {
            let pattern;
            try {
                pattern = new RegExp(mark.value, 'i');
            } catch (error) {
                byId('matched').className = 'bad';
                byId('matched').textContent = 'not a regular expression';
                return false;
            }
            test = f => pattern.test(frames.name[f]) || (frames.module[f] !== '' && pattern.test(frames.module[f] + '!' + frames.name[f]));
        } else {
            test = mark.kind === 'frame' ? f => f === mark.value : f => frames.family[f] === mark.value;
        }
        marked = new Uint8Array(frames.count + 1);
        for (let f = 0; f < frames.count; f++)
            marked[f] = test(f) ? 1 : 0;
    }
    measureMark();
    return true;
}

/* The share of the weight under marked frames; a marked frame inside a marked one adds nothing. */
function measureMark() {
    let sum = 0;
    if (marked) {
        const { count, end, frame, total } = nodes;
        if (state.mark.kind === 'family') {
            for (let f = 0; f < frames.count; f++)
                sum += marked[f] ? frames.self[f] : 0;
        } else {
            for (let i = 1; i < count;) {
                if (marked[frame[i]]) {
                    sum += total[i];
                    i = end[i];
                } else {
                    i++;
                }
            }
        }
    }
    markedShare = nodes.total[0] ? sum / nodes.total[0] : 0;
    const out = byId('matched');
    if (out.className === 'bad' && state.mark && !marked)
        return;
    out.replaceChildren();
    if (marked) {
        const share = document.createElement('b');
        share.textContent = percent(markedShare, 2);
        out.append(share, state.mark.kind === 'family' ? ' by self' : ' matched');
    }
}

function mark(kind, value) {
    state.mark = kind ? { kind, value } : null;
    const ok = applyMark();
    showLegend();
    showTable();
    draw();
    saveState();
    return ok;
}

/* Numbers and names for people. */

const grouped = new Intl.NumberFormat('en-US');
const percent = (share, digits = 1) => (share * 100).toFixed(digits) + ' %';

function duration(ns) {
    const seconds = Math.round(ns / 1e9);
    if (seconds >= 60)
        return Math.floor(seconds / 60) + ' min ' + seconds % 60 + ' s';
    return ns >= 1e9 ? (ns / 1e9).toFixed(2) + ' s' : ns >= 1e6 ? (ns / 1e6).toFixed(1) + ' ms' : (ns / 1e3).toFixed(0) + ' µs';
}

/* Where threads were, running or not. */
const isWallTime = () => meta.event === 'thread-time';

function amount(weight) {
    if (meta.unit === 'ns')
        return duration(weight);
    if (meta.unit === 'bytes') {
        const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
        let unit = 0;
        for (; weight >= 1024 && unit < 4; unit++)
            weight /= 1024;
        return weight.toFixed(unit ? 1 : 0) + ' ' + units[unit];
    }
    return grouped.format(weight) + (meta.unit === 'count' ? '' : ' ' + meta.unit);
}

const shareOf = weight => nodes.total[0] ? weight / nodes.total[0] : 0;

const shortNames = new Map();

/* Without parameters, then without the namespace: [head, "Type.Method"]. Native names have no namespace. */
function shorter(f) {
    const name = frames.name[f];
    let pair = shortNames.get(f);
    if (pair)
        return pair;
    if (!['jit', 'r2r', 'dynamic'].includes(meta.kinds[frames.kind[f]])) {
        shortNames.set(f, [name, name]);
        return [name, name];
    }
    const open = name.indexOf('(', 1), head = open > 0 ? name.slice(0, open) : name;
    const parts = /\.(get|set|add|remove)$/.test(head) ? 3 : 2; /* Type.Property.get */
    let from = 0, nested = 0, dots = 0;
    for (let i = head.length - 1; i > 0 && name[0] !== '['; i--) {
        const c = head[i];
        nested += c === '>' || c === ']' ? 1 : c === '<' || c === '[' ? -1 : 0;
        if (c === '.' && i + 1 < head.length && nested === 0 && head[i - 1] !== '.' && ++dots === parts) {
            from = i + 1;
            break;
        }
    }
    pair = [head, head.slice(from)];
    shortNames.set(f, pair);
    return pair;
}

function kindText(f) {
    if (f === frames.count)
        return '';
    const tier = meta.tiers[frames.tier[f]], kind = meta.kinds[frames.kind[f]];
    const names = { tier0: 'tier 0', tier0_instrumented: 'tier 0, instrumented', tier1: 'tier 1', osr: 'OSR', optimized: 'optimized' };
    const kinds = { jit: 'jitted', r2r: 'precompiled' };
    return (kinds[kind] || kind) + (names[tier] ? ', ' + names[tier] : '');
}

/* Drawing the flame graph. */

const canvas = byId('canvas'), context = canvas.getContext('2d', { alpha: false });
const view = { width: 0, height: 0, scroll: 0, deepest: 0, drawn: [], rows: [] };
const widths = new Map();
let colours = [], theme = {};

function readTheme() {
    const dark = document.documentElement.classList.contains('dark'), style = getComputedStyle(document.documentElement);
    colours = meta.colours.map(pair => pair[dark ? 1 : 0]);
    for (const name of ['panel', 'all', 'filler', 'box-text', 'text', 'quiet', 'found', 'line', 'page'])
        theme[name] = style.getPropertyValue('--' + name).trim();
    theme.dark = dark;
    theme.font = '12px ' + style.getPropertyValue('--font').trim();
    widths.clear();
}

function textWidth(text) {
    let width = widths.get(text);
    if (width === undefined) {
        width = context.measureText(text).width;
        if (widths.size < 50000)
            widths.set(text, width);
    }
    return width;
}

function fitted(f, room) {
    const name = frames.name[f];
    if (textWidth(name) <= room)
        return name;
    const [head, short] = shorter(f);
    if (head !== name && textWidth(head) <= room)
        return head;
    const whole = textWidth(short);
    if (whole <= room)
        return short;
    const letters = Math.floor(short.length * (room - 9) / whole);
    return letters < 2 ? '' : short.slice(0, letters) + '…';
}

/*
 * Lists what is at least half a pixel wide, depth first; what is narrower is skipped with all its
 * callees before they are looked at. Neighbours that are skipped leave one grey box together.
 */
function collect() {
    const { depth, end, start, total, parent } = nodes, zoom = state.zoom;
    const drawn = view.drawn = [], scale = view.width / (total[zoom] || 1), origin = start[zoom];
    const skippedFrom = [], skippedTo = [];
    let deepest = depth[zoom];
    const flush = d => {
        if (skippedTo[d] - skippedFrom[d] >= NARROWEST)
            drawn.push({ node: -1, x: skippedFrom[d], width: skippedTo[d] - skippedFrom[d], depth: d });
        skippedFrom[d] = undefined;
    };
    const callers = [];
    for (let i = zoom; i > 0; i = parent[i])
        callers.unshift(parent[i]);
    for (const node of callers)
        drawn.push({ node, x: 0, width: view.width, depth: depth[node], caller: true });
    for (let i = zoom, to = end[zoom]; i < to && total[zoom] > 0;) {
        const width = total[i] * scale, d = depth[i];
        if (width >= NARROWEST) {
            drawn.push({ node: i, x: (start[i] - origin) * scale, width, depth: d });
            deepest = d > deepest ? d : deepest;
            i++;
            continue;
        }
        if (width > 0) {
            const x = (start[i] - origin) * scale;
            if (skippedFrom[d] !== undefined && x - skippedTo[d] > 0.01)
                flush(d);
            if (skippedFrom[d] === undefined)
                skippedFrom[d] = x;
            skippedTo[d] = x + width;
            deepest = d > deepest && skippedTo[d] - skippedFrom[d] >= NARROWEST ? d : deepest;
        }
        i = end[i];
    }
    skippedFrom.forEach((x, d) => x !== undefined && flush(d));
    view.deepest = deepest;
}

const contentHeight = () => (view.deepest + 1) * ROW + 12;

/* Rows count from the callers' edge, and so does the scroll position. */
function clampScroll() {
    view.scroll = Math.max(0, Math.min(view.scroll, contentHeight() - view.height));
}

function yOf(depth) {
    const offset = depth * ROW - view.scroll;
    return state.icicle ? offset + 4 : view.height - offset - ROW - 3;
}

function paintBoxes(list, fill, alpha) {
    context.globalAlpha = alpha;
    context.fillStyle = fill;
    context.beginPath();
    for (const box of list) {
        const gap = box.width > 3 ? 1 : 0, y = yOf(box.depth);
        if (box.width > 8)
            context.roundRect(box.x, y, box.width - gap, BOX, 2.5);
        else
            context.rect(box.x, y, box.width - gap, BOX);
    }
    context.fill();
    context.globalAlpha = 1;
}

function paintTexts(list) {
    context.font = theme.font;
    context.textBaseline = 'middle';
    for (const box of list) {
        if (box.width < TEXT_FROM || box.node < 0)
            continue;
        const f = nodes.frame[box.node], found = marked && marked[f];
        const text = box.node === 0 ? 'all' : fitted(f, box.width - 10);
        if (!text)
            continue;
        context.globalAlpha = box.caller || (marked && !found) ? 0.62 : 1;
        context.fillStyle = found ? (theme.dark ? '#1b0618' : '#ffffff') : theme['box-text'];
        context.fillText(text, box.x + 5, yOf(box.depth) + BOX / 2 + 0.5);
    }
    context.globalAlpha = 1;
}

function paint() {
    const ratio = devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.panel;
    context.fillRect(0, 0, view.width, view.height);
    const plain = new Map(), faded = new Map(), found = [], shown = [];
    view.rows = [];
    for (const box of view.drawn) {
        const y = yOf(box.depth);
        if (y < -ROW || y > view.height)
            continue;
        shown.push(box);
        (view.rows[box.depth] ||= []).push(box);
        const f = box.node < 0 ? -1 : nodes.frame[box.node];
        if (f >= 0 && marked && marked[f]) {
            found.push(box);
            continue;
        }
        const fill = f < 0 ? theme.filler : f === frames.count ? theme.all : colours[frames.colour[f]];
        const lists = box.caller || marked ? faded : plain;
        const list = lists.get(fill);
        if (list)
            list.push(box);
        else
            lists.set(fill, [box]);
    }
    for (const [fill, list] of faded)
        paintBoxes(list, fill, theme.dark ? 0.5 : 0.45);
    for (const [fill, list] of plain)
        paintBoxes(list, fill, 1);
    paintBoxes(found, theme.found, 1);
    paintTexts(shown);
    if (!nodes.total[0]) {
        context.fillStyle = theme.quiet;
        context.font = theme.font;
        context.fillText('No samples here. Widen the range or show more threads.', 20, 40);
    }
    placeOutline(byId('focus'), focused);
}

let drawQueued = false;

function draw() {
    collect();
    clampScroll();
    paint();
}

function drawSoon() {
    if (drawQueued)
        return;
    drawQueued = true;
    requestAnimationFrame(() => {
        drawQueued = false;
        paint();
    });
}

/* Fits the canvas to its place; false when it fits already. */
function measureGraph() {
    const box = byId('graph').getBoundingClientRect(), ratio = devicePixelRatio || 1;
    const width = Math.round(box.width * ratio), height = Math.round(box.height * ratio);
    if (width === canvas.width && height === canvas.height && view.width)
        return false;
    view.width = box.width;
    view.height = box.height;
    canvas.width = width;
    canvas.height = height;
    return true;
}

function resize() {
    if (!measureGraph())
        return;
    draw();
    drawTimeline();
}

/* Pointing. */

function boxAt(x, y) {
    const offset = state.icicle ? y - 4 + view.scroll : view.height - 3 - y + view.scroll;
    const row = view.rows[Math.floor(offset / ROW)];
    return row && row.find(box => x >= box.x && x < box.x + Math.max(box.width, 1)) || null;
}

function boxOf(node) {
    const row = node < 0 ? null : view.rows[nodes.depth[node]];
    return row && row.find(box => box.node === node) || null;
}

function placeOutline(element, node) {
    const box = boxOf(node);
    element.hidden = !box;
    if (!box)
        return;
    const gap = box.width > 3 ? 1 : 0;
    Object.assign(element.style, { left: box.x - 1 + 'px', top: yOf(box.depth) - 1 + 'px', width: Math.max(3, box.width - gap + 2) + 'px', height: BOX + 2 + 'px' });
}

function cells(tag, ...texts) {
    const row = document.createElement('tr');
    for (const text of texts) {
        const cell = document.createElement(tag);
        cell.textContent = text;
        row.append(cell);
    }
    return row;
}

function swatch(colour) {
    const element = document.createElement('span');
    element.className = 'swatch';
    element.style.background = colour;
    return element;
}

function fillTip(node) {
    const f = nodes.frame[node], tip = byId('tip');
    const name = document.createElement('div'), where = document.createElement('div'), table = document.createElement('table');
    name.className = 'name';
    name.textContent = node === 0 ? 'all' : frames.name[f];
    where.className = 'where';
    if (node > 0) {
        const place = frames.file[f] ? frames.file[f] + (frames.line[f] ? ':' + frames.line[f] : '') : '';
        const text = document.createElement('span');
        text.textContent = [frames.module[f], kindText(f), place].filter(Boolean).join(' · ');
        where.append(swatch(colours[frames.colour[f]]), text);
    }
    const both = weight => [amount(weight), percent(shareOf(weight), 2)];
    table.append(cells('th', '', 'total', '', 'self', ''));
    table.append(cells('td', 'here', ...both(nodes.total[node]), ...both(nodes.self[node])));
    if (node > 0)
        table.append(cells('td', 'everywhere', ...both(frames.total[f]), ...both(frames.self[f])));
    if (state.zoom && node >= state.zoom && nodes.total[state.zoom])
        table.append(cells('td', 'of the zoom', '', percent(nodes.total[node] / nodes.total[state.zoom], 2), '', percent(nodes.self[node] / nodes.total[state.zoom], 2)));
    tip.replaceChildren(name, where, table);
}

let hovered = -1;

function hover(event) {
    const box = boxAt(event.offsetX, event.offsetY), tip = byId('tip');
    const node = box ? box.node : -1;
    canvas.style.cursor = node >= 0 ? 'pointer' : 'default';
    if (node !== hovered) {
        hovered = node;
        placeOutline(byId('hover'), node);
        tip.hidden = node < 0;
        if (node >= 0)
            fillTip(node);
    }
    if (node < 0)
        return;
    const width = tip.offsetWidth, height = tip.offsetHeight;
    const left = Math.max(4, Math.min(event.offsetX + 14, view.width - width - 6));
    const top = event.offsetY + 18 + height < view.height ? event.offsetY + 18 : Math.max(4, event.offsetY - height - 12);
    tip.style.left = left + 'px';
    tip.style.top = top + 'px';
}

function unhover() {
    hovered = -1;
    byId('hover').hidden = byId('tip').hidden = true;
}

function zoomTo(node) {
    state.zoom = node;
    unhover();
    view.scroll = Math.max(0, (nodes.depth[node] - 3) * ROW);
    showPath();
    draw();
    saveState();
}

function showPath() {
    const path = byId('path'), list = [];
    for (let i = state.zoom; i > 0; i = nodes.parent[i])
        list.unshift(i);
    const crumb = node => {
        const last = node === state.zoom, element = document.createElement(last ? 'span' : 'button');
        element.textContent = node ? shorter(nodes.frame[node])[1] : 'all';
        element.title = node ? frames.name[nodes.frame[node]] : 'Reset zoom (0)';
        if (last)
            element.className = 'last';
        else
            element.addEventListener('click', () => zoomTo(node));
        return element;
    };
    path.replaceChildren(crumb(0));
    if (list.length > 5)
        path.append(' › … ');
    for (const node of list.slice(-5))
        path.append(' › ', crumb(node));
    path.append(' ' + percent(shareOf(nodes.total[state.zoom])) + (state.zoom ? ' of all' : ''));
}

/* Keyboard focus in the graph. */

function focusOn(node) {
    focused = node;
    const at = nodes.depth[node] * ROW;
    if (at < view.scroll)
        view.scroll = at;
    if (at + ROW > view.scroll + view.height - 16)
        view.scroll = at + ROW - view.height + 16;
    clampScroll();
    paint();
    byId('live').textContent = frames.name[nodes.frame[node]] + ', ' + percent(shareOf(nodes.total[node])) + ' total, ' + percent(shareOf(nodes.self[node])) + ' self';
}

function siblingOf(node, step) {
    const row = view.drawn.filter(box => box.node >= 0 && box.depth === nodes.depth[node]);
    return row[row.findIndex(box => box.node === node) + step]?.node;
}

function moveFocus(key) {
    if (focused < 0 || !view.drawn.some(box => box.node === focused))
        return focusOn(state.zoom);
    let to;
    if (key === (state.icicle ? 'ArrowUp' : 'ArrowDown'))
        to = focused > 0 ? nodes.parent[focused] : 0;
    else if (key === 'ArrowLeft')
        to = siblingOf(focused, -1);
    else if (key === 'ArrowRight')
        to = siblingOf(focused, 1);
    else
        for (let i = focused + 1; i < nodes.end[focused]; i = nodes.end[i])
            to = to === undefined || nodes.total[i] > nodes.total[to] ? i : to;
    if (to !== undefined)
        focusOn(to);
}

function nextMatch(step) {
    if (!marked)
        return;
    const hits = [];
    for (let i = 1; i < nodes.count;) {
        const hit = marked[nodes.frame[i]] && nodes.total[i] > 0;
        if (hit)
            hits.push(i);
        i = hit || nodes.total[i] === 0 ? nodes.end[i] : i + 1;
    }
    if (!hits.length)
        return;
    const at = step > 0 ? hits.findIndex(i => i > focused) : hits.findLastIndex(i => i < focused);
    const node = hits[at >= 0 ? at : step > 0 ? 0 : hits.length - 1];
    if (node < state.zoom || node >= nodes.end[state.zoom] || nodes.total[node] * view.width / nodes.total[state.zoom] < 4)
        zoomTo(node);
    focusOn(node);
}

/* The table. */

const ROWS_SHOWN = 100, WHEN_BUCKETS = 32, WHEN_WIDTH = 64, WHEN_HEIGHT = 20;
let sortedFrames = [];

function sortTable() {
    const { sort, descending } = state, sign = descending ? -1 : 1;
    const list = [];
    for (let f = 0; f < frames.count; f++)
        if (frames.total[f] > 0)
            list.push(f);
    const column = frames[sort];
    /* Frames are ordered by name already. */
    list.sort(sort === 'name' ? (a, b) => sign * (a - b) : (a, b) => sign * (column[a] - column[b]) || a - b);
    sortedFrames = list;
}

function amountCell(weight, largest) {
    const cell = document.createElement('td'), bar = document.createElement('i');
    cell.textContent = percent(shareOf(weight));
    cell.title = amount(weight);
    bar.style.width = (largest ? Math.max(weight / largest * 100, 0.5) : 0) + '%';
    cell.append(bar);
    return cell;
}

function tableRow(f, most) {
    const row = document.createElement('tr'), cell = document.createElement('td');
    const name = document.createElement('span'), module = document.createElement('span');
    name.className = 'fn';
    name.textContent = shorter(f)[1];
    name.title = frames.name[f];
    module.className = 'mod';
    module.append(swatch(colours[frames.colour[f]]), frames.module[f] || meta.families[frames.family[f]].name);
    cell.append(name, module);
    const when = document.createElement('td'), strip = document.createElement('canvas');
    strip.width = WHEN_WIDTH * 2;
    strip.height = WHEN_HEIGHT * 2;
    when.append(strip);
    row.append(cell, when, amountCell(frames.self[f], most.self), amountCell(frames.total[f], most.total));
    row.tabIndex = 0;
    row.dataset.frame = f;
    row.classList.toggle('chosen', state.mark?.kind === 'frame' && state.mark.value === f);
    return row;
}

function showTable() {
    byId('table').hidden = !state.table;
    byId('side').setAttribute('aria-pressed', state.table);
    if (!state.table || !frames.total)
        return;
    const words = state.filter.toLowerCase();
    const kept = words ? sortedFrames.filter(f => (frames.module[f] + '!' + frames.name[f]).toLowerCase().includes(words)) : sortedFrames;
    const most = { self: 0, total: nodes.total[0] };
    for (let f = 0; f < frames.count; f++)
        most.self = Math.max(most.self, frames.self[f]);
    byId('rows').querySelector('tbody').replaceChildren(...kept.slice(0, ROWS_SHOWN).map(f => tableRow(f, most)));
    byId('more').textContent = kept.length > ROWS_SHOWN ? grouped.format(kept.length - ROWS_SHOWN) + ' more; filter to find them' : kept.length ? '' : 'No function here.';
    for (const head of byId('rows').querySelectorAll('th')) {
        const on = head.firstChild.dataset?.sort === state.sort;
        if (on)
            head.setAttribute('aria-sort', state.descending ? 'descending' : 'ascending');
        else
            head.removeAttribute('aria-sort');
    }
    showWhenSoon();
}

/* Weight by row and part of the shown time, of the samples with the row's function on their stack. */
function binWhen(rowOfFrame, rows) {
    const { parent, frame, count } = nodes, { tick, thread, node, weight } = samples;
    const near = new Uint32Array(count); /* the nearest caller, or the node itself, that has a row */
    for (let i = 1; i < count; i++)
        near[i] = rowOfFrame[frame[i]] >= 0 ? i : near[parent[i]];
    const from = state.from, span = Math.min(state.to, lastTick()) - from, shown = shownThreads();
    const bins = new Float64Array(rows * WHEN_BUCKETS);
    const seen = new Int32Array(rows).fill(-1);
    for (let i = firstAtOrAfter(from), to = firstAtOrAfter(state.to); i < to; i++) {
        if (!shown[thread[i]])
            continue;
        const bucket = Math.floor((tick[i] - from) / span * WHEN_BUCKETS), w = weight ? weight[i] : meta.weight_step;
        for (let n = near[node[i]]; n > 0; n = near[parent[n]]) {
            const row = rowOfFrame[frame[n]];
            if (seen[row] !== i) {
                seen[row] = i;
                bins[row * WHEN_BUCKETS + bucket] += w;
            }
        }
    }
    return bins;
}

let whenTimer = 0;

/* Bars relative to the function's own busiest part, so that rare ones show their shape too. */
function showWhen() {
    const rows = [...byId('rows').querySelectorAll('tbody tr')];
    if (!samples.count || !rows.length)
        return;
    const rowOfFrame = new Int16Array(frames.count + 1).fill(-1);
    rows.forEach((row, i) => rowOfFrame[row.dataset.frame] = i);
    const bins = binWhen(rowOfFrame, rows.length);
    rows.forEach((row, i) => {
        const part = bins.subarray(i * WHEN_BUCKETS, (i + 1) * WHEN_BUCKETS), most = Math.max(...part) || 1;
        const g = row.querySelector('canvas').getContext('2d'), step = WHEN_WIDTH / WHEN_BUCKETS;
        g.setTransform(2, 0, 0, 2, 0, 0);
        g.clearRect(0, 0, WHEN_WIDTH, WHEN_HEIGHT);
        g.fillStyle = colours[frames.colour[row.dataset.frame]];
        part.forEach((weight, b) => {
            const tall = weight ? Math.max(1, weight / most * WHEN_HEIGHT) : 0;
            g.fillRect(b * step, WHEN_HEIGHT - tall, step - 0.4, tall);
        });
    });
}

function showWhenSoon() {
    clearTimeout(whenTimer);
    if (meta.duration_ns)
        whenTimer = setTimeout(showWhen, 120);
}

function largestNodeOf(f) {
    let best = 0;
    for (let i = 1; i < nodes.count; i++)
        if (nodes.frame[i] === f && (best === 0 || nodes.total[i] > nodes.total[best]))
            best = i;
    return best;
}

/* Legend, facts, threads. */

function showLegend() {
    const self = new Float64Array(meta.families.length);
    for (let f = 0; f <= frames.count; f++)
        self[frames.family[f]] += frames.self[f];
    const buttons = meta.families.map((family, i) => {
        const button = document.createElement('button'), name = document.createElement('span'), share = document.createElement('span');
        name.textContent = family.name;
        share.textContent = percent(shareOf(self[i]));
        const on = state.mark?.kind === 'family' && state.mark.value === i;
        button.setAttribute('aria-pressed', on);
        button.title = 'Self weight of this kind of code; click to show where it is';
        button.append(swatch(family.colour[theme.dark ? 1 : 0]), name, share);
        button.hidden = !self[i] && !frames.family.subarray(0, frames.count).includes(i);
        button.addEventListener('click', () => {
            byId('search').value = '';
            mark(on ? null : 'family', i);
        });
        return button;
    });
    byId('legend').replaceChildren(...buttons);
}

function showFacts() {
    const c = meta.counts, stacks = c.whole + c.truncated + c.broken, facts = [];
    const fact = (value, what, bad, title) => facts.push({ value, what, bad, title });
    fact(meta.event + (meta.rate_hz ? ' ' + meta.rate_hz + ' Hz' : ''), '', false, 'What was sampled, and how often');
    if (meta.start_realtime_ms)
        fact(new Date(meta.start_realtime_ms).toISOString().slice(0, 19).replace('T', ' '), 'UTC', false, 'Start of the recording');
    if (meta.duration_ns)
        fact(duration(meta.duration_ns), 'recorded');
    fact(grouped.format(nodes.samples), nodes.samples === c.samples ? 'samples' : 'of ' + grouped.format(c.samples) + ' samples');
    fact(grouped.format(c.lost), 'lost', c.lost > 0, 'Samples of the whole recording that were lost: ' + (Object.entries(c.lost_by).map(([why, n]) => why + ' ' + n).join(', ') || 'none'));
    const short = stacks ? (c.broken + c.truncated) / stacks : 0;
    fact(percent(short, 2), 'of stacks not whole', short > 0.01, grouped.format(c.broken) + ' broken, ' + grouped.format(c.truncated) + ' cut off');
    const share = n => c.user_frames ? n / c.user_frames : 0;
    fact(percent(share(c.unnamed), 2), 'unnamed frames', share(c.unnamed) > 0.01, grouped.format(c.unnamed) + ' user frames of which only an address is known');
    if (c.native_without_symbols)
        fact(percent(share(c.native_without_symbols), 1), 'in stripped libraries', false, grouped.format(c.native_without_symbols) + ' user frames are placed in a function of a library that has no symbols');
    for (const p of meta.processes.slice(0, 2))
        if (p.runtime_version)
            fact('.NET ' + p.runtime_version, '', false, p.name);
    byId('facts').replaceChildren(...facts.map(({ value, what, bad, title }) => {
        const item = document.createElement('li'), strong = document.createElement('b');
        strong.textContent = value;
        item.append(strong, what ? ' ' + what : '');
        item.title = title || '';
        item.className = bad ? 'warn' : '';
        return item;
    }));
    const cpu = /^(cpu|task)-clock|^cycles/.test(meta.event);
    byId('mode').textContent = cpu ? 'on-CPU' : isWallTime() ? 'wall time' : meta.unit === 'ns' ? 'time' : meta.unit;
}

function showThreads() {
    const all = meta.threads.length - 1, shown = all - state.hidden.size;
    byId('threads').textContent = shown === all ? 'Threads: all ' + all : 'Threads: ' + shown + ' of ' + all;
    const list = byId('threadlist');
    if (list.hidden)
        return;
    const order = meta.threads.map((thread, i) => i).slice(1).sort((a, b) => meta.threads[b].samples - meta.threads[a].samples);
    const most = Math.max(1, ...order.map(i => meta.threads[i].samples));
    const several = new Set(order.map(i => meta.threads[i].pid)).size > 1;
    const head = document.createElement('div');
    head.className = 'row';
    for (const [text, hide] of [['All', false], ['None', true]]) {
        const button = document.createElement('button');
        button.textContent = text;
        button.addEventListener('click', () => setHidden(hide ? order : []));
        head.append(button);
    }
    const rows = order.map(i => {
        const thread = meta.threads[i], label = document.createElement('label'), box = document.createElement('input');
        box.type = 'checkbox';
        box.checked = !state.hidden.has(i);
        box.addEventListener('change', () => {
            const hidden = new Set(state.hidden);
            if (box.checked)
                hidden.delete(i);
            else
                hidden.add(i);
            setHidden(hidden, true);
        });
        const name = document.createElement('span'), number = document.createElement('span'), bar = document.createElement('i');
        name.className = 'name';
        name.textContent = (several ? thread.process + ' › ' : '') + (thread.name || 'thread') + ' ' + thread.tid;
        number.className = 'number';
        number.textContent = grouped.format(thread.samples);
        bar.style.width = thread.samples / most * 100 + '%';
        const only = document.createElement('button');
        only.className = 'only';
        only.textContent = 'only';
        only.addEventListener('click', event => {
            event.preventDefault();
            setHidden(order.filter(other => other !== i));
        });
        label.append(box, name, only, number, bar);
        return label;
    });
    list.replaceChildren(head, ...rows);
}

function setHidden(threads, keepList) {
    state.hidden = new Set(threads);
    refilter();
    drawTimeline();
    if (keepList)
        byId('threads').textContent = 'Threads: ' + (meta.threads.length - 1 - state.hidden.size) + ' of ' + (meta.threads.length - 1);
    else
        showThreads();
}

/* The timeline. */

const timeline = byId('timeline'), strip = timeline.firstElementChild;
const AXIS = 15;
const lastTick = () => Math.max(1, Math.ceil(meta.duration_ns / meta.tick_ns), samples.count ? samples.tick[samples.count - 1] + 1 : 0);

function binSamples(buckets) {
    const kinds = meta.families.length, bins = new Float64Array(buckets * kinds), shown = shownThreads();
    const { tick, thread, node, weight } = samples, scale = buckets / lastTick(), { frame } = nodes;
    for (let i = 0; i < samples.count; i++)
        if (shown[thread[i]])
            bins[Math.floor(tick[i] * scale) * kinds + frames.family[frame[node[i]]]] += weight ? weight[i] : meta.weight_step;
    return bins;
}

/* What is between two labels: of one figure, from ten seconds on what a clock shows. */
function axisStep(least) {
    const clock = [10e9, 15e9, 30e9, 60e9, 120e9, 300e9, 600e9, 900e9, 1800e9, 3600e9], hour = 3600e9;
    if (least > 5e9)
        return clock.find(step => step >= least) || Math.ceil(least / hour) * hour;
    const unit = 10 ** Math.floor(Math.log10(least) + 1e-9);
    return unit * [1, 2, 5, 10].find(n => n * unit >= least * (1 - 1e-9));
}

/* Where labels are, in pixels, and what they say: round times, and the end. */
function axisLabels(whole, width) {
    const labels = [{ x: 0, text: '0' }], step = axisStep(whole / Math.max(2, width / 110));
    for (let n = 1; n * step < whole; n++)
        if (width - width * n * step / whole > 80)
            labels.push({ x: width * n * step / whole, text: duration(n * step).replace(/\.(\d*?)0+ /, (_, left) => (left && '.' + left) + ' ') });
    labels.push({ x: width, text: duration(whole) });
    return labels;
}

function drawTimeline() {
    const ratio = devicePixelRatio || 1, width = timeline.clientWidth, height = timeline.clientHeight, g = strip.getContext('2d');
    strip.width = Math.round(width * ratio);
    strip.height = Math.round(height * ratio);
    if (!samples.count || !width)
        return;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    const buckets = Math.max(1, Math.min(Math.floor(width / 3), Math.max(120, samples.count >> 1))), kinds = meta.families.length, bins = binSamples(buckets);
    const sums = new Float64Array(buckets);
    for (let i = 0; i < bins.length; i++)
        sums[Math.floor(i / kinds)] += bins[i];
    const most = Math.max(...sums) || 1, room = height - AXIS, step = width / buckets;
    const tops = new Float64Array(buckets).fill(room);
    for (let k = 0; k < kinds; k++) {
        g.fillStyle = meta.families[k].colour[theme.dark ? 1 : 0];
        for (let b = 0; b < buckets; b++) {
            const tall = bins[b * kinds + k] / most * (room - 2);
            tops[b] -= tall;
            if (tall > 0)
                g.fillRect(b * step, tops[b], Math.max(1, step - (step > 2.5 ? 0.6 : 0)), tall + 0.3);
        }
    }
    g.fillStyle = theme.line;
    g.fillRect(0, room, width, 1);
    g.fillStyle = theme.quiet;
    g.font = '10.5px ' + theme.font.slice(5);
    g.textBaseline = 'bottom';
    const whole = lastTick() * meta.tick_ns;
    for (const { x, text } of axisLabels(whole, width)) {
        g.textAlign = x === 0 ? 'left' : x === width ? 'right' : 'center';
        g.fillText(text, x, height);
    }
    const peak = most / (whole / buckets);
    byId('peak').textContent = meta.unit === 'ns' ? 'peak ' + peak.toFixed(peak < 1 ? 2 : 1) + (isWallTime() ? ' threads' : ' CPUs') : '';
    showRange();
}

function showRange() {
    const range = byId('range'), whole = lastTick(), none = state.to === Infinity;
    range.hidden = byId('unrange').hidden = none;
    if (none)
        return;
    range.style.left = state.from / whole * 100 + '%';
    range.style.width = (state.to - state.from) / whole * 100 + '%';
    byId('unrange').textContent = duration(state.from * meta.tick_ns) + ' – ' + duration(state.to * meta.tick_ns) + ' ✕';
    byId('unrange').title = 'Show the whole recording again';
}

function setRange(from, to) {
    const whole = lastTick();
    if (to - from < 1 || (from <= 0 && to >= whole)) {
        state.from = 0;
        state.to = Infinity;
    } else {
        state.from = Math.max(0, Math.round(from));
        state.to = Math.min(whole, Math.round(to));
    }
    showRange();
    refilter();
}

function dragRange(down) {
    if (down.button !== 0)
        return;
    const box = timeline.getBoundingClientRect(), tickAt = event => Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * lastTick();
    const from = tickAt(down);
    let queued = null;
    const move = event => {
        const idle = queued === null;
        queued = event;
        if (idle)
            requestAnimationFrame(() => {
                const to = tickAt(queued);
                queued = null;
                setRange(Math.min(from, to), Math.max(from, to));
            });
    };
    timeline.setPointerCapture(down.pointerId);
    timeline.addEventListener('pointermove', move);
    timeline.addEventListener('pointerup', event => {
        timeline.removeEventListener('pointermove', move);
        if (Math.abs(event.clientX - down.clientX) < 3)
            setRange(0, 0);
    }, { once: true });
}

function keyRange(event) {
    const whole = lastTick(), step = whole / 40;
    let { from, to } = state.to === Infinity ? { from: whole * 0.4, to: whole * 0.6 } : state;
    const change = { ArrowLeft: [-step, -step], ArrowRight: [step, step], '+': [-step / 2, step / 2], '-': [step / 2, -step / 2] }[event.key];
    if (event.key === 'Delete' || event.key === 'Backspace')
        setRange(0, 0);
    else if (change && from + change[0] >= 0 && to + change[1] <= whole)
        setRange(from + change[0], to + change[1]);
    else if (!change)
        return;
    event.preventDefault();
    event.stopPropagation();
}

function refilter() {
    aggregate();
    sortTable();
    showAll();
    saveState();
}

function showAll() {
    showFacts();
    showLegend();
    showPath();
    showTable();
    unhover();
    draw();
}

/* State in the address, theme, keys. */

function saveState() {
    const words = new URLSearchParams();
    if (state.mark)
        words.set({ regex: 'q', frame: 'f', family: 'k' }[state.mark.kind], state.mark.value);
    if (state.zoom)
        words.set('z', state.zoom);
    if (state.icicle)
        words.set('v', 'icicle');
    if (state.to !== Infinity)
        words.set('r', state.from + '-' + state.to);
    if (state.hidden.size)
        words.set('hide', [...state.hidden].join('.'));
    if (!state.table)
        words.set('table', '0');
    if (state.theme)
        words.set('theme', state.theme);
    const text = words.toString();
    if (text !== location.hash.slice(1))
        history.replaceState(null, '', text ? '#' + text : location.pathname + location.search);
}

function numberIn(text, limit) {
    const value = Number(text);
    return Number.isInteger(value) && value >= 0 && value < limit ? value : 0;
}

function loadState() {
    const words = new URLSearchParams(location.hash.slice(1));
    state.icicle = words.get('v') === 'icicle';
    state.table = words.get('table') !== '0' && innerWidth > 900;
    state.theme = ['light', 'dark'].includes(words.get('theme')) ? words.get('theme') : '';
    state.zoom = numberIn(words.get('z'), nodes.count);
    state.mark = words.has('q') ? { kind: 'regex', value: words.get('q') } : words.has('f') ? { kind: 'frame', value: numberIn(words.get('f'), frames.count) } : words.has('k') ? { kind: 'family', value: numberIn(words.get('k'), meta.families.length) } : null;
    byId('search').value = state.mark?.kind === 'regex' ? state.mark.value : '';
    state.hidden = new Set((words.get('hide') || '').split('.').map(text => numberIn(text, meta.threads.length)).filter(Boolean));
    const range = /^(\d+)-(\d+)$/.exec(words.get('r') || '');
    state.from = range ? Number(range[1]) : 0;
    state.to = range && Number(range[2]) > state.from ? Number(range[2]) : Infinity;
}

const darkWanted = matchMedia('(prefers-color-scheme: dark)');

function applyTheme() {
    document.documentElement.classList.toggle('dark', state.theme ? state.theme === 'dark' : darkWanted.matches);
    readTheme();
}

function toggleTheme() {
    state.theme = document.documentElement.classList.contains('dark') ? 'light' : 'dark';
    applyTheme();
    showAll();
    drawTimeline();
    saveState();
}

function showDirection() {
    byId('icicle').setAttribute('aria-pressed', state.icicle);
    byId('flame').setAttribute('aria-pressed', !state.icicle);
}

function setIcicle(icicle) {
    state.icicle = icicle;
    showDirection();
    unhover();
    draw();
    saveState();
}

function toggleTable() {
    state.table = !state.table;
    showTable();
    resize();
    saveState();
}

function toggleThreadList(show) {
    byId('threadlist').hidden = !show;
    byId('threads').setAttribute('aria-expanded', show);
    showThreads();
}

const KEYS = [
    ['/  Ctrl-F', 'search by regular expression', () => byId('search').select()],
    ['n  N', 'next, previous match'],
    ['← ↑ ↓ →', 'move between frames'],
    ['Enter', 'zoom into the frame'],
    ['0  Esc', 'reset the zoom'],
    ['i', 'flame or icicle'],
    ['t', 'table of functions'],
    ['d', 'light or dark'],
    ['drag the timeline', 'look at a range of time only'],
    ['Alt-click', 'mark a function everywhere'],
];

function plainKey(event) {
    switch (event.key) {
    case '/': byId('search').focus(); byId('search').select(); break;
    case 'n': nextMatch(1); break;
    case 'N': nextMatch(-1); break;
    case '0': zoomTo(0); break;
    case 'i': setIcicle(!state.icicle); break;
    case 't': toggleTable(); break;
    case 'd': toggleTheme(); break;
    case '?': byId('keys').showModal(); break;
    case 'ArrowUp': case 'ArrowDown': case 'ArrowLeft': case 'ArrowRight': moveFocus(event.key); break;
    default: return;
    }
    event.preventDefault();
}

function onKey(event) {
    if (event.key === 'f' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        byId('search').focus();
        byId('search').select();
        return;
    }
    if (byId('keys').open || event.ctrlKey || event.metaKey || event.altKey)
        return;
    const typing = event.target instanceof HTMLInputElement && event.target.type === 'search';
    if (event.key === 'Escape') {
        if (!byId('threadlist').hidden)
            toggleThreadList(false);
        else if (typing) {
            event.target.value = '';
            event.target.dispatchEvent(new Event('input'));
            canvas.focus();
        } else
            zoomTo(0);
    } else if (event.key === 'Enter' && event.target === byId('search')) {
        nextMatch(event.shiftKey ? -1 : 1);
    } else if (event.key === 'Enter' && event.target === canvas && focused >= 0) {
        zoomTo(focused);
        focusOn(focused);
    } else if (!typing && event.target !== timeline) {
        plainKey(event);
    }
}

function wireGraph() {
    canvas.addEventListener('pointermove', hover);
    canvas.addEventListener('pointerleave', unhover);
    canvas.addEventListener('wheel', event => {
        if (event.ctrlKey)
            return;
        event.preventDefault();
        const by = event.deltaMode === 1 ? event.deltaY * ROW : event.deltaY;
        view.scroll += state.icicle ? by : -by;
        clampScroll();
        unhover();
        drawSoon();
    }, { passive: false });
    canvas.addEventListener('click', event => {
        const box = boxAt(event.offsetX, event.offsetY);
        if (!box || box.node < 0)
            return;
        focused = box.node;
        if (event.altKey) {
            byId('search').value = '';
            mark('frame', nodes.frame[box.node]);
        } else {
            zoomTo(box.node);
        }
    });
    new ResizeObserver(resize).observe(byId('graph'));
}

function wireTable() {
    const body = byId('rows').querySelector('tbody');
    const frameOf = event => Number(event.target.closest('tr').dataset.frame);
    const choose = f => {
        const on = state.mark?.kind === 'frame' && state.mark.value === f;
        byId('search').value = '';
        mark(on ? null : 'frame', f);
    };
    body.addEventListener('click', event => choose(frameOf(event)));
    body.addEventListener('dblclick', event => zoomTo(largestNodeOf(frameOf(event))));
    body.addEventListener('keydown', event => {
        if (event.key !== 'Enter' && event.key !== ' ')
            return;
        const f = frameOf(event);
        event.preventDefault();
        choose(f);
        body.querySelector('tr[data-frame="' + f + '"]')?.focus();
    });
    byId('rows').querySelector('thead').addEventListener('click', event => {
        const sort = event.target.dataset.sort;
        if (!sort)
            return;
        state.descending = state.sort === sort ? !state.descending : sort !== 'name';
        state.sort = sort;
        sortTable();
        showTable();
    });
    byId('filter').addEventListener('input', event => {
        state.filter = event.target.value;
        showTable();
    });
}

function wire() {
    wireGraph();
    wireTable();
    byId('search').addEventListener('input', event => mark(event.target.value ? 'regex' : null, event.target.value));
    byId('flame').addEventListener('click', () => setIcicle(false));
    byId('icicle').addEventListener('click', () => setIcicle(true));
    byId('side').addEventListener('click', toggleTable);
    byId('theme').addEventListener('click', toggleTheme);
    byId('help').addEventListener('click', () => byId('keys').showModal());
    byId('threads').addEventListener('click', () => toggleThreadList(byId('threadlist').hidden));
    byId('unrange').addEventListener('click', () => setRange(0, 0));
    timeline.addEventListener('pointerdown', dragRange);
    timeline.addEventListener('keydown', keyRange);
    document.addEventListener('pointerdown', event => {
        if (!byId('threadlist').hidden && !event.target.closest('#threadlist, #threads'))
            toggleThreadList(false);
    });
    window.addEventListener('keydown', onKey);
    darkWanted.addEventListener('change', () => {
        applyTheme();
        showAll();
        drawTimeline();
    });
    for (const [keys, what] of KEYS) {
        const term = document.createElement('dt'), text = document.createElement('dd');
        term.textContent = keys;
        text.textContent = what;
        byId('keys').querySelector('dl').append(term, text);
    }
}

/* Start. */

const timings = {};
const lap = name => timings[name] = Math.round(performance.now());

async function start() {
    lap('script');
    readFrames(await section('frames'));
    lap('frames');
    const columns = await section('nodes');
    lap('unpacked');
    readNodes(columns);
    lap('nodes');
    loadState();
    const later = { from: state.from, to: state.to, hidden: state.hidden };
    /* The first picture needs no samples: nodes know their self weight. */
    Object.assign(state, { from: 0, to: Infinity, hidden: new Set() });
    applyTheme();
    aggregate();
    applyMark();
    sortTable();
    byId('table').hidden = !state.table;
    showDirection();
    timeline.hidden = !meta.duration_ns; /* folded stacks tell no times */
    measureGraph();
    showAll();
    showThreads();
    wire();
    lap('picture');
    /* They stand behind this script, so that the picture does not wait for them. */
    if (document.readyState === 'loading')
        await new Promise(done => document.addEventListener('DOMContentLoaded', done));
    readSamples(await section('samples'));
    lap('samples');
    Object.assign(state, later);
    if (state.hidden.size || state.to !== Infinity) {
        refilter();
        showThreads();
    }
    drawTimeline();
    showWhenSoon();
    lap('ready');
}

window.__clrperf = {
    meta, frames, nodes, samples, state, timings, axisLabels, duration,
    get nodeCount() { return nodes.count; },
    get total() { return nodes.total[0]; },
    get zoomed() { return state.zoom; },
    search(text) {
        byId('search').value = text;
        mark(text ? 'regex' : null, text);
        return { matched_share: markedShare };
    },
    zoom(name) {
        const f = frames.name.indexOf(name);
        zoomTo(f < 0 || f === frames.count ? 0 : largestNodeOf(f));
        return state.zoom;
    },
    visibleRects: () => view.drawn.filter(box => box.node >= 0).map(({ node, x, width, depth }) => ({ node, name: frames.name[nodes.frame[node]], x, y: yOf(depth), width, depth })),
    showThreads(list) { setHidden(meta.threads.map((thread, i) => i).slice(1).filter(i => !list.includes(i))); },
    when: f => [...binWhen(Int16Array.from({ length: frames.count + 1 }, (_, i) => i === f ? 0 : -1), 1)],
    range(fromNs, toNs) { setRange(fromNs / meta.tick_ns, toNs / meta.tick_ns); },
    ready: start(),
};
window.__clrperf.ready.catch(error => {
    byId('facts').textContent = 'This page cannot show its data: ' + error.message;
});
})();

/*
 * The script inside a flame graph's SVG. `seconds` and `boxes` (depth and weight of each frame, depth
 * first) stand in front of it; the frames are the children of #flame in the same order.
 */
const WIDTH = 1176, MARGIN = 12, CHARACTER = 6.62, NARROWEST = 0.1;
const svg = document.documentElement;
const groups = Array.from(document.getElementById('flame').children);
const count = groups.length;
const depth = new Uint16Array(count), weight = new Float64Array(count), start = new Float64Array(count);
const end = new Uint32Array(count), parent = new Int32Array(count);
const titles = [], names = [];
let zoomed = 0, pattern = null, found = null;

function prepare() {
    const open = [], next = [];
    for (let i = 0; i < count; i++) {
        depth[i] = boxes[2 * i];
        weight[i] = boxes[2 * i + 1];
        while (open.length > depth[i])
            end[open.pop()] = i;
        parent[i] = open.length ? open[open.length - 1] : -1;
        start[i] = i ? next[depth[i] - 1] : 0;
        if (i)
            next[depth[i] - 1] += weight[i];
        next[depth[i]] = start[i];
        open.push(i);
        const title = groups[i].firstChild.textContent;
        titles.push(title);
        names.push(i ? title.slice(0, title.lastIndexOf(' (')) : 'all');
    }
    while (open.length)
        end[open.pop()] = count;
}

/* The part of a name that fits: without parameters, then without namespace, then cut. */
function label(name, room) {
    if (name.length <= room)
        return name;
    const open = name.indexOf('(', 1);
    const head = open > 0 ? name.slice(0, open) : name;
    if (head.length <= room)
        return head;
    let from = 0, nested = 0, dots = 0;
    for (let i = head.length - 1; i > 0 && name[0] !== '['; i--) {
        const c = head[i];
        nested += c === '>' || c === ']' ? 1 : c === '<' || c === '[' ? -1 : 0;
        if (c === '.' && i + 1 < head.length && nested === 0 && head[i - 1] !== '.' && ++dots === 2) {
            from = i + 1;
            break;
        }
    }
    const short = head.slice(from);
    return short.length <= room ? short : short.slice(0, room - 2) + '..';
}

function place(i, x, width) {
    const group = groups[i];
    const visible = width >= NARROWEST;
    group.style.display = visible ? '' : 'none';
    if (!visible)
        return;
    const box = group.children[1];
    box.setAttribute('x', x.toFixed(2));
    box.setAttribute('width', width.toFixed(2));
    let text = group.children[2];
    const room = Math.floor((width - 8) / CHARACTER);
    if (room < 3) {
        if (text)
            text.textContent = '';
        return;
    }
    if (!text) {
        text = document.createElementNS(svg.namespaceURI, 'text');
        text.setAttribute('y', Number(box.getAttribute('y')) + 12);
        group.append(text);
    }
    const at = Math.max(x, MARGIN) + 4;
    text.setAttribute('x', at.toFixed(2));
    text.textContent = label(names[i], Math.floor((Math.min(x + width, MARGIN + WIDTH) - at - 4) / CHARACTER));
}

function zoom(to) {
    zoomed = to;
    const callers = new Set();
    for (let i = parent[to]; i >= 0; i = parent[i])
        callers.add(i);
    const scale = WIDTH / weight[to];
    for (let i = 0; i < count; i++) {
        const caller = callers.has(i);
        groups[i].classList.toggle('caller', caller);
        if (caller)
            place(i, MARGIN, WIDTH);
        else if (i >= to && i < end[to])
            place(i, MARGIN + (start[i] - start[to]) * scale, weight[i] * scale);
        else
            groups[i].style.display = 'none';
    }
    button.reset.style.display = to ? '' : 'none';
}

/* The share of the whole's weight under frames that match, each counted once. */
function search(text) {
    try {
        pattern = text ? new RegExp(text, 'i') : null;
    } catch (error) {
        detail('not a regular expression: ' + text);
        return 0;
    }
    let matched = 0, behind = 0;
    for (let i = 0; i < count; i++) {
        const hit = pattern !== null && i > 0 && pattern.test(names[i]);
        groups[i].classList.toggle('found', hit);
        if (hit && i >= behind) {
            matched += weight[i];
            behind = end[i];
        }
    }
    found = pattern ? matched / weight[0] : null;
    detail('');
    button.clear.style.display = pattern ? '' : 'none';
    return found || 0;
}

function detail(text) {
    const idle = found === null ? '' : 'matched ' + (found * 100).toFixed(2) + ' %';
    document.getElementById('detail').textContent = text || idle;
}

function control(name, x, action) {
    const text = document.createElementNS(svg.namespaceURI, 'text');
    text.textContent = name;
    text.setAttribute('x', x);
    text.setAttribute('y', 30);
    text.setAttribute('text-anchor', 'end');
    text.addEventListener('click', action);
    document.getElementById('controls').append(text);
    return text;
}

function ask() {
    const text = prompt('Search for frames (regular expression)', pattern ? pattern.source : '');
    if (text !== null)
        search(text);
}

const button = {
    search: control('Search (/)', 1188, ask),
    clear: control('Clear', 1118, () => search('')),
    reset: control('Reset zoom', 1074, () => zoom(0)),
};
prepare();
button.clear.style.display = button.reset.style.display = 'none';
const flame = document.getElementById('flame');
const indexOf = new Map(groups.map((group, i) => [group, i]));
const hit = event => indexOf.get(event.target.closest('#flame > g'));
flame.addEventListener('click', event => hit(event) !== undefined && zoom(hit(event)));
flame.addEventListener('mouseover', event => detail(hit(event) === undefined ? '' : titles[hit(event)]));
flame.addEventListener('mouseout', () => detail(''));
window.addEventListener('keydown', event => {
    if (event.key === '/' || (event.key === 'f' && (event.ctrlKey || event.metaKey))) {
        event.preventDefault();
        ask();
    } else if (event.key === 'Escape' || event.key === '0') {
        zoom(0);
    }
});
window.__clrperf = {
    nodeCount: count,
    search,
    zoom: name => zoom(Math.max(0, names.indexOf(name))),
    visibleRects: () => groups.filter(group => group.style.display !== 'none').length,
};

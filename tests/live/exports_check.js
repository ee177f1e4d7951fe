// Compares what readers of other people understood with clrperf's own JSON export of the same profile:
//   node exports_check.js BASE READ_DIR
// BASE.json is the measure. BASE.folded and BASE.perf.txt are read here, with the patterns their
// readers use; the rest is what exports_test.sh left in READ_DIR. A file that is missing is not checked.
'use strict';
const fs = require('fs');
const path = require('path');

const [base, readDir] = process.argv.slice(2);
let failures = 0;

function check(what, ok, detail) {
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${what}${ok || detail === undefined ? '' : `: ${detail}`}`);
  failures += ok ? 0 : 1;
}

function same(what, got, wanted) {
  const sort = object => JSON.stringify(Object.entries(object).sort((a, b) => (a[0] < b[0] ? -1 : 1)));
  const [left, right] = [sort(got), sort(wanted)];
  check(what, left === right, `${left.slice(0, 600)} instead of ${right.slice(0, 600)}`);
}

function add(sums, key, value) {
  if (value !== 0)
    sums[key] = (sums[key] || 0) + value;
}

function readIfThere(file) {
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : null;
}

function* samplesOf(p) {
  for (let i = 0; i < p.samples.node.length; i++) {
    const stack = [];
    for (let node = p.samples.node[i]; node > 0; node = p.nodes.parent[node])
      stack.unshift(p.frames[p.nodes.frame[node]].name);
    yield { stack, weight: p.samples.weight[i], thread: p.threads[p.samples.thread[i]] };
  }
}

const comm = thread => thread.name || thread.process;
const leaf = stack => stack[stack.length - 1];
const controls = /[\x00-\x1f\x7f]/g, separators = /[\u2028\u2029]/g;
const foldedName = name => name.replace(/;/g, ':').replace(controls, ' ').replace(separators, '   ');
const perfName = name => foldedName(name).replace(/\+/g, '/').replace(/->/g, '=>')
  .replace(/^\(([^)]*)\)/, '[$1]').replace(/^\(/, '[');

function checkFolded(samples, text) {
  const wanted = {}, got = {};
  for (const { stack, thread } of samples) {
    const root = thread.process.replace(/ /g, '_').replace(/;/g, ':');
    add(wanted, [root, ...stack.map(foldedName)].join(';'), 1);
  }
  for (const line of text.split('\n').slice(0, -1)) {
    const at = line.lastIndexOf(' ');
    add(got, line.slice(0, at), Number(line.slice(at + 1)));
  }
  same('folded: every stack has its count', got, wanted);
}

// Each reader: how it recognises a sample's first line, a frame, and which part of it is the name.
const perfReaders = {
  'stackcollapse-perf': {
    head: line => /^(\S.+?)\s+(\d+)\/*(\d+)*\s+/.exec(line),
    event: line => /:\s*(\d+)*\s+(\S+):\s*$/.exec(line),
    ids: match => [match[2], match[3]],
    frame: line => /^\s*(\w+)\s*(.+) \((.*)\)/.exec(line),
  },
  speedscope: {
    head: line => /\s+(\d+\.\d+):\s+/.test(line) && /^(\S.+?)\s+(\d+)(?:\/?(\d+))?\s+/.exec(line),
    event: line => /(\S+):\s*$/.exec(line),
    ids: match => [match[2], match[3]],
    frame: line => /^\s*(\w+)\s*(.+) \((\S*)\)/.exec(line),
  },
  'Firefox Profiler': {
    head: line => {
      const before = /^(.*)\s+([\d.]+):/.exec(line);
      return before && /^(.*)\s+(?:(\d+)\/)?(\d+)\b/.exec(before[1]);
    },
    event: () => true,
    ids: match => [match[2], match[3]],
    frame: line => /^\s*(\w+)\s*(.+) \((\S*)\)/.exec(line),
  },
  FlameScope: {
    head: line => / +([0-9.]+): .+?:/.exec(line),
    event: line => / +([0-9.]+): .+?:/.exec(line),
    ids: () => null,
    frame: line => /^[\t ]*([0-9a-fA-F]+) (.+) \((.*?)\)$/.exec(line),
  },
};

function checkPerfText(samples, text) {
  const blocks = text.split('\n\n').slice(0, -1).map(block => block.split('\n'));
  check('perf text: a block per sample', blocks.length === samples.length, blocks.length);
  for (const [reader, of] of Object.entries(perfReaders)) {
    let wrong = null;
    blocks.forEach(([head, ...frames], i) => {
      const { stack, thread } = samples[i] || { stack: [] };
      const match = of.head(head);
      const ids = match && of.ids(match);
      if (!match || !of.event(head) || (ids && ids.join('/') !== `${thread.pid}/${thread.tid}`))
        wrong = wrong || head;
      const names = frames.map(line => (of.frame(line) || [])[2]).reverse();
      if (names.join('\n') !== stack.map(perfName).join('\n'))
        wrong = wrong || `${names} instead of ${stack.map(perfName)}`;
      if (of.frame(head) && reader !== 'FlameScope')
        wrong = wrong || `a header that is read as a frame: ${head}`;
    });
    check(`perf text: the patterns of ${reader} find every sample and frame`, !wrong, wrong);
  }
}

function selfOf(samples, value, name = x => x) {
  const self = {};
  for (const sample of samples)
    if (sample.stack.length)
      add(self, name(leaf(sample.stack)), value(sample));
  return self;
}

function dropZero(self) {
  return Object.fromEntries(Object.entries(self).filter(([, value]) => value !== 0));
}

function checkSpeedscope(samples, lines) {
  for (const { file, active, profiles } of lines.trim().split('\n').map(line => JSON.parse(line))) {
    const kind = path.basename(file).replace(/^[^.]*\./, '');
    const total = samples.reduce((sum, s) => sum + s.weight, 0);
    if (!profiles) {
      check(`speedscope reads ${kind}`, samples.length === 0, 'nothing in it');
    } else if (kind === 'speedscope.json') {
      check('speedscope opens with all threads', active === 0 && profiles[0].name === 'All threads');
      check('speedscope: total weight', profiles[0].total === total, `${profiles[0].total}, not ${total}`);
      same('speedscope: self weights', dropZero(profiles[0].self), selfOf(samples, s => s.weight));
      const threads = profiles.slice(1).reduce((sum, p) => sum + p.total, 0);
      check('speedscope: the threads add up', threads === total, threads);
    } else if (kind === 'chromium.json') {
      const seen = new Set(samples.filter(s => s.stack.length).map(s => `${s.thread.pid}/${s.thread.tid}`));
      const names = new Set(samples.flatMap(s => s.stack));
      check('speedscope reads the timeline, a profile for each thread', profiles.length >= seen.size,
            `${profiles.length} of ${seen.size}`);
      check('speedscope: the timeline has the functions of the samples',
            [...names].every(name => profiles.some(p => name in p.self)), Object.keys(profiles[0].self).slice(0, 5));
    } else if (kind === 'collapsedstack.txt') {
      check('speedscope reads the folded stacks', profiles[0].total === samples.length, profiles[0].total);
    } else if (kind === 'pb.gz') {
      check('speedscope reads pprof', profiles[0].total === total, profiles[0].total);
    } else {
      const threads = new Set(samples.map(s => `${s.thread.pid}/${s.thread.tid}`)).size;
      check('speedscope reads the perf text', profiles.length === threads, profiles.length);
    }
  }
}

// The text of `go tool pprof -raw`.
function checkPprof(samples, text) {
  let count = 0, weight = 0;
  const process = {};
  for (const line of text.slice(text.indexOf('\nSamples:'), text.indexOf('\nLocations')).split('\n')) {
    const values = /^\s*(\d+)\s+(\d+):/.exec(line);
    const label = /^\s+process:\[(.*?)\] thread:\[/.exec(line);
    if (values) {
      count += process.last = Number(values[1]);
      weight += Number(values[2]);
    } else if (label) {
      add(process.by = process.by || {}, label[1], process.last);
    }
  }
  const wanted = {};
  samples.forEach(s => add(wanted, s.thread.process, 1));
  check('pprof: samples', count === samples.length, count);
  check('pprof: weight', weight === samples.reduce((sum, s) => sum + s.weight, 0), weight);
  same('pprof: label process', process.by || {}, wanted);
}

// READ_DIR/KIND-threads.json and KIND-N.json: profiler-cli's thread list and functions of N.
function checkFirefox(samples, kind) {
  const list = readIfThere(path.join(readDir, `${kind}-threads.json`));
  if (!list)
    return;
  const ours = kind === 'firefox.json';
  const threads = JSON.parse(list).threads;
  const wantedThreads = new Set(samples.map(s => s.thread));
  check(`Firefox Profiler, ${kind}: threads`, threads.length === wantedThreads.size, threads.length);
  for (const thread of threads) {
    const text = readIfThere(path.join(readDir, `${kind}-${thread.threadIndex}.json`));
    if (!text)
      continue;
    const of = samples.filter(s => s.thread.tid === thread.tid && String(s.thread.pid) === thread.pid);
    const self = {};
    JSON.parse(text).functions.forEach(f => add(self, f.name, f.selfSamples));
    const name = `${kind}, ${thread.name} ${thread.tid}`;
    same(`Firefox Profiler, self samples of ${name}`, self, selfOf(of, () => 1, ours ? x => x : perfName));
    if (ours)
      checkFirefoxThread(thread, name, of);
  }
}

function checkFirefoxThread(thread, name, of) {
  // the first sample of a thread has no sample before it, so its time does not count
  const cpuMs = of.slice(1).reduce((sum, s) => sum + Math.floor(s.weight / 1000) / 1000, 0);
  check(`Firefox Profiler, CPU time of ${name}`, Math.abs(thread.cpuMs - cpuMs) < 0.5 + cpuMs * 0.01,
    `${thread.cpuMs} ms, not ${cpuMs}`);
  check(`Firefox Profiler, name of ${name}`, thread.name === comm(of[0].thread));
}

const profile = JSON.parse(fs.readFileSync(`${base}.json`, 'utf8'));
const samples = [...samplesOf(profile)];
check('json: samples', samples.length === profile.totals.samples, samples.length);
for (const [file, reader] of [
  [`${base}.folded`, checkFolded],
  [`${base}.perf.txt`, checkPerfText],
  [path.join(readDir, 'speedscope.jsonl'), checkSpeedscope],
  [path.join(readDir, 'pprof.raw'), checkPprof],
]) {
  const text = readIfThere(file);
  if (text !== null)
    reader(samples, text);
}
checkFirefox(samples, 'firefox.json');
checkFirefox(samples, 'perf.txt');
process.exit(failures ? 1 : 0);

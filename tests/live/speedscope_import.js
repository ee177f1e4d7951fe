// Reads files with the importer of the npm package `speedscope` and prints what it understood:
//   node speedscope_import.js PACKAGE_DIR FILE...
// One JSON line per file: {"file","profiles":[{"name","unit","total","samples","frames"}]}.
//
// The package ships a web page only. Its script is run here without a page: drawing fails, after the
// importer was set up, and the importer is what is wanted.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

function loadImporter(packageDir) {
  const release = path.join(packageDir, 'dist', 'release');
  const file = fs.readdirSync(release).find(name => /^speedscope-.*\.js$/.test(name));
  let source = fs.readFileSync(path.join(release, file), 'utf8');
  const found = /loadFileFromBase64:\(\w+,\w+\)=>\{this\.loadProfile\(\(\)=>(\w+)\(/.exec(source);
  if (!found)
    throw new Error('this version of speedscope keeps its importer elsewhere');
  source = source.replace(`async function ${found[1]}(`, `globalThis.clrperfImport=${found[1]};$&`);
  const nothing = new Proxy(function () {}, {
    get: (target, key) => (key === Symbol.toPrimitive ? () => '' : key === 'then' ? undefined : nothing),
    apply: () => nothing,
    construct: () => nothing,
    set: () => true,
  });
  const quiet = { log() {}, warn() {}, error() {}, debug() {}, info() {}, assert() {}, time() {}, timeEnd() {} };
  const context = vm.createContext({
    console: quiet, document: nothing, navigator: nothing, location: { hash: '', protocol: 'file:' },
    localStorage: nothing, matchMedia: () => nothing, addEventListener() {}, removeEventListener() {},
    requestAnimationFrame() {}, setTimeout, clearTimeout, performance, atob, btoa, TextDecoder, TextEncoder,
    Blob, URL, DecompressionStream, FileReader: nothing, Image: nothing, HTMLElement: nothing,
  });
  context.window = context;
  context.self = context;
  try {
    vm.runInContext(source, context, { filename: file });
  } catch (error) {
    if (!context.clrperfImport)
      throw error;
  }
  return context.clrperfImport;
}

function describe(profile) {
  const self = {};
  profile.forEachFrame(frame => {
    self[frame.name] = (self[frame.name] || 0) + frame.getSelfWeight();
  });
  return {
    name: profile.getName(),
    unit: profile.getWeightUnit(),
    total: profile.getTotalWeight(),
    nonIdle: profile.getTotalNonIdleWeight(),
    self,
  };
}

async function main() {
  const [packageDir, ...files] = process.argv.slice(2);
  const importer = loadImporter(packageDir);
  for (const file of files) {
    const group = await importer(path.basename(file), fs.readFileSync(file).toString('base64'));
    const profiles = group ? group.profiles.map(describe) : null;
    console.log(JSON.stringify({ file, active: group && group.indexToView, profiles }));
  }
}

process.on('unhandledRejection', () => {}); // the page's own, from drawing
main().catch(error => {
  console.error(String(error && error.stack));
  process.exit(1);
});

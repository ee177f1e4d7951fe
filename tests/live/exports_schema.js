// Checks a file against the schema the npm package `speedscope` ships:
//   node exports_schema.js NODE_MODULES FILE
'use strict';
const fs = require('fs');
const path = require('path');

const [modules, file] = process.argv.slice(2);
const Ajv = require(path.join(modules, 'ajv'));
const schema = path.join(modules, 'speedscope', 'dist', 'release', 'file-format-schema.json');
const validate = new Ajv({ strict: false }).compile(JSON.parse(fs.readFileSync(schema, 'utf8')));
const ok = validate(JSON.parse(fs.readFileSync(file, 'utf8')));
console.log(ok ? 'ok   speedscope: the file fits its schema' : `FAIL ${JSON.stringify(validate.errors.slice(0, 3))}`);
process.exit(ok ? 0 : 1);

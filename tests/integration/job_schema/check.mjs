// Checks the schemas of job and sweep files as ajv, yaml-language-server and `tandem` itself see them.
//
//   check.mjs TANDEM SCRATCH REPOSITORY        needs $PACKAGES, the folder node_modules
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { promisify } from 'node:util';
import { Editor } from './editor.mjs';
import { RIGHT, RIGHT_SWEEPS, WRONG, WRONG_SWEEPS } from './texts.mjs';

const require = createRequire(path.join(process.env.PACKAGES, 'x.js'));
const Ajv = require('ajv');
const YAML = require('yaml');
const [tandem, scratch, repository] = process.argv.slice(2);
const run = promisify(execFile);

// Of `tandem` without a daemon: the file is wrong, or all but the daemon is there.
const WRONG_FILE = 2, NO_DAEMON = 4;

const schemas = {};
const accepts = {};
for (const kind of ['job', 'sweep']) {
  const file = path.join(scratch, `${kind}.schema.json`);
  fs.writeFileSync(file, (await run(tandem, ['schema', kind], { maxBuffer: 1 << 24 })).stdout);
  schemas[kind] = { file, schema: JSON.parse(fs.readFileSync(file, 'utf8')) };
  const ajv = new Ajv({ allErrors: true, strict: true, strictTypes: false, strictRequired: false });
  for (const keyword of ['enumDescriptions', 'patternErrorMessage']) ajv.addKeyword(keyword);
  accepts[kind] = ajv.compile(schemas[kind].schema);
}
const firstLine = (kind) => `# yaml-language-server: $schema=${schemas[kind].file}\n`;

// What `tandem` says of a file: its exit code and its words.
let files = 0;
async function read(kind, text) {
  const file = path.join(scratch, `${++files}.yaml`);
  fs.writeFileSync(file, text);
  const command = kind === 'job' ? ['validate', file] : ['sweep', file, '--check'];
  const env = { ...process.env, TANDEM_ADDRESS: '127.0.0.1:1' };
  try {
    return { code: 0, said: (await run(tandem, command, { env })).stdout };
  } catch (error) {
    return { code: error.code, said: error.stderr.replaceAll(`${file}:`, '') };
  }
}

// "line:column", both from 1.
const placeAt = (text, offset) => {
  const before = text.slice(0, offset).split('\n');
  return `${before.length}:${before.at(-1).length + 1}`;
};

// The places of ajv's deepest errors in a text.
function placesOf(text, errors) {
  const document = YAML.parseDocument(text);
  const found = errors.map((error) => {
    const keys = error.instancePath.split('/').slice(1).map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
    const isKey = error.keyword === 'additionalProperties' || error.keyword === 'false schema';
    if (error.keyword === 'additionalProperties') keys.push(error.params.additionalProperty);
    let node = document.contents;
    keys.forEach((key, i) => {
      const pair = YAML.isMap(node) && node.items.find((item) => String(item.key) === key);
      node = pair ? (isKey && i === keys.length - 1 ? pair.key : pair.value) : node.items[Number(key)];
    });
    return { depth: keys.length, place: placeAt(text, node.range[0]) };
  });
  const deepest = Math.max(...found.map(({ depth }) => depth));
  return new Set(found.filter(({ depth }) => depth === deepest).map(({ place }) => place));
}

const editor = await Editor.start();
// The places that an editor marks, as in the text without the first line.
async function marksOf(kind, text) {
  const diagnostics = await editor.check(firstLine(kind) + text);
  return diagnostics.map(({ range, message }) => ({ place: `${range.start.line}:${range.start.character + 1}`, message }));
}

async function checkRight(kind, text) {
  assert.ok(accepts[kind](YAML.parse(text)), `ajv refuses:\n${text}${JSON.stringify(accepts[kind].errors, null, 1)}`);
  assert.deepEqual(await marksOf(kind, text), [], `the editor marks:\n${text}`);
  const { code, said } = await read(kind, text);
  assert.equal(code, NO_DAEMON, `tandem refuses:\n${text}${said}`);
}

async function checkWrong(kind, marked) {
  const offset = marked.indexOf('»');
  assert.notEqual(offset, -1, marked);
  const text = marked.replace('»', '');
  const place = placeAt(text, offset);
  assert.equal(accepts[kind](YAML.parse(text)), false, `ajv accepts:\n${marked}`);
  assert.deepEqual([...placesOf(text, accepts[kind].errors)], [place], `ajv finds another place:\n${marked}`);
  const marks = await marksOf(kind, text);
  assert.ok(marks.length > 0, `the editor marks nothing:\n${marked}`);
  for (const mark of marks) assert.equal(mark.place, place, `the editor marks another place:\n${marked}${mark.message}`);
  const { code, said } = await read(kind, text);
  assert.equal(code, WRONG_FILE, `tandem accepts:\n${marked}${said}`);
  assert.ok(said.startsWith(`${place.split(':')[0]}:`), `tandem finds another line than ${place}:\n${marked}${said}`);
}

// The examples that Tandem has.
const examples = path.join(repository, 'deploy/examples');
const templates = path.join(repository, 'client/cli/templates');
const isYaml = (name) => name.endsWith('.yaml');
const folders = [[examples, 'job'], [templates, 'job'], [path.join(examples, 'sweeps'), 'sweep']];
const right = [...RIGHT.map((text) => ['job', text]), ...RIGHT_SWEEPS.map((text) => ['sweep', text])];
let count = 0;
for (const [folder, kind] of folders) {
  for (const name of fs.readdirSync(folder).filter(isYaml)) {
    right.push([kind, fs.readFileSync(path.join(folder, name), 'utf8')]);
    ++count;
  }
}
assert.ok(count >= 12, `there are only ${count} examples`);
// The server waits before it checks a text: all at once, the texts share this time.
await Promise.all(right.map(([kind, text]) => checkRight(kind, text)));
console.log(`${count} examples and ${RIGHT.length + RIGHT_SWEEPS.length} short texts are valid`);

assert.ok(WRONG.length >= 50);
await Promise.all([...WRONG.map((text) => checkWrong('job', text)), ...WRONG_SWEEPS.map((text) => checkWrong('sweep', text))]);
console.log(`${WRONG.length + WRONG_SWEEPS.length} wrong texts are marked at the right place`);

// The line that `tandem init` writes leads the editor to a schema.
const begun = (await run(tandem, ['init', 'mlp'], { env: { ...process.env, HOME: scratch, XDG_DATA_HOME: '' } })).stdout;
const marks = await editor.check(`${begun}nmae: a\n`);
assert.deepEqual(marks.map(({ message }) => message), ['Property nmae is not allowed.']);

// Every field of every message that a file can have: the editor offers its name, and shows its comment.
const words = (text) => text.replaceAll('\\', '').replace(/[*`]/g, '').split(/\s+/).filter(Boolean).join(' ');
async function checkFields(kind) {
  const { definitions, allOf } = schemas[kind].schema;
  const nameIn = (schema) => schema?.$ref?.split('/').at(-1);
  const waiting = [[nameIn(allOf[0]), []]];
  const seen = new Set([waiting[0][0]]);
  let fields = 0;
  while (waiting.length > 0) {
    const [message, way] = waiting.shift();
    const { properties } = definitions[message];
    if (!properties) continue;
    let lines = [], indent = '';
    for (const { key, isList } of way) {
      lines.push(`${indent}${key}:`);
      indent += '  ';
      if (isList) {
        // The first line of an element: its comment holds the place of '-'.
        lines.push(`${indent}-`);
        indent += '  ';
      }
    }
    const names = Object.keys(properties);
    const head = firstLine(kind) + lines.map((line) => `${line}\n`).join('');
    const empty = await editor.open(`${head}${indent}\n`);
    const offered = new Set((await editor.complete(empty, lines.length + 1, indent.length)).map(({ label }) => label));
    await editor.close(empty);
    for (const name of names) assert.ok(offered.has(name), `the editor does not offer ${message}.${name}`);
    const full = await editor.open(head + names.map((name) => `${indent}${name}:\n`).join(''));
    for (const [i, name] of names.entries()) {
      const shown = words(await editor.hover(full, lines.length + 1 + i, indent.length + 1));
      assert.ok(shown.includes(words(properties[name].description)), `the editor shows of ${message}.${name}: ${shown}`);
      ++fields;
      const child = nameIn(properties[name].items) ?? nameIn(properties[name].allOf?.[0]);
      if (child && !seen.has(child)) {
        seen.add(child);
        waiting.push([child, [...way, { key: name, isList: 'items' in properties[name] }]]);
      }
    }
    await editor.close(full);
  }
  return fields;
}
for (const kind of ['job', 'sweep']) {
  const fields = await checkFields(kind);
  assert.ok(fields > 350, `only ${fields} fields were found`);
  console.log(`${fields} fields of ${kind} files: the editor offers and explains each`);
}

// Fields whose values have several forms: the way to a field, a name that the editor offers, and texts behind the field's name.
// For each text, even if it is empty or wrong, the editor shows the field's comment once.
const FORMS = [
  [['dataset'], 'synthetic', ['', ' synthetic', ' wrong', '\n  synthetic: {}']],
  [['model', 'template'], 'lenet', ['', ' lenet', ' wrong', '\n    lenet: {}', '\n    resnet18: {}']],
  [['training', 'loss'], 'mse', ['', ' mse', ' softmaxCrossEntropy', ' wrong', '\n    mse: {}']],
  [['training', 'optimizer'], 'sgd', ['', ' sgd', ' wrong', '\n    sgd: {learning_rate: 0.1}']],
  [['training', 'schedule'], 'constant', ['', ' constant', ' wrong', '\n    constant: {}']],
  [['training', 'precision'], 'float32', ['', ' float32', ' FLOAT32', ' PRECISION_FLOAT32', ' wrong']],
  [['replicas'], 'all_reduce', ['', ' all_reduce', ' allReduce', ' wrong', '\n  count: 2', '\n  all_reduce: {}']],
];
async function checkForms() {
  const { definitions, allOf } = schemas.job.schema;
  const definition = (schema) => definitions[schema.allOf[0].$ref.split('/').at(-1)];
  let shows = 0;
  for (const [way, name, forms] of FORMS) {
    const field = way.slice(1).reduce((schema, key) => definition(schema).properties[key], definition({ allOf }).properties[way[0]]);
    const comment = words(field.description);
    const start = way.slice(0, -1).map((key) => `${key}:\n`).join('');
    const indent = '  '.repeat(way.length - 1);
    for (const form of forms) {
      const text = `${firstLine('job')}${start}${indent}${way.at(-1)}:${form}\n`;
      const opened = await editor.open(text);
      const shown = words(await editor.hover(opened, way.length, indent.length + 1));
      await editor.close(opened);
      assert.equal(shown.split(comment).length, 2, `the editor shows a comment once in:\n${text}${shown}`);
      assert.ok(!shown.includes(' || '), `the editor shows a title once in:\n${text}${shown}`);
      ++shows;
    }
    const line = `${indent}${way.at(-1)}: `;
    const empty = await editor.open(`${firstLine('job')}${start}${line}\n`);
    const offered = (await editor.complete(empty, way.length, line.length)).map(({ label }) => label);
    await editor.close(empty);
    assert.equal(offered.filter((label) => label === name).length, 1, `the editor offers for ${way.join('.')}: ${offered}`);
  }
  console.log(`${shows} forms of ${FORMS.length} fields: the editor explains each once`);
}
await checkForms();
await editor.stop();

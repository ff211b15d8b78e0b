// Exports networks with all layers, runs the files in ONNX Runtime, and compares the outputs with `tandem predict`.
//
//   node compare.js TANDEM JOBS.yaml DATA
//
// Uses the daemon of the environment, which may read the folder DATA. The data sets are written there.
"use strict";

const assert = require("node:assert/strict");
const {execFileSync} = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const ort = require("onnxruntime-web");

const [tandem, jobs, data] = process.argv.slice(2);
// Both programs compute in float32, and add in different orders.
const RELATIVE = 2e-4;
// Of the samples of the job "offset".
const OFFSET = 1e6;
const TYPES = {
  uint8: {array: Uint8Array, descr: "|u1", draw: () => Math.floor(Math.random() * 256)},
  float32: {array: Float32Array, descr: "<f4", draw: () => Math.random() * 4 - 2},
  int32: {array: Int32Array, descr: "<i4", draw: () => Math.floor(Math.random() * 12)},
};

function run(...args) {
  return execFileSync(tandem, args, {encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "inherit"]});
}

function drawn(type, count, offset = 0) {
  return TYPES[type].array.from({length: count}, () => offset + TYPES[type].draw());
}

// Writes a NumPy file, version 1.0.
function writeNpy(file, type, shape, numbers) {
  const text = `{'descr': '${TYPES[type].descr}', 'fortran_order': False, 'shape': (${shape.join(", ")},), }`;
  const header = text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11) + "\n";
  const start = Buffer.alloc(10, "\x93NUMPY\x01\x00", "latin1");
  start.writeUInt16LE(header.length, 8);
  fs.writeFileSync(
    file,
    Buffer.concat([start, Buffer.from(header), Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength)]),
  );
}

function writeData() {
  writeNpy(path.join(data, "tokens.npy"), "int32", [64, 9], drawn("int32", 64 * 9));
  writeNpy(path.join(data, "numbers.npy"), "float32", [64, 6, 3], drawn("float32", 64 * 18));
  writeNpy(path.join(data, "offset.npy"), "float32", [64, 3], drawn("float32", 64 * 3, OFFSET));
  writeNpy(
    path.join(data, "labels.npy"),
    "uint8",
    [64],
    Uint8Array.from({length: 64}, (_, i) => i % 3),
  );
  const rows = Array.from({length: 64}, (_, i) => [i % 7, i % 11, 1000 + 30 * (i % 7) - 50 * (i % 11)].join(","));
  fs.writeFileSync(path.join(data, "table.csv"), `a,b,y\n${rows.join("\n")}\n`);
}

// Writes the samples as a file for `tandem predict`. A table that is prepared takes no arrays.
function writeSamples(name, type, dims, numbers) {
  if (name !== "table") {
    const file = path.join(data, `${name}-samples.npy`);
    writeNpy(file, type, dims, numbers);
    return file;
  }
  const file = path.join(data, "samples.csv");
  const rows = Array.from({length: dims[0]}, (_, i) => Array.from(numbers.slice(2 * i, 2 * i + 2)).join(","));
  fs.writeFileSync(file, `a,b\n${rows.join("\n")}\n`);
  return file;
}

// Returns the largest difference of the outputs, relative to the largest output.
function difference(ours, theirs) {
  assert.equal(ours.length, theirs.length);
  let most = 0;
  let largest = 0;
  ours.forEach((number, i) => {
    assert.ok(Number.isFinite(number) && Number.isFinite(theirs[i]), `${number} ${theirs[i]}`);
    most = Math.max(most, Math.abs(number - theirs[i]));
    largest = Math.max(largest, Math.abs(number));
  });
  return most / Math.max(largest, 1e-3);
}

async function check(name) {
  const model = path.join(data, `${name}.onnx`);
  run("export", `${name}@`, model);
  const session = await ort.InferenceSession.create(model);
  assert.deepEqual([session.inputNames, session.outputNames], [["input"], ["output"]]);
  const {type, shape} = session.inputMetadata[0];
  let worst = 0;
  for (const samples of [1, 5]) {
    const dims = [samples, ...shape.slice(1)];
    const input = drawn(
      type,
      dims.reduce((a, b) => a * b),
      name === "offset" ? OFFSET : 0,
    );
    const file = writeSamples(name, type, dims, input);
    const said = JSON.parse(run("predict", `${name}@`, file, "--top-k", "0", "-o", "json"));
    const {output} = await session.run({input: new ort.Tensor(type, input, dims)});
    assert.equal(said.length, samples);
    assert.deepEqual(Array.from(output.dims), [samples, ...said[0].output_shape.map(Number)]);
    // Outputs that did not depend on the samples would prove nothing.
    const rows = new Set(said.map((each) => JSON.stringify(each.outputs)));
    assert.equal(rows.size, samples);
    worst = Math.max(
      worst,
      difference(
        said.flatMap((each) => each.outputs),
        Array.from(output.data),
      ),
    );
  }
  console.log(`${name}: the outputs differ by ${worst.toExponential(1)} at most, relative to the largest output`);
  assert.ok(worst <= RELATIVE, `${name} differs`);
}

async function main() {
  writeData();
  for (const job of fs.readFileSync(jobs, "utf8").split(/^---$/m)) {
    const [, name] = job.match(/^name: (\S+)$/m);
    const training = /^training:/m.test(job) ? [] : ["--set", "training.loss=softmax_cross_entropy"];
    const yaml = path.join(data, `${name}.yaml`);
    fs.writeFileSync(yaml, job);
    run(
      "submit",
      yaml,
      ...training,
      "--set",
      "training.optimizer.adam.learning_rate=0.01",
      "--set",
      "training.global_batch_size=32",
      "--set",
      "training.epochs=2",
      "--follow",
    );
    await check(name);
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

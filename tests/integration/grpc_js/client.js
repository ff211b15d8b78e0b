// Talks to a running daemon with nothing of Tandem at hand: messages and services come by server reflection.
//
//   node client.js ADDRESS TOKEN_FILE
//
// Lists the services, creates a job, receives its events to the end, and reads it back. Exits 0 where all was right.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const grpc = require("@grpc/grpc-js");
const {GrpcReflection} = require("grpc-js-reflection-client");

const DEADLINE_MS = 180000;

const SPEC = {
  name: "from-grpc-js",
  dataset: {synthetic: {shape: [1, 8, 8], classes: 4, train_samples: 256, validation_samples: 64}},
  model: {
    input: {shape: [1, 8, 8]},
    layers: [{dense: {units: 16, activation: "ACTIVATION_RELU"}}, {dense: {units: 4}}],
  },
  training: {
    loss: {softmax_cross_entropy: {}},
    optimizer: {sgd: {learning_rate: 0.1}},
    global_batch_size: 32,
    epochs: 3,
    report: {every_steps: 1},
  },
};

function call(stub, method, request, metadata) {
  return new Promise((resolve, reject) => {
    stub[method](request, metadata, {deadline: Date.now() + DEADLINE_MS}, (error, response) =>
      error ? reject(error) : resolve(response),
    );
  });
}

function receive(stub, method, request, metadata) {
  return new Promise((resolve, reject) => {
    const messages = [];
    const stream = stub[method](request, metadata, {deadline: Date.now() + DEADLINE_MS});
    stream.on("data", (message) => messages.push(message));
    stream.on("error", reject);
    stream.on("end", () => resolve(messages));
  });
}

// Of a map that the loader gives as what it is on the wire: a list of entries.
function entries(map) {
  return Array.isArray(map) ? Object.fromEntries(map.map(({key, value}) => [key, value])) : map;
}

async function main(address, tokenFile) {
  const credentials = grpc.credentials.createInsecure();
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${fs.readFileSync(tokenFile, "utf8").trim()}`);

  const reflection = new GrpcReflection(address, credentials);
  const services = await reflection.listServices("*", metadata);
  console.log(`services: ${services.join(", ")}`);
  for (const service of ["tandem.v1.JobService", "tandem.v1.DaemonService", "grpc.health.v1.Health"]) {
    assert.ok(services.includes(service), `${service} is not listed`);
  }
  assert.ok(!services.some((service) => service.startsWith("tandem.internal")), "an internal service is public");

  const descriptor = await reflection.getDescriptorBySymbol("tandem.v1.JobService", metadata);
  const api = descriptor.getPackageObject({keepCase: true, enums: String, longs: Number, defaults: true, oneofs: true});
  const jobs = new api.tandem.v1.JobService(address, credentials);

  const job = await call(jobs, "CreateJob", {spec: SPEC, request_id: "grpc-js"}, metadata);
  console.log(`created ${job.name}`);
  const events = await receive(jobs, "WatchJob", {name: job.name}, metadata);
  assert.deepEqual(
    events.map((event) => event.sequence),
    events.map((_, i) => i + 1),
    "events have gaps or repeats",
  );
  assert.deepEqual(
    events.map((event) => event.terminal),
    events.map((_, i) => i === events.length - 1),
  );
  assert.equal(events.at(-1).state_change.to, "JOB_STATE_SUCCEEDED");
  const epochs = events.filter((event) => event.kind === "epoch").map((event) => event.epoch);
  assert.deepEqual(
    epochs.map((epoch) => epoch.epoch),
    [1, 2, 3],
  );
  for (const epoch of epochs) {
    console.log(
      `epoch ${epoch.epoch}: loss ${epoch.training.loss.toFixed(4)}, ` +
        `validation accuracy ${entries(epoch.validation.metrics).accuracy.toFixed(3)}`,
    );
    assert.ok(epoch.training.loss > 0);
    assert.equal(epoch.validation.samples, 64);
  }
  assert.ok(events.filter((event) => event.kind === "progress").length >= 24, "a step each was asked for");

  const after = await receive(jobs, "WatchJob", {name: job.name, after_sequence: events.length - 2}, metadata);
  assert.deepEqual(after, events.slice(-2), "a watch that goes on gives the same events");
  const stored = await call(jobs, "GetJob", {name: job.name}, metadata);
  assert.equal(stored.state, "JOB_STATE_SUCCEEDED");
  assert.equal(stored.last_sequence, events.length);

  // Errors arrive as what they are.
  await assert.rejects(call(jobs, "GetJob", {name: "jobs/none"}, metadata), {code: grpc.status.NOT_FOUND});
  await assert.rejects(call(jobs, "GetJob", {name: job.name}, new grpc.Metadata()), {
    code: grpc.status.UNAUTHENTICATED,
  });
  const wrong = structuredClone(SPEC);
  wrong.model.layers[1].dense.units = -1;
  await assert.rejects(call(jobs, "CreateJob", {spec: wrong}, metadata), (error) => {
    assert.equal(error.code, grpc.status.INVALID_ARGUMENT);
    assert.match(error.details, /model\.layers\[1\]\.dense\.units/);
    return true;
  });
  await call(jobs, "DeleteJob", {name: job.name}, metadata);
  console.log(`${events.length} events received; the job is deleted again`);
}

main(process.argv[2], process.argv[3]).then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);

// A job's log as curves and lists. Events come in order, each once.

import {jobState, number, seconds} from "./format.js";

const JOINED = {training: "training", epoch: "epochs, training", validation: "validation"};

export class History {
  constructor() {
    // By key, such as "training/loss", "epoch/loss", "validation/loss", "images_per_second": {step, epoch, time, value}, arrays of
    // one length, in the order of steps.
    this.series = new Map();
    this.epochs = [];
    this.states = [];
    this.notices = [];
    this.checkpoints = [];
    this.artifacts = [];
    this.sequence = 0;
    this.version = 0;
    this.stepsPerEpoch = 0;
    this.newestReport = null;
    this.terminal = false;
  }

  // What job_stream.h sends first.
  takeSnapshot({sequence, progress, events}) {
    const columns = progress;
    const rows = columns.step?.length ?? 0;
    // Reports and other events in the order of their numbers.
    let row = 0;
    for (const event of events) {
      while (row < rows && columns.sequence[row] < Number(event.sequence)) this.#takeRow(columns, row++);
      this.take(event);
    }
    while (row < rows) this.#takeRow(columns, row++);
    this.sequence = Math.max(this.sequence, sequence);
  }

  #takeRow(columns, row) {
    const step = columns.step[row];
    if (columns.steps[row] > 0 && columns.epochs[row] > 0) this.stepsPerEpoch = columns.steps[row] / columns.epochs[row];
    for (const key in columns) {
      if (key.includes("/") || key === "learning_rate" || key === "images_per_second") {
        const value = columns[key][row];
        // A column has null where a report has no such number, and where it is NaN: of a loss it is NaN.
        if (value !== null || key === "training/loss") this.#add(key, step, columns.time[row], value ?? NaN);
      }
    }
    this.newestReport = {step, steps: columns.steps[row], epochs: columns.epochs[row]};
    this.sequence = columns.sequence[row];
    this.version++;
  }

  take(event) {
    const sequence = Number(event.sequence);
    if (sequence <= this.sequence) return;
    this.sequence = sequence;
    this.version++;
    if (event.terminal !== undefined) this.terminal = event.terminal;
    const at = seconds(event.time);
    if (event.progress) {
      const report = event.progress;
      const step = Number(report.step ?? 0);
      if (Number(report.steps) > 0 && Number(report.epochs) > 0) this.stepsPerEpoch = report.steps / report.epochs;
      this.#addAll("training", step, at, report.training);
      this.#add("learning_rate", step, at, Number(report.learning_rate ?? 0));
      this.#add("images_per_second", step, at, Number(report.images_per_second ?? 0));
      this.newestReport = {step, steps: Number(report.steps ?? 0), epochs: Number(report.epochs ?? 0)};
    } else if (event.epoch) {
      const epoch = event.epoch;
      const step = Number(epoch.step ?? 0);
      if (Number(epoch.epoch) > 0) this.stepsPerEpoch = step / Number(epoch.epoch);
      // An attempt that begins before an epoch's end trains it again; the later result counts.
      this.epochs = this.epochs.filter((one) => Number(one.epoch) < Number(epoch.epoch));
      this.epochs.push({...epoch, attempt: event.attempt ?? 0, at});
      this.#addAll("epoch", step, at, epoch.training);
      this.#addAll("validation", step, at, epoch.validation);
    } else if (event.validation) {
      this.#addAll("validation", Number(event.validation.step ?? 0), at, event.validation.validation);
    } else if (event.state_change) {
      this.states.push({...event.state_change, at, step: this.newestReport?.step ?? 0});
    } else if (event.notice) {
      this.notices.push({text: event.notice.message, at, step: this.newestReport?.step ?? 0});
    } else if (event.checkpoint) {
      this.checkpoints.push({...event.checkpoint, at});
    } else if (event.artifact) {
      this.artifacts = this.artifacts.filter((one) => one.name !== event.artifact.name);
      this.artifacts.push(event.artifact);
    } else if (event.worker_loads) {
      this.notices.push({at, step: Number(event.worker_loads.step ?? 0), text: "The replicas' loads were measured: " +
          (event.worker_loads.replicas ?? []).map((one) => `${one.device} ${Number(one.load).toFixed(2)}`).join(", ")});
    } else if (event.priority_change) {
      this.notices.push({text: `The priority went from ${event.priority_change.from ?? 0} to ${event.priority_change.to ?? 0}.`, at,
                         step: this.newestReport?.step ?? 0});
    }
  }

  #addAll(part, step, at, evaluation) {
    if (!evaluation) return;
    // A loss of 0 is left out of the JSON.
    this.#add(`${part}/loss`, step, at, Number(evaluation.loss ?? 0));
    for (const [name, value] of Object.entries(evaluation.metrics ?? {})) this.#add(`${part}/${name}`, step, at, number(value));
  }

  #add(key, step, at, value) {
    let one = this.series.get(key);
    if (!one) this.series.set(key, one = {step: [], time: [], value: []});
    // A later attempt starts at a checkpoint: points after the checkpoint belong to lost steps.
    while (one.step.length && one.step[one.step.length - 1] >= step) {
      one.step.pop();
      one.time.pop();
      one.value.pop();
    }
    one.step.push(step);
    one.time.push(at);
    one.value.push(value);
  }

  // A curve's values along "step", "epoch" or "time".
  along(key, axis) {
    const one = this.series.get(key);
    if (!one) return {x: [], y: []};
    if (axis === "time") return {x: one.time, y: one.value};
    if (axis === "epoch" && this.stepsPerEpoch > 0) return {x: one.step.map((step) => step / this.stepsPerEpoch), y: one.value};
    return {x: one.step, y: one.value};
  }

  // The place of a step on an axis.
  place({step, at}, axis) {
    if (axis === "time") return at;
    return axis === "epoch" && this.stepsPerEpoch > 0 ? step / this.stepsPerEpoch : step;
  }

  // What was measured, "loss" first: [{measure, keys}], keys of all series of it.
  measures() {
    const found = new Map();
    for (const key of this.series.keys()) {
      const slash = key.indexOf("/");
      const measure = slash < 0 ? key : key.slice(slash + 1);
      if (!found.has(measure)) found.set(measure, []);
      found.get(measure).push(key);
    }
    const order = (name) => (name === "loss" ? 0 : name === "images_per_second" ? 3 : name === "learning_rate" ? 2 : 1);
    return [...found].map(([measure, keys]) => ({measure, keys: keys.sort()})).sort((a, b) => order(a.measure) - order(b.measure));
  }

  state() {
    return jobState(this.states.at(-1)?.to);
  }
}

export const seriesLabel = (key) => (key.includes("/") ? JOINED[key.slice(0, key.indexOf("/"))] : key.replaceAll("_", " "));

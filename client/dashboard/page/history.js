// A job's log as curves and lists. Events come in order, each once.

import {jobState, number, seconds} from "./format.js";
import {lowerBound} from "./numbers.js";

const JOINED = {training: "training", epoch: "training, mean of each epoch", validation: "validation"};

// A curve of the API as an entry of History.series.
const pointsOf = (curve) => ({
  step: (curve.steps ?? []).map(Number),
  time: curve.times ?? [],
  value: (curve.values ?? []).map(Number),
  points: Number(curve.total_points ?? 0),
  isReduced: curve.reduced ?? false,
});

export class History {
  // Ranges of steps in which reduced curves have all points: [{first, last}]; `last` 0 is the end.
  #exact = [];

  constructor() {
    // By key, such as "training/loss", "epoch/loss", "validation/loss", "images_per_second": {step, time, value,
    // points, isReduced}. The first three are arrays of one length, in the order of steps. `points` counts the log's
    // points, of which a reduced curve has fewer.
    this.series = new Map();
    // How often a curve went back to an earlier step.
    this.rewinds = 0;
    this.epochs = [];
    this.states = [];
    this.notices = [];
    this.checkpoints = [];
    this.artifacts = [];
    this.sequence = 0;
    this.version = 0;
    // Converts steps to epochs: the largest step / epoch of the epochs' ends. Before the first, that of the plan.
    this.stepsPerEpoch = 0;
    this.newestReport = null;
    this.terminal = false;
    // The newest confusion matrix: {classes, counts, sequence}.
    this.matrix = null;
    // The newest ParameterReport, with `sequence`.
    this.parameters = null;
  }

  // A GetJobHistoryResponse, which comes before all events.
  takeSnapshot({last_sequence, curves, newest_report, events, event_steps}) {
    if (newest_report) this.#takeReport(newest_report);
    (events ?? []).forEach((event, i) => this.take(event, Number(event_steps[i])));
    for (const curve of curves ?? []) this.series.set(curve.name, pointsOf(curve));
    // All later points come as events.
    this.#exact = [{first: this.newestReport?.step ?? 0, last: 0}];
    this.sequence = Math.max(this.sequence, Number(last_sequence));
    this.version++;
  }

  // Whether the server has more points of these steps than this. `last` 0: to the end.
  lacks(first, last) {
    const isReduced = [...this.series.values()].some((one) => one.isReduced);
    return (
      isReduced && !this.#exact.some((one) => one.first <= first && (one.last === 0 || (last > 0 && last <= one.last)))
    );
  }

  // Replaces the points of the steps from `first` to `last` by the points of a GetJobHistoryResponse. `rewinds` is
  // this.rewinds at the request. If an attempt began at a checkpoint since then, the answer may lack steps: returns false
  // and changes nothing.
  takeFiner({curves}, first, last, rewinds) {
    if (rewinds !== this.rewinds) return false;
    for (const curve of curves ?? []) {
      const old = this.series.get(curve.name);
      const finer = pointsOf(curve);
      if (!old?.isReduced || finer.step.length === 0) continue;
      // Later points have come since the answer was made.
      const begin = lowerBound(old.step, first),
        end = lowerBound(old.step, finer.step.at(-1) + 1);
      for (const column of ["step", "time", "value"])
        old[column] = [...old[column].slice(0, begin), ...finer[column], ...old[column].slice(end)];
    }
    // A reduced answer takes the place of points of which none was missing.
    if ((curves ?? []).some((curve) => curve.reduced))
      this.#exact = this.#exact.filter((one) => one.first > last || (one.last > 0 && one.last < first));
    else this.#exact.push({first, last});
    this.version++;
    return true;
  }

  #takeReport(report) {
    this.newestReport = {
      step: Number(report.step ?? 0),
      steps: Number(report.steps ?? 0),
      epochs: Number(report.epochs ?? 0),
    };
    // The last of the planned epochs may be cut short: the ends of epochs tell more.
    if (this.epochs.length === 0 && this.newestReport.steps > 0 && this.newestReport.epochs > 0)
      this.stepsPerEpoch = this.newestReport.steps / this.newestReport.epochs;
  }

  // `step` is the newest report's before the event.
  take(event, step = this.newestReport?.step ?? 0) {
    const sequence = Number(event.sequence);
    if (sequence <= this.sequence) return;
    this.sequence = sequence;
    this.version++;
    if (event.terminal !== undefined) this.terminal = event.terminal;
    const at = seconds(event.time);
    if (event.progress) {
      const report = event.progress;
      const now = Number(report.step ?? 0);
      this.#addAll("training", now, at, report.training);
      this.#add("learning_rate", now, at, Number(report.learning_rate ?? 0));
      this.#add("images_per_second", now, at, Number(report.images_per_second ?? 0));
      this.#takeReport(report);
    } else if (event.epoch) {
      const epoch = event.epoch;
      const end = Number(epoch.step ?? 0);
      // An attempt that begins before an epoch's end trains it again; the later result counts.
      while (this.epochs.length && Number(this.epochs.at(-1).epoch) >= Number(epoch.epoch)) this.epochs.pop();
      // A last epoch that is cut short has the smallest quotient.
      if (Number(epoch.epoch) > 0)
        this.stepsPerEpoch = Math.max(this.epochs.length ? this.stepsPerEpoch : 0, end / Number(epoch.epoch));
      this.epochs.push({...epoch, attempt: event.attempt ?? 0, at});
      this.#addAll("epoch", end, at, epoch.training);
      this.#addAll("validation", end, at, epoch.validation);
      this.#takeMatrix(epoch.validation, sequence);
    } else if (event.validation) {
      this.#addAll("validation", Number(event.validation.step ?? 0), at, event.validation.validation);
      this.#takeMatrix(event.validation.validation, sequence);
    } else if (event.parameters) {
      this.parameters = {...event.parameters, sequence};
    } else if (event.state_change) {
      this.states.push({...event.state_change, at, step});
    } else if (event.notice) {
      this.notices.push({text: event.notice.message, at, step});
    } else if (event.checkpoint) {
      this.checkpoints.push({...event.checkpoint, at});
    } else if (event.artifact) {
      this.artifacts = this.artifacts.filter((one) => one.name !== event.artifact.name);
      this.artifacts.push(event.artifact);
    } else if (event.worker_loads) {
      this.notices.push({
        at,
        step: Number(event.worker_loads.step ?? 0),
        text:
          "The replicas' loads were measured: " +
          (event.worker_loads.replicas ?? []).map((one) => `${one.device} ${Number(one.load).toFixed(2)}`).join(", "),
      });
    } else if (event.priority_change) {
      this.notices.push({
        text: `The priority went from ${event.priority_change.from ?? 0} to ${event.priority_change.to ?? 0}.`,
        at,
        step,
      });
    }
  }

  #takeMatrix(evaluation, sequence) {
    const report = evaluation?.classification;
    if (report?.confusion_matrix) this.matrix = {...report.confusion_matrix, names: report.class_names, sequence};
  }

  #addAll(part, step, at, evaluation) {
    if (!evaluation) return;
    // A loss of 0 is left out of the JSON.
    this.#add(`${part}/loss`, step, at, Number(evaluation.loss ?? 0));
    for (const [name, value] of Object.entries(evaluation.metrics ?? {}))
      this.#add(`${part}/${name}`, step, at, number(value));
  }

  #add(key, step, at, value) {
    let one = this.series.get(key);
    if (!one) this.series.set(key, (one = {step: [], time: [], value: [], points: 0, isReduced: false}));
    // A later attempt starts at a checkpoint: points after the checkpoint belong to lost steps.
    if (one.step.length && one.step[one.step.length - 1] >= step) this.rewinds++;
    while (one.step.length && one.step[one.step.length - 1] >= step) {
      one.step.pop();
      one.time.pop();
      one.value.pop();
      one.points--;
    }
    one.points++;
    one.step.push(step);
    one.time.push(at);
    one.value.push(value);
  }

  // A curve's values along "step", "epoch" or "time".
  along(key, axis) {
    const one = this.series.get(key);
    if (!one) return {x: [], y: []};
    if (axis === "time") return {x: one.time, y: one.value};
    if (axis === "epoch" && this.stepsPerEpoch > 0)
      return {x: one.step.map((step) => step / this.stepsPerEpoch), y: one.value};
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
    return [...found]
      .map(([measure, keys]) => ({measure, keys: keys.sort()}))
      .sort((a, b) => order(a.measure) - order(b.measure));
  }

  state() {
    return jobState(this.states.at(-1)?.to);
  }
}

// The name of a measure for people. The API counts all samples as images.
export const measureLabel = (name) => (name === "images_per_second" ? "samples per second" : name.replaceAll("_", " "));
export const seriesLabel = (key) => (key.includes("/") ? JOINED[key.slice(0, key.indexOf("/"))] : measureLabel(key));

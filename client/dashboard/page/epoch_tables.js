// Tables of what epochs report.

import {table} from "./dom.js";
import {count, duration, id, measure, rate, setting} from "./format.js";

// Returns a table of the newest 200 epochs, newest first.
export function epochsTable(epochs) {
  const shown = epochs.slice(-200).reverse();
  const names = [
    ...new Set(
      shown.flatMap((epoch) =>
        Object.keys(epoch.training?.metrics ?? {}).concat(Object.keys(epoch.validation?.metrics ?? {})),
      ),
    ),
  ];
  return table(
    "Epochs",
    [
      {title: "Epoch", number: true},
      {title: "Training loss", number: true},
      ...names.map((one) => ({title: `Training ${one}`, number: true})),
      {title: "Validation loss", number: true},
      ...names.map((one) => ({title: `Validation ${one}`, number: true})),
      {title: "Speed", number: true},
      {title: "Learning rate", number: true},
      {title: "Time", number: true},
    ],
    shown.map((epoch) => ({
      cells: [
        epoch.epoch,
        measure(epoch.training?.loss ?? 0),
        ...names.map((one) => measure(epoch.training?.metrics?.[one])),
        epoch.validation ? measure(epoch.validation.loss ?? 0) : "",
        ...names.map((one) => measure(epoch.validation?.metrics?.[one])),
        rate(epoch.images_per_second ?? 0),
        setting(epoch.learning_rate ?? 0),
        duration(epoch.training_seconds ?? 0),
      ],
    })),
  );
}

// Returns a table of a ParameterReport.
export function parametersTable({parameters}) {
  return table(
    "Parameters",
    [
      {title: "Parameter"},
      {title: "Mean", number: true},
      {title: "Deviation", number: true},
      {title: "Change in the epoch", number: true},
    ],
    (parameters ?? []).map((one) => ({
      cells: [
        one.name,
        measure(one.mean ?? 0),
        measure(one.standard_deviation ?? 0),
        measure(one.relative_change ?? 0),
      ],
    })),
  );
}

// Returns a table of an epoch's replicas.
export function replicasTable(replicas) {
  return table(
    "Replicas",
    [
      {title: "Rank", number: true},
      {title: "Device"},
      {title: "Samples", number: true},
      {title: "Share", number: true},
      {title: "Waited for data", number: true},
      {title: "Averaging", number: true},
    ],
    replicas.map((one) => ({
      cells: [
        one.rank ?? 0,
        id(one.device),
        count(one.samples ?? 0),
        `${(100 * (one.load ?? 0)).toFixed(1)} %`,
        duration(one.data_wait_seconds ?? 0),
        duration(one.reduce_seconds ?? 0),
      ],
    })),
  );
}

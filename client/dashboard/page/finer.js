// The points that a reduced curve lacks, for a chart that zooms in.

import {call} from "./api.js";
import {lowerBound} from "./numbers.js";

// The steps of a range on an axis, as [first, last]: "step", "epoch", or "time" in seconds since 1970.
function stepsOf(history, axis, from, to) {
  if (axis === "epoch" && history.stepsPerEpoch > 0) return [from * history.stepsPerEpoch, to * history.stepsPerEpoch];
  if (axis !== "time") return [from, to];
  const {step, time} = [...history.series.values()].find((one) => one.isReduced);
  return [step[Math.max(0, lowerBound(time, from) - 1)], step[Math.min(step.length - 1, lowerBound(time, to))]];
}

// If `history` lacks points of the job `name` in [from, to], reads them from the daemon into `history`. Returns whether it
// read points. Meanwhile the chart shows the old points.
export async function refine(name, history, axis, from, to, signal) {
  if (![...history.series.values()].some((one) => one.isReduced)) return false;
  const range = stepsOf(history, axis, from, to);
  const first = Math.max(0, Math.floor(range[0])),
    last = Math.ceil(range[1]);
  if (!(last > 0) || !history.lacks(first, last)) return false;
  for (;;) {
    const {rewinds} = history;
    const answer = await call(
      "GetJobHistory",
      {name, first_step: first, last_step: last, view: "JOB_HISTORY_VIEW_CURVES"},
      signal,
    );
    if (history.takeFiner(answer, first, last, rewinds)) return true;
  }
}

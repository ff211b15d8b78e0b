// Sweeps, and one sweep: its jobs as a table and as parallel coordinates, the best marked.

import {call} from "./api.js";
import {change, h, svg, table, update} from "./dom.js";
import {id, jobState, measure, setting, shortEnum, time} from "./format.js";
import {poll} from "./poll.js";

const text = (value) =>
  typeof value === "number"
    ? setting(value)
    : value === undefined
      ? ""
      : typeof value === "object"
        ? JSON.stringify(value)
        : String(value);
const isKnown = (value) => value !== undefined && value !== null && !Number.isNaN(value);
const counts = (sweep) =>
  (sweep.counts ?? []).map((one) => `${one.jobs ?? 0} ${jobState(one.state).toLowerCase()}`).join(", ");

export function showSweeps({root, say, signal}) {
  document.title = "Sweeps · Tandem";
  const list = h("div");
  root.append(h("h1", {}, "Sweeps"), list);
  poll(
    async () => {
      const {sweeps = []} = await call("ListSweeps", {page_size: 1000}, signal);
      update(list, JSON.stringify(sweeps), () =>
        sweeps.length === 0
          ? h("p", {class: "dim"}, "No sweeps yet: start one with `tandem sweep sweep.yaml`.")
          : table(
              "Sweeps",
              [
                {title: "Sweep"},
                {title: "User"},
                {title: "State"},
                {title: "Jobs"},
                {title: "Best", number: true},
                {title: "Created"},
              ],
              sweeps.map((sweep) => ({
                cells: [
                  h("a", {href: `#/sweeps/${id(sweep.name)}`}, sweep.display_name || id(sweep.name)),
                  sweep.user,
                  shortEnum(sweep.state, "SWEEP_STATE_"),
                  counts(sweep),
                  sweep.best ? measure(sweep.best.value) : "",
                  time(sweep.create_time),
                ],
              })),
            ),
      );
    },
    3000,
    {say, signal},
  );
}

// Returns the shortest end of each path that no other path ends with.
export function shortNames(paths) {
  const end = (path, names) => path.split(".").slice(-names).join(".");
  return paths.map((path) => {
    let names = 1;
    while (end(path, names) !== path && paths.some((other) => other !== path && end(other, names) === end(path, names)))
      ++names;
    return end(path, names);
  });
}

// Each job is a line through its values; fields whose values are no numbers have a place for each value.
function parallel(fields, results, best) {
  const width = 760,
    height = 280,
    top = 40,
    bottom = 22;
  const at = (i) => 50 + (i * (width - 100)) / Math.max(1, fields.length - 1);
  const scales = fields.map(({values}) => {
    const known = values.filter(isKnown);
    if (known.length > 0 && known.every((value) => typeof value === "number")) {
      const least = Math.min(...known),
        most = Math.max(...known);
      // Learning rates and their like are chosen by factors.
      const isLog = least > 0 && most / least >= 20;
      const f = isLog ? Math.log : (x) => x;
      return {labels: [least, most].map(text), place: (value) => (f(value) - f(least)) / (f(most) - f(least) || 1)};
    }
    const all = [...new Set(known.map(text))].sort();
    return {labels: [all[0], all.at(-1)], place: (value) => all.indexOf(text(value)) / Math.max(1, all.length - 1)};
  });
  const titles = shortNames(fields.map((field) => field.title));
  const y = (part) => height - bottom - part * (height - top - bottom);
  return svg(
    "svg",
    {
      class: "parallel",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label": `parallel coordinates of ${results.length} jobs`,
    },
    fields.map((field, i) => [
      svg("line", {x1: at(i), x2: at(i), y1: top, y2: height - bottom}),
      svg("text", {x: at(i), y: 12, "text-anchor": "middle"}, titles[i]),
      svg("text", {x: at(i), y: height - 6, "text-anchor": "middle"}, scales[i].labels[0]),
      svg("text", {x: at(i), y: 30, "text-anchor": "middle"}, scales[i].labels[1]),
    ]),
    results.map((result, row) => {
      const points = fields.map(
        ({values}, i) => isKnown(values[row]) && `${at(i).toFixed(1)},${y(scales[i].place(values[row])).toFixed(1)}`,
      );
      return svg(
        "polyline",
        {class: result.job === best && "best", points: points.filter(Boolean).join(" ")},
        svg("title", {}, id(result.job)),
      );
    }),
  );
}

export function showSweep({root, id: sweepId, say, signal, user}) {
  const name = `sweeps/${sweepId}`;
  document.title = `${sweepId} · Tandem`;
  const heading = h("h1", {}, sweepId),
    state = h("p"),
    buttons = h("span"),
    problem = h("p", {class: "error", role: "alert"}),
    picture = h("div"),
    list = h("div");
  root.append(h("div", {class: "bar"}, heading, buttons), state, problem, picture, list);
  async function read() {
    const sweep = await call("GetSweep", {name}, signal);
    heading.textContent = sweep.display_name || sweepId;
    state.textContent = `${shortEnum(sweep.state, "SWEEP_STATE_")}: ${counts(sweep)}. Objective: ${sweep.objective?.metric || "loss"}.`;
    const isMine = user.role === "ADMIN" || (user.role === "SUBMITTER" && sweep.user === user.user);
    update(buttons, `${sweep.state} ${isMine}`, () =>
      isMine && sweep.state === "SWEEP_STATE_ACTIVE"
        ? h(
            "button",
            {
              type: "button",
              class: "danger",
              onclick: () =>
                change(
                  `Cancel all jobs of ${sweep.display_name || sweepId} that have not ended?`,
                  "Cancel",
                  undefined,
                  async () => {
                    await call("CancelSweep", {name}, signal);
                    await read();
                  },
                  {problem, signal},
                ),
            },
            "Cancel the sweep",
          )
        : [],
    );
    const results = sweep.results ?? [];
    const best = sweep.best?.job;
    const names = [...new Set(results.flatMap((result) => (result.values ?? []).map((one) => one.field)))];
    const valueOf = (result, field) => (result.values ?? []).find((one) => one.field === field)?.value;
    const fields = names.map((field) => ({title: field, values: results.map((result) => valueOf(result, field))}));
    const objective = {
      title: sweep.objective?.metric || "loss",
      values: results.map((result) => (result.value === undefined ? undefined : Number(result.value))),
    };
    update(picture, JSON.stringify([fields, objective, best]), () =>
      results.length < 2 ? [] : parallel([...fields, objective], results, best),
    );
    update(list, JSON.stringify(results), () =>
      table(
        "Jobs of the sweep",
        [
          {title: "Job"},
          ...shortNames(names).map((title) => ({title, number: true})),
          {title: "State"},
          {title: "Epochs", number: true},
          {title: objective.title, number: true},
        ],
        results.map((result) => ({
          class: result.job === best && "best",
          cells: [
            h("a", {href: `#/jobs/${id(result.job)}`}, id(result.job)),
            ...names.map((field) => text(valueOf(result, field))),
            h(
              "span",
              {class: `state ${jobState(result.state)}`, title: result.message},
              jobState(result.state) === "CANCELLED" && result.reason === "STATE_REASON_PRUNED"
                ? "pruned"
                : jobState(result.state).toLowerCase(),
            ),
            `${result.epochs ?? 0} of ${result.epochs_planned ?? "?"}`,
            result.value === undefined ? "" : measure(result.value) + (result.job === best ? " ★" : ""),
          ],
        })),
      ),
    );
  }
  poll(read, 2000, {say, signal});
}

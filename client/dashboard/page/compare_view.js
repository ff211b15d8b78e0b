// Several jobs in one chart for each measure, and the fields in which their files differ.

import {call, follow} from "./api.js";
import {Chart, curveControls} from "./chart.js";
import {h, table, update} from "./dom.js";
import {jobState, measure} from "./format.js";
import {refine} from "./finer.js";
import {History, measureLabel, seriesLabel} from "./history.js";

// A colour for each job.
export const MOST = 8;

// {"training.epochs": "3", ...} of a message in JSON.
function flat(value, path = "", into = {}) {
  if (value !== null && typeof value === "object") {
    for (const [key, one] of Object.entries(value))
      flat(one, Array.isArray(value) ? `${path}[${key}]` : path ? `${path}.${key}` : key, into);
  } else {
    into[path] = String(value);
  }
  return into;
}

export function showCompare({root, query, setQuery, say, onEnd, signal}) {
  document.title = "Compare · Tandem";
  const jobs = new Map();
  const charts = new Map();
  const input = h("input", {type: "text", placeholder: "lenet-k3v7qa", "aria-label": "A job's id", size: 22});
  const chosen = h("span", {class: "bar"});
  const {axis, smooth, log, labels, choice} = curveControls(query);
  const problem = h("p", {class: "error", role: "alert"});
  const plots = h("div", {class: "charts"});
  const differences = h("div");
  root.append(
    h("h1", {}, "Compare"),
    h(
      "form",
      {
        class: "bar",
        onsubmit: (event) => {
          event.preventDefault();
          problem.textContent = "";
          add(input.value.trim().replace(/^jobs\//, ""));
          input.value = "";
        },
      },
      input,
      h("button", {type: "submit"}, "Add"),
      chosen,
    ),
    h("div", {class: "bar"}, labels),
    problem,
    plots,
    h("h2", {}, "Fields that differ"),
    differences,
  );
  if (query.get("x") && query.get("x") !== axis.value)
    problem.textContent = `"${query.get("x")}" is no axis; it is step, epoch or time.`;

  const remember = () => setQuery({jobs: [...jobs.keys()].join(","), ...choice()});

  async function add(id) {
    if (!id || jobs.has(id)) return;
    if (jobs.size >= MOST) {
      problem.textContent = `At most ${MOST} jobs are compared; remove one first.`;
      return;
    }
    const one = {id, history: new History(), job: null, end: () => {}, curves: new Map(), trouble: ""};
    jobs.set(id, one);
    try {
      one.job = await call("GetJob", {name: `jobs/${id}`}, signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      jobs.delete(id);
      problem.textContent = [problem.textContent, error.message].filter(Boolean).join("\n");
      ask();
      return;
    }
    if (!jobs.has(id)) return;
    catchUp(one);
    remember();
    ask();
  }
  // Reads the new part of the job's log, and again every other second. A stream for each job would take too many of the
  // browser's six connections.
  function catchUp(one) {
    let timer = 0;
    const stop = follow(
      () => `/events/job?once=1&name=jobs/${encodeURIComponent(one.id)}&after=${one.history.sequence}`,
      {
        snapshot: (data) => {
          one.history.takeSnapshot(data);
          ask();
        },
        event: (event) => {
          one.history.take(event);
          ask();
        },
        reset: () => {
          one.history = new History();
        },
        end: () => {
          timer = setTimeout(() => {
            if (jobs.get(one.id) === one && !signal.aborted) catchUp(one);
          }, 2000);
        },
      },
      (text) => {
        one.trouble = text;
        sayTrouble();
      },
    );
    one.end = () => {
      clearTimeout(timer);
      stop();
    };
  }
  const sayTrouble = () => say([...jobs.values()].map((one) => one.trouble).find(Boolean) ?? "");
  function remove(id) {
    jobs.get(id)?.end();
    jobs.delete(id);
    problem.textContent = "";
    sayTrouble();
    remember();
    ask();
  }

  // Has each job whose curve of the measure is reduced get its points of the range.
  function zoom(what, from, to) {
    for (const one of jobs.values()) {
      const curve = [...one.history.series].find(
        ([key, {isReduced}]) => isReduced && (key === what || key === `training/${what}`),
      )?.[1];
      if (!curve) continue;
      const begin = axis.value === "time" ? one.begin : 0;
      refine(`jobs/${one.id}`, one.history, axis.value, from + begin, to + begin, signal)
        .then((isFiner) => {
          if (isFiner) ask();
        })
        .catch((error) => {
          if (error.name !== "AbortError") say(error.message);
        });
    }
  }

  let isAsked = false;
  function ask() {
    if (!isAsked) requestAnimationFrame(draw);
    isAsked = true;
  }
  function draw() {
    isAsked = false;
    if (signal.aborted) return;
    const all = [...jobs.values()].filter((one) => one.job);
    update(chosen, all.map((one) => one.id + one.history.state()).join(), () =>
      all.map((one) =>
        h(
          "span",
          {},
          h("a", {href: `#/jobs/${one.id}`}, one.job.spec?.name || one.id),
          " ",
          h("span", {class: "dim"}, one.id),
          " ",
          h(
            "span",
            {class: `state ${one.history.state() || jobState(one.job.state)}`},
            (one.history.state() || jobState(one.job.state)).toLowerCase(),
          ),
          " ",
          h("button", {type: "button", "aria-label": `Remove ${one.id}`, onclick: () => remove(one.id)}, "×"),
        ),
      ),
    );
    const found = new Map();
    for (const [color, one] of all.entries()) {
      one.begin = Math.min(...[...one.history.series.values()].map((curve) => curve.time[0] ?? Infinity));
      for (const {measure: what, keys} of one.history.measures()) {
        // An epoch's training says the same as its reports, where there are reports.
        const best = keys.filter(
          (key) => !key.startsWith("epoch/") || !keys.includes(key.replace("epoch/", "training/")),
        );
        for (const key of best) {
          const curve = one.curves.get(key) ?? {key: `${one.id} ${key}`, dash: key.startsWith("validation/")};
          one.curves.set(key, curve);
          curve.label = `${one.job.spec?.name || one.id} (${one.id.slice(-6)})${key.includes("/") ? `, ${seriesLabel(key)}` : ""}`;
          Object.assign(curve, {color}, one.history.along(key, axis.value));
          // Times are counted from each job's first point, so that the curves of several jobs lie over each other.
          if (axis.value === "time") curve.x = curve.x.map((at) => at - one.begin);
          if (!found.has(what)) found.set(what, []);
          found.get(what).push(curve);
        }
      }
    }
    for (const [what, curves] of found) {
      if (!charts.has(what)) {
        charts.set(what, new Chart(measureLabel(what), (from, to) => zoom(what, from, to)));
        plots.append(charts.get(what).element);
      }
      charts.get(what).show(curves, {
        axis: axis.value === "time" ? "seconds" : axis.value,
        smooth: Number(smooth.value),
        log: log.checked,
        marks: [],
      });
    }
    for (const [what, chart] of charts) {
      if (found.has(what)) continue;
      chart.destroy();
      chart.element.remove();
      charts.delete(what);
    }
    const last = (one, part) => one.history.series.get(part)?.value.at(-1);
    const parts = [
      "training/loss",
      ...new Set(all.flatMap((one) => [...one.history.series.keys()].filter((key) => key.startsWith("validation/")))),
    ];
    update(differences, all.map((one) => [one.id, ...parts.map((part) => last(one, part))]).join(), () => {
      if (all.length < 2)
        return h("p", {class: "dim"}, "Add two jobs or more here, or choose them in the list of jobs.");
      const specs = all.map((one) => flat(one.job.spec ?? {}));
      const fields = [...new Set(specs.flatMap((spec) => Object.keys(spec)))]
        .sort()
        .filter((field) => new Set(specs.map((spec) => spec[field])).size > 1);
      return table(
        "Fields that differ",
        [{title: "Field"}, ...all.map((one) => ({title: one.id}))],
        [
          ...fields.map((field) => ({cells: [field, ...specs.map((spec) => spec[field] ?? "–")]})),
          ...parts
            .filter((part) => all.some((one) => last(one, part) !== undefined))
            .map((part) => ({
              class: "best",
              cells: [`last ${part.replace("/", " ")}`, ...all.map((one) => measure(last(one, part)))],
            })),
        ],
      );
    });
  }
  for (const control of [axis, smooth, log])
    control.addEventListener("input", () => {
      remember();
      ask();
    });
  const repaint = () => charts.forEach((chart) => chart.repaint());
  document.addEventListener("theme", repaint);
  onEnd(() => {
    document.removeEventListener("theme", repaint);
    jobs.forEach((one) => one.end());
    charts.forEach((chart) => chart.destroy());
  });
  const asked = [...new Set((query.get("jobs") ?? "").split(","))];
  if (asked.length > MOST)
    problem.textContent = `The address has ${asked.length} jobs; the page compares the first ${MOST}.`;
  for (const id of asked.slice(0, MOST)) add(id);
  ask();
}

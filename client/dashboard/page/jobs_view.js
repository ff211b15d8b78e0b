// All jobs, live. Draws only the visible rows.

import {follow} from "./api.js";
import {MOST} from "./compare_view.js";
import {h, svg, update} from "./dom.js";
import {duration, id, measure, rate, time} from "./format.js";

const ROW = 34;
const collator = new Intl.Collator();
const SORTS = {
  newest: (a, b) => b.create_time - a.create_time,
  name: (a, b) => collator.compare(title(a), title(b)),
  state: (a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || b.create_time - a.create_time,
  user: (a, b) => collator.compare(a.user, b.user) || b.create_time - a.create_time,
  // Jobs with the same metric are together, best first; then jobs without a metric. Values of training are behind those
  // of validation.
  value: (a, b) =>
    (a.metric ?? LAST).localeCompare(b.metric ?? LAST) ||
    Number(a.of_training ?? false) - Number(b.of_training ?? false) ||
    (a.smaller_is_better
      ? (a.value ?? Infinity) - (b.value ?? Infinity)
      : (b.value ?? -Infinity) - (a.value ?? -Infinity)),
  loss: (a, b) =>
    Number(a.of_training ?? false) - Number(b.of_training ?? false) || (a.loss ?? Infinity) - (b.loss ?? Infinity),
};
const SORT_NAMES = {
  newest: "newest first",
  name: "by name",
  state: "by state",
  user: "by user",
  value: "best metric first",
  loss: "lowest loss first",
};
const LAST = "\uffff";
const ORDER = [
  "RUNNING",
  "STARTING",
  "PREEMPTING",
  "PAUSING",
  "CANCELLING",
  "QUEUED",
  "PAUSED",
  "FAILED",
  "SUCCEEDED",
  "CANCELLED",
];

const title = (row) => row.display_name || id(row.name);

function spark(losses) {
  const values = (losses ?? []).filter((value) => value !== null);
  if (values.length < 2) return "";
  const least = Math.min(...values),
    most = Math.max(...values);
  const points = values.map(
    (value, i) =>
      `${((i * 100) / (values.length - 1)).toFixed(1)},${(22 - (20 * (value - least)) / (most - least || 1)).toFixed(1)}`,
  );
  return svg(
    "svg",
    {
      class: "spark",
      viewBox: "0 0 100 24",
      role: "img",
      "aria-label": `loss from ${measure(values[0])} to ${measure(values.at(-1))}`,
    },
    svg("polyline", {points: points.join(" ")}),
  );
}

function progressOf(row) {
  if (!row.steps && !row.epochs) return row.state === "QUEUED" ? "" : "–";
  const part = row.steps ? row.step / row.steps : row.epoch / row.epochs;
  return [
    h("progress", {max: 1, value: part, "aria-label": "progress"}),
    h("span", {class: "wide-only"}, ` ${Math.floor(100 * part)} %`),
  ];
}

// The cell that never changes. `choose` is the box that chooses the job for a comparison.
function nameCell(row, choose) {
  const jobId = id(row.name);
  // On a phone, the rest of the id tells jobs of one name apart.
  const prefix = row.display_name && jobId.startsWith(`${row.display_name}-`) ? `${row.display_name}-` : "";
  return h(
    "span",
    {role: "cell"},
    choose,
    " ",
    h("a", {href: `#/jobs/${jobId}`}, title(row)),
    row.display_name && [
      " ",
      h("span", {class: "dim"}, prefix && h("span", {class: "wide-only"}, prefix), jobId.slice(prefix.length)),
    ],
  );
}

function cells(row) {
  const measured = row.of_training ? "dim" : "";
  return [
    h("span", {class: `state ${row.state}`, title: row.message}, row.state.toLowerCase()),
    h("span", {}, progressOf(row)),
    h("span", {class: `number ${measured}`, title: row.of_training ? "of training" : ""}, measure(row.loss)),
    h(
      "span",
      {class: `number wide-only ${measured}`, title: row.of_training ? `${row.metric} of training` : row.metric},
      row.value === undefined ? "" : `${row.of_training ? "train" : row.metric} ${measure(row.value)}`,
    ),
    h("span", {class: "number wide-only"}, row.state === "RUNNING" ? rate(row.rate) : ""),
    h(
      "span",
      {class: "number wide-only"},
      row.state === "RUNNING"
        ? row.seconds_left === undefined
          ? ""
          : `${duration(row.seconds_left)} left`
        : row.end_time
          ? duration(row.run_seconds)
          : `since ${time(row.create_time)}`,
    ),
    h("span", {class: "dim wide-only"}, row.user),
    h("span", {class: "wide-only"}, spark(row.spark)),
  ];
}

export function showJobs({root, query, setQuery, say, onEnd}) {
  let rows = new Map(),
    fresh = rows;
  let shown = [],
    isComplete = false,
    isAsked = false;
  const search = h("input", {
    type: "search",
    placeholder: "Name, user or state",
    "aria-label": "Search",
    value: query.get("q") ?? "",
  });
  const state = h(
    "select",
    {"aria-label": "State"},
    h("option", {value: ""}, "all states"),
    ORDER.map((one) => h("option", {value: one, selected: query.get("state") === one}, one.toLowerCase())),
  );
  const sort = h(
    "select",
    {"aria-label": "Sort by"},
    Object.keys(SORTS).map((one) => h("option", {value: one, selected: query.get("sort") === one}, SORT_NAMES[one])),
  );
  const tally = h("span", {class: "dim", role: "status"});
  const compare = h("a", {href: "#/compare"});
  // Names of the jobs to compare. Without any, those of a short list.
  const chosen = new Set();
  const boxFor = ({name}) =>
    h("input", {
      type: "checkbox",
      "aria-label": `Choose ${id(name)} for a comparison`,
      checked: chosen.has(name),
      onchange: ({target}) => {
        if (target.checked) chosen.add(name);
        else chosen.delete(name);
        select();
      },
    });
  const body = h("div", {class: "rows", role: "rowgroup"});
  const head = h(
    "div",
    {class: "row head", role: "row"},
    ["Job", "State", "Progress"].map((text) => h("span", {role: "columnheader"}, text)),
    h("span", {class: "number", role: "columnheader"}, "Loss"),
    ["Metric", "Speed", "Time"].map((text) => h("span", {class: "number wide-only", role: "columnheader"}, text)),
    ["User", "Recent loss"].map((text) => h("span", {class: "wide-only", role: "columnheader"}, text)),
  );
  const view = h(
    "div",
    {class: "rows-window", tabindex: 0, role: "table", "aria-label": "Jobs"},
    h("div", {role: "rowgroup"}, head),
    body,
  );
  root.append(h("h1", {}, "Jobs"), h("div", {class: "bar"}, search, state, sort, tally, compare), view);

  const drawn = new Map();
  function draw() {
    isAsked = false;
    const first = Math.max(0, Math.floor(view.scrollTop / ROW) - 5);
    const last = Math.min(shown.length, first + Math.ceil(view.clientHeight / ROW) + 12);
    const wanted = new Set();
    // Elements are in the order of the rows, for screen readers. An element in place keeps its focus.
    let place = body.firstChild;
    for (let i = first; i < last; i++) {
      const row = shown[i];
      wanted.add(row.name);
      let element = drawn.get(row.name);
      if (!element) {
        // A click on a link or a box that is made anew between press and release would be lost.
        const rest = h("div", {class: "rest", role: "none"});
        element = h("div", {class: "row", role: "row", "data-job": row.name}, nameCell(row, boxFor(row)), rest);
        drawn.set(row.name, element);
      }
      if (element === place) place = place.nextSibling;
      else body.insertBefore(element, place);
      element.style.top = `${i * ROW}px`;
      update(element.lastChild, row.key, () =>
        cells(row).map((cell) => {
          cell.setAttribute("role", "cell");
          return cell;
        }),
      );
    }
    for (const [name, element] of drawn) {
      if (wanted.has(name)) continue;
      element.remove();
      drawn.delete(name);
    }
  }
  const ask = () => {
    if (!isAsked) requestAnimationFrame(draw);
    isAsked = true;
  };
  function select() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = [...rows.values()].filter(
      (row) => (!state.value || row.state === state.value) && words.every((word) => row.text.includes(word)),
    );
    shown.sort(SORTS[sort.value] ?? SORTS.newest);
    body.style.height = `${Math.max(1, shown.length) * ROW}px`;
    const text = !isComplete
      ? `reading, ${rows.size} so far`
      : rows.size === 0
        ? "no jobs yet: submit the first with `tandem submit job.yaml`"
        : shown.length === rows.size
          ? `${rows.size} jobs`
          : shown.length === 0
            ? `no match in ${rows.size} jobs`
            : `${shown.length} of ${rows.size} jobs`;
    if (tally.textContent !== text) tally.textContent = text;
    for (const name of chosen) if (isComplete && !rows.has(name)) chosen.delete(name);
    const names = chosen.size ? [...chosen] : shown.map((row) => row.name);
    compare.hidden = !chosen.size && (names.length < 2 || names.length > MOST);
    compare.textContent = !chosen.size
      ? "Compare these"
      : chosen.size > MOST
        ? `Compare the first ${MOST} of ${chosen.size} chosen jobs`
        : `Compare ${chosen.size} chosen`;
    compare.href = `#/compare?jobs=${names.slice(0, MOST).map(id).join(",")}`;
    ask();
  }
  function take({rows: changed = [], deleted = [], complete}) {
    for (const name of deleted) fresh.delete(name);
    for (const row of changed) {
      row.text = `${row.name} ${row.display_name} ${row.user} ${row.state} ${row.sweep ?? ""}`.toLowerCase();
      row.key = JSON.stringify(row);
      fresh.set(row.name, row);
    }
    if (complete) {
      isComplete = true;
      rows = fresh;
    }
    select();
  }
  const changed = () => {
    setQuery({q: search.value, state: state.value, sort: sort.value === "newest" ? null : sort.value});
    view.scrollTop = 0;
    select();
  };
  search.addEventListener("input", changed);
  state.addEventListener("change", changed);
  sort.addEventListener("change", changed);
  view.addEventListener("scroll", ask);
  addEventListener("resize", ask);
  onEnd(() => removeEventListener("resize", ask));
  onEnd(
    follow(
      () => {
        // After a break, the rows stay until the new list is whole.
        fresh = isComplete ? new Map() : rows;
        return "/events/jobs";
      },
      {jobs: take, changes: take},
      say,
    ),
  );
}

// One job: its curves, live, and everything else that is known of it.

import {ask, call, CallError, follow, isFinal} from "./api.js";
import {Chart, curveControls} from "./chart.js";
import {change, h, table, update} from "./dom.js";
import {bytes, count, duration, id, jobState, measure, rate, shortEnum, time} from "./format.js";
import {confusionMatrix} from "./confusion_matrix.js";
import {epochsTable, parametersTable, replicasTable} from "./epoch_tables.js";
import {refine} from "./finer.js";
import {History, measureLabel, seriesLabel} from "./history.js";

// Places in COLORS. A curve keeps its colour when another curve joins its chart.
const COLOR_OF = {training: 0, validation: 1, epoch: 2};
const ENDED = ["SUCCEEDED", "FAILED", "CANCELLED"];
// The rest between two drawings, at most, in ms.
const LONGEST_REST = 1000;
// The time between two drawings of an unfinished job's tables, in ms. A table takes longer than the curves.
const TABLES_INTERVAL = 1000;
// Which buttons a state has.
const ACTIONS = [
  {
    label: "Pause",
    method: "PauseJob",
    states: ["QUEUED", "STARTING", "RUNNING", "PREEMPTING"],
    question: (name) => `Pause ${name}? The job writes a checkpoint, frees its devices, and waits for Resume.`,
  },
  {
    label: "Resume",
    method: "ResumeJob",
    states: ["PAUSED", "FAILED"],
    question: (name) => `Resume ${name}? The job waits for devices, and continues from its last checkpoint.`,
  },
  {
    label: "Cancel",
    method: "CancelJob",
    states: ["QUEUED", "STARTING", "RUNNING", "PAUSING", "PAUSED", "PREEMPTING"],
    danger: true,
    question: (name, state) =>
      state === "QUEUED"
        ? `Cancel ${name}? The job ends at once. It cannot be resumed.`
        : `Cancel ${name}? The job writes a checkpoint and its model, and ends. It cannot be resumed.`,
  },
];

export function showJob({root, id: jobId, query, setQuery, say: sayOnPage, user, onEnd, signal}) {
  let said = "";
  const say = (text) => sayOnPage((said = text));
  const name = `jobs/${jobId}`;
  const history = new History();
  const charts = new Map();
  let job = null;
  // The kept checkpoints, newest first.
  let checkpoints = [];
  document.title = `${jobId} · Tandem`;

  const heading = h("h1", {}, jobId);
  const state = h("span", {class: "state"});
  const buttons = h("span", {class: "bar"});
  const problem = h("p", {class: "error", role: "alert"}),
    failure = h("p", {class: "error"});
  const facts = h("div", {class: "facts"});
  const bar = h("progress", {class: "wide", max: 1, value: 0, "aria-label": "progress of the training"});
  const {axis, smooth, log, labels, choice} = curveControls(query);
  const reduction = h("span", {class: "dim"});
  const plots = h("div", {class: "charts"});
  const wait = h("p", {class: "dim"}, "Reading the job's log…");
  const epochs = h("div", {class: "short"}),
    replicas = h("div", {class: "short"}),
    parameters = h("div", {class: "short"}),
    files = h("div", {class: "short"}),
    changes = h("div", {class: "short"}),
    matrix = h("div");
  root.append(
    h("div", {class: "bar"}, heading, state, buttons),
    failure,
    problem,
    bar,
    facts,
    h("div", {class: "bar"}, labels, h("span", {class: "dim"}, "drag to zoom, double-click to see all"), reduction),
    wait,
    plots,
    h("h2", {}, "Epochs"),
    epochs,
    replicas,
    parameters,
    matrix,
    h("h2", {}, "Checkpoints and files"),
    files,
    h("h2", {}, "Events"),
    changes,
    section("Layers", layers),
    section("Job file", jobFile),
    section("Log", followLog),
  );

  // A part that is filled when it is opened.
  function section(title, fillIn) {
    const body = h("div");
    let isFailed = false;
    return h(
      "details",
      {
        ontoggle: ({target}) => {
          if (!target.open || (body.childNodes.length && !isFailed)) return;
          isFailed = false;
          body.replaceChildren();
          fillIn(body).catch((error) => {
            isFailed = true;
            if (!signal.aborted) body.replaceChildren(h("p", {class: "error"}, error.message));
          });
        },
      },
      h("summary", {}, title),
      body,
    );
  }

  async function layers(body) {
    const model = await call("DescribeModel", {job: name}, signal);
    body.append(
      table(
        "Layers",
        [
          {title: "Layer"},
          {title: "Kind"},
          {title: "Output"},
          {title: "Parameters", number: true},
          {title: "Operations", number: true},
        ],
        (model.layers ?? []).map((layer) => ({
          cells: [
            layer.name,
            layer.kind,
            (layer.output_shape ?? []).join(" × "),
            count(layer.parameters ?? 0),
            count(layer.operations ?? 0),
          ],
        })),
      ),
      h("p", {}, `${count(model.parameters ?? 0)} parameters`),
    );
  }
  async function jobFile(body) {
    const text = await (await ask(`/api/job_file?name=${encodeURIComponent(name)}`, {signal})).text();
    body.append(h("pre", {tabindex: 0}, text));
  }
  async function followLog(body) {
    const text = h("pre", {tabindex: 0, "aria-label": "Log"});
    const empty = h("p", {class: "dim", hidden: true}, "The job has written no log.");
    body.append(text, empty);
    // A job that has ended may be resumed, and write more.
    for (
      let offset = 0;
      !signal.aborted;
      await new Promise((resolve) => setTimeout(resolve, ENDED.includes(history.state()) ? 5000 : 1000))
    ) {
      try {
        for (let more = " "; more;) {
          const response = await ask(`/api/log?name=${encodeURIComponent(name)}&offset=${offset}`, {signal});
          more = await response.text();
          offset = Number(response.headers.get("X-Log-End"));
          const isAtEnd = text.scrollTop + text.clientHeight >= text.scrollHeight - 20;
          text.append(more);
          if (more && isAtEnd) text.scrollTop = text.scrollHeight;
        }
        empty.hidden = text.textContent !== "";
      } catch (error) {
        // The banner tells of a lost connection.
        if (!(error instanceof CallError) || isFinal(error.code)) throw error;
      }
    }
  }

  const isMine = () => user.role === "ADMIN" || (user.role === "SUBMITTER" && job?.user === user.user);

  const act = (method, request, question, label, field) =>
    change(
      question,
      label,
      field,
      async (answer) => {
        job = await call(method, request(answer), signal);
        goOn();
        drawHead();
      },
      {problem, signal},
    );

  function drawHead() {
    // The log may be ahead of what GetJob said, or behind while it is read.
    const isCurrent = history.version > 0 && history.sequence >= Number(job?.last_sequence ?? 0);
    const now = isCurrent ? history.state() : jobState(job?.state);
    state.textContent = now.toLowerCase();
    state.className = `state ${now}`;
    heading.textContent = job?.spec?.name ? `${job.spec.name} (${jobId})` : jobId;
    update(buttons, `${now} ${isMine()}`, () =>
      !isMine()
        ? []
        : [
            ...ACTIONS.filter((action) => action.states.includes(now)).map((action) =>
              h(
                "button",
                {
                  type: "button",
                  class: action.danger && "danger",
                  onclick: () =>
                    act(action.method, () => ({name}), action.question(job?.spec?.name || jobId, now), action.label),
                },
                action.label,
              ),
            ),
            !ENDED.includes(now) &&
              h(
                "button",
                {
                  type: "button",
                  onclick: () =>
                    act(
                      "UpdateJob",
                      (value) => ({job: {name, priority: Number(value)}, update_mask: "priority"}),
                      "Priority, from -100 to 100 (above 0 for administrators)",
                      "Set",
                      {
                        type: "number",
                        min: -100,
                        max: user.role === "ADMIN" ? 100 : 0,
                        value: job?.priority ?? 0,
                        required: true,
                      },
                    ),
                },
                "Priority",
              ),
          ],
    );
    failure.textContent = now === "FAILED" ? ((isCurrent ? history.states.at(-1) : job)?.message ?? "") : "";
    const report = history.newestReport;
    const part = now === "SUCCEEDED" ? 1 : report?.steps > 0 ? report.step / report.steps : 0;
    bar.value = part;
    const speeds = history.series.get("images_per_second")?.value ?? [];
    const batch = Number(job?.spec?.training?.global_batch_size ?? 0);
    const left =
      now === "RUNNING" && speeds.length && batch && report?.steps > report?.step
        ? ((report.steps - report.step) * batch) / speeds.at(-1)
        : undefined;
    const best = job?.best;
    const shown = [
      ["user", job?.user],
      ["priority", job?.priority ?? 0],
      ["devices", (job?.devices ?? []).map(id).join(", ")],
      ["step", report && `${count(report.step)} of ${count(report.steps)}`],
      ["speed", now === "RUNNING" && speeds.length && rate(speeds.at(-1))],
      ["time left", duration(left)],
      ["planned memory of a replica", job?.planned_memory_bytes && bytes(job.planned_memory_bytes)],
      ["best", best && `${best.metric} ${measure(best.value)}`],
      ["submitted", time(job?.create_time)],
      ["ran", ENDED.includes(now) && job?.run_seconds && duration(job.run_seconds)],
      ["waits", ["QUEUED", "STARTING", "CANCELLING", "PAUSING"].includes(now) && job?.waiting?.message],
      ["sweep", job?.sweep && h("a", {href: `#/${job.sweep}`}, id(job.sweep))],
    ];
    update(facts, JSON.stringify(shown.map(([, value]) => (value instanceof Node ? value.textContent : value))), () =>
      shown.filter(([, value]) => value).map(([label, value]) => h("span", {}, h("span", {}, label), value)),
    );
  }

  async function zoom(from, to) {
    try {
      if (await refine(name, history, axis.value, from, to, signal)) drawSoon();
    } catch (error) {
      if (error.name !== "AbortError") say(error.message);
    }
  }

  function drawCharts() {
    const most = Math.max(0, ...[...history.series.values()].filter((one) => one.isReduced).map((one) => one.points));
    reduction.textContent =
      most > 0
        ? `of ${count(most)} reports the curves show the first, smallest, largest and last of a span; zoom in to see all`
        : "";
    const marks = history.states
      .slice(1)
      .concat(history.notices)
      .map((one) => history.place(one, axis.value));
    for (const {measure: what, keys} of history.measures()) {
      let chart = charts.get(what);
      if (!chart) {
        chart = {chart: new Chart(measureLabel(what), zoom), curves: new Map()};
        charts.set(what, chart);
        plots.append(chart.chart.element);
      }
      // The means of epochs say more than the reports only if there are more reports.
      const size = (key) => history.series.get(key)?.points ?? 0;
      const useful = keys.filter(
        (key) =>
          !key.startsWith("epoch/") ||
          size(key) < size(key.replace("epoch/", "training/")) ||
          !size(key.replace("epoch/", "training/")),
      );
      const curves = useful.map((key) => {
        // Kept, with what was computed for it.
        const curve = chart.curves.get(key) ?? {
          key,
          label: seriesLabel(key),
          dash: key.startsWith("epoch/"),
          color: COLOR_OF[key.split("/")[0]] ?? 0,
        };
        chart.curves.set(key, curve);
        return Object.assign(curve, history.along(key, axis.value));
      });
      chart.chart.show(curves, {axis: axis.value, smooth: Number(smooth.value), log: log.checked, marks});
    }
  }

  function drawEpochs() {
    const last = history.epochs.at(-1);
    update(epochs, `${history.epochs.length} ${last?.step} ${last?.attempt} ${ENDED.includes(history.state())}`, () =>
      history.epochs.length === 0
        ? h("p", {class: "dim"}, ENDED.includes(history.state()) ? "No epoch ended." : "No epoch has ended yet.")
        : [
            history.epochs.length > 200 && h("p", {class: "dim"}, `The newest 200 of ${count(history.epochs.length)}.`),
            epochsTable(history.epochs),
          ],
    );
    const shares = last?.replicas ?? [];
    update(replicas, JSON.stringify(shares), () =>
      shares.length < 2 ? [] : [h("h2", {}, "Replicas, in the last epoch"), replicasTable(shares)],
    );
    update(parameters, history.parameters?.sequence ?? 0, () =>
      history.parameters
        ? [
            h("h2", {}, `Parameters after epoch ${history.parameters.epoch}`),
            h("p", {class: "dim"}, "The change is in proportion to the parameter's norm."),
            parametersTable(history.parameters),
          ]
        : [],
    );
    update(matrix, history.matrix?.sequence ?? 0, () =>
      history.matrix
        ? [
            h("h2", {}, "Confusion matrix of the last validation"),
            h("p", {class: "dim"}, "Each row is a true class, each column a predicted class."),
            confusionMatrix(history.matrix),
          ]
        : [],
    );
  }

  const artifactLink = (artifact) =>
    h(
      "a",
      {
        href: `/api/artifact?name=${encodeURIComponent(name)}&artifact=${encodeURIComponent(artifact)}`,
        download: artifact,
      },
      artifact,
    );

  function drawLists() {
    // Each best checkpoint takes the place of the one before.
    const best = checkpoints.find((one) => one.best);
    update(files, JSON.stringify([checkpoints, history.artifacts]), () => [
      h(
        "p",
        {},
        history.artifacts.length === 0
          ? h("span", {class: "dim"}, "No file can be downloaded yet.")
          : history.artifacts.map((one) => [artifactLink(one.name), ` ${bytes(one.size_bytes)}  `]),
      ),
      checkpoints.length > 0 &&
        table(
          "Checkpoints",
          [
            {title: "Step", number: true},
            {title: "Epoch", number: true},
            {title: "Size", number: true},
            {title: "Written"},
            {title: "Model"},
            {title: ""},
          ],
          checkpoints.map((one) => ({
            cells: [
              count(one.step ?? 0),
              one.epoch ?? 0,
              bytes(one.size_bytes),
              time(history.checkpoints.findLast((event) => event.step === one.step)?.at),
              artifactLink(`model-${one.step ?? 0}.safetensors`),
              one === best ? "best" : "",
            ],
          })),
        ),
    ]);
    const all = history.states
      .map((one) => ({
        at: one.at,
        text: `${jobState(one.to).toLowerCase()}${one.message ? `: ${one.message}` : ""}`,
        reason: shortEnum(one.reason, "STATE_REASON_"),
      }))
      .concat(history.notices.map((one) => ({at: one.at, text: one.text, reason: "notice"})))
      .sort((a, b) => b.at - a.at);
    update(changes, `${all.length} ${all[0]?.at}`, () =>
      table(
        "State changes and notices",
        [{title: "Time"}, {title: "Event"}, {title: "Reason"}],
        all.slice(0, 200).map((one) => ({cells: [time(one.at), one.text, one.reason]})),
      ),
    );
  }

  let isAsked = false,
    isStale = false,
    isGone = false,
    // The error of the newest readJob.
    trouble = "",
    earliest = 0,
    tablesAt = 0,
    tablesTimer = 0;
  function draw() {
    if (signal.aborted) return;
    wait.hidden = history.version > 0;
    drawHead();
    drawCharts();
    const now = performance.now();
    clearTimeout(tablesTimer);
    if (now >= tablesAt || ENDED.includes(history.state())) {
      drawEpochs();
      tablesAt = now + TABLES_INTERVAL;
    } else {
      tablesTimer = setTimeout(drawSoon, tablesAt - now);
    }
    drawLists();
  }
  // However often events come, the page rests three times as long as it draws. So it answers the user, and leaves the
  // processor to others.
  const drawSoon = () => {
    isStale = true;
    if (isAsked) return;
    isAsked = true;
    const frame = () => {
      const begin = performance.now();
      isStale = false;
      draw();
      // The browser paints before this timer.
      setTimeout(() => {
        const end = performance.now();
        earliest = end + Math.min(LONGEST_REST, 3 * (end - begin));
        isAsked = false;
        if (isStale) drawSoon();
      });
    };
    setTimeout(() => requestAnimationFrame(frame), Math.max(0, earliest - performance.now()));
  };
  async function readJob() {
    try {
      job = await call("GetJob", {name}, signal);
      // The stream may have said more since.
      if (trouble && said === trouble) say("");
      trouble = "";
      goOn();
      drawSoon();
    } catch (error) {
      if (error.code === "NOT_FOUND") {
        isGone = true;
        root.replaceChildren(
          h("h1", {}, jobId),
          h("p", {class: "error"}, error.message),
          h("a", {href: "#/jobs"}, "All jobs"),
        );
      } else if (error.name !== "AbortError") {
        trouble = error.message;
        say(trouble);
      }
    }
  }
  const take = (event) => {
    history.take(event);
    if (event.state_change) readJob();
    drawSoon();
  };
  // What the log does not say: devices, the reason for waiting, the checkpoints that are kept.
  async function readAgain() {
    await readJob();
    if (isGone) return;
    try {
      if (history.checkpoints.length)
        checkpoints = (await call("ListCheckpoints", {job: name}, signal)).checkpoints ?? [];
      drawSoon();
    } catch {
      // The next time it may answer.
    }
    if (!signal.aborted && !isGone) setTimeout(readAgain, 5000);
  }
  let isOver = true;
  // Follows the log, again if a job that had FAILED was resumed.
  function goOn() {
    if (!isOver || (history.version > 0 && Number(job.last_sequence) <= history.sequence)) return;
    isOver = false;
    onEnd(
      follow(
        () => `/events/job?name=${encodeURIComponent(name)}&after=${history.sequence}`,
        {
          snapshot: (data) => {
            history.takeSnapshot(data);
            drawSoon();
          },
          event: take,
          reset: () => dispatchEvent(new HashChangeEvent("hashchange")),
          end: () => {
            isOver = true;
          },
        },
        say,
      ),
    );
  }
  for (const control of [axis, smooth, log]) {
    control.addEventListener("input", () => {
      setQuery(choice());
      drawSoon();
    });
  }
  const repaint = () => charts.forEach(({chart}) => chart.repaint());
  document.addEventListener("theme", repaint);
  onEnd(() => {
    document.removeEventListener("theme", repaint);
    charts.forEach(({chart}) => chart.destroy());
  });
  readAgain();
  // For tests: what the page has of the log.
  window.tandemHistory = history;
}

// A chart of curves, on uPlot. However many points a curve has, a pixel draws its smallest and its largest.

import uPlot from "/page/uPlot.esm.js";
import {h} from "./dom.js";
import {measure, tick} from "./format.js";
import {lowerBound} from "./numbers.js";

// Distances between the lines of the vertical axis. A loss that diverges may have any size of a float32.
const INCREMENTS = Array.from({length: 80}, (_, i) =>
  [1, 2, 2.5, 5].map((digit) => Number(`${digit}e${i - 40}`)),
).flat();
// The least height of the vertical axis, in proportion to its numbers, which have six digits. uPlot rounds a smaller one to
// nothing, and then draws marks for ever.
const LEAST_HEIGHT = 1e-5;
// The least width of a zoom, in proportion to the place. A float64 has no marks within a much smaller one.
const LEAST_ZOOM = 1e-12;
export const COLORS = ["#1f77d0", "#d9541e", "#2a9d4a", "#9b4fc9", "#c22f6b", "#0e9aa7", "#a77b00", "#6b7280"];

// Controls of how curves are drawn, as the page's address has it; `choice` returns the same for the address.
export function curveControls(query) {
  const axis = h(
    "select",
    {"aria-label": "Horizontal axis"},
    ["step", "epoch", "time"].map((one) => h("option", {value: one, selected: query.get("x") === one}, one)),
  );
  const smooth = h("input", {
    type: "range",
    min: 0,
    max: 0.99,
    step: 0.01,
    value: query.get("smooth") ?? 0,
    "aria-label": "Smoothing",
  });
  const log = h("input", {type: "checkbox", checked: query.get("log") === "1"});
  return {
    axis,
    smooth,
    log,
    labels: [h("label", {}, "along", axis), h("label", {}, "smoothing", smooth), h("label", {}, log, "logarithmic")],
    choice: () => ({
      x: axis.value === "step" ? null : axis.value,
      smooth: smooth.value === "0" ? null : smooth.value,
      log: log.checked ? "1" : null,
    }),
  };
}

// Returns the moving average of a curve. A value weighs less the older it is. A gap stays a gap.
function smoothed(values, weight) {
  if (!weight) return values;
  let mean = 0,
    scale = 0;
  return values.map((value) => {
    if (!Number.isFinite(value)) return value;
    mean = mean * weight + value * (1 - weight);
    scale = scale * weight + (1 - weight);
    return mean / scale;
  });
}

// The points of [from, to], with a point on each side, as at most four for each of `width` columns: the first, the
// smallest, the largest and the last. A value that is not a number becomes null, a gap.
export function reduced(x, y, from, to, width) {
  const begin = Math.max(0, lowerBound(x, from) - 1);
  const end = Math.min(x.length, lowerBound(x, to) + 2);
  const xs = [],
    ys = [];
  const put = (i) => {
    xs.push(x[i]);
    ys.push(Number.isFinite(y[i]) ? y[i] : null);
  };
  if (end - begin <= 4 * width) {
    for (let i = begin; i < end; i++) put(i);
    return [xs, ys];
  }
  const scale = width / (x[end - 1] - x[begin] || 1);
  for (let i = begin; i < end;) {
    const column = Math.floor((x[i] - x[begin]) * scale);
    let last = i,
      least = -1,
      most = -1,
      gap = -1;
    for (; last < end && Math.floor((x[last] - x[begin]) * scale) === column; last++) {
      if (!Number.isFinite(y[last])) gap = last;
      else {
        if (least < 0 || y[last] < y[least]) least = last;
        if (most < 0 || y[last] > y[most]) most = last;
      }
    }
    const chosen = [...new Set([i, least, most, gap, last - 1].filter((one) => one >= 0))].sort((a, b) => a - b);
    chosen.forEach(put);
    i = last;
  }
  return [xs, ys];
}

// The vertical axis for values from `least` to `most`, or nulls without values.
function heightFor(least, most, log) {
  if (least === null) return [null, null];
  const missing = LEAST_HEIGHT * Math.max(Math.abs(least), Math.abs(most)) - (most - least);
  const more = most > least && missing > 0 ? missing / 2 : 0;
  return log
    ? uPlot.rangeLog(least - more, most + more, 10, false)
    : uPlot.rangeNum(least - more, most + more, 0.1, true);
}

// The marks of a logarithmic axis. uPlot's own have no end if they begin far below 1.
export function logMarks(from, to) {
  const low = Math.floor(Math.log10(from)),
    high = Math.ceil(Math.log10(to));
  const digits = high - low > 4 ? [1] : [1, 2, 3, 4, 5, 6, 7, 8, 9];
  return Array.from({length: high - low + 1}, (_, i) => digits.map((digit) => Number(`${digit}e${low + i}`)))
    .flat()
    .filter((mark) => mark >= from && mark <= to);
}

export class Chart {
  // `title` is the text above the chart. Calls `onZoom(from, to)` when the user zooms into a range of the x axis.
  constructor(title, onZoom = () => {}) {
    this.body = h("div");
    this.element = h("figure", {}, h("figcaption", {}, title), this.body);
    this.title = title;
    this.onZoom = onZoom;
    this.range = null;
    this.plot = null;
    this.observer = new ResizeObserver(() => this.#resize());
    this.observer.observe(this.body);
  }

  // Curves: [{key, label, x, y, dash?, color?}], where color is an index into COLORS.
  // Options: {axis: "step" | "epoch" | "time", smooth: 0 to 0.99, log, marks: [x]}.
  show(curves, options) {
    this.curves = curves;
    if (this.options && this.options.axis !== options.axis) this.range = null;
    this.options = options;
    const shape = JSON.stringify([
      curves.map((curve) => [curve.key, curve.label, curve.dash, curve.color]),
      options.axis,
      options.log,
    ]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.#make();
    }
    this.#draw();
  }

  destroy() {
    this.observer.disconnect();
    this.plot?.destroy();
  }

  #width() {
    return Math.max(200, this.body.clientWidth || 400);
  }

  #make() {
    this.plot?.destroy();
    const style = getComputedStyle(document.documentElement);
    const text = style.getPropertyValue("--dim"),
      line = style.getPropertyValue("--line");
    const axis = {stroke: text, grid: {stroke: line, width: 1}, ticks: {stroke: line, width: 1}};
    const isTime = this.options.axis === "time";
    this.plot = new uPlot(
      {
        width: this.#width(),
        height: 240,
        scales: {
          x: {time: isTime, range: () => this.#span()},
          y: {
            distr: this.options.log ? 3 : 1,
            range: (_, least, most) => heightFor(least, most, this.options.log),
          },
        },
        cursor: {drag: {x: true, y: false, setScale: false}, points: {size: 6}},
        axes: [
          {...axis},
          {
            ...axis,
            size: 62,
            incrs: INCREMENTS,
            ...(this.options.log ? {splits: (_, axis, from, to) => logMarks(from, to)} : {}),
            values: (_, values) => values.map(tick),
          },
        ],
        series: [
          {
            label: this.options.axis,
            value: isTime ? undefined : (_, value) => (value === null ? "–" : String(+value.toFixed(3))),
          },
          ...this.curves.map((curve, i) => ({
            label: curve.label,
            stroke: COLORS[(curve.color ?? i) % COLORS.length],
            width: 1.6,
            ...(curve.dash ? {dash: [6, 4]} : {}),
            value: (_, value) => (value === null || value === undefined ? "–" : measure(value)),
          })),
        ],
        hooks: {
          setSelect: [
            (plot) => {
              if (plot.select.width < 4) return;
              const range = [
                plot.posToVal(plot.select.left, "x"),
                plot.posToVal(plot.select.left + plot.select.width, "x"),
              ];
              plot.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
              if (!(range[1] - range[0] > LEAST_ZOOM * Math.abs(range[1]))) return;
              this.range = range;
              this.#draw();
              this.onZoom(...this.range);
            },
          ],
          draw: [(plot) => this.#drawMarks(plot)],
        },
      },
      [[], ...this.curves.map(() => [])],
      this.body,
    );
    this.plot.over.addEventListener("dblclick", () => {
      this.range = null;
      this.#draw();
    });
  }

  // What the x axis shows.
  #span() {
    if (this.range) return this.range;
    let from = Infinity,
      to = -Infinity;
    for (const {x} of this.curves) {
      if (!x.length) continue;
      from = Math.min(from, x[0]);
      to = Math.max(to, x[x.length - 1]);
    }
    if (!(from <= to)) return [0, 1];
    return from === to ? [from - 0.5, to + 0.5] : [from, to];
  }

  #draw() {
    const [from, to] = this.#span();
    const width = this.#width();
    const data = this.curves.map((curve) => {
      if (
        curve.smoothedFor !== this.options.smooth ||
        curve.smoothedOf !== curve.y ||
        curve.smoothedLength !== curve.y.length
      ) {
        curve.smooth = smoothed(curve.y, this.options.smooth);
        curve.smoothedFor = this.options.smooth;
        curve.smoothedOf = curve.y;
        curve.smoothedLength = curve.y.length;
      }
      const points = reduced(curve.x, curve.smooth, from, to, width);
      if (this.options.log) points[1] = points[1].map((value) => (value > 0 ? value : null));
      return points;
    });
    this.plot.setData(data.length ? uPlot.join(data) : [[]], true);
  }

  #drawMarks(plot) {
    const context = plot.ctx;
    const [from, to] = this.#span();
    context.save();
    context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--warn");
    context.setLineDash([3, 4]);
    for (const x of this.options.marks ?? []) {
      if (!(x >= from && x <= to)) continue;
      const at = Math.round(plot.valToPos(x, "x", true)) + 0.5;
      context.beginPath();
      context.moveTo(at, plot.bbox.top);
      context.lineTo(at, plot.bbox.top + plot.bbox.height);
      context.stroke();
    }
    context.restore();
  }

  #resize() {
    if (this.plot && Math.abs(this.plot.width - this.#width()) > 1) {
      this.plot.setSize({width: this.#width(), height: 240});
      this.#draw();
    }
  }

  // After the theme has changed.
  repaint() {
    if (!this.options) return;
    this.#make();
    this.#draw();
  }
}

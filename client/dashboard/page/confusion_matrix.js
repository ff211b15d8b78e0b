// The picture of a confusion matrix.

import {h, svg} from "./dom.js";
import {count} from "./format.js";

// The longest shown name; a title has the whole name. The end of a longer name is shown, too: often only it differs.
const LONGEST_NAME = 14;
const END = 5;

// Returns the matrix as a picture. Rows are the true classes, columns the predicted ones. Without names, the classes
// are named by their labels.
export function confusionMatrix({classes, counts, names = []}) {
  const n = Number(classes);
  const nameOf = (i) => names[i] ?? String(i);
  const size = Math.max(3, Math.min(46, Math.floor(600 / n)));
  const sums = Array.from({length: n}, (_, row) =>
    counts.slice(row * n, row * n + n).reduce((sum, one) => sum + Number(one), 0),
  );
  const right = counts.filter((_, i) => i % (n + 1) === 0).reduce((sum, one) => sum + Number(one), 0);
  const label = `confusion matrix of ${n} classes: ${right} of ${sums.reduce((a, b) => a + b, 0)} right`;
  const shade = (one, i) => 0.06 + (0.94 * Number(one)) / (sums[Math.floor(i / n)] || 1);
  const color = (i) => (i % (n + 1) === 0 ? "#2a9d4a" : "#d9541e");
  if (n > 40) {
    // Too many rectangles for a page.
    const canvas = h("canvas", {
      class: "matrix",
      width: n * size,
      height: n * size,
      role: "img",
      "aria-label": label,
    });
    const context = canvas.getContext("2d");
    counts.forEach((one, i) => {
      context.globalAlpha = shade(one, i);
      context.fillStyle = color(i);
      context.fillRect((i % n) * size, Math.floor(i / n) * size, size, size);
    });
    return canvas;
  }
  const shown = Array.from({length: n}, (_, i) => {
    const name = nameOf(i);
    return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - END - 1)}…${name.slice(-END)}` : name;
  });
  const longest = Math.max(...shown.map((name) => name.length));
  // Names beside rows and above columns. Long names stand upright above their columns.
  const isUpright = longest * 7 > size;
  const left = Math.max(40, longest * 7 + 12);
  const top = isUpright ? Math.max(20, longest * 7 + 8) : 20;
  return svg(
    "svg",
    {
      class: "matrix",
      width: left + n * size,
      height: top + n * size + 20,
      viewBox: `0 0 ${left + n * size} ${top + n * size + 20}`,
      role: "img",
      "aria-label": label,
    },
    counts.map((one, i) => {
      const row = Math.floor(i / n);
      const column = i % n;
      return svg(
        "rect",
        {
          x: left + column * size,
          y: top + row * size,
          width: size - 1,
          height: size - 1,
          fill: color(i),
          "fill-opacity": shade(one, i).toFixed(3),
        },
        svg("title", {}, `true ${nameOf(row)}, predicted ${nameOf(column)}: ${count(one)}`),
      );
    }),
    n <= 14 &&
      counts.map((one, i) =>
        svg(
          "text",
          {
            x: left + (i % n) * size + (size - 1) / 2,
            y: top + 4 + Math.floor(i / n) * size + size / 2,
            "text-anchor": "middle",
          },
          Number(one) ? count(one) : "",
        ),
      ),
    shown.map((name, i) => {
      const [x, y] = [left + i * size + size / 2, top - 6];
      return [
        svg("text", {x: left - 6, y: top + i * size + size * 0.65, "text-anchor": "end"}, name),
        isUpright
          ? svg("text", {x: x + 4, y, transform: `rotate(-90 ${x + 4} ${y})`}, name)
          : svg("text", {x, y, "text-anchor": "middle"}, name),
      ];
    }),
  );
}

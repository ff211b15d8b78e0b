// The picture of a confusion matrix.

import {h, svg} from "./dom.js";
import {count} from "./format.js";

// Returns the matrix as a picture. Rows are the true classes, columns the predicted ones.
export function confusionMatrix({classes, counts}) {
  const n = Number(classes);
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
  return svg(
    "svg",
    {
      class: "matrix",
      width: n * size + 40,
      height: n * size + 40,
      viewBox: `0 0 ${n * size + 40} ${n * size + 40}`,
      role: "img",
      "aria-label": label,
    },
    counts.map((one, i) => {
      const row = Math.floor(i / n);
      const column = i % n;
      return svg(
        "rect",
        {
          x: 40 + column * size,
          y: 20 + row * size,
          width: size - 1,
          height: size - 1,
          fill: color(i),
          "fill-opacity": shade(one, i).toFixed(3),
        },
        svg("title", {}, `true ${row}, predicted ${column}: ${count(one)}`),
      );
    }),
    n <= 14 &&
      counts.map((one, i) =>
        svg(
          "text",
          {
            x: 40 + (i % n) * size + (size - 1) / 2,
            y: 24 + Math.floor(i / n) * size + size / 2,
            "text-anchor": "middle",
          },
          Number(one) ? count(one) : "",
        ),
      ),
    Array.from({length: n}, (_, i) => [
      svg("text", {x: 34, y: 20 + i * size + size * 0.65, "text-anchor": "end"}, i),
      svg("text", {x: 40 + i * size + size / 2, y: 14, "text-anchor": "middle"}, i),
    ]),
  );
}

// Elements of the page. Text from the daemon is always a text node, never HTML.

// Makes an element: h("a", {class: "x", href: "#/jobs", onclick: f}, "text", child, ...). Properties and children that
// are undefined, null or false are left out.
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

// Makes an SVG element.
export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), value);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(
    ...children
      .flat(Infinity)
      .filter((child) => child !== undefined && child !== null && child !== false)
      .map((child) => (child instanceof Node ? child : String(child))),
  );
  return element;
}

// Replaces an element's children if `key` differs from the last time. The focus moves to the new child at the same place.
// Scrolled parts stay scrolled.
export function update(element, key, make) {
  if (element.dataset.key === String(key)) return;
  element.dataset.key = key;
  const place = [];
  for (
    let one = element.contains(document.activeElement) ? document.activeElement : element;
    one !== element;
    one = one.parentNode
  )
    place.unshift([...one.parentNode.childNodes].indexOf(one));
  const scrolled = [...element.querySelectorAll(".scroll")].map((one) => [one.scrollLeft, one.scrollTop]);
  element.replaceChildren(...[make()].flat(Infinity).filter((child) => child));
  if (place.length) place.reduce((one, i) => one?.childNodes[i], element)?.focus?.({preventScroll: true});
  element.querySelectorAll(".scroll").forEach((one, i) => {
    if (scrolled[i]) [one.scrollLeft, one.scrollTop] = scrolled[i];
  });
}

// Makes a table. Columns: {title, number?}. Rows: {cells: [...], class?}. Cells are texts or elements.
export function table(caption, columns, rows) {
  return h(
    "div",
    {class: "scroll", tabindex: 0, role: "region", "aria-label": caption},
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map((column) => h("th", {scope: "col", class: column.number && "number"}, column.title)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            {class: row.class},
            row.cells.map((cell, i) => h("td", {class: columns[i].number && "number"}, cell)),
          ),
        ),
      ),
    ),
  );
}

// Asks for confirmation. Resolves to true, to the field's value if there is a field, or to null if the user declines.
function confirm(question, action, field) {
  return new Promise((resolve) => {
    const input = field && h("input", {...field, "aria-label": question});
    const close = (value) => {
      removeEventListener("hashchange", leave);
      dialog.close();
      dialog.remove();
      resolve(value);
    };
    const dialog = h(
      "dialog",
      {"aria-label": question, oncancel: () => close(null)},
      h(
        "form",
        {
          onsubmit: (event) => {
            event.preventDefault();
            close(input ? input.value : true);
          },
        },
        h("p", {}, question),
        input,
        h(
          "div",
          {class: "bar"},
          h("button", {type: "button", onclick: () => close(null)}, "Leave it"),
          h("button", {type: "submit"}, action),
        ),
      ),
    );
    // The browser's Back button leaves the view that asked.
    const leave = () => close(null);
    addEventListener("hashchange", leave);
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Asks for a change; after a yes, makes the change with the answer. Shows the change's error in `problem`.
export async function change(question, action, field, make, {problem, signal}) {
  const answer = await confirm(question, action, field);
  if (answer === null || signal.aborted) return;
  problem.textContent = "";
  try {
    await make(answer);
  } catch (error) {
    if (error.name !== "AbortError") problem.textContent = error.message;
  }
}

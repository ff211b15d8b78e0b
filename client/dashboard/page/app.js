// The page: the present view, the user, and the banner for errors.

import {call, isFinal} from "./api.js";
import {showCompare} from "./compare_view.js";
import {showDevices} from "./devices_view.js";
import {showJob} from "./job_view.js";
import {showJobs} from "./jobs_view.js";
import {showQueue} from "./queue_view.js";
import {showSweep, showSweeps} from "./sweeps_view.js";

// A view takes a context and returns nothing. Context:
//   root: the element that the view fills; query: URLSearchParams of its address; id: of a job or sweep, or ""
//   setQuery(changes): changes parameters of the address (null removes one), without leaving the view
//   say(text): the banner; "" hides it
//   user: {user, role}
//   onEnd(f): f runs when the user leaves the view; signal: an AbortSignal for the same moment
const VIEWS = [
  [/^#\/jobs\/([^/?]+)/, showJob],
  [/^#\/jobs/, showJobs],
  [/^#\/queue/, showQueue],
  [/^#\/sweeps\/([^/?]+)/, showSweep],
  [/^#\/sweeps/, showSweeps],
  [/^#\/compare/, showCompare],
  [/^#\/devices/, showDevices],
];

const main = document.getElementById("main");
const banner = document.getElementById("banner");
let user = {user: "", role: "VIEWER"};
let current = null;
// The error of GetDaemon, until it answers.
let trouble = "";

function say(text) {
  if (banner.textContent === text) return;
  banner.textContent = text;
  banner.hidden = !text;
}

// An address that somebody typed may have "%" before no number.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function show() {
  const [path] = location.hash.split("?");
  const found = VIEWS.find(([pattern]) => pattern.test(path));
  if (!found) {
    location.replace("#/jobs");
    return;
  }
  current?.abort();
  say(trouble);
  const controller = new AbortController();
  current = controller;
  main.replaceChildren();
  for (const link of document.querySelectorAll("header nav a")) {
    if (path.startsWith(link.getAttribute("href"))) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = "Tandem";
  found[1]({
    root: main,
    id: decoded(found[0].exec(path)[1] ?? ""),
    query: new URLSearchParams(location.hash.split("?")[1] ?? ""),
    user,
    signal: controller.signal,
    onEnd: (f) => controller.signal.addEventListener("abort", f),
    // A view that the user left shows nothing.
    say: (text) => {
      if (!controller.signal.aborted) say(text || trouble);
    },
    setQuery(changes) {
      const [hash, old] = location.hash.split("?");
      const query = new URLSearchParams(old ?? "");
      for (const [name, value] of Object.entries(changes)) {
        if (value === null || value === "") query.delete(name);
        else query.set(name, value);
      }
      const text = String(query);
      // The view stays: replaceState makes no hashchange event.
      history.replaceState(null, "", text ? `${hash}?${text}` : hash);
    },
  });
}

function setTheme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  document.dispatchEvent(new Event("theme"));
}

const system = matchMedia("(prefers-color-scheme: dark)");
const chosen = localStorage.getItem("theme");
setTheme(chosen ? chosen === "dark" : system.matches);
system.addEventListener("change", () => {
  if (!localStorage.getItem("theme")) setTheme(system.matches);
});
document.getElementById("theme").addEventListener("click", () => {
  const dark = !document.documentElement.classList.contains("dark");
  localStorage.setItem("theme", dark ? "dark" : "light");
  setTheme(dark);
});

// Asks the daemon for the user and the role, until it answers. Buttons depend on them, so each answer builds the view
// again.
async function identify() {
  try {
    const daemon = await call("GetDaemon");
    trouble = "";
    user = {user: daemon.caller_user ?? "", role: (daemon.caller_role ?? "").replace("TOKEN_ROLE_", "")};
    document
      .getElementById("who")
      .replaceChildren(`user ${user.user} (${user.role.toLowerCase()}) · Tandem ${daemon.version}`);
  } catch (error) {
    trouble = error.message;
    if (!isFinal(error.code)) setTimeout(identify, 2000);
  }
  show();
}
// Listens for new addresses only after the first answer. An earlier view would flash, because the answer builds it again.
identify().then(() => addEventListener("hashchange", show));

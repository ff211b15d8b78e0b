// A daemon, dashboards of its users, and a browser, for the dashboard's tests and bench. Everything of the command line is asked
// through the real `tandem`.

import {execFile, spawn} from "node:child_process";
import {once} from "node:events";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import path from "node:path";
import {pathToFileURL} from "node:url";
import {promisify} from "node:util";

const {SCRATCH, TANDEMD, TANDEM, PACKAGES} = process.env;
const {chromium} = await import(pathToFileURL(path.join(PACKAGES, "playwright-core/index.mjs")).href);
export const axe = fs.readFileSync(path.join(PACKAGES, "axe-core/axe.min.js"), "utf8");
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// How long anything may take, in seconds: the machine may be busy.
const PATIENCE = 300;

// Waits until `holds` returns something true, and returns it.
export async function until(what, holds, seconds = PATIENCE) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const value = await holds();
    if (value) return value;
    if (Date.now() > end) throw new Error(`${what}: not within ${seconds} s`);
    await sleep(50);
  }
}

// A job on made-up data. `epochs` of 64 steps, a report each.
export const spec = (name, epochs, more = {}) => ({name,
  dataset: {synthetic: {shape: [1, 16, 16], classes: 4, train_samples: 4096, validation_samples: 64, seed: 1},
            class_names: ["ash", "beech", "cherry", "dogwood of the north"]},
  model: {input: {shape: [1, 16, 16]}, layers: [{dense: {units: 32, activation: "relu"}}, {dense: {units: 4}}]},
  training: {loss: {softmax_cross_entropy: {}}, optimizer: {sgd: {learning_rate: 0.01}}, metrics: ["accuracy", "confusion_matrix"],
             global_batch_size: 64, epochs, report: {every_steps: 64}, ...more}});

export class Stage {
  // Of the daemon. Training leaves the processor to the browser.
  nice = 10;
  state = path.join(SCRATCH, "state");
  address = "127.0.0.1:0";

  async startDaemon(...flags) {
    fs.rmSync(path.join(this.state, "address"), {force: true});
    const log = fs.openSync(path.join(SCRATCH, "tandemd.log"), "a");
    this.daemon = spawn("nice", ["-n", String(this.nice), TANDEMD, "--state-folder", this.state, "--listen", this.address, "--cpu-devices", "2", ...flags], {stdio: ["ignore", log, log]});
    this.address = await until("the daemon's address", () => {
      try {
        return fs.readFileSync(path.join(this.state, "address"), "utf8").trim();
      } catch {
        return "";
      }
    });
  }
  async killDaemon() {
    this.daemon.kill("SIGKILL");
    await once(this.daemon, "exit");
  }

  // What `tandem` prints; throws if it fails.
  async tandem(...words) {
    const {stdout} = await promisify(execFile)(TANDEM, ["--state-folder", this.state, ...words], {maxBuffer: 1 << 28});
    return stdout;
  }
  async submit(job, token) {
    const file = path.join(SCRATCH, `${job.name.replace(/\W/g, "_")}.json`);
    fs.writeFileSync(file, JSON.stringify(job));
    const words = token ? ["--address", this.address, "--token-file", token] : [];
    return JSON.parse(await this.tandem("submit", file, "-o", "json", ...words)).name.split("/")[1];
  }
  async job(id) {
    return JSON.parse(await this.tandem("describe", id, "-o", "json"));
  }
  // The stored log: a list of events.
  async log(id) {
    // The command fails if the job was cancelled.
    const text = await this.tandem("watch", id, "-o", "json").catch((error) => error.stdout);
    return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  }
  // The file of a new user's token.
  async token(user, role) {
    const file = path.join(SCRATCH, `token-${user}`);
    fs.writeFileSync(file, JSON.parse(await this.tandem("tokens", "create", user, "--role", role, "-o", "json")).secret);
    return file;
  }

  // Starts `tandem dashboard` for a user; its URL has the key.
  async startDashboard(token) {
    const words = ["dashboard", "--no-open", "--listen", "127.0.0.1:0", "--address", this.address];
    const program = spawn(TANDEM, [...words, "--token-file", token ?? path.join(this.state, "token")], {stdio: ["ignore", "pipe", "pipe"]});
    let text = "";
    program.stdout.on("data", (piece) => { text += piece; });
    program.stderr.on("data", (piece) => { text += piece; });
    await until("the dashboard's address", () => {
      if (text.includes("without its page")) process.exit(77);
      if (program.exitCode !== null) throw new Error(text);
      return /\/\?key=\w+/.test(text);
    });
    const url = text.match(/http:\S+/)[0];
    return {url, base: url.replace(/\?.*/, ""), program};
  }

  async startBrowser() {
    this.browser = await chromium.launch({executablePath: "/usr/bin/chromium", args: ["--no-sandbox"]});
  }
  // A page of a browser of its own, with the dashboard open.
  async open(dashboard, options = {}) {
    return this.visit(await this.newPage(options), dashboard);
  }
  // An empty page of a browser of its own. page.problems lists the errors of its scripts.
  async newPage(options = {}) {
    const context = await this.browser.newContext({viewport: {width: 1280, height: 720}, ...options});
    context.setDefaultTimeout(PATIENCE * 1000);
    const page = await context.newPage();
    page.problems = [];
    page.on("pageerror", (error) => page.problems.push(error.stack));
    page.on("dialog", (dialog) => { page.problems.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
    return page;
  }
  async visit(page, dashboard) {
    await goto(page, dashboard.url);
    page.show = async (hash) => {
      await goto(page, `${dashboard.base}${hash}`);
      await page.waitForSelector("main h1");
    };
    page.cookie = (await page.context().cookies()).map((one) => `${one.name}=${one.value}`).join("; ");
    return page;
  }
}

// Opens an address. If a network interface joins or leaves this machine, as in another test, Chromium breaks all requests, and shows a
// page that loads itself again. Playwright sees only the error.
async function goto(page, address) {
  for (let left = 5; ; --left) {
    try {
      return await page.goto(address);
    } catch (error) {
      if (left === 0 || !error.message.includes("ERR_NETWORK_CHANGED")) throw error;
    }
  }
}

// Has the browser reach a dashboard through connections that cut() breaks, all at once; it returns their number. Changes the
// dashboard's address.
export async function startProxy(dashboard) {
  const {hostname, port} = new URL(dashboard.base);
  const sockets = new Set();
  const server = net.createServer((browser) => {
    const inner = net.connect(Number(port), hostname);
    const pair = [browser, inner];
    sockets.add(pair);
    for (const one of pair) {
      one.on("error", () => {});
      one.on("close", () => { sockets.delete(pair); pair.forEach((other) => other.destroy()); });
    }
    // Each connection has one request. The dashboard answers only requests to its own address.
    browser.once("data", (head) => {
      inner.write(head.toString("latin1").replaceAll(`127.0.0.1:${server.address().port}`, `127.0.0.1:${port}`), "latin1");
      browser.pipe(inner);
    });
    inner.pipe(browser);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  dashboard.base = dashboard.base.replace(port, server.address().port);
  dashboard.url = dashboard.url.replace(port, server.address().port);
  return {
    cut() {
      const count = sockets.size;
      sockets.forEach((pair) => pair.forEach((one) => one.destroy()));
      return count;
    },
    close: () => server.close(),
  };
}

// An HTTP request as no browser would make it: {status, headers, text}. A stream's answer is cut off after its head.
export function request(base, where, {method = "GET", headers = {}, body} = {}) {
  return new Promise((resolve, reject) => {
    const url = new URL(base);
    const sent = http.request({host: url.hostname, port: url.port, path: where, method, headers: {Host: url.host, ...headers}}, (response) => {
      if (response.headers["content-type"] === "text/event-stream") {
        resolve({status: response.statusCode, headers: response.headers, text: ""});
        sent.destroy();
        return;
      }
      let text = "";
      response.on("data", (piece) => { text += piece; });
      response.on("end", () => resolve({status: response.statusCode, headers: response.headers, text}));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

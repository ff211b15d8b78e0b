// What the dashboard must do, case by case: see dashboard.sh.

import assert from "node:assert/strict";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import {Stage, axe, request, sleep, spec, startProxy, until} from "./stage.mjs";

const BREAKS = process.env.TANDEM_WHOLE === "1" ? 20 : 2;
const stage = new Stage();
const data = path.join(stage.state, "..", "data");
fs.mkdirSync(data);
await stage.startDaemon("--data-folder", data);
const first = await stage.startDashboard();
await stage.startBrowser();
const ann = await stage.token("ann", "submitter");
const ben = await stage.token("ben", "submitter");
const eve = await stage.token("eve", "viewer");

const failures = [];
let passed = 0;
async function test(name, run) {
  const begin = Date.now();
  try {
    await run();
    passed++;
    console.log(`ok: ${name} (${Date.now() - begin} ms)`);
  } catch (error) {
    failures.push(name);
    console.log(`FAILED: ${name}: ${error.stack}`);
  }
}

const stateOf = (page) => page.locator("main .state").first().textContent();
const awaitState = (page, state) => until(`state ${state}`, async () => (await stateOf(page)) === state);
// Presses a button and agrees in the dialog.
async function press(page, label, action = label, value = undefined) {
  await page.locator("main").getByRole("button", {name: label, exact: true}).click();
  if (value !== undefined) await page.locator("dialog input").fill(String(value));
  await page.locator("dialog").getByRole("button", {name: action, exact: true}).click();
}

const done = await stage.submit(spec("done", 3));
await stage.log(done);
const page = await stage.open(first);

await test("the key opens the page once, and leaves the address", async () => {
  assert.equal(new URL(page.url()).search, "");
  const key = new URL(first.url).search;
  assert.equal((await request(first.base, `/${key}`)).headers["set-cookie"], undefined);
  for (const where of ["/events/jobs", "/api/job_file?name=jobs/x"]) {
    assert.equal((await request(first.base, where)).status, 401, where);
    assert.equal((await request(first.base, where, {headers: {Cookie: `${page.cookie.slice(0, -1)}x`}})).status, 401, where);
  }
  // The page itself has no data. Without a key it says so.
  const stranger = await stage.newPage();
  await stranger.goto(first.base);
  await until("it says so", async () => /no key/.test(await stranger.locator("#banner").textContent()));
  assert.equal(await stranger.locator("[data-job]").count(), 0);
  await stranger.context().close();
  const cookie = (await page.context().cookies())[0];
  assert.equal(cookie.httpOnly, true);
  assert.equal(cookie.sameSite, "Strict");
  assert.equal(await page.evaluate(() => document.cookie), "");
});

await test("other sites and other hosts get nothing", async () => {
  const good = {Cookie: page.cookie};
  const json = {...good, "Content-Type": "application/json"};
  const {host, port} = new URL(first.base);
  const asked = async (where, options) => (await request(first.base, where, options)).status;
  assert.equal(await asked("/events/jobs", {headers: good}), 200);
  assert.equal(await asked("/api/GetDaemon", {method: "POST", headers: json, body: "{}"}), 200);
  assert.equal(await asked("/", {headers: {...good, Host: `evil.example:${port}`}}), 403);
  assert.equal(await asked("/events/jobs", {headers: {...good, Origin: "http://evil.example"}}), 403);
  assert.equal(await asked("/events/jobs", {headers: {...good, "Sec-Fetch-Site": "cross-site"}}), 403);
  assert.equal(await asked("/events/jobs", {headers: {...good, "Sec-Fetch-Site": "same-site"}}), 403);
  assert.equal(await asked("/api/GetDaemon", {method: "POST", headers: {...good, "Content-Type": "text/plain"}, body: "{}"}), 403);
  assert.equal(await asked("/api/GetDaemon", {method: "POST", headers: {...json, Origin: "null"}, body: "{}"}), 403);
  assert.equal(await asked("/api/Shutdown", {method: "POST", headers: json, body: "{}"}), 404);
  assert.equal(await asked("/page/../state/token", {headers: good}), 404);
  const split = await request(first.base, "/?key=x%0d%0aX-Evil:%20y", {headers: good});
  assert.equal(split.headers["x-evil"], undefined);
  const head = await request(first.base, "/", {headers: good});
  assert.match(head.headers["content-security-policy"], /default-src 'none'/);
  assert.equal(head.headers["x-content-type-options"], "nosniff");
  assert.ok(!head.text.includes(fs.readFileSync(path.join(stage.state, "token"), "utf8").trim()));
  // Another site in the same browser: it sees neither an answer nor an event.
  const other = await page.context().newPage();
  await other.goto("data:text/html,<p>other</p>");
  assert.equal(await other.evaluate((url) => new Promise((resolve) => {
    const source = new EventSource(`${url}events/jobs`, {withCredentials: true});
    source.addEventListener("jobs", () => resolve("events"));
    source.onerror = () => resolve("refused");
  }), first.base), "refused");
  assert.equal(await other.evaluate((url) => fetch(`${url}api/job_file?name=jobs/x`, {credentials: "include"}).then(() => "answer", () => "refused"), first.base), "refused");
  await other.close();
  assert.ok(host);
});

await test("a link in another site's page opens the view with the user's cookie", async () => {
  const other = await page.context().newPage();
  await other.route("http://other.example/", (route) => route.fulfill({contentType: "text/html", body: `<a href="${first.base}#/jobs/${done}">job</a>`}));
  await other.goto("http://other.example/");
  await other.click("a");
  await until("the job", async () => (await other.locator("main .state").first().textContent().catch(() => "")) === "succeeded");
  await other.close();
});

await test("silent connections hold nobody up for long", async () => {
  const {hostname, port} = new URL(first.base);
  const silent = Array.from({length: 200}, () => net.connect(Number(port), hostname));
  await sleep(200);
  const begin = Date.now();
  assert.equal((await request(first.base, "/", {headers: {Cookie: page.cookie}})).status, 200);
  assert.ok(Date.now() - begin < 8000, `${Date.now() - begin} ms`);
  silent.forEach((socket) => socket.destroy());
});

await test("the list is live, and searched, filtered and sorted", async () => {
  await page.show("#/jobs");
  await page.waitForSelector(`[data-job="jobs/${done}"]`);
  const second = await stage.submit(spec("second", 2));
  await until("the new job's end", async () => (await page.locator(`[data-job="jobs/${second}"] .state`).textContent().catch(() => "")) === "succeeded");
  await page.getByLabel("Search").fill("second");
  await until("one row", async () => (await page.locator("[data-job]").count()) === 1);
  assert.match(page.url(), /q=second/);
  await page.getByLabel("Search").fill("");
  await page.getByLabel("State").selectOption("FAILED");
  await until("no row", async () => (await page.locator("[data-job]").count()) === 0);
  await until("it says so", async () => (await page.locator("main .bar").textContent()).includes("no match in"));
  await page.getByLabel("State").selectOption("");
  await page.getByLabel("Sort by").selectOption("name");
  await until("sorted", async () => (await page.locator("[data-job] a").allTextContents()).join() === "done,second");
  await stage.tandem("delete", second, "--yes").catch(() => stage.tandem("delete", second));
  await until("the deleted job's row goes", async () => (await page.locator(`[data-job="jobs/${second}"]`).count()) === 0);
});

await test("names and messages are data", async () => {
  // Names of jobs are restricted; a notice, a log and a reason are not: here, a device's.
  const text = "<img src=x onerror=alert(1)><script>alert(2)</script>";
  await stage.tandem("devices", "drain", "cpu:1", "--reason", text);
  await page.show("#/devices");
  await until("the reason as text", async () => (await page.locator("main").textContent()).includes(text));
  assert.equal(await page.locator("main img, main script").count(), 0);
  await stage.tandem("devices", "resume", "cpu:1");
});

await test("a page that is hidden and shown while it asks for a lost stream's reason has one stream", async () => {
  await page.show("#/queue");
  const open = await page.evaluate(async () => {
    const {follow} = await import("/page/api.js");
    const {EventSource, fetch} = window;
    const streams = [];
    window.EventSource = class {
      constructor() { streams.push(this); }
      addEventListener() {}
      close() { this.isClosed = true; }
    };
    let answer, isHidden = false;
    window.fetch = (path, options) => path === "/api/GetDaemon" ? new Promise((resolve) => { answer = resolve; }) : fetch(path, options);
    Object.defineProperty(document, "hidden", {configurable: true, get: () => isHidden});
    const end = follow(() => "/events/jobs", {}, () => {});
    streams[0].onerror();
    for (isHidden of [true, false]) document.dispatchEvent(new Event("visibilitychange"));
    answer(new Response("{}"));
    await new Promise((resolve) => setTimeout(resolve, 1500));
    const open = streams.filter((one) => !one.isClosed).length;
    end();
    delete document.hidden;
    Object.assign(window, {EventSource, fetch});
    return open;
  });
  assert.equal(open, 1);
});

await test("the devices' view shows a cluster's partitions, or why there are none", async () => {
  let answer = {devices: [{name: "devices/cpu:0", state: "DEVICE_STATE_ACTIVE"}],
    partitions: [{name: "brief", time_limit_seconds: 300, nodes: 1, cpus_per_node: 8}, {name: "work", is_default: true, is_up: true, nodes: 4, free_nodes: 3, gpus_per_node: 2}]};
  const one = await stage.open(await stage.startDashboard());
  await one.route("**/api/ListDevices", (route) => route.fulfill({json: answer}));
  await one.show("#/devices");
  const table = one.getByRole("region", {name: "Partitions"});
  await until("the partitions", async () => (await table.locator("tbody tr").count()) === 2);
  const cells = await table.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent).join("|")));
  assert.deepEqual(cells, ["brief|down|0/1|8|0|5 min 0 s", "work (default)|up|3/4|0|2|"]);
  answer = {devices: answer.devices, partitions_message: "cannot ask Slurm: no answer; wait"};
  await until("the reason", async () => (await one.locator("main").textContent()).includes("cannot ask Slurm: no answer; wait"));
  assert.equal(await table.count(), 0);
  assert.deepEqual(one.problems, []);
  await one.context().close();
  await page.show("#/devices");
  await until("the devices", async () => (await page.locator("tbody tr").count()) === 2);
  assert.ok(!(await page.locator("main").textContent()).includes("Cluster"));
});

await test("the page builds a view once, although the daemon answers late", async () => {
  const one = await stage.newPage();
  await one.route("**/api/GetDaemon", async (route) => { await sleep(500); await route.continue(); });
  await stage.visit(one, await stage.startDashboard());
  await one.show("#/devices");
  await one.evaluate(() => { document.querySelector("main h1").dataset.first = ""; });
  await sleep(1000);
  assert.equal(await one.locator("main h1[data-first]").count(), 1);
  await one.context().close();
});

await test("a page is loaded again if one of its files does not arrive", async () => {
  for (const file of ["app.js", "numbers.js", "uPlot.esm.js", "style.css"]) {
    const one = await stage.newPage();
    let asked = 0;
    await one.route(`**/page/${file}`, (route) => (asked++ ? route.continue() : route.abort("connectionreset")));
    await stage.visit(one, await stage.startDashboard());
    await one.show(`#/jobs/${done}`);
    await until(`${file} again`, () => asked > 1);
    await awaitState(one, "succeeded");
    await until("the style", () => one.evaluate(() => getComputedStyle(document.querySelector("header")).display === "flex"));
    assert.deepEqual(one.problems, []);
    await one.context().close();
  }
});

// What a page has of a job's curves, and what the log has.
const curvesOf = (page) => page.evaluate(() => Object.fromEntries([...window.tandemHistory.series].map(([key, one]) => [key, [one.step, one.value.map(String)]])));
function curvesIn(events) {
  const curves = {};
  const add = (key, step, value) => {
    const curve = curves[key] ??= [[], []];
    while (curve[0].length && curve[0].at(-1) >= step) curve.forEach((column) => column.pop());
    curve[0].push(step);
    curve[1].push(Number(value));
  };
  const all = (part, step, evaluation) => {
    if (!evaluation) return;
    add(`${part}/loss`, step, evaluation.loss ?? 0);
    for (const [name, value] of Object.entries(evaluation.metrics ?? {})) add(`${part}/${name}`, step, value);
  };
  for (const {progress, epoch, validation} of events) {
    if (progress) {
      all("training", Number(progress.step), progress.training);
      add("learning_rate", Number(progress.step), progress.learning_rate ?? 0);
      add("images_per_second", Number(progress.step), progress.images_per_second ?? 0);
    }
    if (epoch) all("epoch", Number(epoch.step), epoch.training);
    if (epoch) all("validation", Number(epoch.step), epoch.validation);
    if (validation) all("validation", Number(validation.step), validation.validation);
  }
  return curves;
}
// The job's log, when the page has all of it: a page may say that a job has ended before it has the last events.
async function endedLog(page, id) {
  const log = await stage.log(id);
  await until("the log's last event", async () => (await page.evaluate(() => window.tandemHistory.sequence)) >= Number(log.at(-1).sequence));
  return log;
}
const isSame = (a, b) => a === b || (Number.isNaN(a) && Number.isNaN(b));
function expectSame(shown, stored) {
  assert.deepEqual(Object.keys(shown).sort(), Object.keys(stored).sort());
  for (const [key, [steps, values]] of Object.entries(stored)) {
    assert.deepEqual(shown[key][0], steps, key);
    values.forEach((value, i) => {
      assert.ok(isSame(Number(shown[key][1][i]), value), `${key}[${i}]: ${shown[key][1][i]} and ${value}`);
    });
  }
}

await test("an ended job's curves, tables and files are the log's", async () => {
  await page.show(`#/jobs/${done}`);
  await awaitState(page, "succeeded");
  const stored = curvesIn(await endedLog(page, done));
  expectSame(await curvesOf(page), stored);
  await until("three epochs", async () => (await page.getByRole("region", {name: "Epochs", exact: true}).locator("tbody tr").count()) === 3);
  await until("16 cells", async () => (await page.locator("svg.matrix rect").count()) === 16);
  const matrix = page.locator("svg.matrix");
  assert.match(await matrix.locator("title").nth(7).textContent(), /^true beech, predicted dogwood of the north: /);
  assert.deepEqual((await matrix.locator("text").allTextContents()).slice(-8), ["ash", "beech", "cherry", "dogwood …north"].flatMap((name) => [name, name]));
  await page.getByText("Job file").click();
  await until("the job file", async () => (await page.locator("pre").allTextContents()).join().includes("softmax_cross_entropy"));
  await page.getByText("Layers", {exact: true}).click();
  await until("the layers", async () => (await page.getByRole("region", {name: "Layers"}).textContent().catch(() => "")).includes("dense"));
  await page.getByText("Log", {exact: true}).click();
  await until("the log", async () => (await page.getByLabel("Log", {exact: true}).textContent().catch(() => "")) !== "");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("model.safetensors").click()]);
  const folder = (await stage.job(done)).folder;
  const model = fs.readFileSync(path.join(folder, "model.safetensors"));
  assert.ok(fs.readFileSync(await download.path()).equals(model));
  const row = page.getByRole("region", {name: "Checkpoints", exact: true}).locator("tbody tr").first();
  const step = await row.locator("td").first().textContent();
  const [kept] = await Promise.all([page.waitForEvent("download"), row.getByRole("link").click()]);
  assert.equal(kept.suggestedFilename(), `model-${step}.safetensors`);
  // The newest checkpoint has the final weights: as many bytes of tensors, the same ones.
  const tensors = (file) => file.subarray(8 + Number(file.readBigUInt64LE()));
  assert.ok(tensors(fs.readFileSync(await kept.path())).equals(tensors(model)));
});

await test("an error of an ended job's page is shown until the daemon answers again", async () => {
  const one = await stage.open(await stage.startDashboard());
  await one.show(`#/jobs/${done}`);
  await awaitState(one, "succeeded");
  await one.route("**/api/GetJob", (route) => route.fulfill({status: 503, contentType: "application/json", body: JSON.stringify({code: "RESOURCE_EXHAUSTED", message: "too many calls; retry later"})}));
  await until("the error", async () => /too many calls/.test(await one.locator("#banner").textContent()));
  await one.unroute("**/api/GetJob");
  await until("no error", async () => one.locator("#banner").isHidden());
  await one.context().close();
});

await test("an element is made again only for another key, also if keys are numbers", async () => {
  const made = await page.evaluate(async () => {
    const {update} = await import("/page/dom.js");
    const element = document.createElement("div"), made = [];
    for (const key of [7, 7, 8, "a", "a"]) update(element, key, () => made.push(key) && []);
    return made;
  });
  assert.deepEqual(made, [7, 8, "a"]);
});

await test("a history takes many epochs in time, and an epoch that was trained again counts once", async () => {
  const {epochs, seconds} = await page.evaluate(async () => {
    const {History} = await import("/page/history.js");
    const history = new History(), begin = performance.now();
    let sequence = 0;
    const take = (epoch) => history.take({sequence: ++sequence, epoch: {epoch, step: 10 * epoch}});
    for (let epoch = 1; epoch <= 20000; epoch++) take(epoch);
    // The second attempt begins after epoch 19,990.
    for (let epoch = 19991; epoch <= 20001; epoch++) take(epoch);
    return {epochs: history.epochs.map((one) => one.epoch), seconds: (performance.now() - begin) / 1000};
  });
  assert.deepEqual(epochs, Array.from({length: 20001}, (_, i) => i + 1));
  assert.ok(!(seconds > 5), `${seconds} s`);
});

await test("a step's place among epochs counts whole epochs, also if the last one is cut short", async () => {
  // 2500 steps in epochs of 1000: the plan has 3 epochs.
  const places = await page.evaluate(async () => {
    const {History} = await import("/page/history.js");
    const history = new History(), places = [];
    let sequence = 0;
    const at = (step) => history.place({step, at: 0}, "epoch");
    const report = (step) => history.take({sequence: ++sequence, progress: {step, steps: 2500, epochs: 3, training: {loss: 1}}});
    const epoch = (epoch, step) => history.take({sequence: ++sequence, epoch: {epoch, step, epochs: 3}});
    report(500);
    places.push(at(2500));
    epoch(1, 1000);
    report(1500);
    places.push(at(1500));
    epoch(2, 2000);
    report(2500);
    epoch(3, 2500);
    places.push(at(2500), ...history.along("training/loss", "epoch").x);
    return places;
  });
  assert.deepEqual(places, [3, 1.5, 2.5, 0.5, 1.5, 2.5]);
});

await test("a sweep's fields have short names that differ", async () => {
  const names = await page.evaluate(async () => {
    const {shortNames} = await import("/page/sweeps_view.js");
    return shortNames(["training.optimizer.sgd.learning_rate", "model.layers[0].dense.units", "model.layers[2].dense.units", "seed", "training.seed"]);
  });
  assert.deepEqual(names, ["learning_rate", "layers[0].dense.units", "layers[2].dense.units", "seed", "training.seed"]);
});

await test("numbers beside an axis keep their size", async () => {
  const shown = await page.evaluate(async () => {
    const {tick} = await import("/page/format.js");
    return [0, 0.02, -0.0005, 1200, 250000, 1e9, 1.5e9, 1e30, null].map(tick);
  });
  assert.deepEqual(shown, ["0", "0.02", "-0.0005", "1200", "250K", "1e9", "1.5e9", "1e30", ""]);
});

await test("a chart shows whatever numbers a curve has, and ends drawing", async () => {
  const one = await stage.open(await stage.startDashboard());
  await one.show("#/queue");
  const drawn = one.evaluate(async () => {
    const {Chart} = await import("/page/chart.js");
    const wrong = [];
    for (const values of [[1, 1.0000001, 1.0000002], [0.9999999, 1], [0.1000000015, 0.100000003], [-1, -1.0000001], [1e-30, 5, 1e30], [1e-38, 3e38], [2e-45, 1], [5, 5], [3e38, 1]]) {
      for (const log of [false, true]) {
        const chart = new Chart("loss");
        document.querySelector("main").append(chart.element);
        const shown = () => chart.show([{key: "a", label: "a", x: values.map((_, i) => i), y: values}], {axis: "step", smooth: 0, log});
        shown();
        await new Promise((resolve) => setTimeout(resolve));
        const {min, max} = chart.plot.scales.y;
        const marks = chart.plot.axes[1]._splits;
        const logged = values.filter((value) => !log || value > 0);
        if (logged.length && !(logged.every((value) => value >= min && value <= max) && marks.length > 1 && marks.length < 100)) wrong.push([values, log, min, max, marks]);
        chart.range = [1, 1 + 1e-11];
        shown();
        await new Promise((resolve) => setTimeout(resolve));
        chart.destroy();
        chart.element.remove();
      }
    }
    return wrong;
  });
  assert.deepEqual(await Promise.race([drawn, sleep(60_000).then(() => "it hangs")]), []);
  assert.deepEqual(one.problems, []);
  await one.context().close();
});

await test("whole numbers of settings keep their digits", async () => {
  const shown = await page.evaluate(async () => {
    const {setting} = await import("/page/format.js");
    return [0, 128, 20240531, 9007199254740991, 0.02, 0.0001, 0.012345678901].map(setting);
  });
  assert.deepEqual(shown, ["0", "128", "20240531", "9007199254740991", "0.02", "0.0001", "0.0123457"]);
});

await test("a chart zooms by dragging, and shows values under the cursor", async () => {
  await page.show(`#/jobs/${done}`);
  const plot = page.locator(".u-over").first();
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  const span = () => page.locator(".u-legend").first().textContent();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const under = await until("a value", async () => { const text = await span(); return /\d\.\d/.test(text) && text; });
  await page.mouse.move(box.x + 10, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 60, {steps: 5});
  await page.mouse.up();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await until("another value", async () => (await span()) !== under);
  await page.getByLabel("Horizontal axis").selectOption("epoch");
  assert.match(page.url(), /x=epoch/);
});

// Drags over a part of the first chart: `from` and `to` of its width.
async function zoom(page, from, to) {
  const plot = page.locator(".u-over").first();
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  await page.mouse.move(box.x + box.width * from, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * to, box.y + 60, {steps: 5});
  await page.mouse.up();
}
// The reports' curves alone, of steps from first to last.
const reportsOf = (curves, first, last) => Object.fromEntries(Object.entries(curves)
    .filter(([key]) => key.startsWith("training/") || key === "learning_rate" || key === "images_per_second")
    .map(([key, [steps, values]]) => [key, [steps, values].map((column) => column.filter((_, i) => steps[i] >= first && steps[i] <= last))]));
function expectPart(shown, stored) {
  for (const [key, [steps, values]] of Object.entries(shown)) {
    const all = new Map(stored[key][0].map((step, i) => [step, stored[key][1][i]]));
    steps.forEach((step, i) => assert.ok(isSame(all.get(step), Number(values[i])), `${key} at step ${step}: ${values[i]} and ${all.get(step)}`));
  }
}

await test("a long job's curves are reduced; a zoom has all points, and live points go on", async () => {
  const job = spec("reduced", 40000, {report: {every_steps: 1}});
  // Some milliseconds a step: the curve grows slowly while the test zooms.
  job.model.layers.unshift({dense: {units: 512, activation: "relu"}});
  const id = await stage.submit(job);
  await until("6000 events", async () => Number((await stage.job(id)).last_sequence) > 6000);
  // The ranges that the page asks for.
  const watchQuestions = (page) => page.evaluate(() => {
    window.tandemAsked = [];
    const ask = window.fetch;
    window.fetch = (path, options) => {
      if (path.endsWith("GetJobHistory")) window.tandemAsked.push(JSON.parse(options.body));
      return ask(path, options);
    };
  });
  const question = (page) => until("a question", () => page.evaluate(() => window.tandemAsked[0]));
  const awaitPoints = (page, first, last) => until("all points there", () => page.evaluate(([first, last]) => !window.tandemHistory.lacks(first, last), [first, last]));
  await watchQuestions(page);
  await page.show(`#/jobs/${id}`);
  const state = (key) => page.evaluate((key) => {
    const one = window.tandemHistory.series.get(key);
    return one && {isReduced: one.isReduced, points: one.points, shown: one.step.length, last: one.step.at(-1), first: one.step[0]};
  }, key);
  const begin = await until("the reduced curve", async () => { const one = await state("training/loss"); return one?.isReduced && one; });
  assert.ok(begin.points > 5500 && begin.shown < begin.points - 1000, JSON.stringify(begin));
  await until("the note", async () => (await page.locator("main").textContent()).includes("zoom in to see all"));
  // 2 % of the points are few enough for an answer that is not reduced.
  await zoom(page, 0.05, 0.07);
  const {first_step: first, last_step: last} = await question(page);
  assert.ok(first > 0 && last > first + 50 && last < begin.last, `${first} to ${last}`);
  await awaitPoints(page, first, last);
  await until("later points", async () => (await state("training/loss")).last > begin.last + 200);
  await press(page, "Cancel");
  await awaitState(page, "cancelled");
  const stored = curvesIn(await endedLog(page, id));
  const shown = await curvesOf(page);
  // All shown points are the log's; none is missing where the page zoomed in, or that came later.
  expectPart(shown, stored);
  expectSame(reportsOf(shown, first, last), reportsOf(stored, first, last));
  expectSame(reportsOf(shown, begin.last, Infinity), reportsOf(stored, begin.last, Infinity));
  assert.equal((await state("training/loss")).points, stored["training/loss"][0].length);
  // The ended job, along the other axes.
  for (const axis of ["epoch", "time"]) {
    const again = await stage.open(await stage.startDashboard());
    await again.show(`#/jobs/${id}?x=${axis}`);
    await again.waitForSelector("figure canvas");
    await until("its curve", () => again.evaluate(() => window.tandemHistory.series.get("training/loss")?.isReduced));
    await watchQuestions(again);
    await zoom(again, 0.4, 0.42);
    const {first_step: first, last_step: last} = await question(again);
    assert.ok(first > 0 && last > first, `${axis}: ${first} to ${last}`);
    await awaitPoints(again, first, last);
    expectSame(reportsOf(await curvesOf(again), first, last), reportsOf(stored, first, last));
    assert.deepEqual(again.problems, []);
    await again.context().close();
  }
});

await test(`no point is lost or doubled over ${BREAKS} breaks`, async () => {
  const id = await stage.submit(spec("long", 40000));
  const proxied = await stage.startDashboard();
  const proxy = await startProxy(proxied);
  const page = await stage.open(proxied);
  await page.show(`#/jobs/${id}`);
  await awaitState(page, "running");
  // A text may stand in the banner for half a second only, so the page itself keeps all texts.
  await page.evaluate(() => {
    const banner = document.querySelector("#banner");
    window.said = [];
    new MutationObserver(() => window.said.push(banner.textContent)).observe(banner, {childList: true});
  });
  const awaitSaid = (part) =>
    until(`the page says "${part}"`, () => page.evaluate((part) => window.said.some((text) => text.includes(part)), part));
  for (let i = 0; i < BREAKS; i++) {
    await page.evaluate(() => window.said.splice(0));
    const have = () => page.evaluate(() => window.tandemHistory.sequence);
    await stage.killDaemon();
    await awaitSaid("does not answer");
    await stage.startDaemon("--data-folder", data);
    await until("the page is well again", async () => await page.locator("#banner").isHidden());
    const before = await have();
    await until("more events", async () => (await have()) > before);
    // The connections to the dashboard itself break.
    assert.ok(proxy.cut() > 0);
    await awaitSaid("lost");
    const then = await have();
    await until("more events after the cut", async () => (await have()) > then);
    assert.ok(await page.locator("#banner").isHidden());
  }
  const again = await stage.open(await stage.startDashboard());
  await again.show(`#/jobs/${id}`);
  await awaitState(again, "running");
  await press(page, "Cancel");
  await awaitState(page, "cancelled");
  await awaitState(again, "cancelled");
  const stored = curvesIn(await endedLog(page, id));
  await endedLog(again, id);
  expectSame(await curvesOf(page), stored);
  // After many breaks, the second page's history is a reduced one: each of its points is the log's.
  const shown = await curvesOf(again);
  for (const [key, [steps, values]] of Object.entries(stored)) {
    const logged = new Map(steps.map((step, i) => [step, String(values[i])]));
    assert.ok(shown[key][0].length > 1, key);
    assert.equal(shown[key][0].at(-1), steps.at(-1), key);
    shown[key][0].forEach((step, i) => assert.equal(shown[key][1][i], logged.get(step), `${key} at ${step}`));
  }
  for (const one of [page, again]) {
    assert.deepEqual(one.problems, []);
    await one.context().close();
  }
  proxy.close();
});

await test("the page of a job with quick epochs leaves most of the processor to others", async () => {
  const id = await stage.submit(spec("quick", 40000));
  await page.show(`#/jobs/${id}`);
  const newest = () => page.getByRole("region", {name: "Epochs", exact: true}).locator("tbody td").first().textContent();
  const begin = await until("an epoch", () => newest().then(Number));
  // For some seconds: how often the page makes the table of epochs, and how often it draws if that takes 300 ms.
  const [tables, drawings] = await page.evaluate(async () => {
    const during = async (count) => {
      const begin = performance.now();
      await new Promise((resolve) => setTimeout(resolve, 5000));
      return {count: count(), seconds: (performance.now() - begin) / 1000};
    };
    let made = 0, drawn = 0;
    const observer = new MutationObserver((changes) => { made += changes.length; });
    observer.observe(document.querySelector("[aria-label=Epochs]").parentNode, {childList: true});
    const tables = await during(() => made);
    observer.disconnect();
    const {measures} = Object.getPrototypeOf(window.tandemHistory);
    window.tandemHistory.measures = function () {
      drawn++;
      for (const end = performance.now() + 300; performance.now() < end;);
      return measures.call(this);
    };
    const drawings = await during(() => drawn);
    delete window.tandemHistory.measures;
    return [tables, drawings];
  });
  assert.ok(tables.count <= tables.seconds + 1, JSON.stringify(tables));
  assert.ok(drawings.count <= drawings.seconds / 1.2 + 1, JSON.stringify(drawings));
  await until("a newer epoch", async () => Number(await newest()) > begin);
  await press(page, "Cancel");
  await awaitState(page, "cancelled");
});

await test("every button works as it says, and shows only where it would", async () => {
  const buttons = (page) => page.locator("main").getByRole("button").allTextContents();
  const id = await stage.submit(spec("annas", 40000), ann);
  const [own, others, viewers] = [await stage.open(await stage.startDashboard(ann)), await stage.open(await stage.startDashboard(ben)),
    await stage.open(await stage.startDashboard(eve))];
  for (const one of [own, others, viewers]) {
    await one.show(`#/jobs/${id}`);
    await awaitState(one, "running");
  }
  assert.deepEqual(await buttons(others), []);
  assert.deepEqual(await buttons(viewers), []);
  assert.deepEqual(await buttons(own), ["Pause", "Cancel", "Priority"]);
  await press(own, "Priority", "Set", -7);
  await until("the priority", async () => (await stage.job(id)).priority === -7);
  await until("it is shown", async () => (await own.locator(".facts").textContent()).includes("priority-7"));
  await own.getByRole("button", {name: "Pause"}).click();
  await own.locator("dialog").getByRole("button", {name: "Leave it"}).click();
  assert.equal(await stateOf(own), "running");
  await press(own, "Pause");
  await awaitState(own, "paused");
  assert.equal((await stage.job(id)).state, "JOB_STATE_PAUSED");
  assert.deepEqual(await buttons(own), ["Resume", "Cancel", "Priority"]);
  await press(own, "Resume");
  await awaitState(own, "running");
  await press(own, "Cancel");
  await awaitState(own, "cancelled");
  assert.deepEqual(await buttons(own), []);
  // An administrator may stop another user's job.
  const annas = await stage.submit(spec("annas-too", 40000), ann);
  await page.show(`#/jobs/${annas}`);
  await awaitState(page, "running");
  await press(page, "Cancel");
  await awaitState(page, "cancelled");
  await viewers.show("#/devices");
  await until("the devices", async () => (await viewers.locator("tbody tr").count()) >= 2);
  assert.deepEqual(await buttons(viewers), []);
  await page.show("#/devices");
  await until("the devices", async () => (await page.locator("tbody tr").count()) >= 2);
  await page.locator("tbody tr").first().getByRole("button", {name: "Drain"}).click();
  await page.locator("dialog input").fill("cleaning");
  await page.locator("dialog").getByRole("button", {name: "Drain"}).click();
  await until("drained", async () => (await page.locator("tbody tr").first().textContent()).includes("drained: cleaning"));
  await page.locator("tbody tr").first().getByRole("button", {name: "Resume"}).click();
  await page.locator("dialog").getByRole("button", {name: "Resume"}).click();
  await until("active", async () => (await page.locator("tbody tr").first().textContent()).includes("active"));
  for (const one of [own, others, viewers]) {
    assert.deepEqual(one.problems, []);
    await one.context().close();
  }
});

await test("a job that failed and is resumed goes on in the page", async () => {
  // The file of the data is there again after the failure.
  const csv = path.join(data, "rows.csv");
  const rows = "x,y\n" + Array.from({length: 400}, (_, i) => `${i % 7},${i % 3}\n`).join("");
  fs.writeFileSync(csv, rows);
  const job = {name: "fails", dataset: {csv: {train: csv, target_columns: ["y"]}}, model: {input: {shape: [1]}, layers: [{dense: {units: 1}}]},
    training: {loss: {mse: {}}, optimizer: {sgd: {learning_rate: 0.001}}, global_batch_size: 20, epochs: 3, report: {every_steps: 1}}};
  await stage.tandem("devices", "drain", "cpu:0");
  await stage.tandem("devices", "drain", "cpu:1");
  const id = await stage.submit(job);
  await page.show(`#/jobs/${id}`);
  await awaitState(page, "queued");
  fs.rmSync(csv);
  await stage.tandem("devices", "resume", "cpu:0");
  await stage.tandem("devices", "resume", "cpu:1");
  await awaitState(page, "failed");
  assert.match(await page.locator("main p.error").first().textContent(), /rows\.csv/);
  await until("the empty table", async () => (await page.locator("main").textContent()).includes("No epoch ended."));
  fs.writeFileSync(csv, rows);
  await press(page, "Resume");
  await awaitState(page, "succeeded");
  assert.equal(await page.locator("main p.error").first().textContent(), "");
  const stored = curvesIn(await endedLog(page, id));
  expectSame(await curvesOf(page), stored);
});

await test("the queue says why jobs wait", async () => {
  await stage.tandem("devices", "drain", "cpu:0");
  await stage.tandem("devices", "drain", "cpu:1");
  const id = await stage.submit(spec("waits", 1));
  await page.show("#/queue");
  await until("the job and its reason", async () => {
    const text = await page.getByRole("region", {name: "Jobs that wait"}).textContent().catch(() => "");
    return text.includes(id) && text.includes("out of service") && (await page.locator("main p").first().textContent()) === "1 job waits.";
  });
  await stage.tandem("devices", "resume", "cpu:0");
  await stage.tandem("devices", "resume", "cpu:1");
  await until("the queue is empty", async () => (await page.locator("main").textContent()).includes("No jobs wait"));
});

const sweepFile = path.join(stage.state, "..", "sweep.json");
fs.writeFileSync(sweepFile, JSON.stringify({display_name: "rates", base: spec("rate", 2), grid: [
  {field: "training.optimizer.sgd.learning_rate", values: [0.001, 0.01, 0.1]}, {field: "model.layers[0].dense.units", values: [4, 16]}]}));
const sweep = (await stage.tandem("sweep", sweepFile, "-o", "json").then(JSON.parse)).name.split("/")[1];
await test("a sweep has its table, its lines and its best job", async () => {
  await page.show("#/sweeps");
  await page.locator(`main a[href="#/sweeps/${sweep}"]`).click();
  await until("its end", async () => (await page.locator("main p").first().textContent()).startsWith("succeeded"));
  assert.equal(await page.locator("svg.parallel polyline").count(), 6);
  assert.deepEqual((await page.getByRole("region", {name: "Jobs of the sweep"}).locator("th").allTextContents()).slice(1, 3), ["learning_rate", "units"]);
  assert.equal(await page.locator("svg.parallel polyline.best").count(), 1);
  const best = JSON.parse(await stage.tandem("sweep", "show", sweep, "-o", "json")).best.job.split("/")[1];
  assert.equal(await page.locator("tr.best a").textContent(), best);
});

await test("a comparison has its curves and the fields that differ, and takes any address", async () => {
  const jobs = JSON.parse(await stage.tandem("sweep", "show", sweep, "-o", "json")).results.slice(0, 2).map((one) => one.job.split("/")[1]);
  await page.show(`#/compare?jobs=${jobs.join(",")},nobody&x=foo&smooth=%00`);
  await until("the fields", async () => (await page.getByRole("region", {name: "Fields that differ"}).textContent().catch(() => "")).includes("model.layers[0].dense.units"));
  await until("the charts", async () => (await page.locator("figure").count()) >= 2);
  assert.match(await page.locator(".error").first().textContent(), /nobody|foo/);
  // Jobs of one name are told apart by their ids.
  for (const one of jobs) assert.ok((await page.locator("form.bar").textContent()).includes(one));
  await page.getByRole("button", {name: `Remove ${jobs[0]}`}).click();
  await until("one is left", async () => (await page.getByRole("button", {name: /^Remove/}).count()) === 1);
  assert.ok(!page.url().includes(jobs[0]));
});

await test("jobs that are chosen in the list are compared, and an address with too many says so", async () => {
  const jobs = JSON.parse(await stage.tandem("sweep", "show", sweep, "-o", "json")).results.map((one) => one.job.split("/")[1]);
  const gone = await stage.submit(spec("gone", 1));
  await stage.log(gone);
  const link = page.getByRole("link", {name: /^Compare \d/});
  await page.show("#/jobs");
  for (const one of [jobs[3], jobs[1], gone]) await page.getByLabel(`Choose ${one} for`).check();
  assert.equal(await link.textContent(), "Compare 3 chosen");
  // Of the chosen jobs, those that the search leaves out are compared as well.
  await page.getByLabel("Search").fill(jobs[3]);
  await until("one row", async () => (await page.locator("[data-job]").count()) === 1);
  await page.getByLabel("Search").fill("");
  await until("the box is still checked", () => page.getByLabel(`Choose ${jobs[1]} for`).isChecked().catch(() => false));
  await page.getByLabel(`Choose ${jobs[1]} for`).uncheck();
  await page.getByLabel(`Choose ${jobs[1]} for`).focus();
  await page.keyboard.press("Space");
  await link.click();
  const compared = () => page.getByRole("button", {name: /^Remove/}).evaluateAll((all) => all.map((one) => one.getAttribute("aria-label").slice(7)));
  await until("three jobs", async () => (await compared()).length === 3);
  assert.deepEqual((await compared()).sort(), [jobs[3], jobs[1], gone].sort());
  // A job that is deleted meanwhile, and then removed, leaves no error.
  await stage.tandem("delete", gone, "--yes").catch(() => stage.tandem("delete", gone));
  await until("the error", async () => (await page.locator("#banner").textContent()).includes(gone));
  for (const one of await compared()) await page.getByRole("button", {name: `Remove ${one}`}).click();
  assert.ok(await page.locator("#banner").isHidden());
  // A wrong id's error goes with the next job.
  for (const [id, error] of [["nobody", /nobody/], [`jobs/${jobs[0]}`, /^$/]]) {
    await page.getByLabel("A job's id").fill(id);
    await page.getByRole("button", {name: "Add"}).click();
    await until(`the error is ${error}`, async () => error.test(await page.locator("main .error").first().textContent()));
  }
  await until("the job", async () => (await compared()).join() === jobs[0]);
  await page.show(`#/compare?jobs=${[...jobs, ...Array.from({length: 4}, (_, i) => `nobody-${i}`)].join(",")}`);
  await until("it says so", async () => (await page.locator("main .error").first().textContent()).includes("10 jobs; the page compares the first 8"));
});

await test("a click reaches a running job, although its row changes meanwhile", async () => {
  const id = await stage.submit(spec("moving", 40000));
  await page.show("#/jobs");
  const row = page.locator(`[data-job="jobs/${id}"]`);
  await until("a running job", async () => /running.*%/.test(await row.textContent().catch(() => "")));
  for (const part of ["input", "a"]) {
    const box = await until("its place", () => row.locator(part).boundingBox().catch(() => null));
    await page.mouse.move(box.x + 5, box.y + 5);
    await page.mouse.down();
    const before = await row.textContent();
    await until("another text", async () => (await row.textContent()) !== before);
    await page.mouse.up();
    if (part === "input") await until("the checked box", () => row.locator("input").isChecked());
  }
  await until("the job's page", () => page.url().endsWith(id));
  await stage.tandem("cancel", id);
});

await test("a job that is gone, and a view that is left, disturb nothing", async () => {
  await page.show("#/jobs/nobody");
  await until("it says so", async () => (await page.locator("main").textContent()).includes("nobody"));
  await page.show(`#/jobs/${done}`);
  await page.evaluate(() => { location.hash = "#/jobs/nobody"; location.hash = "#/queue"; });
  await sleep(500);
  assert.equal(await page.locator("main h1").textContent(), "Queue");
});

await test("axe finds nothing serious in any view, light and dark", async () => {
  for (const scheme of ["light", "dark"]) {
    const one = await stage.open(await stage.startDashboard(), {colorScheme: scheme, bypassCSP: true});
    for (const hash of ["#/jobs", `#/jobs/${done}`, "#/queue", "#/sweeps", `#/sweeps/${sweep}`, `#/compare?jobs=${done}`, "#/devices"]) {
      await one.show(hash);
      await sleep(700);
      await one.evaluate(axe);
      const found = (await one.evaluate(() => window.axe.run())).violations.filter((violation) => ["serious", "critical"].includes(violation.impact));
      assert.deepEqual(found.map((violation) => `${violation.id}: ${violation.nodes.slice(0, 3).map((node) => node.html).join(" ")}`), [], `${hash}, ${scheme}`);
    }
    await one.context().close();
  }
});

await test("a file that never arrives ends the reloads, and the page says which", async () => {
  const one = await stage.newPage();
  let loads = 0;
  one.on("request", (request) => { if (request.isNavigationRequest()) loads++; });
  await one.route("**/page/chart.js", (route) => route.abort());
  await one.goto((await stage.startDashboard()).url);
  const said = async () => (await one.locator("#banner").textContent().catch(() => "")) ?? "";
  await until("it says so", async () => /Cannot load the page: .*app\.js.* in 4 tries\. Check that/.test(await said()));
  const before = loads;
  await sleep(3000);
  assert.equal(loads, before, "it loads again");
  // A lost file of a later visit has all tries again.
  await one.unroute("**/page/chart.js");
  await one.reload();
  await one.waitForSelector("main h1");
  assert.equal(await one.evaluate(() => sessionStorage.getItem("tandem-loads")), "0");
  await one.context().close();
});

await test("the keyboard and a phone reach everything", async () => {
  const phone = await stage.open(await stage.startDashboard(), {viewport: {width: 390, height: 800}});
  for (const hash of ["#/jobs", `#/jobs/${done}`, `#/compare?jobs=${done}`]) {
    await phone.show(hash);
    await sleep(300);
    assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth) <= 392, `${hash} is wider than the phone`);
  }
  await phone.show("#/jobs");
  await phone.waitForSelector("[data-job]");
  await phone.getByLabel("Search").fill("done");
  await until("one row", async () => (await phone.locator("[data-job]").count()) === 1);
  const reached = [];
  for (let i = 0; i < 6; i++) {
    await phone.keyboard.press("Tab");
    reached.push(await phone.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent));
  }
  assert.ok(reached.includes("State") && reached.includes("Sort by") && reached.some((text) => text === "done"), reached.join());
  await phone.context().close();
});

await test("a token that was revoked is said to be", async () => {
  const one = await stage.open(await stage.startDashboard(eve));
  await one.show(`#/jobs/${done}`);
  await stage.tandem("tokens", "revoke", "eve");
  await one.show("#/queue");
  await until("the banner", async () => await one.locator("#banner").isVisible() && /token/.test(await one.locator("#banner").textContent()));
  await one.context().close();
});

assert.deepEqual(page.problems, []);
await stage.browser.close();
console.log(`${passed} passed, ${failures.length} failed`);
process.exit(failures.length ? 1 : 0);

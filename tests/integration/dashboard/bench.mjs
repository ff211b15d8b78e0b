// How fast the dashboard is, on a free machine: see dashboard.sh --bench. Adds a line of JSON to the file that it is given, and
// prints each figure beside its aim.

import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import {Stage, sleep, spec, until} from "./stage.mjs";

const stage = new Stage();
stage.nice = 0;
await stage.startDaemon();
await stage.startBrowser();
const figures = {date: new Date().toISOString().slice(0, 10)};
function say(name, value, aim) {
  figures[name] = Math.round(value * 10) / 10;
  console.log(`${name}: ${figures[name]} (aim: at most ${aim})`);
}
// A grid of `jobs` jobs.
async function sweep(jobs, base) {
  const file = `${process.env.SCRATCH}/sweep.json`;
  fs.writeFileSync(file, JSON.stringify({base, grid: [{field: "training.seed", values: Array.from({length: jobs}, (_, i) => i + 1)}]}));
  return JSON.parse(await stage.tandem("sweep", file, "-o", "json")).name.split("/")[1];
}

// 100 jobs.
const small = await sweep(100, spec("small", 3));
await until("their ends", async () => JSON.parse(await stage.tandem("sweep", "show", small, "-o", "json")).state === "SWEEP_STATE_SUCCEEDED", 120);
const some = JSON.parse(await stage.tandem("list", "--limit", "1", "-o", "json"))[0].name.split("/")[1];
// The browser runs already, as a person's does. Calls look(page) for a new dashboard, and returns the milliseconds from the start
// of `tandem dashboard` to the time that look returns, in seconds since 1970.
async function fromStart(hash, look) {
  const page = await stage.newPage({bypassCSP: true});
  const begin = Date.now();
  const dashboard = await stage.startDashboard();
  dashboard.url += hash;
  await stage.visit(page, dashboard);
  return {dashboard, page, took: await look(page) - begin};
}
const painted = await fromStart("", (page) => page.waitForFunction(() => {
  const [paint] = performance.getEntriesByName("first-contentful-paint");
  return paint && performance.timeOrigin + paint.startTime;
}).then((found) => found.jsonValue()));
say("first_paint_ms", painted.took, 300);
await painted.page.context().close();
painted.dashboard.program.kill();
const {dashboard, page, took} = await fromStart(`#/jobs/${some}`, (page) => page.waitForFunction(() =>
    document.querySelectorAll("figure canvas").length >= 4 && Date.now(), null, {polling: "raf"}).then((found) => found.jsonValue()));
say("job_charts_ms", took, 1000);

// 150,000 points: a report for each step.
const long = spec("long", 1500);
long.dataset.synthetic.train_samples = 800;
long.training = {...long.training, global_batch_size: 8, report: {every_steps: 1}, metrics: ["accuracy"]};
const id = await stage.submit(long);
await until("its end", async () => (await stage.job(id)).state === "JOB_STATE_SUCCEEDED", 300);
const looked = performance.now();
await page.show(`#/jobs/${id}`);
await until("its points", async () => (await page.evaluate(() => window.tandemHistory.series.get("training/loss")?.points ?? 0)) >= 150_000, 60);
await until("its charts", async () => (await page.locator("figure canvas").count()) >= 3);
say("first_look_at_150000_points_ms", performance.now() - looked, 1000);
// The longest frame while the axis changes, which draws all charts anew, and while zooming.
const frames = (act) => page.evaluate(async (source) => {
  const times = [];
  let last = performance.now(), goes = true;
  const tick = (now) => { times.push(now - last); last = now; if (goes) requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
  await new Promise((resolve) => setTimeout(resolve, 100));
  times.length = 0;
  await (0, eval)(`(${source})`)();
  await new Promise((resolve) => setTimeout(resolve, 300));
  goes = false;
  return times.sort((a, b) => b - a);
}, String(act));
say("draw_150000_points_ms", (await frames(() => {
  const axis = document.querySelector("[aria-label='Horizontal axis']");
  axis.value = "time";
  axis.dispatchEvent(new Event("input"));
}))[0], 100);
const zooms = [];
for (let i = 0; i < 10; i++) {
  const plot = page.locator(".u-over").first();
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  const watched = frames(() => new Promise((resolve) => setTimeout(resolve, 300)));
  await page.mouse.move(box.x + 20 + i * 5, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 60, {steps: 8});
  await page.mouse.up();
  zooms.push(...(await watched));
  await page.mouse.dblclick(box.x + box.width / 2, box.y + box.height / 2);
}
zooms.sort((a, b) => a - b);
say("zoom_frame_p95_ms", zooms[Math.floor(zooms.length * 0.95)], 33.3);

// A job whose steps take some 20 ms.
function slow(name, report) {
  const job = spec(name, 1);
  job.dataset.synthetic.train_samples = 400_000;
  job.model.layers.unshift({dense: {units: 2048, activation: "relu"}}, {dense: {units: 2048, activation: "relu"}});
  job.training.report = report;
  return job;
}
// The percentages of a core that the daemon and the dashboard use while run() runs.
async function processorTime(run) {
  // In ticks of 10 ms.
  const ticks = () => [stage.daemon.pid, dashboard.program.pid].map((process) =>
      fs.readFileSync(`/proc/${process}/stat`, "utf8").split(") ")[1].split(" ").slice(11, 13).reduce((sum, one) => sum + Number(one), 0));
  const before = ticks(), begin = performance.now();
  await run();
  const scale = 1000 / (performance.now() - begin);
  return ticks().map((after, i) => (after - before[i]) * scale);
}
// Shows the job, with nine more streams of its events, while run() runs; then cancels the job.
async function withTenStreams(job, run) {
  const id = await stage.submit(job);
  const streams = Array.from({length: 9}, () => http.get(`${dashboard.base}events/job?name=jobs/${id}`, {headers: {Cookie: page.cookie}}, (answer) => answer.resume()));
  await page.show(`#/jobs/${id}`);
  await until("its charts", async () => (await page.locator("figure canvas").count()) >= 3);
  await run();
  assert.equal((await stage.job(id)).state, "JOB_STATE_RUNNING", "the job ended too early to measure it");
  await stage.tandem("cancel", id);
  streams.forEach((one) => one.destroy());
}

// From a report to the pixel: ten reports a second for a minute. The report's time is the worker's; the curve is drawn when the
// frame after its stroke begins.
await withTenStreams(slow("reporting", {every_seconds: 0.1}), async () => {
  let waits;
  const [daemon, program] = await processorTime(async () => {
    waits = await page.evaluate(() => new Promise((resolve) => {
      const drawn = new Map();
      let newest = 0;
      const stroke = CanvasRenderingContext2D.prototype.stroke;
      CanvasRenderingContext2D.prototype.stroke = function (...args) {
        const times = window.tandemHistory.series.get("training/loss")?.time ?? [];
        for (let i = times.length - 1; i >= 0 && times[i] > newest; i--) drawn.set(times[i], 0);
        newest = Math.max(newest, times.at(-1) ?? 0);
        return stroke.apply(this, args);
      };
      const begin = Date.now() / 1000;
      const tick = () => {
        const now = Date.now() / 1000;
        for (const [time, wait] of drawn) if (wait === 0) drawn.set(time, now - time);
        if (now < begin + 60) {
          requestAnimationFrame(tick);
        } else {
          CanvasRenderingContext2D.prototype.stroke = stroke;
          resolve([...drawn].filter(([time]) => time >= begin).map(([, wait]) => wait * 1000).sort((a, b) => a - b));
        }
      };
      requestAnimationFrame(tick);
    }));
  });
  say("reports_per_second", waits.length / 60, 10);
  say("report_to_pixel_median_ms", waits[Math.floor(waits.length * 0.5)], 250);
  say("report_to_pixel_p99_ms", waits[Math.floor(waits.length * 0.99)], 250);
  say("processor_percent_at_10_reports_per_second", daemon + program, 2);
});
// The same with the default of a report a second.
await withTenStreams(slow("default", {every_seconds: 1}), async () => {
  const [daemon, program] = await processorTime(() => sleep(60_000));
  say("processor_percent_at_1_report_per_second", daemon + program, 2);
});

// 10,000 jobs.
await stage.tandem("devices", "drain", "cpu:0");
await stage.tandem("devices", "drain", "cpu:1");
for (let i = 0; i < 10; i++) await sweep(990, spec(`many-${i}`, 1));
await page.show("#/jobs");
await until("all rows", async () => /^\d{5} jobs|^9\d{3} jobs/.test(await page.locator("[role=status].dim").textContent()), 60);
await sleep(2000);
say("pause_with_10000_jobs_ms", (await frames(async () => {
  const view = document.querySelector(".rows-window"), search = document.querySelector("input[type=search]");
  for (let i = 0; i < 60; i++) {
    view.scrollTop = i * 4000;
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
  for (const text of ["m", "ma", "many-7", "many-7x", ""]) {
    search.value = text;
    search.dispatchEvent(new Event("input"));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}))[0], 100);

await stage.browser.close();
fs.appendFileSync(process.argv[2], JSON.stringify(figures) + "\n");
process.exit(0);

// How fast the dashboard is, on a free machine: see dashboard.sh --bench. Adds a line of JSON to the file that it is given, and
// prints each figure beside its aim.

import fs from "node:fs";
import {Stage, sleep, spec, until} from "./stage.mjs";

const stage = new Stage();
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
const begin = performance.now();
const dashboard = await stage.startDashboard();
const page = await stage.open(dashboard);
await page.waitForSelector("main h1");
say("first_paint_ms", performance.now() - begin, 300);
const some = JSON.parse(await stage.tandem("list", "--limit", "1", "-o", "json"))[0].name.split("/")[1];
const opened = performance.now();
await page.show(`#/jobs/${some}`);
await until("all charts", async () => (await page.locator("figure canvas").count()) >= 4);
say("job_charts_ms", performance.now() - opened, 1000);

// 150,000 points: a report for each step.
const long = spec("long", 1500);
long.dataset.synthetic.train_samples = 800;
long.training = {...long.training, global_batch_size: 8, report: {every_steps: 1}, metrics: ["accuracy"]};
const id = await stage.submit(long);
await until("its end", async () => (await stage.job(id)).state === "JOB_STATE_SUCCEEDED", 300);
const looked = performance.now();
await page.show(`#/jobs/${id}`);
await until("its points", async () => (await page.evaluate(() => window.tandemHistory.series.get("training/loss")?.step.length ?? 0)) >= 150_000, 60);
await until("its charts", async () => (await page.locator("figure canvas").count()) >= 3);
say("first_look_at_150000_points_ms", performance.now() - looked, 10000);
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

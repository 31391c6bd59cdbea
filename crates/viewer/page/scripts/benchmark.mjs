// Benchmark of the viewer in Chromium.
//   GGUF=target/release/gguf node scripts/benchmark.mjs [MODEL]
// 1. Time from the start of `gguf view MODEL` to the first rendered view; use a model with a large vocabulary.
// 2. Frame rate while panning the heat map of a 4096 x 14336 Q4_K tensor.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";
import { writeLargeModel } from "./large-model.mjs";
import { proxy } from "./proxy.mjs";

const gguf = path.resolve(process.env.GGUF ?? "../../../target/debug/gguf");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});

async function start(model) {
  const started = performance.now();
  const child = spawn(gguf, ["view", model, "--no-open"], { stdio: ["ignore", "pipe", "inherit"] });
  const base = await new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (part) => {
      text += part;
      if (text.includes("\n")) resolve(text.split("\n")[0]);
    });
    child.once("exit", () => reject(new Error("gguf view exited")));
  });
  const ready = performance.now() - started;
  // DIST=FOLDER serves the page from a folder instead of the binary.
  const other = process.env.DIST ? await proxy(base, path.resolve(process.env.DIST)) : null;
  return {
    base: other?.base ?? base,
    ready,
    stop: () => {
      other?.stop();
      child.kill("SIGKILL");
    },
  };
}

/** Measures the time to the first view in milliseconds. */
async function firstView(model) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 880 } });
  const page = await context.newPage();
  await page.addInitScript(() => {
    const look = () => {
      if (document.querySelector(".card-value"))
        requestAnimationFrame(() => requestAnimationFrame(() => (globalThis.firstView = performance.now())));
      else requestAnimationFrame(look);
    };
    look();
  });
  const server = await start(model);
  await page.goto(server.base, { waitUntil: "commit" });
  const shown = await (await page.waitForFunction(() => globalThis.firstView)).jsonValue();
  server.stop();
  await context.close();
  return { server: server.ready, page: shown, total: server.ready + shown };
}

/** Measures frames while panning. */
async function pan(model, seconds = 5) {
  const server = await start(model);
  const page = await (await browser.newContext({ viewport: { width: 1360, height: 880 } })).newPage();
  await page.goto(`${server.base}#/0/tensors/0?at=2048,7000,1`);
  await page.waitForSelector('.heat-canvas[data-missing="0"]');
  const box = await page.locator(".heat-canvas").boundingBox();
  const at = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  await browser.startTracing(page, {
    categories: ["devtools.timeline", "disabled-by-default-devtools.timeline", "benchmark", "toplevel"],
  });
  await page.evaluate(() => {
    globalThis.frames = [];
    const record = (time) => {
      globalThis.frames.push(time);
      requestAnimationFrame(record);
    };
    requestAnimationFrame(record);
  });
  // Pan by 12 pixels per move, always into tiles that are not loaded yet.
  await page.mouse.move(at.x, at.y);
  const end = performance.now() + seconds * 1000;
  let down = false;
  let y = at.y;
  while (performance.now() < end) {
    if (!down || y < box.y + 30) {
      if (down) await page.mouse.up();
      y = box.y + box.height - 20;
      await page.mouse.move(at.x, y);
      await page.mouse.down();
      down = true;
    }
    y -= 12;
    await page.mouse.move(at.x - ((at.y - y) % 90), y);
    await new Promise((done) => setTimeout(done, 8));
  }
  await page.mouse.up();
  const frames = await page.evaluate(() => globalThis.frames);
  const trace = JSON.parse((await browser.stopTracing()).toString());
  server.stop();
  const gaps = frames.slice(1).map((time, i) => time - frames[i]);
  gaps.sort((a, b) => a - b);
  const reports = trace.traceEvents
    .filter((event) => event.name === "PipelineReporter" && event.ph === "b")
    .map((event) => (event.args.frame_reporter ?? event.args.chrome_frame_reporter)?.state);
  const state = (name) => reports.filter((report) => report === name).length;
  const tasks = trace.traceEvents
    .filter((event) => event.name === "RunTask" && event.dur && event.pid === renderer(trace))
    .map((event) => event.dur / 1000);
  return {
    "frames per second": round((1000 * gaps.length) / (frames[frames.length - 1] - frames[0])),
    "median gap, ms": round(gaps[gaps.length >> 1]),
    "95th percentile, ms": round(gaps[Math.floor(gaps.length * 0.95)]),
    "longest gap, ms": round(gaps[gaps.length - 1]),
    "longest task, ms": round(Math.max(0, ...tasks)),
    "frames presented (trace)": state("STATE_PRESENTED_ALL") + state("STATE_PRESENTED_PARTIAL"),
    "frames dropped (trace)": state("STATE_DROPPED"),
  };
}

/** Returns the id of the renderer process: the one that fires animation frames. */
function renderer(trace) {
  return trace.traceEvents.find((event) => event.name === "FireAnimationFrame")?.pid;
}

function round(n) {
  return Math.round(n * 10) / 10;
}

try {
  const model = process.argv[2];
  if (model) {
    await firstView(model); // Warm up the page cache.
    const times = [];
    for (let i = 0; i < 7; i += 1) times.push(await firstView(model));
    times.sort((a, b) => a.total - b.total);
    const median = times[3];
    console.log(
      `first view of ${path.basename(model)}, median of 7: ${round(median.total)} ms (server ${round(median.server)}, page ${round(median.page)}); slowest ${round(times[6].total)} ms`,
    );
  }
  const folder = mkdtempSync(path.join(tmpdir(), "gguf-speed-"));
  const large = process.env.BIG ?? path.join(folder, "big.gguf");
  if (!existsSync(large)) writeLargeModel(gguf, large);
  console.log("panning a 4096 x 14336 Q4_K tensor at one pixel per weight:");
  for (const [name, value] of Object.entries(await pan(large))) console.log(`  ${name.padEnd(30)} ${value}`);
  rmSync(folder, { recursive: true });
} finally {
  await browser.close();
}

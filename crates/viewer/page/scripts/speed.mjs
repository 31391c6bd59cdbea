// How fast the viewer is, measured in Chromium with its trace.
//   GGUF=target/release/gguf node scripts/speed.mjs [MODEL WITH A LARGE VOCABULARY]
// 1. From the start of `gguf view MODEL` to the first view of the model on the screen.
// 2. Frames while the picture of a 4096 x 14336 Q4_K tensor is moved for some seconds.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";
import { big } from "./big.mjs";
import { proxy } from "./proxy.mjs";

const gguf = path.resolve(process.env.GGUF ?? "../../../target/debug/gguf");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});

async function start(model) {
  const begun = performance.now();
  const child = spawn(gguf, ["view", model, "--no-open"], { stdio: ["ignore", "pipe", "inherit"] });
  const base = await new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (part) => {
      text += part;
      if (text.includes("\n")) resolve(text.split("\n")[0]);
    });
    child.once("exit", () => reject(new Error("gguf view ended")));
  });
  const ready = performance.now() - begun;
  // With DIST=FOLDER the page comes from there, and not from what the program embeds.
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

/** Milliseconds from the start of the server to the first view of a model, and its parts. */
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
  return { server: server.ready, page: shown, together: server.ready + shown };
}

/** Frames while a picture is dragged to and fro. */
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
    const note = (time) => {
      globalThis.frames.push(time);
      requestAnimationFrame(note);
    };
    requestAnimationFrame(note);
  });
  // 12 pixels for each move, a bit more than a screen a second, always into tiles that are not there yet.
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
    "frames a second": round((1000 * gaps.length) / (frames[frames.length - 1] - frames[0])),
    "median gap, ms": round(gaps[gaps.length >> 1]),
    "95th percentile, ms": round(gaps[Math.floor(gaps.length * 0.95)]),
    "longest gap, ms": round(gaps[gaps.length - 1]),
    "longest task of the page, ms": round(Math.max(0, ...tasks)),
    "frames presented (trace)": state("STATE_PRESENTED_ALL") + state("STATE_PRESENTED_PARTIAL"),
    "frames dropped (trace)": state("STATE_DROPPED"),
  };
}

/** The process that draws the page: the one whose tasks fire animation frames. */
function renderer(trace) {
  return trace.traceEvents.find((event) => event.name === "FireAnimationFrame")?.pid;
}

function round(n) {
  return Math.round(n * 10) / 10;
}

try {
  const model = process.argv[2];
  if (model) {
    await firstView(model); // The file and the program are in memory after this.
    const times = [];
    for (let i = 0; i < 7; i += 1) times.push(await firstView(model));
    times.sort((a, b) => a.together - b.together);
    const median = times[3];
    console.log(
      `first view of ${path.basename(model)}, median of 7: ${round(median.together)} ms (server ${round(median.server)}, page ${round(median.page)}); slowest ${round(times[6].together)} ms`,
    );
  }
  const folder = mkdtempSync(path.join(tmpdir(), "gguf-speed-"));
  const large = process.env.BIG ?? path.join(folder, "big.gguf");
  if (!existsSync(large)) big(gguf, large);
  console.log("moving a 4096 x 14336 Q4_K tensor at one pixel a weight:");
  for (const [name, value] of Object.entries(await pan(large))) console.log(`  ${name.padEnd(30)} ${value}`);
  rmSync(folder, { recursive: true });
} finally {
  await browser.close();
}

// The whole model as one picture, and other pictures of a model: layers, groups, memory.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import type { Tensor } from "../src/api/tensor-types";
import { gridOf } from "../src/map/grid";
import { cacheOf, divided, hasRoom, longestContext, type Sizes } from "../src/overview/fit";
import { group, partOf } from "../src/overview/groups";
import { accessible, launch, open, visit } from "./browser";
import { folder, models, type Server, serve } from "./server";

let browser: Browser;
let server: Server;
before(async () => {
  server = await serve(models(folder()).q4);
  browser = await launch();
});
after(async () => {
  await browser.close();
  await server.stop();
});

function tensor(n: number, name: string): Tensor {
  const found = /blk\.(\d+)\.(.*)/.exec(name);
  return {
    n,
    name,
    name_bytes: name.length,
    type: "F16",
    shape: [2, 2],
    parameters: 4,
    bytes: 8,
    file: 0,
    offset: 0,
    missing_bytes: 0,
    damage: null,
    block: found ? Number(found[1]) : null,
    kind: found?.[2] ?? name,
  };
}

test("layers of encoder and decoder have columns of their own", () => {
  const { columns, rows, cells } = gridOf(
    [
      "enc.blk.0.attn_q.weight",
      "dec.blk.0.attn_q.weight",
      "dec.blk.10.attn_q.weight",
      "dec.blk.2.x",
      "token_embd.weight",
    ].map((name, n) => tensor(n, name)),
  );
  const names = columns.map(({ part, layer }) => `${part} ${layer}`);
  assert.deepEqual(names, [" null", "decoder 0", "decoder 2", "decoder 10", "encoder 0"]);
  assert.deepEqual(rows, ["attn_q", "x"]);
  assert.equal(cells.length, 5);
  assert.equal(partOf(tensor(0, "enc.blk.0.attn_q.weight")), "encoder");
  assert.equal(partOf(tensor(0, "blk.0.attn_q.weight")), "");
});

test("convolutions of Whisper are no state space", () => {
  assert.equal(group(tensor(0, "enc.conv1.weight")), "convolution");
  assert.equal(group(tensor(0, "blk.0.ssm_conv1d.weight")), "state space");
  assert.equal(group(tensor(0, "blk.0.shortconv.conv.weight")), "state space");
});

const GIGA = 1e9;
function sizes(windows: (number | null)[]): Sizes {
  const layers = windows.map((window, layer) => ({
    layer,
    weights: GIGA,
    state: 0,
    caches: [{ key_width: 1024, value_width: 1024, block: 1, window }],
  }));
  return { layers, output: GIGA, rest: GIGA, active: 1, computeBuffer: 0 };
}

test("windowed layers keep the window and a batch, in steps of 256", () => {
  const settings = { context: 32_768, batch: 512, element: 2 };
  const [full, windowed] = sizes([null, 1000]).layers;
  assert.ok(full && windowed);
  assert.equal(cacheOf(full, settings), 32_768 * 2048 * 2);
  // 1000 + 512, rounded up to 1536.
  assert.equal(cacheOf(windowed, settings), 1536 * 2048 * 2);
  assert.equal(cacheOf(windowed, { ...settings, context: 300 }), 512 * 2048 * 2);
});

test("the last layers go to the device first, the output before all", () => {
  const model = sizes([null, null, null, null]);
  const settings = { context: 256, batch: 256, element: 2 };
  const device = { name: "x", gigabytes: 3.3, bandwidth: 100 };
  const fit = divided(model, settings, device, null);
  assert.equal(fit.onDevice, 3, "the output and two layers of 1 GB");
  assert.ok(hasRoom(device, fit.deviceBytes) && fit.hostBytes > 2 * GIGA);
  assert.equal(divided(model, settings, device, 5).onDevice, 5);
  assert.equal(divided(model, settings, { ...device, gigabytes: 24 }, null).onDevice, 5);
  // 5 GB at 100 GB/s: 20 tokens per second at most.
  const speed = divided(model, settings, { ...device, gigabytes: 24 }, null).tokensPerSecond;
  assert.ok(speed < 20 && speed > 19, String(speed));
});

test("the longest context fits, and the next one does not", () => {
  const model = sizes([null, null]);
  const settings = { context: 256, batch: 256, element: 2 };
  const device = { name: "x", gigabytes: 4, bandwidth: 100 };
  const longest = longestContext(model, settings, device, 1 << 22);
  const fits = (context: number) => divided(model, { ...settings, context }, device, null).onDevice === 3;
  assert.ok(longest > 0 && fits(longest) && !fits(longest + 256), String(longest));
});

test("the map shows all tensors, opens one, and saves a poster", async () => {
  const { page, faults } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/map`);
  await page.waitForFunction(() => document.querySelector(".map-reading")?.textContent === "39 tensors", null, {
    timeout: 60_000,
  });
  const map = page.locator(".map-canvas");
  await map.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.locator(".map-reading").innerText(), /blk\.1\..* bits per weight/);
  await accessible(page, "the map");
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Save poster" }).click(),
  ]);
  assert.match(download.suggestedFilename(), /map\.png$/);
  await map.focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector("#tensor-title");
  assert.deepEqual(faults, []);
  await page.context().close();
});

test("the memory estimate names its runtime and says whether a device has room", async () => {
  const { page, faults } = await open(browser, server.base);
  await visit(page, server.base);
  await page.locator(".fit-verdict").waitFor();
  assert.match(await page.locator(".fit-verdict").innerText(), /^Fits\. .* on the device.*tokens\/s/);
  await page.getByRole("button", { name: "q4_0" }).click();
  await page.getByLabel("Device").selectOption("RTX 4090, 24 GB");
  assert.match(await page.locator(".fit-verdict").innerText(), /of 24 GB/);
  await page.getByRole("button", { name: "gguf-kit" }).click();
  assert.equal(await page.locator(".fit").count(), 0);
  assert.deepEqual(faults, []);
  await page.context().close();
});

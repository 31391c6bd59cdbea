// The first picture of a tensor: it fills its box, has contrast, and does not capture scrolling.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { aligned, bytes, header } from "../scripts/gguf.mjs";
import { fitted, level, pixels, stretchOf, whole } from "../src/heatmap/camera";
import { levels } from "../src/heatmap/source";
import type { Source } from "../src/heatmap/tiles";
import { accessible, launch, open, settled, visit } from "./browser";
import { folder, models, type Server, serve } from "./server";

let browser: Browser;
let server: Server;
before(async () => {
  const at = folder();
  const { q4 } = models(at);
  const long = path.join(at, "long.gguf");
  const tensors = [
    { name: "token_embd.weight", shape: [128, 8192], type: "F32" as const },
    { name: "blk.0.conv.weight", shape: [4, 1536], type: "F32" as const },
  ];
  const sizes = tensors.map(bytes);
  const data = Buffer.concat(
    sizes.map((size, n) => {
      const part = Buffer.alloc(aligned(size));
      // Zero-centered weights, so that means of many are close to 0.
      for (let i = 0; i < size / 4; i += 1) part.writeFloatLE(0.1 * Math.sin(i * (7.7 + n)), 4 * i);
      return part;
    }),
  );
  const tokens = Array.from({ length: 8192 }, (_, n) => `word${n}`);
  const keys = { "general.architecture": "llama", "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens };
  writeFileSync(long, Buffer.concat([header(keys, tensors), data]));
  server = await serve(long, q4);
  browser = await launch();
});
after(async () => {
  await browser.close();
  await server.stop();
});

/** Returns the share of the canvas that is painted, and the share of strongly coloured pixels. */
function painted(page: Page): Promise<{ painted: number; coloured: number }> {
  return page.evaluate(() => {
    const canvas = document.querySelector<HTMLCanvasElement>(".heat-canvas");
    // Reading a copy keeps the canvas on the graphics card.
    const copied = (from: HTMLCanvasElement) => {
      const copy = Object.assign(document.createElement("canvas"), { width: from.width, height: from.height });
      const context = copy.getContext("2d", { willReadFrequently: true }) as CanvasRenderingContext2D;
      context.drawImage(from, 0, 0);
      return context;
    };
    const pixels = canvas && copied(canvas).getImageData(0, 0, canvas.width, canvas.height).data;
    if (!pixels) return { painted: 0, coloured: 0 };
    let [painted, coloured] = [0, 0];
    for (let i = 0; i < pixels.length; i += 4) {
      if (pixels[i + 3] === 0) continue;
      painted += 1;
      const rgb = [pixels[i] ?? 0, pixels[i + 1] ?? 0, pixels[i + 2] ?? 0];
      if (Math.max(...rgb) - Math.min(...rgb) > 40) coloured += 1;
    }
    return { painted: (4 * painted) / pixels.length, coloured: coloured / painted };
  });
}

function source(columns: number, rows: number): Source {
  const stretch = stretchOf(columns, rows);
  return { name: "x", columns, rows, levels: levels(columns, rows), block: 1, stretch, load: async () => never() };
}
function never(): never {
  throw new Error("not loaded");
}

test("a long matrix is fitted by its short side, from its first row", () => {
  const size = { width: 800, height: 500 };
  const embedding = source(640, 262_144);
  const camera = fitted(embedding, size);
  assert.equal(camera.scale, 1.25);
  assert.equal(camera.row, 200, "the first visible row is 0");
  assert.ok(whole(embedding, size).scale < 0.01);
  const square = source(576, 1536);
  assert.deepEqual(fitted(square, size), whole(square, size));
});

test("a matrix with few columns is stretched", () => {
  const size = { width: 800, height: 500 };
  const kernel = source(4, 1536);
  const camera = fitted(kernel, size);
  const per = pixels(camera, kernel);
  assert.ok(4 * per.x > 100 && 1536 * per.y > 400, `${4 * per.x} x ${1536 * per.y}`);
  assert.ok(level(camera, kernel, 1) <= 1, "columns are not averaged away");
});

test("the picture of an embedding fills its box, with colors", async () => {
  const { page, faults } = await open(browser, server.base);
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await visit(page, `${server.base}#/0/tensors/token_embd.weight`);
    const { painted: share, coloured } = await painted(page);
    assert.ok(share > 0.95, `${share} of the canvas is painted`);
    assert.ok(coloured > 0.3, `${coloured} of the picture is coloured in ${scheme} mode`);
  }
  assert.equal(await page.locator(".minimap.tall").count(), 1);
  await page.getByRole("button", { name: "Whole" }).click();
  await settled(page);
  assert.match(await page.locator(".heat-level").innerText(), /weights/);
  await accessible(page, "a long matrix");
  assert.deepEqual(faults, []);
  await page.context().close();
});

test("rows of an embedding are named by their tokens", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/tensors/token_embd.weight?at=30,100.5,40`);
  await page.waitForFunction(() => document.querySelector(".heat-names")?.textContent?.includes("word100"));
  const box = await page.locator(".heat-canvas").boundingBox();
  assert.ok(box);
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  assert.match(await page.locator(".heat-reading").innerText(), /^row 100, column 30 \(token word100\): /);
  await page.context().close();
});

test("attention heads have numbers", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/1/tensors/blk.0.attn_q.weight`);
  assert.match(await page.locator(".ruler-rows").innerText(), /head 0/);
  await visit(page, `${server.base}#/1/tensors/blk.0.attn_k.weight`);
  assert.match(await page.locator(".ruler-rows").innerText(), /KV head 1/);
  await page.context().close();
});

test("rows of queries and keys have the number of their RoPE pair", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/1/tensors/blk.0.attn_q.weight?at=20,36.5,20`);
  await page.waitForFunction(() => document.querySelector(".heat-names")?.textContent?.includes("dim 4 · pair 2a"));
  // Head 1 of 32 dimensions, dimension 4.
  await page.locator(".heat-canvas").hover();
  assert.match(await page.locator(".heat-reading").innerText(), /^row 36, column 20 \(head 1, dim 4, RoPE pair 2a\): /);
  assert.equal(await page.locator(".heat-cursor.partner").count(), 1);
  assert.match(
    await page.locator(".heat-axes").innerText(),
    /^Rows: 8 heads × 32 dims, RoPE pairs of neighbors \(2i, 2i\+1\)\. Columns: 256 embedding dims\.$/,
  );
  await visit(page, `${server.base}#/1/tensors/blk.0.ffn_up.weight`);
  await page.locator(".heat-canvas").hover();
  assert.equal(await page.locator(".heat-cursor.partner").count(), 0);
  await page.context().close();
});

test("a vector is a chart", async () => {
  const { page, faults } = await open(browser, server.base);
  await visit(page, `${server.base}#/1/tensors/output_norm.weight`);
  assert.equal(await page.locator(".heat-canvas").count(), 0);
  await page.locator(".vector canvas").waitFor();
  assert.match((await page.locator(".vector .plot").getAttribute("aria-label")) ?? "", /256 values by index/);
  assert.deepEqual(faults, []);
  await page.context().close();
});

test("a map of scales has the shape of its matrix", async () => {
  const { page } = await open(browser, server.base);
  const shape = () =>
    page.evaluate(() => {
      const canvas = document.querySelector<HTMLCanvasElement>(".heat-canvas");
      const data = canvas?.getContext("2d")?.getImageData(0, Math.floor(canvas.height / 2), canvas.width, 1).data;
      return data ? data.filter((value, i) => i % 4 === 3 && value > 0).length / (canvas?.width ?? 1) : 0;
    });
  await visit(page, `${server.base}#/1/tensors/blk.0.ffn_up.weight`);
  const weights = await shape();
  await visit(page, `${server.base}#/1/tensors/blk.0.ffn_up.weight?of=d`);
  assert.ok(Math.abs((await shape()) - weights) < 0.02, `${await shape()} beside ${weights}`);
  await page.context().close();
});

test("the mark of the picked weight stays", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/1/tensors/blk.0.ffn_down.weight?row=20&column=30&at=30.5,20.5,24`);
  assert.ok(await page.locator(".heat-cursor.picked").isVisible());
  await page.context().close();
});

test("the wheel scrolls the page, and zooms with Ctrl", async () => {
  const { page } = await open(browser, server.base);
  await page.setViewportSize({ width: 1360, height: 500 });
  await visit(page, `${server.base}#/1/tensors/blk.0.ffn_down.weight?row=3&column=5`);
  const box = await page.locator(".heat-canvas").boundingBox();
  assert.ok(box);
  const scale = () => page.evaluate(() => location.hash);
  const before = await scale();
  await page.mouse.move(box.x + box.width / 2, box.y + 20);
  await page.mouse.wheel(0, 200);
  await page.waitForFunction(() => scrollY > 0);
  assert.equal(await scale(), before);
  await page.evaluate(() => scrollTo(0, 0));
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -300);
  await page.keyboard.up("Control");
  await page.waitForFunction(() => location.hash.includes("at="));
  assert.equal(await page.evaluate(() => scrollY), 0);
  await page.context().close();
});

test("phones are told about fingers", async () => {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const page = await context.newPage();
  await visit(page, `${server.base}#/1/tensors/blk.0.ffn_down.weight`);
  assert.match(await page.locator(".heat-reading").innerText(), /two fingers/);
  await context.close();
});

test("the picture is saved as PNG", async () => {
  const { page, faults } = await open(browser, server.base);
  await visit(page, `${server.base}#/1/tensors/blk.0.ffn_down.weight`);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Save PNG" }).click(),
  ]);
  assert.match(download.suggestedFilename(), /^blk\.0\.ffn_down\.weight-.*\.png$/);
  assert.deepEqual(faults, []);
  await page.context().close();
});

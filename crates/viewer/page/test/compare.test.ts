// Comparison of two models: verdict, matrix, order, pictures, keys.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { matrixOf } from "../src/compare/matrix";
import { accessible, launch, open, settled, visit } from "./browser";
import { folder, models, run, type Server, serve } from "./server";

let browser: Browser;
let server: Server;
before(async () => {
  const at = folder();
  const { f16, q4 } = models(at);
  const template = path.join(at, "template.jinja");
  writeFileSync(template, "{% for m in messages %}\n{{ m.content }}\n{% endfor %}");
  const other = path.join(at, "other.gguf");
  run("edit", q4, "-o", other, "--chat-template-file", template);
  server = await serve(f16, q4, other);
  browser = await launch();
});
after(async () => {
  await browser.close();
  await server.stop();
});

test("tensors are arranged by layer and kind", () => {
  const side = { n: 0, type: "F16", shape: [2] };
  const tensor = (name: string) => ({ name, change: "data" as const, a: side, b: side });
  const { layers, kinds, names } = matrixOf(
    ["blk.10.attn_q.weight", "blk.2.attn_q.weight", "output.weight", "dec.blk.0.ffn_up.bias"].map(tensor),
  );
  assert.deepEqual(
    layers,
    ["2", "10", "dec 0", "–"].sort((a, b) => a.localeCompare(b, "en", { numeric: true })),
  );
  assert.deepEqual(kinds, ["attn_q", "ffn_up.bias", "output"]);
  assert.equal(names.get("10/attn_q"), "blk.10.attn_q.weight");
});

test("the comparison has a verdict, its progress and a matrix of errors", async () => {
  const { page, faults } = await open(browser, server.base);
  await visit(page, `${server.base}#/compare/0/1`);
  await page.locator(".compare-progress").waitFor({ state: "detached", timeout: 120_000 });
  assert.match(
    await page.locator(".verdict").innerText(),
    /B has 32% of the size of A.*The largest error is [\d.]+% in/,
  );
  assert.match(await page.locator(".compare-summary .cards").innerText(), /of 39 tensors/);
  assert.equal(await page.locator(".error-cell").count(), 39);
  assert.equal(await page.locator(".error-cell.unknown").count(), 0);
  await accessible(page, "the dashboard");
  // Sorted by error, all of them.
  await page.getByRole("button", { name: "Sort by error" }).click();
  await page.waitForFunction(() => location.hash.includes("sort=error"));
  const errors = await page.locator(".compare-rows .compare-error").allInnerTexts();
  const values = errors.map((text) => (text.startsWith("identical") ? 0 : Number.parseFloat(text)));
  assert.deepEqual(
    values,
    [...values].sort((a, b) => b - a),
  );
  await page.getByRole("button", { name: /^blk\.0\.attn_q\.weight/ }).click();
  await page.waitForSelector("#compared");
  assert.deepEqual(faults, []);
  await page.context().close();
});

test("A, B and the difference move together, and X flips", async () => {
  const { page, faults } = await open(browser, server.base);
  await visit(page, `${server.base}#/compare/0/1?tensor=blk.0.ffn_down.weight`);
  assert.equal(await page.locator(".pictures .heat-canvas").count(), 3);
  await page.locator('[data-picture="a"]').getByRole("button", { name: "Zoom in" }).click();
  await settled(page);
  await page.waitForFunction(() => location.hash.includes("at="));
  const rulers = await page.locator(".pictures .ruler-rows").allInnerTexts();
  assert.equal(new Set(rulers).size, 1, JSON.stringify(rulers));
  assert.match(await page.locator(".both-statistics").innerText(), /std dev/);
  await page.keyboard.press("x");
  await page.locator('[data-picture="a"]').waitFor();
  assert.equal(await page.locator(".pictures .heat-canvas").count(), 1);
  await page.keyboard.press("x");
  await page.locator('[data-picture="b"]').waitFor();
  assert.deepEqual(faults, []);
  await page.context().close();
});

test("keys that differ have names, and long texts their first different line", async () => {
  const { page } = await open(browser, server.base, "phone");
  await visit(page, `${server.base}#/compare/0/1?tab=keys`);
  const types = page.locator("tr", { hasText: "general.file_type" });
  assert.match(await types.innerText(), /1 \(F16\)[^]*15 \(Q4_K_M\)/);
  await visit(page, `${server.base}#/compare/1/2?tab=keys`);
  assert.match(await page.locator("main").innerText(), /tokenizer\.chat_template/);
  await page.context().close();
});

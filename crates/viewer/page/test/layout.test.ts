// Layout at widths between a phone and a desktop.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { fits, launch, open, shot, visit } from "./browser";
import { folder, models, type Server, serve } from "./server";

let browser: Browser;
let server: Server;
before(async () => {
  const { f16, q4 } = models(folder());
  server = await serve(q4, "--reference", f16);
  browser = await launch();
});
after(async () => {
  await browser.close();
  await server.stop();
});

const STATES: Record<string, string> = {
  overview: "#/0/overview",
  key: "#/0/metadata?key=2",
  values: "#/0/tensors/blk.0.ffn_down.weight?row=3&column=5",
  block: "#/0/tensors/blk.0.attn_q.weight?tab=block&index=3",
  error: "#/0/tensors/blk.0.attn_q.weight?tab=error",
  file: "#/0/file?offset=40",
  template: "#/0/tokenizer?tab=template",
  graph: "#/0/graph",
  compare: "#/compare/1/0?tensor=blk.0.attn_q.weight",
};

for (const width of [390, 700, 880, 900, 1024, 1100, 1200, 1440, 2560]) {
  test(`nothing is cut at ${width} pixels`, async () => {
    const { page, faults } = await open(browser, server.base);
    await page.setViewportSize({ width, height: 900 });
    for (const [name, hash] of Object.entries(STATES)) {
      await visit(page, server.base + hash);
      await shot(page, `${name}-${width}`);
      await fits(page, `${name} at ${width}`);
      const cut = await page.evaluate(() => {
        const cells = document.querySelectorAll<HTMLElement>(".weight, .figures dd, table.numbers td, .card-value");
        return [...cells].filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.textContent);
      });
      assert.deepEqual(cut, [], `numbers of ${name} at ${width}`);
      const tab = page.locator('[role="tab"][aria-selected="true"]');
      if (await tab.count()) assert.ok(await tab.first().isVisible());
      const hex = await page.evaluate(() => {
        const box = document.querySelector<HTMLElement>(".hex");
        return box ? box.scrollWidth - box.clientWidth : 0;
      });
      assert.ok(hex <= 1, `bytes of ${name} at ${width} are ${hex} pixels too wide`);
    }
    assert.deepEqual(faults, []);
    await page.context().close();
  });
}

test("names of tensors in the file map are whole, and wide windows are used", async () => {
  const { page } = await open(browser, server.base);
  for (const width of [390, 1024, 1440, 2560]) {
    await page.setViewportSize({ width, height: 900 });
    await visit(page, `${server.base}#/0/file?offset=40`);
    const cut = await page
      .locator(".span-text")
      .evaluateAll((names) =>
        names.filter((name) => name.scrollWidth > name.clientWidth).map((name) => name.textContent),
      );
    assert.deepEqual(cut, [], `names at ${width} pixels`);
  }
  await visit(page, `${server.base}#/0/tensors/blk.0.ffn_down.weight`);
  const box = await page.locator(".heat-canvas").boundingBox();
  assert.ok((box?.width ?? 0) > 1500, `the picture is ${box?.width} pixels wide`);
  await page.getByRole("button", { name: "Full screen" }).click();
  await page.waitForFunction(() => document.fullscreenElement?.classList.contains("heat"));
  assert.ok(((await page.locator(".heat-canvas").boundingBox())?.height ?? 0) > 600);
  await page.context().close();
});

test("plots name their lines, and have no empty values", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/tensors/blk.0.attn_q.weight?tab=statistics`);
  await page.locator(".uplot").nth(1).waitFor();
  const visible = (plot: number) =>
    page
      .locator(".plot")
      .nth(plot)
      .locator(".u-label, .u-value")
      .evaluateAll((cells) =>
        cells.filter((cell) => getComputedStyle(cell).visibility === "visible").map((cell) => cell.textContent?.trim()),
      );
  assert.deepEqual(await visible(0), [], "the histogram has one line");
  assert.deepEqual(await visible(1), ["min", "max", "std dev", "mean"]);
  await page.locator(".plot").nth(1).locator(".u-over").hover();
  await page.waitForFunction(() => document.querySelectorAll(".uplot.pointed").length === 1);
  const shown = await visible(1);
  assert.equal(shown.length, 10, "five names with their values");
  assert.ok(
    shown.every((text) => text !== "" && text !== "--"),
    String(shown),
  );
  await page.context().close();
});

test("tokens of one character stand together", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/tokenizer?tab=try&beside=none&text=${encodeURIComponent("a 世界")}`);
  await page.locator(".piece-group").first().waitFor();
  const groups = await page.locator(".piece-group").allInnerTexts();
  assert.deepEqual(
    groups.map((text) => text.match(/\b[0-9A-F]{2}\b(?!\d)/g)?.slice(0, 1)[0]),
    ["E4", "E7"],
  );
  assert.deepEqual(await page.locator(".piece-whole").allInnerTexts(), ["世", "界"]);
  await page.locator("textarea").fill("x".repeat(70_000));
  await page.locator(".problem").waitFor();
  assert.match(await page.locator(".problem").innerText(), /The text has 70.000 bytes\. Shorten it to 65.536 bytes/);
  await page.context().close();
});

test("all lines of bytes have their text in one column", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/metadata?key=2`);
  const lefts = await page
    .locator(".hex-signs")
    .evaluateAll((cells) => cells.map((cell) => cell.getBoundingClientRect().x));
  assert.equal(new Set(lefts.map(Math.round)).size, 1);
  await page.context().close();
});

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

test("all lines of bytes have their text in one column", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/metadata?key=2`);
  const lefts = await page
    .locator(".hex-signs")
    .evaluateAll((cells) => cells.map((cell) => cell.getBoundingClientRect().x));
  assert.equal(new Set(lefts.map(Math.round)).size, 1);
  await page.context().close();
});

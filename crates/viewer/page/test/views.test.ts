// Every view at both sizes: no errors and no horizontal scrolling.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { fits, launch, open, shot, type Size, settled, visit } from "./browser";
import { folder, models, type Server, serve } from "./server";
import { VIEWS } from "./states";

let browser: Browser;
let server: Server;
before(async () => {
  const { f16, q4 } = models(folder());
  server = await serve(q4, "--original", f16);
  browser = await launch();
});
after(async () => {
  await browser.close();
  await server.stop();
});

for (const size of ["desktop", "phone"] as Size[]) {
  for (const [name, hash] of Object.entries(VIEWS)) {
    test(`${name} at ${size} width`, async () => {
      const { page, faults } = await open(browser, server.base, size, "light", []);
      const array = ((await server.api("models/0/keys?search=tokenizer.ggml.tokens")) as { keys: { n: number }[] })
        .keys[0]?.n;
      await visit(page, server.base + hash.replace("ARRAY", String(array)));
      await shot(page, `${name}-${size}`);
      await fits(page, name);
      assert.equal(await page.locator("main .problem").count(), 0, "the view shows an error");
      assert.deepEqual(faults, []);
      await page.context().close();
    });
  }
}

test("views in dark mode", async () => {
  const { page, faults } = await open(browser, server.base, "desktop", "dark");
  for (const name of [
    "overview",
    "values",
    "statistics",
    "block",
    "map",
    "file",
    "try-text",
    "graph",
    "compare",
    "compare-keys",
  ]) {
    await visit(page, `${server.base}${VIEWS[name]}`);
    await shot(page, `${name}-dark`);
  }
  assert.deepEqual(faults, []);
  await page.context().close();
});

test("links, history and the title are in sync", async () => {
  const { page, faults } = await open(browser, server.base);
  await visit(page, server.base);
  assert.match(await page.title(), /^Overview – /);
  await page.getByRole("navigation").getByRole("link", { name: "Tensors" }).click();
  await settled(page);
  assert.match(await page.title(), /^Tensors – /);
  assert.equal(await page.evaluate(() => document.activeElement?.id), "main", "the new view has the focus");
  await page.getByRole("treegrid").getByText("token_embd.weight").click();
  await page.waitForSelector("#tensor-title");
  assert.match(page.url(), /#\/0\/tensors\/\d+/);
  await page.goBack();
  await page.waitForSelector("#tensor-title", { state: "detached" });
  await page.goBack();
  await page.waitForFunction(() => document.title.startsWith("Overview"));
  assert.deepEqual(faults, []);
  await page.context().close();
});

test("errors are told without commands and documents for programs", async () => {
  const { page } = await open(browser, server.base, "desktop", "light", [400, 404, 422]);
  await visit(page, `${server.base}#/0/metadata?key=9999`);
  const text = () => page.locator("main .problem").first().innerText();
  await page.locator("main .problem").first().waitFor();
  assert.match(await text(), /^No such key\s+It may have been renamed or removed/);
  await visit(page, `${server.base}#/0/tokenizer?tab=template`);
  await page.locator(".code-text").fill("{% if %}");
  await page.locator("main .problem").first().waitFor();
  assert.match(await text(), /Correct the marked line of the template/);
  assert.doesNotMatch(await text(), /gguf |docs\/|--[a-z]/);
  await page.context().close();
});

// Every view at both sizes: no errors, no horizontal scrolling, no accessibility violations.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { accessible, fits, launch, open, shot, type Size, settled, visit } from "./browser";
import { folder, models, type Server, serve } from "./server";

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

const VIEWS: Record<string, string> = {
  overview: "#/0/overview",
  metadata: "#/0/metadata",
  key: "#/0/metadata?key=2",
  array: "#/0/metadata?search=tokenizer.ggml.tokens&key=ARRAY",
  tensors: "#/0/tensors",
  values: "#/0/tensors/blk.0.ffn_down.weight?row=3&column=5",
  "values-near": "#/0/tensors/blk.0.ffn_down.weight?at=30.5,20.5,56",
  scale: "#/0/tensors/blk.0.attn_q.weight?of=d",
  statistics: "#/0/tensors/blk.0.attn_q.weight?tab=statistics",
  block: "#/0/tensors/blk.0.attn_q.weight?tab=block&index=3",
  error: "#/0/tensors/blk.0.attn_q.weight?tab=error",
  vector: "#/0/tensors/output_norm.weight",
  map: "#/0/map",
  "map-types": "#/0/map?color=types",
  file: "#/0/file?offset=40",
  tokens: "#/0/tokenizer",
  "try-text": "#/0/tokenizer?tab=try&beside=1",
  template: "#/0/tokenizer?tab=template",
  graph: "#/0/graph",
  operation: "#/0/graph?op=2",
  "graph-context": "#/0/graph?before=4096",
  compare: "#/compare/1/0?tensor=blk.0.attn_q.weight",
  "compare-keys": "#/compare/1/0?tab=keys",
};

for (const size of ["desktop", "phone"] as Size[]) {
  for (const [name, hash] of Object.entries(VIEWS)) {
    test(`${name} at ${size} width`, async () => {
      const { page, faults } = await open(browser, server.base, size, "light", []);
      const array = ((await server.api("models/0/keys?search=tokenizer.ggml.tokens")) as { keys: { n: number }[] })
        .keys[0]?.n;
      await visit(page, server.base + hash.replace("ARRAY", String(array)));
      await shot(page, `${name}-${size}`);
      await fits(page, name);
      await accessible(page, `${name}, ${size}`);
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
    await accessible(page, `${name}, dark`);
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

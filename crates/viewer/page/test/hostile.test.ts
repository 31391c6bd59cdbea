// Malicious files: everything in them is shown as text.
import assert from "node:assert/strict";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { aligned, bytes, header } from "../scripts/gguf.mjs";
import { accessible, fits, launch, open, visit } from "./browser";
import { folder, models, run, serve } from "./server";

let browser: Browser;
let at: string;
let made: { f16: string; q4: string };
before(async () => {
  at = folder();
  made = models(at);
  browser = await launch();
});
after(() => browser.close());

const SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>";

test("scripts in names and values are shown and not executed", async () => {
  const bad = path.join(at, "bad.gguf");
  run(
    "edit",
    made.q4,
    "-o",
    bad,
    "--set",
    `general.name=${SCRIPT}`,
    "--set",
    `general.description:str=${SCRIPT.repeat(2000)}`,
    "--set",
    `general.url:str=javascript:alert(3)`,
  );
  const server = await serve(bad);
  const { page, faults } = await open(browser, server.base, "phone", "light", [422]);
  for (const hash of [
    "overview",
    "metadata?search=general.description",
    "metadata?search=general.name&key=2",
    "tensors",
    "tokenizer",
    "file",
    "graph",
  ]) {
    await visit(page, `${server.base}#/0/${hash}`);
    await fits(page, hash);
    await accessible(page, hash);
  }
  await visit(page, server.base);
  assert.equal(await page.locator("main h1").innerText(), SCRIPT);
  assert.equal(await page.locator("main script, main img, a[href^='javascript:']").count(), 0);
  await page.getByRole("navigation").getByRole("link", { name: "Metadata" }).click();
  const found = ((await server.api("models/0/keys?search=general.description")) as { keys: { n: number }[] }).keys[0];
  await visit(page, `${server.base}#/0/metadata?key=${found?.n}`);
  assert.ok((await page.locator(".value-text").innerText()).startsWith(SCRIPT));
  assert.deepEqual(faults, []);
  await page.context().close();
  await server.stop();
});

test("tensor names and tokens with scripts, and thousands of them", async () => {
  const tensors = Array.from({ length: 10_000 }, (_, n) => ({
    name: n === 0 ? SCRIPT.slice(0, 60) : `blk.${n >> 3}.part${n & 7}.weight`,
    shape: [8, 4],
    type: "F32" as const,
  }));
  const tokens = Array.from({ length: 300_000 }, (_, n) => (n === 0 ? SCRIPT : `t${n}`));
  const keys = {
    "general.architecture": "llama",
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": tokens,
    "tokenizer.ggml.token_type": tokens.map(() => 1),
    "tokenizer.chat_template": `{{ "${SCRIPT}" }}`,
  };
  const many = path.join(at, "many.gguf");
  const data = tensors.reduce((sum, tensor) => sum + aligned(bytes(tensor)), 0);
  writeFileSync(many, Buffer.concat([header(keys, tensors), Buffer.alloc(data)]));
  const server = await serve(many);
  const { page, faults } = await open(browser, server.base, "desktop", "light", [422]);
  for (const hash of ["overview", "tensors?sort=name", "tensors/0", "file", "tokenizer", "tokenizer?tab=template"]) {
    await page.goto(`${server.base}#/0/${hash}`);
    await page.waitForFunction(() => !document.querySelector('[aria-busy="true"], .waiting'));
    assert.ok((await page.locator("#app *").count()) < 3000, `${hash} has too many elements`);
    assert.equal(await page.locator("main script, main img").count(), 0);
  }
  await visit(page, `${server.base}#/0/tensors`);
  await page.getByLabel("Filter by name").fill("blk.777. part3");
  await page.waitForFunction(() => document.querySelector(".list-about")?.textContent?.startsWith("1 of"));
  await visit(page, `${server.base}#/0/tokenizer`);
  assert.ok((await page.locator(".token-text").first().innerText()).startsWith("<script>"));
  assert.deepEqual(faults, []);
  await page.context().close();
  await server.stop();
});

test("an endless template is stopped, and errors have their line", async () => {
  const server = await serve(made.q4);
  const { page } = await open(browser, server.base, "desktop", "light", [422]);
  await visit(page, `${server.base}#/0/tokenizer?tab=template`);
  const source = page.getByLabel("Template source");
  await source.fill(
    "{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}x{% endfor %}{% endfor %}{% endfor %}",
  );
  await page.locator(".template-text .problem").waitFor({ timeout: 30_000 });
  await source.fill("one\n{% if %}\nthree");
  await page.waitForFunction(() => document.querySelector(".code-numbers .fault")?.textContent === "2");
  await source.fill("{% for m in messages %}[{{ m.role }}]{% endfor %}");
  await page.waitForFunction(() => document.querySelector(".rendered")?.textContent === "[system][user]");
  await page.context().close();
  await server.stop();
});

test("invalid files show their findings", async (context) => {
  const data = process.env.GGUF_TEST_DATA;
  if (!data || !existsSync(path.join(data, "hostile")))
    return context.skip("SKIPPED: GGUF_TEST_DATA names no reference data");
  const files = readdirSync(path.join(data, "hostile")).filter((name) => name.endsWith(".gguf"));
  assert.ok(files.length > 30);
  const server = await serve(...files.map((name) => path.join(data, "hostile", name)));
  const { page, faults } = await open(browser, server.base, "desktop", "light", [422]);
  for (let id = 0; id < files.length; id += 1) {
    for (const view of ["overview", "file"]) {
      await visit(page, `${server.base}#/${id}/${view}`);
      assert.notEqual((await page.locator("main").innerText()).trim(), "", files[id]);
    }
  }
  // Files with valid headers have all views.
  const { models } = (await server.api("models")) as { models: { id: number; readable: boolean }[] };
  for (const { id } of models.filter(({ readable }) => readable)) {
    for (const view of ["metadata", "tensors", "tensors/0", "tokenizer", "graph"]) {
      await page.goto(`${server.base}#/${id}/${view}`);
      await page.waitForFunction(() => !document.querySelector('[aria-busy="true"], .waiting'));
    }
  }
  assert.deepEqual(faults, []);
  await page.context().close();
  await server.stop();
});

// Search by Ctrl+K, `/` and `?`; the color scheme; copying.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { fromCheckpoint, matches } from "../src/tensors/names";
import { accessible, launch, open, settled, visit } from "./browser";
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

test("names of checkpoints find tensors", () => {
  for (const [word, name] of [
    ["q_proj", "attn_q"],
    ["layers.5", "blk.5."],
    ["model.layers.5.self_attn.q_proj", "blk.5.attn_q"],
    ["model.layers.0.mlp.gate_proj.weight", "blk.0.ffn_gate.weight"],
    ["transformer.h.3.attn.c_attn", "blk.3.attn.attn_qkv"],
    ["embed_tokens", "token_embd"],
    ["lm_head", "output"],
    ["input_layernorm", "attn_norm"],
    ["blk.3.attn_q", "blk.3.attn_q"],
  ])
    assert.equal(fromCheckpoint(word as string), name);
  assert.ok(matches("blk.5.attn_q.weight", "layers.5 q_proj"));
  assert.ok(matches("blk.5.attn_q.weight", "model.layers.5.self_attn.q_proj.weight"));
  assert.ok(!matches("blk.15.attn_q.weight", "blk.5.attn*"));
});

test("the filter accepts names of checkpoints, and says when nothing fits", async () => {
  const { page, faults } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/tensors`);
  await page.getByLabel("Filter by name").fill("self_attn.q_proj");
  await page.waitForFunction(() => document.querySelector(".list-about")?.textContent?.startsWith("4 of"));
  await page.getByLabel("Filter by name").fill("nothing like this");
  await page.getByRole("button", { name: "Clear filter" }).click();
  await page.waitForFunction(() => document.querySelector(".list-about")?.textContent?.startsWith("39 tensors"));
  assert.deepEqual(faults, []);
  await page.context().close();
});

test("Ctrl+K finds tensors, keys, tokens, views and offsets", async () => {
  const { page, faults } = await open(browser, server.base);
  await visit(page, server.base);
  await page.keyboard.press("Control+k");
  const field = page.getByRole("combobox", { name: /Search tensors/ });
  const find = async (text: string, wanted: RegExp) => {
    await field.fill(text);
    await page.getByRole("option").filter({ hasText: wanted }).first().waitFor();
  };
  await find("layers.2.mlp.down_proj", /blk\.2\.ffn_down\.weight/);
  await find("head_count_kv", /llama\.attention\.head_count_kv/);
  await find("#17", /id 17/);
  await find("0x40", /byte/);
  await find("tok", /tokenizer/);
  await accessible(page, "the palette");
  await field.fill("layers.2.mlp.down_proj");
  await page.waitForFunction(() =>
    document.querySelector('[role="option"]')?.textContent?.includes("blk.2.ffn_down.weight"),
  );
  await page.keyboard.press("Enter");
  await page.waitForSelector("#tensor-title");
  assert.equal(await page.locator("#tensor-title").innerText(), "blk.2.ffn_down.weight");
  // The tensor is revealed in the tree.
  await page.locator('.tensor-rows [aria-selected="true"]').waitFor();
  assert.deepEqual(faults, []);
  await page.context().close();
});

test("slash goes to the search field, and the question mark shows help", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/metadata`);
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "Search keys and values");
  await page.keyboard.type("?");
  assert.equal(await page.locator("dialog").count(), 0, "a question mark can be typed");
  await page.locator("main").focus();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await accessible(page, "the help");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.context().close();
});

test("the color scheme can be chosen", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/tensors/blk.0.attn_q.weight`);
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.getByLabel("Color scheme").selectOption("dark");
  assert.notEqual(await paper(), light);
  await page.reload();
  await settled(page);
  assert.notEqual(await paper(), light, "the choice outlives a reload");
  await accessible(page, "dark by choice");
  await page.context().close();
});

test("a term is explained on focus", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, server.base);
  await page.locator(".term", { hasText: "vocabulary" }).focus();
  assert.match(await page.getByRole("tooltip").innerText(), /pieces of text/);
  await accessible(page, "a tooltip");
  await page.keyboard.press("Escape");
  assert.equal(await page.getByRole("tooltip").count(), 0);
  await page.context().close();
});

test("names, values and the summary are copied, and the report is saved", async () => {
  const { page, faults } = await open(browser, server.base);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  await visit(page, `${server.base}#/0/tensors/blk.0.attn_q.weight`);
  await page.getByRole("button", { name: "Copy name" }).click();
  await page.getByText("Copied").waitFor();
  assert.equal(await copied(), "blk.0.attn_q.weight");
  await visit(page, server.base);
  await page.getByRole("button", { name: "Copy summary as Markdown" }).click();
  await page.getByText("Copied").waitFor();
  assert.match(await copied(), /^## [^]*\| Architecture \| llama \|[^]*\| License \| apache-2\.0 \|/);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Save report" }).click(),
  ]);
  assert.match(download.suggestedFilename(), /report\.html$/);
  assert.deepEqual(faults, []);
  await page.context().close();
});

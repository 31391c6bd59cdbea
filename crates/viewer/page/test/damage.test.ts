// Truncated and damaged files, remote servers that stop, and adapters.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { aligned, bytes, header } from "../scripts/gguf.mjs";
import { accessible, fits, launch, open, visit } from "./browser";
import { folder, models, serve } from "./server";

let browser: Browser;
let at: string;
let made: { f16: string; q4: string };
before(async () => {
  at = folder();
  made = models(at);
  browser = await launch();
});
after(() => browser.close());

test("a truncated file shows its header and marks what is cut", async () => {
  const cut = path.join(at, "cut.gguf");
  writeFileSync(cut, readFileSync(made.q4).subarray(0, 1_500_000));
  const server = await serve(cut);
  const { page, faults } = await open(browser, server.base);
  await visit(page, server.base);
  assert.match(await page.locator(".notice").innerText(), /The file is truncated: 1\.5 of 2\.7 MB are there/);
  assert.match(await page.locator(".cards").innerText(), /4\.20M/);
  await visit(page, `${server.base}#/0/tensors/blk.3.ffn_up.weight`);
  assert.match(await page.locator("article .problem").innerText(), /of the 110\.6 kB of this tensor are missing/);
  assert.ok((await page.locator(".tensor-rows .badge.error").count()) > 0);
  await accessible(page, "a truncated tensor");
  await visit(page, `${server.base}#/0/tensors/output.weight`);
  assert.equal(await page.locator(".heat-canvas").count(), 1);
  assert.deepEqual(faults, []);
  await page.context().close();
  await server.stop();
});

test("a file that ends within its header shows what is complete", async (context) => {
  const cut = path.join(at, "header.gguf");
  writeFileSync(cut, readFileSync(made.q4).subarray(0, 5000));
  const server = await serve(cut);
  context.after(() => server.stop());
  // The tokenizer and the graph are not complete.
  const { page, faults } = await open(browser, server.base, "desktop", "light", [422]);
  await visit(page, server.base);
  assert.match(await page.locator(".notice").innerText(), /ends within its header: only the keys before the end/);
  await accessible(page, "a truncated header");
  await visit(page, `${server.base}#/0/metadata`);
  assert.match(await page.locator(".keys").innerText(), /general\.architecture\s+"llama"/);
  for (const view of ["tensors", "map", "tokenizer", "graph"]) await visit(page, `${server.base}#/0/${view}`);
  await visit(page, `${server.base}#/0/file`);
  assert.match(await page.locator(".file-regions").innerText(), /metadata[^]*unreadable/);
  assert.deepEqual(faults, []);
  await page.context().close();
});

/** Writes a file with one key twice, and two tensors whose data overlaps. */
function damaged(file: string): void {
  const head = header({ "general.architecture": "llama", "general.name": "One", "general.xame": "Two" }, [
    { name: "blk.0.attn_q.weight", shape: [32, 32], type: "F32" },
    { name: "blk.0.attn_k.weight", shape: [32, 32], type: "F32" },
    { name: "output.weight", shape: [32, 32], type: "F32" },
  ]);
  head.write("general.name", head.indexOf("general.xame"));
  // The second tensor starts within the first: its offset follows its name, two dimensions and its type.
  const name = "blk.0.attn_k.weight";
  head.writeBigUInt64LE(2048n, head.indexOf(name) + name.length + 4 + 2 * 8 + 4);
  writeFileSync(file, Buffer.concat([head, Buffer.alloc(3 * 4096)]));
}

test("a file with a doubled key and overlapping tensors is shown, with both marked", async (context) => {
  const file = path.join(at, "damaged.gguf");
  damaged(file);
  const server = await serve(file);
  context.after(() => server.stop());
  // The model is no complete Llama, so it has no graph.
  const { page, faults } = await open(browser, server.base, "desktop", "light", [422]);
  await visit(page, server.base);
  assert.match(await page.locator(".notice").innerText(), /The file is damaged: general\.name: the key occurs twice/);
  await visit(page, `${server.base}#/0/metadata`);
  const rows = page.locator(".keys .row");
  const texts = await rows.allInnerTexts();
  assert.deepEqual(
    texts.map((text) => text.replace(/\s+/g, " ").trim()),
    ['general.architecture "llama"', 'general.namedamaged "One"', 'general.namedamaged "Two"'],
  );
  await rows.nth(2).click();
  await page.locator("article .problem").waitFor();
  assert.match(await page.locator("article .problem").innerText(), /the key occurs twice/);
  assert.match(await page.locator(".value-text").innerText(), /Two/);
  assert.equal(await page.getByRole("button", { name: "Edit" }).count(), 0, "a damaged file is not edited");
  await accessible(page, "a damaged key");
  await visit(page, `${server.base}#/0/tensors/blk.0.attn_q.weight`);
  assert.match(await page.locator("article .problem").innerText(), /its data overlaps that of blk\.0\.attn_k\.weight/);
  assert.equal((await page.locator(".tensor-rows .row:has(.badge.error) .tensor-text").count()) >= 2, true);
  assert.equal(await page.locator(".heat-canvas").count(), 1, "intact weights are shown");
  await accessible(page, "a damaged tensor");
  await visit(page, `${server.base}#/0/tensors/output.weight`);
  assert.equal(await page.locator("article .problem").count(), 0);
  await visit(page, `${server.base}#/0/file`);
  assert.match(await page.locator(".file-regions").innerText(), /metadata[^]*blk\.0\.attn_q\.weight[^]*output\.weight/);
  assert.deepEqual(faults, []);
  await page.context().close();
});

test("a remote server that stops is said to be silent", async () => {
  const file = readFileSync(made.f16);
  const remote = http.createServer((request, response) => {
    const range = /bytes=(\d+)-(\d*)/.exec(request.headers.range ?? "");
    const first = Number(range?.[1] ?? 0);
    const last = Math.min(file.length - 1, range?.[2] ? Number(range[2]) : file.length - 1);
    response.writeHead(206, {
      "content-length": last - first + 1,
      "content-range": `bytes ${first}-${last}/${file.length}`,
      etag: '"one"',
    });
    response.end(file.subarray(first, last + 1));
  });
  await new Promise<void>((resolve) => remote.listen(0, "127.0.0.1", resolve));
  const server = await serve(`http://127.0.0.1:${(remote.address() as AddressInfo).port}/model.gguf`);
  const { page } = await open(browser, server.base, "desktop", "light", [502]);
  await visit(page, `${server.base}#/0/tensors`);
  remote.closeAllConnections();
  remote.close();
  await page.goto(`${server.base}#/0/tensors/blk.3.ffn_up.weight`);
  const notice = page.getByText("The remote server does not answer.");
  await notice.waitFor({ timeout: 10_000 });
  assert.match(await page.locator(".notice").innerText(), /attempt \d of \d failed; retrying|Waiting for/);
  await page.context().close();
  await server.stop();
});

test("an adapter is shown with its rank, alpha and target modules", async () => {
  const tensors = [
    { name: "blk.0.attn_q.weight.lora_a", shape: [16, 4], type: "F32" as const },
    { name: "blk.0.attn_q.weight.lora_b", shape: [4, 16], type: "F32" as const },
  ];
  const keys = {
    "general.architecture": "llama",
    "general.type": "adapter",
    "adapter.type": "lora",
    "adapter.lora.alpha": 8,
    "general.base_model.0.name": "Base",
  };
  const file = path.join(at, "adapter.gguf");
  const data = tensors.reduce((sum, tensor) => sum + aligned(bytes(tensor)), 0);
  writeFileSync(file, Buffer.concat([header(keys, tensors), Buffer.alloc(data)]));
  const server = await serve(file);
  const { page } = await open(browser, server.base, "phone");
  await visit(page, server.base);
  await page.getByText("target modules").waitFor();
  const facts = await page.locator(".facts").innerText();
  assert.match(facts, /lora, changes 1 tensor[^]*4; alpha 8, scale 2\.00[^]*attn_q[^]*Base/);
  assert.match(await page.locator(".cards").innerText(), /adapter parameters/);
  await fits(page, "an adapter");
  await page.context().close();
  await server.stop();
});

// Values on the page against the API and the command line.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { bytes, significant, whole } from "../src/format";
import { launch, open, settled, visit } from "./browser";
import { folder, models, run, type Server, serve } from "./server";

let browser: Browser;
let server: Server;
let made: { f16: string; q4: string };
before(async () => {
  made = models(folder());
  server = await serve(made.q4, "--original", made.f16);
  browser = await launch();
});
after(async () => {
  await browser.close();
  await server.stop();
});

const NAME = "blk.0.ffn_down.weight";

interface Inspected {
  values: {
    rows: number[][];
    count: number;
    mean: number;
    stddev: number;
    min: number;
    max: number;
  };
}

test("weights around the selected one equal `gguf inspect --values`", async () => {
  const { values } = JSON.parse(run("inspect", made.q4, "--values", `${NAME}:3..7`, "--json")) as Inspected;
  const { page, faults } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/tensors/${NAME}?row=3&column=5`);
  const shown = await page
    .locator("table.numbers td")
    .evaluateAll((cells) => cells.map((cell) => (cell as HTMLElement).dataset.value));
  const wanted = values.rows.flatMap((row) => row.slice(5, 13).map(String));
  assert.deepEqual(shown, wanted);
  assert.deepEqual(faults, []);
  await page.context().close();
});

test("the heat map reads the weight under the pointer", async () => {
  const { values } = JSON.parse(run("inspect", made.q4, "--values", `${NAME}:20`, "--json")) as Inspected;
  const { page } = await open(browser, server.base);
  // Centers a weight at 56 pixels per weight.
  await visit(page, `${server.base}#/0/tensors/${NAME}?at=30.5,20.5,56`);
  const box = await page.locator(".heat-canvas").boundingBox();
  assert.ok(box);
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const reading = await page.locator(".heat-reading").innerText();
  assert.equal(reading, `row 20, column 30: ${significant(values.rows[0]?.[30] ?? null)}`);
  await page.context().close();
});

test("statistics equal `gguf inspect --values`", async () => {
  const { values } = JSON.parse(run("inspect", made.q4, "--values", NAME, "--json")) as {
    values: Record<string, number>;
  };
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/tensors/${NAME}?tab=statistics`);
  const figure = (name: string) => page.locator(`[data-figure="${name}"] dd`).innerText();
  const value = (name: string) => values[name] ?? null;
  assert.equal(await figure("values"), whole(value("count") ?? 0));
  assert.equal(await figure("mean"), significant(value("mean")));
  assert.equal(await figure("std dev"), significant(value("stddev")));
  assert.equal(await figure("min"), significant(value("min")));
  assert.equal(await figure("max"), significant(value("max")));
  await page.context().close();
});

test("the weights of a block equal those of its row", async () => {
  const { values } = JSON.parse(run("inspect", made.q4, "--values", `${NAME}:1`, "--json")) as Inspected;
  const { page } = await open(browser, server.base);
  const tensor = (await server.api(`models/0/tensor?name=${NAME}`)) as {
    blocks_per_row: number;
    block_weights: number;
  };
  await visit(page, `${server.base}#/0/tensors/${NAME}?tab=block&index=${tensor.blocks_per_row}`);
  const shown = await page
    .locator(".weights .weight")
    .evaluateAll((cells) => cells.map((cell) => (cell as HTMLElement).title));
  assert.deepEqual(shown, values.rows[0]?.slice(0, tensor.block_weights).map(String));
  await page.context().close();
});

test("the overview equals `gguf inspect --json`", async () => {
  const summary = JSON.parse(run("inspect", made.q4, "--json")) as {
    file_bytes: number;
    tensor_count: number;
    tensor_types: Record<string, { tensors: number; bytes: number }>;
  };
  const { page } = await open(browser, server.base);
  await visit(page, server.base);
  assert.match(await page.locator(".cards").innerText(), new RegExp(`${bytes(summary.file_bytes)}[^]*`));
  const rows = await page.locator(".size-types tbody tr").allInnerTexts();
  for (const [name, { tensors, bytes: size }] of Object.entries(summary.tensor_types)) {
    const row = rows.find((text) => text.trim().startsWith(name));
    assert.ok(row?.includes(bytes(size)) && row.includes(String(tensors)), `${name}: ${row}`);
  }
  await page.getByRole("button", { name: "gguf-kit" }).click();
  const memory = JSON.parse(run("inspect", made.q4, "--memory", "--json")) as { memory: { total: number } };
  assert.equal(await page.locator(".memory-total strong").innerText(), bytes(memory.memory.total));
  await page.context().close();
});

test("the memory estimate follows the settings", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, server.base);
  await page.getByRole("button", { name: "gguf-kit" }).click();
  await page.getByRole("button", { name: "q8_0" }).click();
  await settled(page);
  const { memory } = JSON.parse(run("inspect", made.q4, "--memory", "--kv-type", "q8_0", "--json")) as {
    memory: { kv_cache: number };
  };
  await page.waitForFunction(
    (text) => document.querySelector(".memory-parts")?.textContent?.includes(text),
    bytes(memory.kv_cache),
  );
  await page.context().close();
});

test("tokens of a text equal `gguf tokenize`", async () => {
  const text = "In the beginning God created";
  const ids = JSON.parse(run("tokenize", made.q4, "-p", text, "--ids")) as number[];
  const { page, faults } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/tokenizer?tab=try&beside=none&text=${encodeURIComponent(text)}`);
  const shown = await page.locator(".piece-id").allInnerTexts();
  assert.deepEqual(shown.map(Number), ids);
  assert.deepEqual(faults, []);
  await page.context().close();
});

test("error statistics equal `gguf diff`", async () => {
  let printed = "";
  try {
    printed = run("diff", made.f16, made.q4, "--json");
  } catch (error) {
    // The exit code is 1 because the models differ.
    printed = (error as { stdout: string }).stdout;
  }
  interface Entry {
    name: string;
    figures: { rmse: number } | null;
  }
  const { tensors } = JSON.parse(printed) as { tensors: Entry[] };
  const rmse = tensors.find(({ name }) => name === NAME)?.figures?.rmse;
  assert.ok(rmse && rmse > 0);
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/tensors/${NAME}?tab=error`);
  assert.equal(await page.locator('[data-figure="RMSE"] dd').innerText(), significant(rmse));
  await page.context().close();
});

test("the hex view shows the bytes and span names of the file", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/file`);
  assert.match(await page.locator(".hex-line").first().innerText(), /47 47 55 46 03 00 00 00/);
  assert.match(await page.locator(".span-name").innerText(), /magic/);
  await page.locator(".span-rows .row").nth(1).click();
  await settled(page);
  assert.match(await page.locator(".span-name").innerText(), /key length|key/);
  await page.context().close();
});

/** Counts the rows in the document. */
async function renderedRows(page: Page): Promise<number> {
  return page.locator(".virtual-all > .row").count();
}

test("a long list renders few rows", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/tokenizer`);
  const total = Number(await page.locator(".token-rows .virtual-box").getAttribute("aria-rowcount"));
  assert.ok(total > 1000, String(total));
  assert.ok((await renderedRows(page)) < 60);
  await page.locator(".token-rows .virtual-box").focus();
  await page.keyboard.press("End");
  await page.waitForFunction(
    (last) => document.querySelector(".token-rows .row:last-child .token-id")?.textContent === last,
    whole(total - 1),
  );
  await page.context().close();
});

// Notices about the server and changed files; editing of metadata.
import assert from "node:assert/strict";
import { appendFileSync, copyFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { launch, open, settled, visit } from "./browser";
import { folder, models, run, serve } from "./server";

let browser: Browser;
let made: { f16: string; q4: string };
let at: string;
before(async () => {
  at = folder();
  made = models(at);
  browser = await launch();
});
after(() => browser.close());

test("a notice says that the server has stopped", async () => {
  const server = await serve(made.q4);
  const { page } = await open(browser, server.base);
  await visit(page, server.base);
  assert.equal(await page.locator(".notice").count(), 0);
  await server.stop();
  await page.locator(".notice").waitFor({ timeout: 8000 });
  assert.match(await page.locator(".notice").innerText(), /server has stopped/);
  await page.context().close();
});

test("a notice says that the file has changed, and reloads it", async () => {
  const copy = path.join(at, "changing.gguf");
  copyFileSync(made.q4, copy);
  const server = await serve(copy);
  const { page } = await open(browser, server.base);
  await visit(page, server.base);
  appendFileSync(copy, Buffer.alloc(64));
  await page.locator(".notice").waitFor({ timeout: 8000 });
  assert.match(await page.locator(".notice").innerText(), /changing\.gguf has changed/);
  await page.getByRole("button", { name: "Reload" }).click();
  await page.locator(".notice").waitFor({ state: "detached" });
  await settled(page);
  assert.equal(await page.locator("main .problem").count(), 0);
  await page.context().close();
  await server.stop();
});

test("an edit is previewed, then written to the file", async () => {
  const copy = path.join(at, "edited.gguf");
  copyFileSync(made.q4, copy);
  const server = await serve(copy);
  const { page, faults } = await open(browser, server.base);
  const key = ((await server.api("models/0/keys?search=general.name")) as { keys: { n: number }[] }).keys[0];
  assert.ok(key);
  await visit(page, `${server.base}#/0/metadata?key=${key.n}`);
  await page.getByRole("button", { name: "Edit…" }).click();
  await page.getByLabel("New value").fill("A new name");
  await page.getByRole("button", { name: "Stage" }).click();
  await page.locator(".changes .after").waitFor();
  assert.match(await page.locator(".changes .after").innerText(), /A new name/);
  const name = () => (JSON.parse(run("inspect", copy, "--json")) as { name: string }).name;
  assert.notEqual(name(), "A new name", "a preview writes nothing");
  await page.getByRole("button", { name: /^Write to/ }).click();
  await page.locator(".fine").waitFor();
  assert.equal(name(), "A new name");
  await page.waitForFunction(() => document.querySelector(".value-text")?.textContent === "A new name");
  assert.deepEqual(faults, []);
  await page.context().close();
  await server.stop();
});

test("an invalid value is reported, and can be discarded", async () => {
  const server = await serve(made.q4);
  const { page } = await open(browser, server.base, "desktop", "light", [400, 422]);
  const key = ((await server.api("models/0/keys?search=block_count")) as { keys: { n: number }[] }).keys[0];
  await visit(page, `${server.base}#/0/metadata?key=${key?.n}`);
  await page.getByRole("button", { name: "Edit…" }).click();
  await page.getByLabel("New value").fill("many");
  await page.getByRole("button", { name: "Stage" }).click();
  await page.locator(".changes .problem").waitFor();
  await page.getByRole("button", { name: "Discard all" }).click();
  assert.equal(await page.locator(".changes").count(), 0);
  await page.context().close();
  await server.stop();
});

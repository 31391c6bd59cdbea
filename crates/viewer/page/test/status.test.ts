// Notices about the server and changed files.
import assert from "node:assert/strict";
import { appendFileSync, copyFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { launch, open, settled, visit } from "./browser";
import { folder, models, serve } from "./server";

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

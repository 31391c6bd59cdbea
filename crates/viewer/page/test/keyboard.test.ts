// Keyboard navigation.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { launch, open, settled, visit } from "./browser";
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

test("Tab reaches the skip link first", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, server.base);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Skip to content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "main");
  await page.context().close();
});

test("the tensor tree expands, collapses and selects", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/tensors`);
  const tree = page.getByRole("treegrid");
  await tree.focus();
  const active = () =>
    tree.evaluate(
      (element) => document.getElementById(element.getAttribute("aria-activedescendant") ?? "")?.textContent ?? "",
    );
  const expanded = () =>
    tree.evaluate((element) =>
      document.getElementById(element.getAttribute("aria-activedescendant") ?? "")?.getAttribute("aria-expanded"),
    );
  await page.keyboard.press("Home");
  while (!(await active()).startsWith("blk.0")) await page.keyboard.press("ArrowDown");
  assert.equal(await expanded(), "true");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await expanded(), "false");
  await page.keyboard.press("ArrowRight");
  assert.equal(await expanded(), "true");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const name = await active();
  await page.keyboard.press("Enter");
  await page.waitForSelector("#tensor-title");
  assert.ok(name.includes((await page.locator("#tensor-title").innerText()).replace("blk.0.", "")));
  await page.context().close();
});

test("the heat map pans, zooms and announces weights", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/tensors/blk.0.ffn_down.weight?at=30.5,20.5,40`);
  await page.locator(".heat-canvas").focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await page.locator(".heat [role=status]").innerText(), /^row 20, column 31: -?[0-9.e-]+$/);
  await page.keyboard.press("Enter");
  await page.waitForSelector("table.numbers td.here");
  await page.keyboard.press("0");
  await page.waitForFunction(() => !location.hash.includes(",40"));
  await page.context().close();
});

test("arrow keys switch tabs", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/tensors/blk.0.ffn_down.weight`);
  await page.getByRole("tab", { name: "Values" }).focus();
  await page.keyboard.press("ArrowRight");
  await settled(page);
  assert.equal(await page.getByRole("tab", { selected: true }).innerText(), "Statistics");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Statistics");
  await page.context().close();
});

test("arrow keys move between regions of the file", async () => {
  const { page } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/file`);
  await page.getByRole("slider", { name: /Position in the file/ }).focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => location.hash.includes("offset=24"));
  assert.match(
    (await page.getByRole("slider", { name: /Position in the file/ }).getAttribute("aria-valuetext")) ?? "",
    /^metadata, byte 0x18$/,
  );
  await page.context().close();
});

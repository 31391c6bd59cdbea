// Editing of metadata: staging, review, writing.
import assert from "node:assert/strict";
import { copyFileSync, existsSync, statSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { countOf, type Edits, NONE, withKey, without, withRemoved } from "../src/metadata/edits";
import { accessible, launch, open, settled, visit } from "./browser";
import { folder, models, run, type Server, serve } from "./server";

let browser: Browser;
let made: { f16: string; q4: string };
let at: string;
before(async () => {
  at = folder();
  made = models(at);
  browser = await launch();
});
after(() => browser.close());

async function editing(name: string, allowed: number[] = []) {
  const copy = path.join(at, name);
  copyFileSync(made.q4, copy);
  const server = await serve(copy);
  const { page, faults } = await open(browser, server.base, "desktop", "light", allowed);
  return { copy, server, page, faults };
}

async function toKey(page: Page, server: Server, name: string): Promise<void> {
  const { keys } = (await server.api(`models/0/keys?search=${name}`)) as { keys: { n: number; name: string }[] };
  const key = keys.find((entry) => entry.name === name);
  assert.ok(key);
  await visit(page, `${server.base}#/0/metadata?key=${key.n}`);
  await page.getByRole("button", { name: "Edit…" }).click();
}

const review = (page: Page) => page.getByRole("button", { name: "Review" }).click();
const keysOf = (file: string) =>
  (JSON.parse(run("inspect", file, "--keys", "--json")) as { metadata: Record<string, { value: unknown }> }).metadata;

test("a new name and a new value are one change with both", () => {
  const both = withKey(NONE, "a", { name: "b", value: "2" });
  assert.deepEqual(both, { ...NONE, rename: [["a", "b"]], set: [{ key: "b", type: null, value: "2" }] });
  assert.equal(countOf(both), 1);
  assert.deepEqual(without(both, "a"), NONE);
  assert.deepEqual(without(both, "b"), NONE);
  assert.deepEqual(withKey(both, "a", { value: "3" }).set, [{ key: "a", type: null, value: "3" }]);
  const two: Edits = withRemoved(both, "c");
  assert.equal(countOf(two), 2);
  assert.deepEqual(without(two, "c"), both);
});

test("name and value of a key are both written", async () => {
  const { copy, server, page, faults } = await editing("both.gguf");
  await toKey(page, server, "general.basename");
  await page.getByLabel("New value").fill("VALUE2");
  await page.getByLabel("Name", { exact: true }).fill("general.basename2");
  await page.getByRole("button", { name: "Stage" }).click();
  await page.getByText("1 staged change").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Review", "the bar has the focus");
  await review(page);
  await page.locator(".changes .after").first().waitFor();
  assert.match(await page.locator(".changes .preview").innerText(), /general\.basename2[^]*VALUE2/);
  await accessible(page, "the review of changes");
  await page.getByRole("button", { name: /^Write to/ }).click();
  await page.locator(".saved").waitFor();
  const keys = keysOf(copy);
  assert.ok(JSON.stringify(keys).includes("VALUE2"), JSON.stringify(keys).slice(0, 300));
  assert.ok(!JSON.stringify(keys).includes('"general.basename"'));
  assert.deepEqual(faults, []);
  await page.context().close();
  await server.stop();
});

test("the preview is what is written, with the reserve", async () => {
  const { copy, server, page } = await editing("reserve.gguf");
  const before = statSync(copy).size;
  await toKey(page, server, "general.name");
  await page.getByLabel("New value").fill("A somewhat longer name than before");
  await page.getByRole("button", { name: "Stage" }).click();
  await review(page);
  await page.getByText("gguf_kit.reserve").waitFor();
  const promised = /→\s*([\d\s\u202f]+) bytes/.exec(await page.locator(".changes-effect").innerText())?.[1];
  const [rows] = await Promise.all([page.locator(".preview tbody tr").count()]);
  await page.getByRole("button", { name: /^Write to/ }).click();
  await page.locator(".saved").waitFor();
  assert.equal(Number(promised?.replace(/\D/g, "")), statSync(copy).size);
  assert.equal(rows, 2);
  assert.ok(statSync(copy).size > before);
  await page.context().close();
  await server.stop();
});

test("without a reserve, only the change is written", async () => {
  const { copy, server, page } = await editing("plain.gguf");
  await toKey(page, server, "general.name");
  await page.getByLabel("New value").fill("A somewhat longer name than before, without room for more");
  await page.getByRole("button", { name: "Stage" }).click();
  await review(page);
  await page.getByLabel(/Reserve room/).uncheck();
  await page.getByText("gguf_kit.reserve").waitFor({ state: "detached" });
  await page.getByRole("button", { name: /^Write to/ }).click();
  await page.locator(".saved").waitFor();
  assert.ok(!JSON.stringify(keysOf(copy)).includes("gguf_kit.reserve"));
  await page.context().close();
  await server.stop();
});

test("an invalid value is refused in its form, and nothing is staged", async () => {
  const { server, page } = await editing("invalid.gguf", [400, 422]);
  await toKey(page, server, "llama.block_count");
  await page.getByLabel("New value").fill("lots");
  await page.getByRole("button", { name: "Stage" }).click();
  await page.locator(".edit-key .problem").waitFor();
  assert.equal(await page.locator(".changes").count(), 0);
  await page.context().close();
  await server.stop();
});

test("each change can be undone, and errors must be accepted", async () => {
  const { server, page } = await editing("undo.gguf");
  await toKey(page, server, "general.name");
  await page.getByLabel("New value").fill("Other");
  await page.getByRole("button", { name: "Stage" }).click();
  await toKey(page, server, "general.architecture");
  await page.getByRole("button", { name: "Remove key" }).click();
  await page.getByText("2 staged changes").waitFor();
  await review(page);
  await page.getByText("New problems").waitFor();
  assert.ok(await page.getByRole("button", { name: /^Write to/ }).isDisabled());
  await page.getByLabel(/Write although/).check();
  assert.ok(await page.getByRole("button", { name: /^Write to/ }).isEnabled());
  await page.getByRole("button", { name: "Undo general.architecture" }).click();
  await page.getByText("1 staged change", { exact: true }).waitFor();
  await page.getByText("New problems").waitFor({ state: "detached" });
  assert.match(await page.locator("nav .badge").innerText(), /1/);
  await page.context().close();
  await server.stop();
});

test("a key is added, and saved in a copy", async () => {
  const { copy, server, page, faults } = await editing("original.gguf");
  await visit(page, `${server.base}#/0/metadata`);
  await page.getByRole("button", { name: "Add key" }).click();
  await page.getByLabel("Key", { exact: true }).fill("general.description");
  await page.getByRole("textbox", { name: "Value" }).fill("A description");
  await page.getByRole("button", { name: "Stage" }).click();
  await review(page);
  await page.getByLabel("Name of the copy").fill("described.gguf");
  await page.getByRole("button", { name: "Save as copy" }).click();
  await page.locator(".saved").waitFor();
  assert.ok(JSON.stringify(keysOf(path.join(at, "described.gguf"))).includes("A description"));
  assert.ok(!JSON.stringify(keysOf(copy)).includes("A description"));
  assert.deepEqual(faults, []);
  await page.context().close();
  await server.stop();
});

test("a copy is beside the model and replaces nothing", async () => {
  const { server } = await editing("kept.gguf");
  for (const copy of ["kept.gguf", "../outside.gguf", "/tmp/outside.gguf", "no-extension", ".."]) {
    const response = await fetch(`${server.base}api/1/models/0/edit`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ preview: false, copy, set: [{ key: "general.name", type: null, value: "x" }] }),
    });
    assert.ok(response.status >= 400 && response.status < 500, `${copy}: ${response.status}`);
  }
  assert.ok(!existsSync(path.join(at, "../outside.gguf")));
  await server.stop();
});

test("the edited chat template is saved", async () => {
  const { copy, server, page } = await editing("template.gguf");
  await visit(page, `${server.base}#/0/tokenizer?tab=template`);
  await page.getByLabel("Template source").fill("{% for m in messages %}{{ m.content }}{% endfor %}");
  await page.getByRole("button", { name: "Stage this template" }).click();
  await review(page);
  await page.locator(".changes .after").first().waitFor();
  await page.getByRole("button", { name: /^Write to/ }).click();
  await page.locator(".saved").waitFor();
  assert.ok(JSON.stringify(keysOf(copy)).includes("{{ m.content }}"));
  await settled(page);
  await page.context().close();
  await server.stop();
});

test("a reload with staged changes asks first", async () => {
  const { server, page } = await editing("reload.gguf");
  await toKey(page, server, "general.name");
  await page.getByLabel("New value").fill("Other");
  await page.getByRole("button", { name: "Stage" }).click();
  await page.getByText("1 staged change").waitFor();
  const asked = new Promise<string>((resolve) => page.once("dialog", (dialog) => resolve(dialog.type())));
  void page.reload().catch(() => undefined);
  assert.equal(await asked, "beforeunload");
  await page.context().close();
  await server.stop();
});

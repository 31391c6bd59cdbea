// axe finds no violation in any state, at three widths and in both color schemes, nor in reports.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { accessible, fits, launch, visit } from "./browser";
import { folder, models, run, type Server, serve } from "./server";
import { VIEWS } from "./states";

let browser: Browser;
let server: Server;
let at: string;
let made: { f16: string; q4: string };
before(async () => {
  at = folder();
  made = models(at);
  server = await serve(made.q4, "--reference", made.f16);
  browser = await launch();
});
after(async () => {
  await browser.close();
  await server.stop();
});

/** Opens what appears on demand, and returns the names of those states. */
const OPENED: Record<string, (page: Page) => Promise<void>> = {
  palette: async (page) => {
    await page.keyboard.press("Control+K");
    await page.locator("dialog[open] input").fill("attn");
    await page.locator(".palette-list li").first().waitFor();
  },
  shortcuts: async (page) => {
    await page.keyboard.press("?");
    await page.locator("dialog[open]").waitFor();
  },
  edit: async (page) => {
    await page.goto(`${server.base}#/0/metadata?key=1`);
    await page.getByRole("button", { name: "Edit" }).first().click();
  },
};

for (const scheme of ["light", "dark"] as const) {
  for (const width of [390, 1024, 1440]) {
    test(`every state at ${width} pixels, ${scheme}`, async () => {
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme });
      const page = await context.newPage();
      const keys = (await server.api("models/0/keys?search=tokenizer.ggml.tokens")) as { keys: { n: number }[] };
      for (const [name, hash] of Object.entries(VIEWS)) {
        await visit(page, server.base + hash.replace("ARRAY", String(keys.keys[0]?.n)));
        await accessible(page, `${name}, ${width} pixels, ${scheme}`);
      }
      for (const [name, open] of Object.entries(OPENED)) {
        await visit(page, server.base);
        await open(page);
        await accessible(page, `${name}, ${width} pixels, ${scheme}`);
      }
      await context.close();
    });
  }
}

test("reports", async () => {
  const file = (name: string) => path.join(at, name);
  const pages = [file("one.html"), file("two.html"), file("errors.html"), file("quality.html")];
  run("view", made.q4, "--export", file("one.html"));
  run("view", made.f16, made.q4, "--export", file("two.html"));
  run("view", made.q4, "--reference", made.f16, "--export", file("errors.html"));
  const text = file("text.txt");
  writeFileSync(text, "In the beginning God created the heaven and the earth. ".repeat(60));
  run("quality", made.f16, "-f", text, "--types", "q8_0,q4_k_m", "--no-speed", "-c", "64", "-o", file("quality.html"));
  for (const scheme of ["light", "dark"] as const) {
    for (const width of [390, 1024, 1440]) {
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme });
      const page = await context.newPage();
      for (const shown of pages) {
        await page.goto(pathToFileURL(shown).href);
        await fits(page, `${path.basename(shown)} at ${width} pixels`);
        await accessible(page, `${path.basename(shown)}, ${width} pixels, ${scheme}`);
        const meta = await page.locator('meta[property="og:title"], meta[name="description"]').count();
        assert.equal(meta, 2, `${shown} has a card for shared links`);
      }
      await context.close();
    }
  }
});

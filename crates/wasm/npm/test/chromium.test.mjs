// The tests in Chromium; CHROMIUM names the program.
import { test } from "node:test";
import { chromium } from "playwright-core";
import { cases } from "./cases.js";
import { files } from "./files.mjs";
import { serve } from "./server.mjs";

const { folder, expected } = files();
const base = await serve(folder);
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
test.after(() => browser.close());
const page = await browser.newPage();
await page.goto(base);
for (const name of Object.keys(cases)) {
  test(name, async () => {
    const fault = await page.evaluate(
      async ({ name, base, expected }) => {
        const kit = await import(`${base}/package/index.js`);
        const { cases } = await import(`${base}/test/cases.js`);
        const bytes = new Uint8Array(await (await fetch(`${base}/whole/tiny.gguf`)).arrayBuffer());
        try {
          await cases[name]({ kit, base, bytes, expected });
        } catch (error) {
          return String(error.stack ?? error);
        }
      },
      { name, base, expected },
    );
    if (fault) throw new Error(fault);
  });
}

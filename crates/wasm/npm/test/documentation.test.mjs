// Runs the examples of the documentation. A comment after `console.log(...)` is the output, with spaces for line breaks.
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { built, files } from "./files.mjs";
import { serve } from "./server.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const { folder } = files();
const base = await serve(folder);
for (const page of ["../README.md", "../../../../docs/wasm.md"]) {
  const blocks = readFileSync(path.join(here, page), "utf8").split("```js\n").slice(1);
  assert.ok(blocks.length > 0, page);
  for (const [i, block] of blocks.entries()) {
    test(`${path.basename(page)}, example ${i + 1}`, async () => {
      const [code] = block.split("```");
      const script = code
        .replaceAll('"gguf-kit-wasm"', JSON.stringify(pathToFileURL(path.join(built, "index.js")).href))
        .replaceAll("https://example.com/", `${base}/ranges/`);
      const file = path.join(folder, `example-${path.basename(page)}-${i}.mjs`);
      writeFileSync(file, script);
      const { stdout } = await promisify(execFile)(process.execPath, [file]);
      const shown = [...code.matchAll(/console\.log\(.*\); \/\/ (.*)/g)].map(([, output]) => output);
      assert.equal(words(stdout), words(shown.join(" ")));
    });
  }
}

function words(text) {
  return text.split(/\s+/).filter(Boolean).join(" ");
}

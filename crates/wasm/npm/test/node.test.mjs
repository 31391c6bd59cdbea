// The tests in Node.
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import path from "node:path";
import { cases } from "./cases.js";
import { built, files } from "./files.mjs";
import { serve } from "./server.mjs";

const { folder, bytes, expected } = files();
const base = await serve(folder);
const kit = await import(pathToFileURL(path.join(built, "index.js")).href);
for (const [name, run] of Object.entries(cases)) {
  test(name, () => run({ kit, base, bytes: new Uint8Array(bytes), expected }));
}

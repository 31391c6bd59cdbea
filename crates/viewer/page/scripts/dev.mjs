// Rebuilds the page on every change and serves it with the API of a running `gguf view`.
//   node scripts/dev.mjs URL       (the first line that `gguf view` printed)
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "./build.mjs";
import { proxy } from "./proxy.mjs";

const base = process.argv[2];
if (!base) {
  console.error("usage: npm run dev -- URL, the first line that `gguf view MODEL --no-open` prints");
  process.exit(2);
}
const dist = path.join(path.dirname(fileURLToPath(import.meta.url)), "../../dist");
await build(dist, true);
console.log((await proxy(base, dist)).base);

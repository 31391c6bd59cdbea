// Runs test/*.test.ts in Node, with Chromium and `gguf view`.
//   GGUF=target/debug/gguf CHROMIUM=/usr/bin/chromium node scripts/test.mjs [SUBSTRING OF A FILE NAME]
// SHOTS=FOLDER writes screenshots of every view.
import { spawnSync } from "node:child_process";
import { readdir, rm } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const page = path.join(path.dirname(fileURLToPath(import.meta.url)), "..");
const filter = process.argv[2] ?? "";
const names = (await readdir(path.join(page, "test"))).filter(
  (name) => name.endsWith(".test.ts") && name.includes(filter),
);
// Below node_modules, so that imports of packages resolve.
const out = path.join(page, "node_modules/.test");
await rm(out, { recursive: true, force: true });
await build({
  absWorkingDir: page,
  entryPoints: names.map((name) => `test/${name}`),
  outdir: out,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  platform: "node",
  format: "esm",
  packages: "external",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});
const files = names.map((name) => path.join(out, name.replace(/ts$/, "mjs")));
const { status } = spawnSync(process.execPath, ["--test", "--test-concurrency=1", ...files], {
  stdio: "inherit",
  cwd: page,
});
process.exitCode = status ?? 1;

// Checks formatting, types, and that ../dist is up to date. Run `npm ci` first.
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "./build.mjs";

const page = path.join(path.dirname(fileURLToPath(import.meta.url)), "..");
execFileSync(path.join(page, "node_modules/.bin/prettier"), ["--check", "--log-level", "warn", "."], {
  cwd: page,
  stdio: "inherit",
});
execFileSync(path.join(page, "node_modules/.bin/tsc"), ["--noEmit"], { cwd: page, stdio: "inherit" });

const fresh = await mkdtemp(path.join(tmpdir(), "gguf-page-"));
try {
  await build(fresh);
  const dist = path.join(page, "../dist");
  const names = new Set([...(await readdir(fresh)), ...(await readdir(dist))]);
  const stale = [];
  for (const name of names) {
    const [a, b] = await Promise.all(
      [fresh, dist].map((folder) => readFile(path.join(folder, name)).catch(() => null)),
    );
    if (!a || !b || !a.equals(b)) stale.push(name);
  }
  if (stale.length) {
    console.error(`crates/viewer/dist is out of date: ${stale.sort().join(", ")}`);
    console.error("run `npm run build` in crates/viewer/page and commit the result");
    process.exitCode = 1;
  } else {
    console.log(`crates/viewer/dist is up to date: ${[...names].sort().join(", ")}`);
  }
} finally {
  await rm(fresh, { recursive: true });
}

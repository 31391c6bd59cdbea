// Format, types, and that ../dist is what the sources make, byte by byte. Needs `npm ci` before.
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
  const other = [];
  for (const name of names) {
    const [a, b] = await Promise.all(
      [fresh, dist].map((folder) => readFile(path.join(folder, name)).catch(() => null)),
    );
    if (!a || !b || !a.equals(b)) other.push(name);
  }
  if (other.length) {
    console.error(`crates/viewer/dist is not what the sources make: ${other.sort().join(", ")}`);
    console.error("run `npm run build` in crates/viewer/page and commit the result");
    process.exitCode = 1;
  } else {
    console.log(`crates/viewer/dist is what the sources make: ${[...names].sort().join(", ")}`);
  }
} finally {
  await rm(fresh, { recursive: true });
}

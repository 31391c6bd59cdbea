// Builds the npm package in target/npm/gguf-kit-wasm: compiles the crate, generates the glue code, shrinks the module and
// compiles the TypeScript. Run `npm ci` first. The version of the program wasm-bindgen is that of the crate.
import { execFileSync } from "node:child_process";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const source = path.join(path.dirname(fileURLToPath(import.meta.url)), "..");
const root = path.join(source, "../../..");
const target = process.env.CARGO_TARGET_DIR ?? path.join(root, "target");
/** Folder of the built package. */
export const built = path.join(target, "npm/gguf-kit-wasm");

const run = (program, ...words) => execFileSync(program, words, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
const tool = (name) => path.join(source, "node_modules/.bin", name);

/** Returns the program wasm-bindgen of this version, and installs it if it is missing. */
function bindgen(version) {
  const folder = path.join(target, `wasm-bindgen-${version}`);
  const program = path.join(folder, "bin/wasm-bindgen");
  for (const candidate of [program, "wasm-bindgen"]) {
    try {
      if (
        execFileSync(candidate, ["--version"], { encoding: "utf8", stdio: "pipe" }).trim() === `wasm-bindgen ${version}`
      )
        return candidate;
    } catch {
      // It is not there.
    }
  }
  // The test runner, a default feature, needs a web driver.
  run(
    "cargo",
    "install",
    "wasm-bindgen-cli",
    "--version",
    version,
    "--debug",
    "--no-default-features",
    "--quiet",
    "--root",
    folder,
  );
  return program;
}

const manifest = await readFile(path.join(root, "Cargo.toml"), "utf8");
const [, version] = /^version = "(.*)"$/m.exec(manifest);
const [, bindgenVersion] = /^wasm-bindgen = "=(.*)"$/m.exec(manifest);

const triple = "wasm32-unknown-unknown";
run("cargo", "build", "--quiet", "--profile", "wasm", "--target", triple, "-p", "gguf-wasm");
const stage = path.join(target, "npm/stage");
await rm(stage, { recursive: true, force: true });
const module = path.join(target, triple, "wasm/gguf_wasm.wasm");
run(bindgen(bindgenVersion), "--target", "web", "--omit-default-module-path", "--out-dir", stage, module);
await cp(path.join(source, "src"), stage, { recursive: true });
await cp(path.join(source, "tsconfig.json"), path.join(stage, "tsconfig.json"));

await rm(built, { recursive: true, force: true });
await mkdir(built, { recursive: true });
run(tool("tsc"), "--project", stage, "--outDir", built);
const name = "gguf_wasm_bg.wasm";
run(
  tool("wasm-opt"),
  "-Oz",
  "--strip-debug",
  "--strip-producers",
  path.join(stage, name),
  "-o",
  path.join(built, name),
);
for (const name of ["gguf_wasm.js", "gguf_wasm.d.ts"]) await cp(path.join(stage, name), path.join(built, name));
await cp(path.join(source, "README.md"), path.join(built, "README.md"));
for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) await cp(path.join(root, name), path.join(built, name));
const {
  private: _,
  scripts,
  devDependencies,
  ...fields
} = JSON.parse(await readFile(path.join(source, "package.json"), "utf8"));
await writeFile(path.join(built, "package.json"), `${JSON.stringify({ ...fields, version }, null, 2)}\n`);
console.log(built);

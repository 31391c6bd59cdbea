// Builds src into ../dist, which the binary embeds. Builds are reproducible.
//   node scripts/build.mjs [--out FOLDER]
import { context } from "esbuild";
import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const page = path.join(path.dirname(fileURLToPath(import.meta.url)), "..");

/** Empties a folder and builds the page into it. */
export async function build(out, watch = false) {
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  const bundler = await context({
    absWorkingDir: page,
    entryPoints: { app: "src/main.tsx" },
    outdir: out,
    bundle: true,
    format: "esm",
    // Code that the first view does not need is loaded later.
    splitting: true,
    target: ["es2022"],
    minify: true,
    metafile: true,
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "warning",
  });
  const { metafile } = await bundler.rebuild();
  await cp(path.join(page, "index.html"), path.join(out, "index.html"));
  await cp(path.join(page, "src/icon.svg"), path.join(out, "icon.svg"));
  await writeFile(path.join(out, "licences.txt"), await licences(metafile));
  if (watch) await bundler.watch();
  else await bundler.dispose();
}

/** Returns the license texts of all bundled packages. */
async function licences(metafile) {
  const packages = new Set();
  for (const input of Object.keys(metafile.inputs)) {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1];
    if (!name) continue;
    packages.add(name);
    // A package may bundle its own dependencies.
    const { dependencies = {} } = JSON.parse(
      await readFile(path.join(page, "node_modules", name, "package.json"), "utf8"),
    );
    for (const inner of Object.keys(dependencies)) packages.add(inner);
  }
  let text = "The page of `gguf view` contains these packages.\n";
  for (const name of [...packages].sort()) {
    const folder = path.join(page, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((file) => /^licen[cs]e/i.test(file));
    if (!file) throw new Error(`${name} has no license file`);
    const terms = (await readFile(path.join(folder, file), "utf8")).trim();
    text += `\n== ${name} ${version} (${license})\n\n${terms}\n`;
  }
  return text;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const at = process.argv.indexOf("--out");
  const out = at < 0 ? path.join(page, "../dist") : path.resolve(process.argv[at + 1]);
  await build(out);
}

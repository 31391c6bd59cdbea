// The types of the package hold for a program in strict TypeScript.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { built } from "./files.mjs";

const program = `
import { check, type Finding, GgufArray, GgufError, init, open } from "gguf-kit-wasm";

export async function describe(file: File, wasm: Response): Promise<string> {
  await init(wasm);
  using model = await open(file, { maxHeaderBytes: 1e6, signal: AbortSignal.timeout(1000) });
  const tokens = model.metadata.get("tokenizer.ggml.tokens");
  const first = tokens instanceof GgufArray ? tokens.at(0) : undefined;
  using tokenizer = model.tokenizer({ compat: "llama.cpp" });
  const ids: Uint32Array = tokenizer.encode(String(first), { addSpecial: false });
  const prompt: string = model.renderChat([{ role: "user", content: "a" }], { engine: "llama.cpp", tools: [] });
  const findings: Finding[] = (await check(file)).findings;
  return [model.tensors[0]?.shape[0], tokenizer.decode(ids), prompt, findings[0]?.severity === "error"].join();
}

export function offset(error: unknown): number | null {
  // @ts-expect-error: code is a string.
  if (error instanceof GgufError && error.code === 1) return null;
  return error instanceof GgufError ? error.offset : null;
}
`;

test("a program in strict TypeScript", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "gguf-npm-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const compilerOptions = {
    target: "ES2022",
    module: "ES2022",
    moduleResolution: "bundler",
    lib: ["ES2022", "ESNext.Disposable", "DOM"],
    types: [],
    strict: true,
    noEmit: true,
    paths: { "gguf-kit-wasm": [path.join(built, "index.d.ts")] },
  };
  writeFileSync(path.join(folder, "program.ts"), program);
  writeFileSync(path.join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }));
  const tsc = path.join(path.dirname(fileURLToPath(import.meta.url)), "../node_modules/.bin/tsc");
  try {
    execFileSync(tsc, ["--project", folder], { encoding: "utf8" });
  } catch (error) {
    throw new Error(error.stdout);
  }
});

// Runs `gguf view` and other commands.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { proxy } from "../scripts/proxy.mjs";

const repository = path.resolve("../../..");
export const gguf = path.resolve(process.env.GGUF ?? path.join(repository, "target/debug/gguf"));
export const checkpoint = path.join(repository, "testdata/Tiny-KJV-Llama-4M");

/** Runs a command and returns its output. */
export function run(...words: string[]): string {
  return execFileSync(gguf, words, { encoding: "utf8", maxBuffer: 1 << 30, stdio: ["ignore", "pipe", "pipe"] });
}

/** Creates a folder that is deleted on exit. */
export function folder(): string {
  const made = mkdtempSync(path.join(tmpdir(), "gguf-view-"));
  process.on("exit", () => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Converts the demo checkpoint to F16 and quantizes it to Q4_K_M. */
export function models(at: string): { f16: string; q4: string } {
  const f16 = path.join(at, "tiny-f16.gguf");
  const q4 = path.join(at, "tiny-q4_k_m.gguf");
  run("convert", checkpoint, "-o", f16, "--outtype", "f16");
  run("quantize", f16, q4, "q4_k_m");
  return { f16, q4 };
}

export interface Server {
  /** URL of the page, including the secret. */
  base: string;
  api: (path: string) => Promise<unknown>;
  /** Stops the server like Ctrl-C. */
  stop: () => Promise<void>;
}

/** Starts the server. Its first line of output is the URL. */
export async function serve(...words: string[]): Promise<Server> {
  const child = spawn(gguf, ["view", ...words, "--no-open"], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  process.on("exit", () => child.kill("SIGKILL"));
  const base = await new Promise<string>((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (part: Buffer) => {
      text += part.toString();
      const [line, rest] = text.split("\n", 2);
      if (line && rest !== undefined) resolve(line.trim());
    });
    void ended.then(() => reject(new Error("gguf view exited before it printed a URL")));
  });
  // DIST=FOLDER serves the page from a folder instead of the binary.
  const other = process.env.DIST ? await proxy(base, path.resolve(process.env.DIST)) : null;
  return {
    base: other?.base ?? base,
    api: async (path) => {
      const response = await fetch(`${base}api/1/${path}`);
      return response.json();
    },
    stop: async () => {
      other?.stop();
      child.kill("SIGINT");
      await ended;
    },
  };
}

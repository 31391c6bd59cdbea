// `gguf view` of some models, and the command line beside it.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { proxy } from "../scripts/proxy.mjs";

const repository = path.resolve("../../..");
export const gguf = path.resolve(process.env.GGUF ?? path.join(repository, "target/debug/gguf"));
export const checkpoint = path.join(repository, "crates/demo/Tiny-KJV-Llama-4M");

/** What the command prints. */
export function run(...words: string[]): string {
  return execFileSync(gguf, words, { encoding: "utf8", maxBuffer: 1 << 30, stdio: ["ignore", "pipe", "pipe"] });
}

/** A folder that is gone when the tests of a file are. */
export function folder(): string {
  const made = mkdtempSync(path.join(tmpdir(), "gguf-view-"));
  process.on("exit", () => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** The demonstration model as F16, and a mix of it. */
export function models(at: string): { f16: string; q4: string } {
  const f16 = path.join(at, "tiny-f16.gguf");
  const q4 = path.join(at, "tiny-q4_k_m.gguf");
  run("convert", checkpoint, "-o", f16, "--outtype", "f16");
  run("quantize", f16, q4, "q4_k_m");
  return { f16, q4 };
}

export interface Server {
  /** The address of the page, with its secret. */
  base: string;
  api: (path: string) => Promise<unknown>;
  /** Ends it as Ctrl-C does. */
  stop: () => Promise<void>;
}

/** Starts the server; gives its address, which is the first line that it prints. */
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
    void ended.then(() => reject(new Error("gguf view ended before it printed an address")));
  });
  // With DIST=FOLDER the page comes from there, and not from what the program embeds.
  const other = process.env.DIST ? await proxy(base, path.resolve(process.env.DIST)) : null;
  return {
    base: other?.base ?? base,
    api: async (path) => {
      const answer = await fetch(`${base}api/1/${path}`);
      return answer.json();
    },
    stop: async () => {
      other?.stop();
      child.kill("SIGINT");
      await ended;
    },
  };
}

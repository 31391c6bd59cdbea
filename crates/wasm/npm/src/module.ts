// The WebAssembly module.
import { initSync, setSandbox } from "./gguf_wasm.js";
import { GgufError } from "./error.js";
import { sandbox } from "./sandbox.js";

/** Where the module comes from. */
export type ModuleSource = string | URL | Response | BufferSource | WebAssembly.Module;

let ready: Promise<void> | undefined;

/**
 * Loads the WebAssembly module. The other functions do so by themselves; call it before them to load the module from another
 * place than beside this file.
 */
export function init(source: ModuleSource = new URL("gguf_wasm_bg.wasm", import.meta.url)): Promise<void> {
  ready ??= start(source).catch((cause: unknown) => {
    ready = undefined;
    const help = "serve gguf_wasm_bg.wasm beside the package, or call init() with its URL or bytes";
    throw new GgufError(
      { code: "environment", fault: "environment", message: "cannot load the WebAssembly module", help },
      cause,
    );
  });
  return ready;
}

async function start(source: ModuleSource): Promise<void> {
  const module = await compile(source);
  initSync({ module });
  setSandbox(sandbox(module));
}

async function compile(source: ModuleSource): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source as BufferSource);
  let response = source as Response;
  if (!(source instanceof Response)) {
    const url = new URL(source as string | URL, import.meta.url);
    if (url.protocol === "file:") {
      // A variable, so that bundlers for browsers do not look for it.
      const files = "node:fs/promises";
      const { readFile } = (await import(/* webpackIgnore: true */ /* @vite-ignore */ files)) as {
        readFile(url: URL): Promise<Uint8Array<ArrayBuffer>>;
      };
      return WebAssembly.compile(await readFile(url));
    }
    response = await fetch(url);
  }
  if (!response.ok) throw new Error(`the server responded with status ${response.status}`);
  const isTyped = response.headers.get("content-type")?.startsWith("application/wasm");
  return isTyped ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer());
}

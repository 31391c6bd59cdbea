// Chat templates are untrusted programs. Each is rendered in an instance of its own, which has no imports, and whose memory
// and stack end with it.

/** Exports of an instance that the sandbox calls. */
interface Exports {
  memory: WebAssembly.Memory;
  requestBuffer(length: number): number;
  serve(): number;
  responseLength(): number;
}

/** Returns a function that serves a request in a new instance of the module. It throws if the instance fails. */
export function sandbox(module: WebAssembly.Module): (request: Uint8Array) => Uint8Array {
  const imports: Record<string, Record<string, () => never>> = {};
  for (const { module: space, name } of WebAssembly.Module.imports(module)) {
    (imports[space] ??= {})[name] = () => {
      throw new Error("the sandbox has no imports");
    };
  }
  return (request) => {
    const exports = new WebAssembly.Instance(module, imports).exports as unknown as Exports;
    const start = exports.requestBuffer(request.length) >>> 0;
    new Uint8Array(exports.memory.buffer).set(request, start);
    const response = exports.serve() >>> 0;
    return new Uint8Array(exports.memory.buffer).slice(response, response + (exports.responseLength() >>> 0));
  };
}

// Opening and checking files, of which only the header is read.
import type { Check } from "./check.js";
import { call, GgufError } from "./error.js";
import { Header } from "./gguf_wasm.js";
import { Model } from "./model.js";
import { init } from "./module.js";
import { type Options, readerOf, type Source } from "./source.js";

/**
 * Opens a model: reads its header, and rejects a file that breaks the format.
 *
 * @throws GgufError with the first rule that the file violates, or if it cannot be read.
 */
export async function open(source: Source, options: Options = {}): Promise<Model> {
  const { name, header } = await read(source, options);
  try {
    return new Model(name, header);
  } catch (error) {
    header.free();
    throw error;
  }
}

/**
 * Checks a file, valid or not, as `gguf check --no-data --json` does, and returns its document.
 *
 * @throws GgufError if the file cannot be read.
 */
export async function check(source: Source, options: Options = {}): Promise<Check> {
  const { name, header } = await read(source, options);
  try {
    return JSON.parse(call(() => header.check(name))) as Check;
  } finally {
    header.free();
  }
}

/** Reads until the header is complete or invalid. */
async function read(source: Source, options: Options): Promise<{ name: string; header: Header }> {
  await init();
  const reader = await readerOf(source, options);
  const header = new Header(reader.length, options.maxHeaderBytes);
  try {
    let start = 0;
    for (let end; (end = call(() => header.wanted())) !== undefined; start = end) {
      let missing = end - start;
      await reader.read(start, end, (bytes) => {
        missing -= bytes.length;
        header.push(bytes);
      });
      if (missing !== 0) {
        const message = `cannot read ${reader.name || "the file"}: bytes ${start} to ${end} are missing`;
        throw new GgufError({ code: "environment", fault: "environment", message, help: "read it again" });
      }
    }
  } catch (error) {
    header.free();
    throw error;
  } finally {
    reader.close?.();
  }
  return { name: options.name ?? reader.name, header };
}

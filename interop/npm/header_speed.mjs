#!/usr/bin/env node
// Parses a header with the npm package and with @huggingface/gguf, in turns, and prints the medians of times and ratios.
//
//   node interop/npm/header_speed.mjs [MODEL.gguf] [--pairs N]
//
// Both read from the same function `fetch`, which serves ranges from memory. Without a model the header is made up: 262,144
// tokens with scores and types. Needs `npm ci` and `npm run build` in crates/wasm/npm.
import { openSync, readSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "../..");
const ours = await import(pathToFileURL(path.join(root, "target/npm/gguf-kit-wasm/index.js")).href);
const require = createRequire(path.join(root, "crates/wasm/npm/package.json"));
const theirs = await import(pathToFileURL(require.resolve("@huggingface/gguf").replace(/\.js$/, ".mjs")).href);

const { values, positionals } = parseArgs({ allowPositionals: true, options: { pairs: { type: "string", default: "15" } } });
const [model] = positionals;
const { bytes, length } = model ? startOf(model) : synthetic();

/** Serves ranges of the file. */
async function send(_, { headers }) {
  const [, start, end] = /bytes=(\d+)-(\d+)/.exec(new Headers(headers).get("range"));
  const last = Math.min(Number(end), length - 1);
  const body = bytes.subarray(Number(start), last + 1);
  return new Response(body, { status: 206, headers: { "content-range": `bytes ${start}-${last}/${length}` } });
}

const url = "https://example.invalid/model.gguf";
const runs = {
  "metadata and tensors, arrays on demand": async () => {
    const model = await ours.open(url, { fetch: send });
    const found = [model.metadata, model.tensors];
    model.free();
    return found;
  },
  "... and the vocabulary as strings": async () => {
    const model = await ours.open(url, { fetch: send });
    const found = [model.metadata, model.tensors, model.metadata.get("tokenizer.ggml.tokens").toArray()];
    model.free();
    return found;
  },
  "... and all arrays as JavaScript values": async () => {
    const model = await ours.open(url, { fetch: send });
    const arrays = [...model.metadata.values()].map((value) => (value instanceof ours.GgufArray ? value.toArray() : value));
    const found = [arrays, model.tensors];
    model.free();
    return found;
  },
};
const baseline = () => theirs.gguf(url, { fetch: send });

const tokens = (await baseline()).metadata["tokenizer.ggml.tokens"];
const own = (await ours.open(url, { fetch: send })).metadata.get("tokenizer.ggml.tokens").toArray();
// @huggingface/gguf loses U+FEFF at the start of a string.
const differing = tokens.filter((token, i) => token !== own[i] && token !== own[i].slice(1)).length;
const cut = tokens.filter((token, i) => token !== own[i]).length - differing;
if (tokens.length !== own.length || differing) throw new Error(`${differing} of ${tokens.length} tokens differ`);
console.log(`${model ? path.basename(model) : "made up"}: ${tokens.length} tokens, equal in both packages but for ${cut} that start with U+FEFF`);

const times = Object.fromEntries([...Object.keys(runs), "theirs"].map((name) => [name, []]));
for (let pair = -3; pair < Number(values.pairs); pair++) {
  for (const [name, run] of [...Object.entries(runs), ["theirs", baseline]]) {
    globalThis.gc?.();
    const start = performance.now();
    await run();
    // The first rounds compile the code.
    if (pair >= 0) times[name].push(performance.now() - start);
  }
}
console.log(`@huggingface/gguf: ${median(times.theirs).toFixed(1)} ms, the median of ${values.pairs}`);
for (const name of Object.keys(runs)) {
  const ratios = times[name].map((time, i) => times.theirs[i] / time);
  console.log(`gguf-kit-wasm, ${name}: ${median(times[name]).toFixed(1)} ms, ${median(ratios).toFixed(1)} times as fast`);
}

function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
}

/** Reads the start of a file, which has the header. */
function startOf(file) {
  const length = statSync(file).size;
  const bytes = new Uint8Array(Math.min(length, 64 << 20));
  readSync(openSync(file), bytes, 0, bytes.length, 0);
  return { bytes, length };
}

/** Makes up a header. */
function synthetic() {
  const count = 262144;
  const parts = [];
  const u32 = (value) => parts.push(Buffer.from(Uint32Array.of(value).buffer));
  const u64 = (value) => parts.push(Buffer.from(BigUint64Array.of(BigInt(value)).buffer));
  const text = (value) => {
    const encoded = Buffer.from(value);
    u64(encoded.length);
    parts.push(encoded);
  };
  const array = (key, type) => {
    text(key);
    u32(9);
    u32(type);
    u64(count);
  };
  parts.push(Buffer.from("GGUF"));
  u32(3);
  u64(0);
  u64(5);
  text("general.architecture");
  u32(8);
  text("llama");
  text("tokenizer.ggml.model");
  u32(8);
  text("llama");
  array("tokenizer.ggml.tokens", 8);
  for (let i = 0; i < count; i++) text(`\u2581${(i * 2654435761) % 2 ** 32}`.slice(0, 2 + (i % 9)) + i.toString(36));
  array("tokenizer.ggml.scores", 6);
  parts.push(Buffer.from(Float32Array.from({ length: count }, (_, i) => -i).buffer));
  array("tokenizer.ggml.token_type", 5);
  parts.push(Buffer.from(new Int32Array(count).fill(1).buffer));
  const padding = -Buffer.concat(parts).length & 31;
  parts.push(Buffer.alloc(padding));
  const bytes = new Uint8Array(Buffer.concat(parts));
  return { bytes, length: bytes.length };
}

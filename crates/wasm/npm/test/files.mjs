// Files of the tests, and what the program says about them.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "../../../..");
const gguf = path.resolve(process.env.GGUF ?? path.join(root, "target/debug/gguf"));
/** Folder of the package. */
export const built = path.join(process.env.CARGO_TARGET_DIR ?? path.join(root, "target"), "npm/gguf-kit-wasm");

/** Runs the program; a failed check also has an output. */
function run(...words) {
  try {
    return execFileSync(gguf, words, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 30 });
  } catch (error) {
    if (error.stdout) return error.stdout;
    throw error;
  }
}

const json = (...words) => JSON.parse(run(...words, "--json"));

/** Writes the files, and returns their folder and the expected results. */
export function files() {
  const folder = mkdtempSync(path.join(tmpdir(), "gguf-npm-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const at = (name) => path.join(folder, name);
  const put = (name, bytes) => writeFileSync(at(name), bytes);

  run("convert", path.join(root, "testdata/Tiny-KJV-Llama-4M"), "-o", at("tiny.gguf"), "--outtype", "f16");
  const tiny = readFileSync(at("tiny.gguf"));
  const listed = json("inspect", at("tiny.gguf"));
  const dataLength = Math.max(...listed.tensors.map(({ offset, bytes }) => Math.ceil((offset + bytes) / 32) * 32));
  const dataStart = tiny.length - dataLength;
  put("magic.gguf", Buffer.concat([Buffer.from("GGUM"), tiny.subarray(4, 1000)]));
  put("cut.gguf", tiny.subarray(0, 5000));
  put("long.gguf", long());
  put("chat.gguf", chat());
  put("deep.gguf", chat({ deep: `{{ ${"(".repeat(20000)}1${")".repeat(20000)} }}` }));
  put("values.gguf", values());
  const hostile = process.env.GGUF_TEST_DATA && path.join(process.env.GGUF_TEST_DATA, "hostile");
  const names = hostile && existsSync(hostile) ? readdirSync(hostile).filter((name) => name.endsWith(".gguf")) : [];
  for (const name of names) put(name, readFileSync(path.join(hostile, name)));

  const check = (name) => ({ ...json("check", at(name), "--no-data"), file: name });
  const texts = ["In the beginning", "Ünïcode 你好 🤗", "a  b\n"];
  const messages = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "1 < 2 & 'x' 你好" },
  ];
  const prompt = (options) => {
    writeFileSync(at("messages.json"), JSON.stringify({ ...options.variables, messages }));
    const words = options.addGenerationPrompt === false ? ["--no-generation-prompt"] : [];
    const engine = options.engine ?? "transformers";
    return json("chat-template", at("chat.gguf"), "--messages", at("messages.json"), "--engine", engine, ...words)
      .prompt;
  };
  const prompts = [
    {},
    { addGenerationPrompt: false },
    { engine: "llama.cpp" },
    { variables: { enable_thinking: false } },
  ].map((options) => ({ messages, options, prompt: prompt(options) }));
  return {
    folder,
    bytes: tiny,
    expected: {
      format: { version: 3, byteOrder: "little", fileLength: tiny.length, dataStart },
      blockCount: listed.block_count,
      tensors: listed.tensors.map((tensor) => ({
        name: tensor.name,
        type: tensor.type,
        shape: tensor.shape,
        offset: dataStart + tensor.offset,
        byteLength: tensor.bytes,
      })),
      tokens: strings(tiny, "tokenizer.ggml.tokens"),
      longCount: 100000,
      longHeader: readFileSync(at("long.gguf")).length,
      checks: Object.fromEntries(
        ["tiny.gguf", "magic.gguf", "cut.gguf", "chat.gguf", ...names].map((name) => [name, check(name)]),
      ),
      ids: texts.map((text) => ({ text, ids: JSON.parse(run("tokenize", at("tiny.gguf"), "--ids", text)) })),
      prompts,
      hostile: names,
    },
  };
}

/** Reads an array of strings by a search for its key. */
function strings(bytes, key) {
  let at = bytes.indexOf(key) + key.length + 8;
  const count = Number(bytes.readBigUInt64LE(at));
  at += 8;
  return Array.from({ length: count }, () => {
    const length = Number(bytes.readBigUInt64LE(at));
    at += 8 + length;
    return bytes.toString("utf8", at - length, at);
  });
}

const u32 = (value) => Buffer.from(Uint32Array.of(value).buffer);
const u64 = (value) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
const text = (value) => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);
const data = (array) => Buffer.from(array.buffer);

/** Encodes a header without tensors; a value has a type and its bytes. */
function header(entries) {
  const parts = Object.entries(entries).flatMap(([key, [type, bytes]]) => [text(key), u32(type), bytes]);
  return Buffer.concat([Buffer.from("GGUF"), u32(3), u64(0), u64(Object.keys(entries).length), ...parts]);
}

const string = (value) => [8, text(value)];
const array = (type, count, bytes) => [9, Buffer.concat([u32(type), u64(count), bytes])];

/** A vocabulary of 2.9 MB. */
function long() {
  const tokens = Array.from({ length: 100000 }, (_, i) => text(`token number ${i}`));
  return header({
    "general.architecture": string("llama"),
    "tokenizer.ggml.tokens": array(8, tokens.length, Buffer.concat(tokens)),
  });
}

/** A model with several chat templates. */
function chat(more = {}) {
  const key = "tokenizer.chat_template";
  const named = {
    date: "{{ strftime_now('%Y-%m-%d') }} {{ n | default(3) }}",
    refuses: "{{ raise_exception('no') }}",
    broken: "{% if %}",
    fails: "{{ 1 + 'a' }}",
    endless: "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    ...more,
  };
  return header({
    "general.architecture": string("llama"),
    [key]: string(
      "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}" +
        "{% if enable_thinking is defined %}[{{ enable_thinking }}]{% endif %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
    ),
    ...Object.fromEntries(Object.entries(named).map(([name, template]) => [`${key}.${name}`, string(template)])),
  });
}

function values() {
  const max = 2n ** 53n - 1n;
  return header({
    u8: [0, data(Uint8Array.of(255))],
    i8: [1, data(Int8Array.of(-128))],
    u16: [2, data(Uint16Array.of(65535))],
    i16: [3, data(Int16Array.of(-32768))],
    u32: [4, data(Uint32Array.of(4294967295))],
    i32: [5, data(Int32Array.of(-2147483648))],
    f32: [6, data(Float32Array.of(0.5))],
    bool: [7, data(Uint8Array.of(1))],
    u64: [10, data(BigUint64Array.of(2n ** 64n - 1n))],
    i64: [11, data(BigInt64Array.of(-(2n ** 63n)))],
    f64: [12, data(Float64Array.of(0.1))],
    "small u64": [10, data(BigUint64Array.of(max))],
    "small i64": [11, data(BigInt64Array.of(-max))],
    text: [8, Buffer.concat([u64(10), Buffer.from("\ufeffä\u{1f917}"), Buffer.from([0xff])])],
    strings: array(
      8,
      5,
      Buffer.concat([text(""), text("\ufeffä"), text("\u{1f917}"), u64(2), Buffer.from([0xff, 0x78]), text("\0")]),
    ),
    i64s: array(11, 2, data(BigInt64Array.of(-1n, 2n))),
    bools: array(7, 2, data(Uint8Array.of(1, 0))),
    nested: array(
      9,
      2,
      Buffer.concat([u32(2), u64(2), data(Uint16Array.of(1, 2)), u32(2), u64(1), data(Uint16Array.of(3))]),
    ),
  });
}

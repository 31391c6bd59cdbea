#!/usr/bin/env node
// Compares the npm package with the program: findings, token ids, texts and prompts must be equal.
//
//   node interop/npm/compare.mjs GGUF_BINARY FILE|DIR... [--templates jinja.json] [--mutants N]
//
// Checks every GGUF file, tokenizes with every vocabulary, and renders the chat templates of the files and those of a list.
// With --mutants, changes N random bytes or lengths of headers, one at a time. Needs `npm ci` and `npm run build` in
// crates/wasm/npm.
import { execFileSync } from "node:child_process";
import { mkdtempSync, openAsBlob, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isDeepStrictEqual, parseArgs } from "node:util";

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "../..");
const kit = await import(pathToFileURL(path.join(root, "target/npm/gguf-kit-wasm/index.js")).href);

const options = { templates: { type: "string" }, mutants: { type: "string", default: "0" } };
const { values, positionals } = parseArgs({ allowPositionals: true, options });
const [binary, ...sources] = positionals;
const scratch = mkdtempSync(path.join(tmpdir(), "gguf-npm-"));
process.on("exit", () => rmSync(scratch, { recursive: true }));

const texts = [
  "Hello, world! It's 2026.\n\n  Two  spaces\tand tabs\r\n",
  "Ünïcödé 你好，世界 🤗🏽 한국어 עברית العربية हिन्दी ﷺ e\u0301",
  "<s>[INST] <|im_start|>user\nhi<|im_end|></s> <|endoftext|>",
  "def f(x):\n    return x ** 2  # 1234567890 0x1F\n\n\n\n",
  "",
  " ",
  "a".repeat(300),
];
const conversations = [
  { messages: [{ role: "user", content: "Hello" }] },
  {
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "1 < 2 & 'x'" },
      { role: "assistant", content: "Yes." },
      { role: "user", content: "Ünïcode 你好" },
    ],
    add_generation_prompt: false,
  },
  { messages: [{ role: "user", content: "q" }], tools: [{ type: "function", function: { name: "f", description: "d", parameters: {} } }] },
];

const counts = {};
const differences = [];

/** Counts a comparison, and notes a difference. */
function compare(kind, subject, ours, theirs) {
  counts[kind] = (counts[kind] ?? 0) + 1;
  if (isDeepStrictEqual(ours, theirs)) return;
  differences.push(`${kind}: ${subject}\n  package ${JSON.stringify(ours)}\n  program ${JSON.stringify(theirs)}`);
}

/** Runs the program; a failed run also has an output. */
function program(words, input) {
  try {
    return { text: execFileSync(binary, words, { encoding: "utf8", input, stdio: ["pipe", "pipe", "pipe"], maxBuffer: 1 << 30 }) };
  } catch (error) {
    return { text: error.stdout, failed: true };
  }
}

/** Returns the result of the package, or the message of a `GgufError`. Other errors are faults of the package. */
async function attempt(run) {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof kit.GgufError)) throw error;
    return { code: error.code };
  }
}

async function checkFile(file) {
  const { findings } = await kit.check(await openAsBlob(file), { name: path.basename(file) });
  const { text } = program(["check", "--json", "--no-data", file]);
  const theirs = JSON.parse(text).findings;
  // The package knows no other files, and not the stored graph of the architecture.
  compare("check", file, findings, theirs.filter((finding) => finding.code !== "graph-differs"));
}

async function tokenizeWith(file) {
  const model = await attempt(async () => kit.open(await openAsBlob(file)));
  if (!(model instanceof kit.Model)) return;
  for (const compat of ["own", "llama.cpp"]) {
    const tokenizer = await attempt(() => model.tokenizer({ compat }));
    const lines = texts.map((text) => `${JSON.stringify(text)}\n`).join("");
    const { text, failed } = program(["tokenize", file, "--stdin", "--jsonl", "--compat", compat], lines);
    compare("tokenizer", `${file} ${compat}`, !(tokenizer instanceof kit.Tokenizer), failed ?? false);
    if (!(tokenizer instanceof kit.Tokenizer) || failed) continue;
    const theirs = text.trim().split("\n").map((line) => JSON.parse(line));
    for (const [i, sample] of texts.entries()) {
      const ids = [...tokenizer.encode(sample)];
      compare("ids", `${file} ${compat} ${JSON.stringify(sample)}`, ids, theirs[i]);
      if (i > 2 || ids.length === 0) continue;
      const words = ["detokenize", file, "--json", "--special", "--compat", compat, JSON.stringify(ids)];
      compare("texts", `${file} ${compat}`, tokenizer.decode(ids, { special: true }), JSON.parse(program(words).text).text);
    }
    tokenizer.free();
  }
  if (model.chatTemplate() !== undefined) for (const request of conversations) await render(file, model, request);
  model.free();
}

async function render(file, model, { messages, ...variables }) {
  const request = path.join(scratch, "request.json");
  writeFileSync(request, JSON.stringify({ ...variables, messages }));
  for (const engine of ["transformers", "llama.cpp"]) {
    const options = { engine, variables, addGenerationPrompt: variables.add_generation_prompt ?? true };
    const ours = await attempt(() => model.renderChat(messages, options));
    const { text } = program(["chat-template", file, "--messages", request, "--engine", engine, "--json"]);
    const theirs = JSON.parse(text);
    compare("prompts", `${file} ${engine} ${model.chatTemplate()}`, ours, theirs.error ? { code: theirs.error.code } : theirs.prompt);
  }
}

/** Renders each template of a list, in a file of its own. */
async function renderList(list) {
  const { sample, cases } = JSON.parse(readFileSync(list, "utf8"));
  for (const { template } of cases) {
    const file = path.join(scratch, "template.gguf");
    writeFileSync(file, fileOf({ "general.architecture": "llama", "tokenizer.chat_template": template }));
    const model = await kit.open(await openAsBlob(file));
    await render(file, model, sample);
    model.free();
  }
}

/** Encodes a file with text values. */
function fileOf(entries) {
  const u64 = (value) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
  const text = (value) => [u64(Buffer.byteLength(value)), Buffer.from(value)];
  const pairs = Object.entries(entries);
  const parts = [Buffer.from("GGUF\x03\0\0\0"), u64(0), u64(pairs.length)];
  for (const [key, value] of pairs) parts.push(...text(key), Buffer.from([8, 0, 0, 0]), ...text(value));
  return Buffer.concat(parts);
}

/** Changes a byte or a length in the header of a file, and checks and opens the result. */
async function mutate(files, count) {
  let state = 1;
  // Numerical Recipes' generator: the same changes in each run.
  const random = (limit) => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) % limit;
  for (let i = 0; i < count; i++) {
    const file = files[random(files.length)];
    const bytes = new Uint8Array(readFileSync(file));
    if (bytes.length < 8) continue;
    const at = random(random(2) ? Math.min(bytes.length, 400) : bytes.length);
    bytes[at] = random(3) ? random(256) : [0, 1, 127, 128, 255][random(5)];
    const mutant = path.join(scratch, "mutant.gguf");
    writeFileSync(mutant, bytes);
    await checkFile(mutant);
    const opened = await attempt(() => kit.open(bytes));
    if (!(opened instanceof kit.Model)) continue;
    for (const value of opened.metadata.values()) if (value instanceof kit.GgufArray) value.toArray();
    const tokenizer = await attempt(() => opened.tokenizer());
    if (tokenizer instanceof kit.Tokenizer) {
      tokenizer.decode(tokenizer.encode(texts[2]));
      tokenizer.free();
    }
    await attempt(() => opened.renderChat(conversations[0].messages));
    opened.free();
  }
}

/** GGUF files below a path. The program checks the shards of a model together, the package each by itself. */
function filesIn(source) {
  if (!statSync(source).isDirectory()) return [source];
  const names = readdirSync(source, { recursive: true }).sort();
  return names.filter((name) => name.endsWith(".gguf") && !/-of-\d+\.gguf$/.test(name)).map((name) => path.join(source, name));
}

const files = sources.flatMap(filesIn);
for (const file of files) {
  await checkFile(file);
  await tokenizeWith(file);
}
if (values.templates) await renderList(values.templates);
await mutate(files.filter((file) => statSync(file).size < 1 << 20), Number(values.mutants));
for (const difference of differences.slice(0, 40)) console.log(difference);
const made = Object.entries(counts).map(([kind, count]) => `${count} ${kind}`);
console.log(`${files.length} files; compared ${made.join(", ")}; ${differences.length} differ`);
process.exitCode = differences.length ? 1 : 0;

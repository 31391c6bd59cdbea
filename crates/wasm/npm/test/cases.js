// Tests that run in Node and in Chromium. Each gets the package, the URL of the files, and their expected results.

/** Tests by name. */
export const cases = {
  async "a remote file by ranges"({ kit, base, expected }) {
    const model = await kit.open(`${base}/ranges/tiny.gguf`);
    equal(model.name, "tiny.gguf");
    equal(model.format, expected.format);
    equal(model.metadata.get("general.architecture"), "llama");
    equal(model.metadata.get("llama.block_count"), expected.blockCount);
    equal(model.valueType("llama.block_count"), "UINT32");
    equal(model.valueType("no such key"), undefined);
    equal(model.tensors, expected.tensors);
    const tokens = model.metadata.get("tokenizer.ggml.tokens");
    equal(
      [tokens.length, tokens.elementType, tokens.at(1), tokens.at(tokens.length)],
      [2048, "STRING", "<s>", undefined],
    );
    equal(tokens.toArray(), expected.tokens);
    equal(tokens.slice(3, 5), expected.tokens.slice(3, 5));
    equal([...tokens].length, 2048);
    const scores = model.metadata.get("tokenizer.ggml.scores").slice(0, 2);
    equal([scores.constructor.name, scores.length], ["Float32Array", 2]);
    model.free();
    // Only the header was sent.
    const sent = await log(base, "tiny.gguf");
    equal(sent, [{ method: "GET", range: "bytes=0-262143", bytes: 262144 }]);
  },

  async "a long header takes several requests"({ kit, base, expected }) {
    const model = await kit.open(`${base}/ranges/long.gguf`);
    equal(model.metadata.get("tokenizer.ggml.tokens").length, expected.longCount);
    model.free();
    const sent = await log(base, "long.gguf");
    const bytes = sent.reduce((sum, { bytes }) => sum + bytes, 0);
    ok(sent.length <= 6, `${sent.length} requests`);
    ok(bytes <= expected.longHeader * 1.5, `${bytes} of ${expected.longHeader} bytes`);
  },

  async "servers without ranges, without Content-Range, and with other faults"({ kit, base, expected }) {
    for (const kind of ["whole", "hidden"]) {
      const model = await kit.open(`${base}/${kind}/tiny.gguf`);
      equal(model.format, expected.format, kind);
      model.free();
    }
    for (const [kind, code, text] of [
      ["missing", "environment", "status 404"],
      ["endless", "environment", "does not state the length"],
      ["wrong", "environment", "did not send the bytes from 0 on"],
      ["changing", "file-changed", "changed while it was read"],
      ["short", "environment", "are missing"],
    ]) {
      const error = await thrown(kit.open(`${base}/${kind}/long.gguf?token=secret`), kind);
      ok(error instanceof kit.GgufError, `${kind}: ${error}`);
      equal([error.code, error.fault], [code, "environment"], kind);
      ok(error.message.includes(text), `${kind}: ${error.message}`);
      ok(!error.message.includes("secret"), error.message);
    }
    const aborted = await thrown(kit.open(`${base}/ranges/tiny.gguf`, { signal: AbortSignal.abort() }));
    equal(aborted.name, "AbortError");
    const controller = new AbortController();
    const stop = async (...request) => {
      const response = await fetch(...request);
      controller.abort();
      return response;
    };
    const stopped = await thrown(kit.open(`${base}/ranges/long.gguf`, { signal: controller.signal, fetch: stop }));
    equal(stopped.name, "AbortError");
    const refused = await thrown(kit.open("http://127.0.0.1:9/x.gguf"));
    equal([refused.code, refused.fault], ["environment", "environment"]);
  },

  async "local files, blobs and bytes"({ kit, bytes, expected }) {
    const file = new File([bytes], "tiny.gguf");
    for (const source of [file, new Blob([bytes]), bytes, bytes.buffer, new DataView(bytes.buffer)]) {
      const model = await kit.open(source);
      equal(model.name, source === file ? "tiny.gguf" : "");
      equal(model.format, expected.format);
      model.free();
    }
  },

  async "findings are those of gguf check"({ kit, base, bytes, expected }) {
    for (const [name, document] of Object.entries(expected.checks)) {
      equal(await kit.check(`${base}/ranges/${name}`), document, name);
    }
    const model = await kit.open(bytes, { name: "tiny.gguf" });
    equal(model.check(), expected.checks["tiny.gguf"]);
    model.free();
  },

  async "errors say what is wrong and where"({ kit, base, bytes }) {
    const broken = await thrown(kit.open(`${base}/ranges/magic.gguf`));
    ok(broken instanceof kit.GgufError && broken instanceof Error);
    equal([broken.name, broken.code, broken.fault, broken.offset], ["GgufError", "magic", "input", 0]);
    ok(broken.message.startsWith("the file does not start with the magic GGUF (byte 0); "), broken.message);
    const limited = await thrown(kit.open(`${base}/ranges/long.gguf`, { maxHeaderBytes: 300000 }));
    equal([limited.code, limited.fault, limited.offset], ["limit-header", "input", 262144]);
    equal((await thrown(kit.open(new Uint8Array()))).code, "magic");
    const model = await kit.open(bytes);
    const tokens = model.metadata.get("tokenizer.ggml.tokens");
    model.free();
    model.free();
    for (const use of [() => model.tensors, () => tokens.at(0), () => model.tokenizer(), () => model.check()]) {
      const closed = await thrown(use);
      equal([closed.code, closed.fault], ["closed", "caller"]);
    }
  },

  async "text to ids and back"({ kit, bytes, expected }) {
    const model = await kit.open(bytes);
    const tokenizer = model.tokenizer();
    model.free();
    equal(tokenizer.length, 2048);
    for (const { text, ids } of expected.ids) {
      equal([...tokenizer.encode(text)], ids, text);
      equal(tokenizer.decode(ids), text);
      equal(tokenizer.decodeBytes(new Uint32Array(ids)), new TextEncoder().encode(text));
    }
    const plain = tokenizer.encode("<s>", { addSpecial: false, parseSpecial: false });
    ok(plain.length > 1 && !plain.includes(1), String(plain));
    equal([...tokenizer.encode("<s>", { addSpecial: false })], [1]);
    equal(tokenizer.decode([1]), "");
    equal(tokenizer.decode([1], { special: true }), "<s>");
    equal([tokenizer.token(1).text, tokenizer.token(1).type, tokenizer.token(2048)], ["<s>", "control", undefined]);
    equal([...tokenizer.endOfGeneration()], [2]);
    const error = await thrown(() => tokenizer.decode([2048]));
    equal([error.code, error.fault], ["input", "caller"]);
    ok(error.message.includes("token id 2048 is out of range; ids range from 0 to 2047"), error.message);
    tokenizer.free();
  },

  async "prompts are those of gguf chat-template"({ kit, base, expected }) {
    const model = await kit.open(`${base}/ranges/deep.gguf`);
    ok(model.chatTemplate().includes("messages"));
    equal(model.chatTemplate("no such name"), undefined);
    for (const { messages, options, prompt } of expected.prompts) equal(model.renderChat(messages, options), prompt);
    const now = new Date(Date.UTC(2026, 0, 2));
    equal(model.renderChat([], { template: "date", now }), "2026-01-02 3");
    equal(model.renderChat([], { template: "date", now, variables: { n: 4 } }), "2026-01-02 4");
    for (const [template, code] of [
      ["refuses", "template-refused"],
      ["broken", "template-syntax"],
      ["fails", "template-render"],
      ["endless", "template-limit"],
      // The stack of the sandbox ends, and nothing else.
      ["deep", "template-limit"],
      ["no such name", "template-missing"],
    ]) {
      const error = await thrown(() => model.renderChat([], { template }));
      equal([error.code, error.name], [code, "GgufError"], template);
    }
    const deep = JSON.parse(`${"[".repeat(500)}${"]".repeat(500)}`);
    equal((await thrown(() => model.renderChat([deep]))).code, "input");
    equal(model.renderChat(expected.prompts[0].messages, expected.prompts[0].options), expected.prompts[0].prompt);
    model.free();
  },

  async "values of all types"({ kit, base }) {
    const model = await kit.open(`${base}/ranges/values.gguf`);
    const value = (key) => model.metadata.get(key);
    equal(["u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "f64"].map(value), [
      255,
      -128,
      65535,
      -32768,
      4294967295,
      -2147483648,
      0.5,
      true,
      0.1,
    ]);
    equal([value("u64"), value("i64")], [18446744073709551615n, -9223372036854775808n]);
    equal([value("small u64"), value("small i64")], [9007199254740991, -9007199254740991]);
    equal(value("text"), "\ufeffä\u{1f917}\ufffd");
    equal(value("strings").toArray(), ["", "\ufeffä", "\u{1f917}", "\ufffdx", "\0"]);
    equal(value("i64s").toArray(), BigInt64Array.of(-1n, 2n));
    equal(value("bools").toArray(), [true, false]);
    equal(value("bools").slice(1, 9), [false]);
    equal(value("i64s").slice(5), new BigInt64Array());
    const nested = value("nested").toArray();
    equal([nested.length, nested[0].elementType, nested[1].length], [2, "UINT16", 1]);
    equal(nested[0].toArray(), Uint16Array.of(1, 2));
    model.free();
  },

  async "broken files neither stop the module nor leak"({ kit, base, expected }) {
    const opened = [];
    for (const name of expected.hostile) {
      const model = await kit.open(`${base}/ranges/${name}`).catch((error) => error);
      ok(model instanceof kit.Model || model instanceof kit.GgufError, `${name}: ${model}`);
      if (model instanceof kit.Model) opened.push(model);
      const { findings } = await kit.check(`${base}/ranges/${name}`);
      ok(model instanceof kit.Model || findings.some(({ severity }) => severity === "error"), name);
    }
    for (const model of opened) model.free();
  },
};

async function log(base, name) {
  return (await fetch(`${base}/log/${name}`)).json();
}

async function thrown(run, name = "") {
  try {
    await (typeof run === "function" ? run() : run);
  } catch (error) {
    return error;
  }
  throw new Error(`nothing was thrown ${name}`);
}

function ok(condition, message = "it does not hold") {
  if (!condition) throw new Error(message);
}

function equal(found, expected, name = "") {
  const [a, b] = [show(found), show(expected)];
  ok(a === b, `${name}: found ${a.slice(0, 2000)}; expected ${b.slice(0, 2000)}`);
}

/** Text that is equal for equal values. */
function show(value) {
  return JSON.stringify(value, (_, item) => {
    if (typeof item === "bigint") return `${item}n`;
    if (ArrayBuffer.isView(item)) return { [item.constructor.name]: Array.from(item, String) };
    return item === undefined ? "undefined" : item;
  });
}

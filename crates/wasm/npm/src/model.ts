// Models whose headers are valid.
import { GgufArray } from "./array.js";
import { call, GgufError } from "./error.js";
import type { Header, Model as Raw } from "./gguf_wasm.js";
import { Tokenizer } from "./tokenizer.js";
import type { Value } from "./value.js";
import type { Check } from "./check.js";

/** Properties of the file. */
export interface Format {
  /** Version of the format: 1, 2 or 3. */
  version: number;
  byteOrder: "little" | "big";
  /** File size in bytes. */
  fileLength: number;
  /** Byte offset of the tensor data. */
  dataStart: number;
}

/** Entry of the tensor directory. */
export interface Tensor {
  name: string;
  /** Type, such as `F16` or `Q4_K`. */
  type: string;
  /** Elements per dimension, the fastest-varying first. */
  shape: number[];
  /** Byte offset of the data in the file. */
  offset: number;
  /** Size of the data in bytes. */
  byteLength: number;
}

/** Implementation to follow where the reference implementation and llama.cpp differ. */
export type TokenizerCompat = "original" | "llama.cpp";

/** Engine that renders chat templates: jinja2 as `transformers` sets it up, or that of llama.cpp. */
export type Engine = "transformers" | "llama.cpp";

/** Options of `Model.renderChat`. */
export interface ChatOptions {
  /** JSON schemas of tools. */
  tools?: unknown[];
  /** Documents for retrieval. */
  documents?: unknown[];
  /** Whether the prompt ends with the beginning of an assistant message; on by default. */
  addGenerationPrompt?: boolean;
  /** Further variables, such as `enable_thinking`. */
  variables?: Record<string, unknown>;
  /** Name of the template; the default one without. */
  template?: string;
  /** Engine; `transformers` by default. */
  engine?: Engine;
  /** Time that `strftime_now` formats, in UTC; the present by default. */
  now?: Date;
}

/** A model whose header is valid. `free` releases its memory, as does the garbage collector at some time. */
export class Model implements Disposable {
  /** Name of the file; empty if it is unknown. */
  readonly name: string;
  readonly #header: Header;
  readonly #open: Raw;
  #isFreed = false;
  #format?: Format;
  #metadata?: Map<string, Value>;
  #types = new Map<string, string>();
  #tensors?: Tensor[];

  /** @internal */
  constructor(name: string, header: Header) {
    this.name = name;
    this.#header = header;
    this.#open = call(() => header.model());
  }

  get #raw(): Raw {
    if (!this.#isFreed) return this.#open;
    const message = "the model is used after it was freed";
    throw new GgufError({ code: "closed", fault: "caller", message, help: "open it again, or free it later" });
  }

  /** Properties of the file. */
  get format(): Format {
    return (this.#format ??= JSON.parse(this.#raw.format()) as Format);
  }

  /** Keys and values, in the order of the file. */
  get metadata(): ReadonlyMap<string, Value> {
    if (this.#metadata) return this.#metadata;
    this.#metadata = new Map();
    const entries = this.#raw.metadata() as unknown[];
    for (let i = 0; i < entries.length; i += 3) {
      const key = entries[i] as string;
      const type = entries[i + 1] as string;
      const value = entries[i + 2];
      const read = (start: number, end: number): unknown => this.#raw.elements(i / 3, start, end);
      this.#types.set(key, type);
      this.#metadata.set(key, type === "ARRAY" ? new GgufArray(value as [string, number], read) : (value as Value));
    }
    return this.#metadata;
  }

  /** Returns the type of a value, such as `UINT32`; `undefined` without this key. */
  valueType(key: string): string | undefined {
    return this.metadata.has(key) ? this.#types.get(key) : undefined;
  }

  /** Tensors, in the order of the directory. */
  get tensors(): readonly Tensor[] {
    return (this.#tensors ??= JSON.parse(this.#raw.tensors()) as Tensor[]);
  }

  /** Checks the header as `gguf check --no-data --json` does, and returns its document. */
  check(): Check {
    void this.#raw;
    return JSON.parse(call(() => this.#header.check(this.name))) as Check;
  }

  /** Returns the tokenizer of the vocabulary. */
  tokenizer(options: { compat?: TokenizerCompat } = {}): Tokenizer {
    return new Tokenizer(call(() => this.#raw.tokenizer(options.compat === "llama.cpp")));
  }

  /** Returns the text of the default chat template, or of the one with this name; `undefined` without it. */
  chatTemplate(name?: string): string | undefined {
    return call(() => this.#raw.chatTemplate(name));
  }

  /** Renders a conversation with a chat template of the model. */
  renderChat(messages: unknown[], options: ChatOptions = {}): string {
    const { tools, documents, addGenerationPrompt = true, template, engine, now = new Date() } = options;
    const variables = {
      ...(tools && { tools }),
      ...(documents && { documents }),
      add_generation_prompt: addGenerationPrompt,
      ...options.variables,
      messages,
    };
    const text = JSON.stringify(variables);
    return call(() => this.#raw.renderChat(text, template, engine === "llama.cpp", now.getTime()));
  }

  /** Releases the memory. Tokenizers of the model stay valid; arrays of the metadata do not. */
  free(): void {
    if (this.#isFreed) return;
    this.#isFreed = true;
    this.#open.free();
    this.#header.free();
  }

  [Symbol.dispose](): void {
    this.free();
  }
}

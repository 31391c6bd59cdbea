// Tokenizers.
import type { Tokenizer as Raw } from "./gguf_wasm.js";
import { call } from "./error.js";

/** Options of `Tokenizer.encode`; both are on by default, as for a prompt. */
export interface EncodeOptions {
  /** Add BOS and EOS as the model requires. */
  addSpecial?: boolean;
  /** Parse control tokens in the text. */
  parseSpecial?: boolean;
}

/** Options of `Tokenizer.decode`. */
export interface DecodeOptions {
  /** Write control tokens instead of skipping them. */
  special?: boolean;
}

/** Type of a token. */
export type TokenType = "normal" | "unknown" | "control" | "user-defined" | "unused" | "byte";

/** Token of the vocabulary. */
export interface Token {
  id: number;
  /** Text within a prompt; bytes that are not UTF-8 are U+FFFD. */
  text: string;
  bytes: Uint8Array;
  type: TokenType;
}

// By the ids in files, from 1.
const types: TokenType[] = ["normal", "unknown", "control", "user-defined", "unused", "byte"];

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** Tokenizer of a model. `free` releases its memory, as does the garbage collector at some time. */
export class Tokenizer implements Disposable {
  readonly #raw: Raw;

  /** @internal */
  constructor(raw: Raw) {
    this.#raw = raw;
  }

  /** Number of tokens. */
  get length(): number {
    return this.#raw.count();
  }

  /** Encodes a text to token ids. */
  encode(text: string, options: EncodeOptions = {}): Uint32Array {
    return this.#raw.encode(text, options.addSpecial ?? true, options.parseSpecial ?? true);
  }

  /** Decodes ids to text; bytes that are not UTF-8 become U+FFFD. */
  decode(ids: Iterable<number>, options: DecodeOptions = {}): string {
    return utf8.decode(this.decodeBytes(ids, options));
  }

  /** Decodes ids to bytes: a token can end within a character. */
  decodeBytes(ids: Iterable<number>, options: DecodeOptions = {}): Uint8Array {
    const list = ids instanceof Uint32Array ? ids : Uint32Array.from(ids);
    return call(() => this.#raw.decode(list, options.special ?? false));
  }

  /** Returns a token; `undefined` if the id does not exist. */
  token(id: number): Token | undefined {
    const bytes = this.#raw.tokenBytes(id);
    const type = types[(this.#raw.tokenType(id) ?? 0) - 1];
    return bytes && type && { id, text: utf8.decode(bytes), bytes, type };
  }

  /** Returns the tokens that end a generation. */
  endOfGeneration(): Uint32Array {
    return this.#raw.endOfGeneration();
  }

  /** Releases the memory. */
  free(): void {
    this.#raw.free();
  }

  [Symbol.dispose](): void {
    this.free();
  }
}

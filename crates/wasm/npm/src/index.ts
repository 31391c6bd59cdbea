/**
 * Headers of GGUF models: metadata, tensors, checks, tokenizers and chat templates.
 *
 * @packageDocumentation
 */
export { type Elements, GgufArray } from "./array.js";
export type { Check, Finding } from "./check.js";
export { type ErrorFields, type Fault, GgufError } from "./error.js";
export { type ChatOptions, type Engine, type Format, Model, type Tensor, type TokenizerCompat } from "./model.js";
export { init, type ModuleSource } from "./module.js";
export { check, open } from "./open.js";
export type { Options, Source } from "./source.js";
export { type DecodeOptions, type EncodeOptions, type Token, Tokenizer, type TokenType } from "./tokenizer.js";
export type { Value } from "./value.js";

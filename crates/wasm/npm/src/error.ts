// Errors with the fields of `gguf`'s JSON documents.

/** Cause of an error: the file, the caller, or the machine and the network. */
export type Fault = "input" | "caller" | "environment" | "interrupted";

/** Fields of an error, as in the schema `error/1` of `gguf --json`. */
export interface ErrorFields {
  /** Stable code, which `gguf check --explain` and docs/findings.md explain. */
  code: string;
  fault: Fault;
  /** Fault, in one sentence. */
  message: string;
  /** Byte offset in the file. */
  offset?: number | null;
  /** Affected metadata key. */
  key?: string | null;
  /** Affected tensor. */
  tensor?: string | null;
  /** Advice. */
  help?: string;
}

/** Error about a file, a request or the network. */
export class GgufError extends Error implements ErrorFields {
  override readonly name = "GgufError";
  readonly code: string;
  readonly fault: Fault;
  readonly offset: number | null;
  readonly key: string | null;
  readonly tensor: string | null;
  readonly help: string;

  constructor(fields: ErrorFields, cause?: unknown) {
    const { code, fault, message, offset = null, key = null, tensor = null, help = "" } = fields;
    const place = [key && `key \`${key}\`: `, tensor && `tensor \`${tensor}\`: `].filter(Boolean).join("");
    const at = offset === null ? "" : ` (byte ${offset})`;
    super(`${place}${message}${at}${help && `; ${help}`}`, cause === undefined ? undefined : { cause });
    this.code = code;
    this.fault = fault;
    this.offset = offset;
    this.key = key;
    this.tensor = tensor;
    this.help = help;
  }
}

/** Calls the module, which throws errors as JSON texts. */
export function call<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw typeof error === "string" ? new GgufError(JSON.parse(error) as ErrorFields) : error;
  }
}

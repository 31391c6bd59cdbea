// Findings.

/** Report of one fault. */
export interface Finding {
  /** Stable code, which docs/findings.md explains. */
  code: string;
  severity: "note" | "warning" | "error";
  /** Byte offset in the file. */
  offset: number | null;
  key: string | null;
  tensor: string | null;
  /** Fault, in one sentence. */
  message: string;
  /** Advice; may be empty. */
  help: string;
}

/** Document of the schema `check/2`, as `gguf check --no-data --json` prints it. */
export interface Check {
  schema: "gguf-kit/check/2";
  /** Name of the file; empty if it is unknown. */
  file: string;
  data_read: false;
  against: null;
  findings: Finding[];
}

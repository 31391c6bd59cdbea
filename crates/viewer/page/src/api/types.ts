// Documents of docs/viewer-api.md about models and files.

export interface Models {
  api: number;
  version: string;
  models: Model[];
}

export interface Model {
  id: number;
  /** Null if the metadata has no name. */
  name: string | null;
  source: string;
  remote: boolean;
  bytes: number;
  tensor_count: number | null;
  files: { name: string; bytes: number }[];
  readable: boolean;
  /** The header can be shown, but breaks rules: see `error`. */
  damaged: boolean;
  /** Tensor data or a part of the header is missing at the end. */
  truncated: boolean;
  /** Whether all keys and tensors are listed. */
  header_complete: boolean;
  error: ErrorBody | null;
  editable: boolean;
  original: number | null;
}

export interface ErrorBody {
  code: string;
  fault: string;
  message: string;
  file: string | null;
  offset: number | null;
  key: string | null;
  tensor: string | null;
  help: string | null;
  line?: number | null;
}

export interface Summary {
  file: string;
  version: number;
  files: number;
  file_bytes: number;
  architecture: string | null;
  kind: string | null;
  name: string | null;
  parameters: number;
  data_bytes: number;
  file_type: string | null;
  bits_per_weight: number | null;
  context_length: number | null;
  block_count: number | null;
  embedding_length: number | null;
  feed_forward_length: number | number[] | null;
  head_count: number | number[] | null;
  head_count_kv: number | number[] | null;
  key_length: number | null;
  value_length: number | null;
  sliding_window: number | null;
  experts: { count?: number; used?: number } | null;
  rope: {
    base: number | null;
    dimensions: number | null;
    scaling: string | null;
    factor: number | null;
    original_context_length: number | null;
  } | null;
  tokenizer: {
    model: string | null;
    pre: string | null;
    tokens: number | null;
    special: Record<string, { id: number; text: string | null }>;
  } | null;
  chat_template: { bytes: number; others: string[] } | null;
  origin: {
    description: string | null;
    license: string | null;
    license_link: string | null;
    author: string | null;
    quantized_by: string | null;
    url: string | null;
    base_models: unknown[];
    languages: string[];
    tags: string[];
  };
  tensor_count: number;
  tensor_types: Record<string, { tensors: number; bytes: number }>;
}

export interface Finding {
  code: string;
  severity: "error" | "warning" | "note";
  offset: number | null;
  key: string | null;
  tensor: string | null;
  message: string;
  help: string | null;
  meaning: string | null;
  advice: string | null;
  key_n: number | null;
  tensor_n: number | null;
  file_n: number | null;
}

export interface Memory {
  context: number;
  batch: number;
  weights: number;
  kv_cache: number;
  kv_cache_per_token: number;
  compute_buffer: number;
  total: number;
}

export interface Layers {
  layers: {
    layer: number;
    weights: number;
    /** Bytes of recurrent states. */
    state: number;
    /** `window` is null for caches of all tokens. */
    caches: { key_width: number; value_width: number; block: number; window: number | null }[];
  }[];
}

export interface Key {
  n: number;
  name: string;
  name_bytes: number;
  type: string;
  element_type: string | null;
  count: number | null;
  value: string | number | boolean | null;
  text: string;
  text_bytes: number;
  label: string | null;
  standard: boolean;
  documentation: string | null;
  unit: string | null;
  default: string | null;
  /** What is wrong with the key in a damaged file. */
  damage: string | null;
  file: number;
  span: [number, number];
  value_start: number;
}

export interface Keys {
  total: number;
  found: number;
  offset: number;
  keys: Key[];
}

export interface KeyValue extends Key {
  string?: { text: string; bytes: number; offset: number } | null;
  array?: { total: number; found: number; offset: number; elements: Element[] } | null;
}

export interface Element {
  i: number;
  value: unknown;
  text: string;
  text_bytes: number;
}

export interface FileMap {
  files: MapFile[];
}

export interface MapFile {
  name: string;
  bytes: number;
  version: number | null;
  order: string | null;
  alignment: number | null;
  data_start: number | null;
  spans: MapSpan[];
}

export interface MapSpan {
  start: number;
  end: number;
  kind: string;
  n: number | null;
}

export interface Span {
  start: number;
  end: number;
  kind: string;
  text: string;
  key_n: number | null;
  tensor_n: number | null;
  block: number | null;
}

export interface Traffic {
  remote: boolean;
  fetched_bytes: number;
  requests: number;
  /** Seconds since the last byte, if a read is waiting. */
  waiting_seconds: number | null;
  /** The last failure of a read that is being retried. */
  retry: { failures: number; attempts: number; reason: string } | null;
  cache: { memory_bytes: number; disk_bytes: number; disk_limit: number; directory: string } | null;
}

export interface State {
  changed: boolean;
  files: { name: string; bytes: number | null; modified: number | null; state: "same" | "changed" | "gone" }[];
}

export interface ChangedValue {
  type: string;
  text: string;
  /** What a number stands for, such as the text of a token. */
  label: string | null;
}

/** What writing does to the file. */
export interface EditEffect {
  outcome: "unchanged" | "in-place" | "rebuilt";
  file_bytes: [number, number];
  /** Zero bytes of `gguf_kit.reserve` before and after. */
  reserve: [number | null, number | null];
}

export interface EditResponse {
  keys: { key: string; a: ChangedValue | null; b: ChangedValue | null }[];
  findings: Finding[];
  /** Null for a copy. */
  write: EditEffect | null;
  saved?: string;
}

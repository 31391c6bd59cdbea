// Documents of docs/viewer-api.md about tensors, graphs and comparisons.
import type { ChangedValue } from "./types";

export interface Tensor {
  n: number;
  name: string;
  name_bytes: number;
  type: string;
  shape: number[];
  parameters: number;
  bytes: number | null;
  file: number;
  offset: number;
  /** Bytes that a truncated file lacks. */
  missing_bytes: number;
  /** What is wrong with the tensor in a damaged file. */
  damage: string | null;
  block: number | null;
  kind: string;
}

export interface TensorFacts extends Tensor {
  rows: number;
  columns: number;
  decodable: boolean;
  levels: number;
  documentation: string | null;
  block_weights: number;
  block_bytes: number;
  blocks_per_row: number;
  blocks: number;
  layout: {
    formula: string | null;
    scales: string[];
    fields: { name: string; about: string; count: number; kind: string }[];
  } | null;
}

/** RoPE of the rows of query and key projections. */
export interface Rope {
  projections: RopeProjection[];
}

export interface RopeProjection {
  tensor: string;
  /** Rows that are rotated: of a fused projection, those of the queries or of the keys. */
  first_row: number;
  rows: number;
  heads: number;
  layout: "interleaved" | "neox";
  /** First rotary dimension of a head, and their number. */
  start: number;
  dimensions: number;
  freq_base: number;
}

/** Statistics per group of `per` rows or columns; null for groups outside the sample. */
export interface Profile {
  per: number;
  min: (number | null)[];
  max: (number | null)[];
  mean: (number | null)[];
  stddev: (number | null)[];
}

export interface Histogram {
  from: number;
  to: number;
  counts: number[];
}

export interface Outlier {
  row: number;
  column: number;
  value: number | null;
  deviations: number | null;
}

export interface Statistics {
  exact: boolean;
  read: number;
  count: number;
  zeros: number;
  nan: number;
  infinite: number;
  min: number | null;
  max: number | null;
  mean: number | null;
  stddev: number | null;
  histogram: Histogram;
  rows: Profile;
  columns: Profile;
  outliers: Outlier[];
}

export interface Block {
  index: number;
  row: number;
  column: number;
  file: number;
  offset: number;
  hex: string;
  formula: string | null;
  fields: { name: string; about: string; kind: string; items: BlockItem[] }[];
  weights: { value: number | null; items: [number, number][] }[];
}

export interface BlockItem {
  bits: [number, number][];
  raw: number;
  value: number | null;
}

export interface Rows {
  start: number;
  count: number;
  column: number;
  columns: number;
  rows: (number | null)[][];
}

export interface GraphDocument {
  architecture: string | null;
  graph: { main: Program; encoder?: Program | null };
  operations: Operation[];
  bytes_read: number;
  multiply_adds: number;
}

export interface Program {
  ops: Record<string, unknown>[];
  outputs: { kind: string; value: number }[];
}

export interface Operation {
  program: string;
  number: number;
  op: string;
  shape: string;
  weights: string[];
  bytes_read: number;
  multiply_adds: number;
}

export interface ComparedKeys {
  keys: { key: string; a: ChangedValue | null; b: ChangedValue | null; detail: KeyDifference | null }[];
  same: number;
}

/** Where arrays or texts differ first. */
export interface KeyDifference {
  /** Lengths of both arrays. */
  lengths?: [number, number];
  differing?: number;
  /** Index and both elements. */
  first?: [number, unknown, unknown][];
  /** Number of the first line that differs. */
  line?: number;
  a?: string | null;
  b?: string | null;
}

export interface ComparedTensor {
  name: string;
  change: "added" | "removed" | "reshaped" | "data";
  a: { n: number; type: string; shape: number[] } | null;
  b: { n: number; type: string; shape: number[] } | null;
}

export interface ErrorStatistics {
  exact: boolean;
  read: number;
  elements: number;
  same: boolean;
  rmse: number | null;
  relative: number | null;
  cosine: number | null;
  max: number | null;
  mean: number | null;
  histogram: Histogram;
  rows: Profile;
  columns: Profile;
  outliers: Outlier[];
}

// Splits a computation graph into drawable segments: input, one segment per layer, output.
import type { GraphDocument, Operation } from "../api/tensor-types";

export interface Segment {
  name: string;
  program: string;
  /** Numbers of operations in the program. */
  first: number;
  end: number;
  operations: Operation[];
  bytes: number;
  compute: number;
}

/** Maximum number of operations per segment; larger segments are split. */
const MAX_OPERATIONS = 120;

export function segments(graph: GraphDocument): Segment[] {
  const found: Segment[] = [];
  const several = new Set(graph.operations.map((operation) => operation.program)).size > 1;
  let name = "";
  for (const operation of graph.operations) {
    const last = found[found.length - 1];
    const layer = layerOf(operation);
    const isNewProgram = last?.program !== operation.program;
    const part = operation.program === "main" ? "decoder" : operation.program;
    // An operation without weights belongs to the previous segment; other weights come before the first layer or after the last.
    if (isNewProgram) name = "input";
    if (layer !== null) name = `layer ${layer}`;
    else if (operation.weights.length > 0 && name.startsWith("layer")) name = "output";
    const title = several ? `${part}: ${name}` : name;
    if (!last || last.name !== title || isNewProgram || last.operations.length >= MAX_OPERATIONS) {
      found.push({
        name: title,
        program: operation.program,
        first: operation.number,
        end: operation.number + 1,
        operations: [operation],
        bytes: operation.bytes_read,
        compute: operation.multiply_adds,
      });
    } else {
      last.operations.push(operation);
      last.end = operation.number + 1;
      last.bytes += operation.bytes_read;
      last.compute += operation.multiply_adds;
    }
  }
  return found;
}

/** Consecutive segments that have the same operations, such as the layers of a model. */
export interface Fold {
  first: number;
  count: number;
}

/** Folds consecutive layers with the same operations, shapes and attention masks. */
export function folded(list: Segment[], graph: GraphDocument["graph"]): Fold[] {
  const mask = (program: string, number: number) =>
    JSON.stringify((program === "encoder" ? graph.encoder : graph.main)?.ops[number]?.mask ?? "");
  const folds: Fold[] = [];
  let previous = "";
  for (const [index, segment] of list.entries()) {
    const described = segment.operations.map(
      ({ op, shape, program, number }) => `${op} ${shape} ${mask(program, number)}`,
    );
    const shape = `${segment.program} ${described.join(";")}`;
    const last = folds[folds.length - 1];
    if (last && shape === previous && isLayer(segment)) last.count += 1;
    else folds.push({ first: index, count: 1 });
    previous = shape;
  }
  return folds;
}

function isLayer({ name }: Segment): boolean {
  return /layer \d+$/.test(name);
}

function layerOf(operation: Operation): number | null {
  for (const weight of operation.weights) {
    const layer = /(?:^|\.)blk\.(\d+)\./.exec(weight)?.[1];
    if (layer !== undefined) return Number(layer);
  }
  return null;
}

/** Fields of an operation that hold value numbers (docs/graph.md); those of operations not listed here are `x`, `a` and `b`. */
const INPUTS: Record<string, string[]> = {
  attention: ["query"],
  block_compress: ["x", "gate"],
  gated_activation: ["gate", "up"],
  kv_store: ["key", "value"],
  linear_attention: ["query", "key", "value", "beta"],
  matmul_id: ["x", "ids"],
  moe: ["x", "router_logits", "expert_ids"],
  selective_scan: ["x", "dt", "b", "c"],
  stream_mix: ["x", "matrix"],
  topk_indexer: ["query", "key", "weights"],
  wkv: ["r", "w", "k", "v", "a", "b"],
};

/** Returns the values that an operation reads, each with the name of its field. */
export function inputs(op: Record<string, unknown>): { name: string; value: number }[] {
  const found: { name: string; value: number }[] = [];
  const take = (from: unknown, names: string[]) => {
    if (!from || typeof from !== "object") return;
    for (const name of names) {
      const value = (from as Record<string, unknown>)[name];
      if (typeof value === "number") found.push({ name, value });
    }
  };
  take(op, INPUTS[String(op.op)] ?? ["x", "a", "b"]);
  if (op.op === "attention") {
    // Keys and values are nested in their source.
    for (const source of Object.values(op.kv ?? {})) take(source, ["key", "value"]);
    take(op.selection, ["indices"]);
    take(op.compressed, ["key", "value", "indices"]);
  }
  if (op.op === "linear_attention") {
    const decay = op.decay as { value?: unknown } | undefined;
    if (typeof decay?.value === "number") found.push({ name: "decay", value: decay.value });
  }
  return found;
}

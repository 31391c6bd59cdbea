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
    // An operation without weights belongs to the previous segment; other weights come before the first layer or after the last.
    if (isNewProgram) name = "input";
    if (layer !== null) name = `layer ${layer}`;
    else if (operation.weights.length > 0 && name.startsWith("layer")) name = "output";
    const title = several ? `${operation.program}: ${name}` : name;
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

function layerOf(operation: Operation): number | null {
  for (const weight of operation.weights) {
    const layer = /(?:^|\.)blk\.(\d+)\./.exec(weight)?.[1];
    if (layer !== undefined) return Number(layer);
  }
  return null;
}

/** Fields of an operation that hold value numbers (docs/graph.md); those of operations not listed here are `x`, `a` and `b`. */
const INPUTS: Record<string, string[]> = {
  gated_activation: ["gate", "up"],
  kv_store: ["key", "value"],
  moe: ["x", "router_logits"],
  selective_scan: ["x", "dt", "b", "c"],
  wkv: ["r", "w", "k", "v", "a", "b"],
  attention: ["query"],
};

/** Returns the values that an operation reads, each with the name of its field. */
export function inputs(op: Record<string, unknown>): { name: string; value: number }[] {
  const found: { name: string; value: number }[] = [];
  const take = (from: Record<string, unknown>, names: string[]) => {
    for (const name of names) {
      const value = from[name];
      if (typeof value === "number") found.push({ name, value });
    }
  };
  take(op, INPUTS[String(op.op)] ?? ["x", "a", "b"]);
  // Keys and values of attention are nested in their source.
  const kv = op.kv;
  if (op.op === "attention" && kv && typeof kv === "object") {
    for (const source of Object.values(kv))
      if (source && typeof source === "object") take(source as Record<string, unknown>, ["key", "value"]);
  }
  return found;
}

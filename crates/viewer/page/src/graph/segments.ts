// A computation graph in pieces that can be drawn: what comes before the blocks, each block, what comes after.
import type { GraphDocument, Operation } from "../api/tensor-types";

export interface Segment {
  name: string;
  program: string;
  /** Numbers of operations in the program. */
  first: number;
  end: number;
  operations: Operation[];
  bytes: number;
  arithmetic: number;
}

/** Operations of a piece at most: what has no blocks is cut into pieces of so many. */
const MOST = 120;

export function segments(graph: GraphDocument): Segment[] {
  const found: Segment[] = [];
  const several = new Set(graph.operations.map((operation) => operation.program)).size > 1;
  let name = "";
  for (const operation of graph.operations) {
    const last = found[found.length - 1];
    const block = blockOf(operation);
    const fresh = last?.program !== operation.program;
    // What has no weights belongs to the block before it; weights outside of blocks come before the first or after the last.
    if (fresh) name = "input";
    if (block !== null) name = `block ${block}`;
    else if (operation.weights.length > 0 && name.startsWith("block")) name = "output";
    const title = several ? `${operation.program}: ${name}` : name;
    if (!last || last.name !== title || fresh || last.operations.length >= MOST) {
      found.push({
        name: title,
        program: operation.program,
        first: operation.number,
        end: operation.number + 1,
        operations: [operation],
        bytes: operation.bytes_read,
        arithmetic: operation.multiply_adds,
      });
    } else {
      last.operations.push(operation);
      last.end = operation.number + 1;
      last.bytes += operation.bytes_read;
      last.arithmetic += operation.multiply_adds;
    }
  }
  return found;
}

function blockOf(operation: Operation): number | null {
  for (const weight of operation.weights) {
    const block = /(?:^|\.)blk\.(\d+)\./.exec(weight)?.[1];
    if (block !== undefined) return Number(block);
  }
  return null;
}

/** Fields of an operation that are numbers of values (docs/graph.md); those of all that are not named here are `x`, `a` and `b`. */
const VALUES: Record<string, string[]> = {
  gate: ["gate", "up"],
  store: ["key", "value"],
  experts: ["x", "scores"],
  scan: ["x", "dt", "b", "c"],
  wkv: ["r", "w", "k", "v", "a", "b"],
  attention: ["query"],
};

/** The values that an operation reads, with the name of each. */
export function inputs(op: Record<string, unknown>): { name: string; value: number }[] {
  const found: { name: string; value: number }[] = [];
  const take = (from: Record<string, unknown>, names: string[]) => {
    for (const name of names) {
      const value = from[name];
      if (typeof value === "number") found.push({ name, value });
    }
  };
  take(op, VALUES[String(op.op)] ?? ["x", "a", "b"]);
  // Attention has keys and values one level deeper.
  const memory = op.memory;
  if (op.op === "attention" && memory && typeof memory === "object") {
    for (const where of Object.values(memory))
      if (where && typeof where === "object") take(where as Record<string, unknown>, ["key", "value"]);
  }
  return found;
}

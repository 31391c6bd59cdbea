// The rows of the list of tensors: a tree by block and kind, or all of them in some order.
import type { Tensor } from "../api/tensor-types";
import { group } from "../overview/groups";
import { bits } from "../ui/type-colour";

/** A row is a tensor, or a branch with tensors below it. */
export interface Row {
  name: string;
  /** What tells branches apart. */
  path: string;
  level: number;
  tensor: Tensor | null;
  open: boolean;
  tensors: number;
  bytes: number;
}

export type Order = "tree" | "file" | "name" | "size" | "bits" | "type";

export const ORDERS: { name: Order; title: string }[] = [
  { name: "tree", title: "by block" },
  { name: "file", title: "as in the file" },
  { name: "name", title: "by name" },
  { name: "size", title: "largest first" },
  { name: "bits", title: "most bits first" },
  { name: "type", title: "by type" },
];

let collator: Intl.Collator | null = null;
/** By the numbers in names; made when it is first needed, since browsers take milliseconds for it. */
function compareNames(a: string, b: string): number {
  collator ??= new Intl.Collator("en", { numeric: true });
  return collator.compare(a, b);
}

/** Tensors whose name has all words, of a type. */
export function filtered(tensors: Tensor[], search: string, type: string): Tensor[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return tensors.filter(
    (tensor) => (type === "" || tensor.type === type) && words.every((word) => fits(tensor.name.toLowerCase(), word)),
  );
}

/** A word is a part of the name; with `*` a pattern for all of it, as for `gguf inspect --tensors`. */
function fits(name: string, word: string): boolean {
  if (!/[*?]/.test(word)) return name.includes(word);
  // Runs of `*` are one: what is matched stays cheap whatever is typed.
  const pattern = word
    .replace(/\*+/g, "*")
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", ".*")
    .replaceAll("?", ".");
  return new RegExp(`^${pattern}$`, "s").test(name);
}

/** The rows to show. Branches are open where `opened` has their path, all of them with `all`. */
export function rows(tensors: Tensor[], order: Order, opened: ReadonlySet<string>, all: boolean): Row[] {
  if (order !== "tree") return sorted(tensors, order).map((tensor) => leaf(tensor, tensor.name, 1));
  const blocks = new Map<string, Tensor[]>();
  for (const tensor of tensors) {
    const branch =
      tensor.block === null ? "" : tensor.name.slice(0, tensor.name.length - tensor.kind.length).replace(/\.$/, "");
    const members = blocks.get(branch);
    if (members) members.push(tensor);
    else blocks.set(branch, [tensor]);
  }
  const list: Row[] = (blocks.get("") ?? []).map((tensor) => leaf(tensor, tensor.name, 1));
  for (const [name, members] of [...blocks].filter(([name]) => name !== "").sort(([a], [b]) => compareNames(a, b))) {
    const row = branch(name, name, 1, members, all || opened.has(name));
    list.push(row);
    if (row.open) list.push(...kinds(name, members, opened, all));
  }
  return list;
}

/** Below a block: its parts, such as attention and feed-forward. */
function kinds(block: string, tensors: Tensor[], opened: ReadonlySet<string>, all: boolean): Row[] {
  const parts = new Map<string, Tensor[]>();
  for (const tensor of tensors) {
    const name = group(tensor);
    const members = parts.get(name);
    if (members) members.push(tensor);
    else parts.set(name, [tensor]);
  }
  const list: Row[] = [];
  for (const [name, members] of parts) {
    const path = `${block}/${name}`;
    // Parts are open unless someone closed them.
    const row = branch(name, path, 2, members, all || !opened.has(path));
    list.push(row);
    if (row.open) list.push(...members.map((tensor) => leaf(tensor, tensor.kind, 3)));
  }
  return list;
}

function leaf(tensor: Tensor, name: string, level: number): Row {
  return { name, path: "", level, tensor, open: false, tensors: 1, bytes: tensor.bytes ?? 0 };
}

function branch(name: string, path: string, level: number, members: Tensor[], open: boolean): Row {
  const bytes = members.reduce((sum, tensor) => sum + (tensor.bytes ?? 0), 0);
  return { name, path, level, tensor: null, open, tensors: members.length, bytes };
}

function sorted(tensors: Tensor[], order: Order): Tensor[] {
  const list = [...tensors];
  const compare: Record<Order, (a: Tensor, b: Tensor) => number> = {
    tree: () => 0,
    file: (a, b) => a.file - b.file || a.offset - b.offset,
    name: (a, b) => compareNames(a.name, b.name),
    size: (a, b) => (b.bytes ?? 0) - (a.bytes ?? 0),
    bits: (a, b) => bits(b) - bits(a),
    type: (a, b) => compareNames(a.type, b.type),
  };
  return list.sort(compare[order]);
}

// Rows of the tensor list: a tree by layer and group, or a flat sorted list.
import type { Tensor } from "../api/tensor-types";
import { group } from "../overview/groups";
import { bits } from "../ui/type-colour";
import { matches } from "./names";

/** A tensor, or a branch that contains tensors. */
export interface Row {
  name: string;
  /** Unique key of a branch. */
  path: string;
  level: number;
  tensor: Tensor | null;
  open: boolean;
  tensors: number;
  bytes: number;
  /** Whether a truncated file lacks data. */
  missing: boolean;
  /** What is wrong with the tensor, or with one of the branch. */
  damage: string | null;
}

export type Order = "tree" | "file" | "name" | "size" | "bits" | "type";

export const ORDERS: { name: Order; title: string }[] = [
  { name: "tree", title: "by layer" },
  { name: "file", title: "in file order" },
  { name: "name", title: "by name" },
  { name: "size", title: "by size" },
  { name: "bits", title: "by bits per weight" },
  { name: "type", title: "by type" },
];

let collator: Intl.Collator | null = null;
/** Compares names in natural order. The collator is created lazily, since that takes milliseconds. */
function compareNames(a: string, b: string): number {
  collator ??= new Intl.Collator("en", { numeric: true });
  return collator.compare(a, b);
}

/** Returns tensors whose name matches a search, and of a type if given. */
export function filtered(tensors: Tensor[], search: string, type: string): Tensor[] {
  return tensors.filter((tensor) => (type === "" || tensor.type === type) && matches(tensor.name, search));
}

/** Returns the visible rows. `opened` has the paths of open layers; `all` opens every branch. */
export function rows(tensors: Tensor[], order: Order, opened: ReadonlySet<string>, all: boolean): Row[] {
  if (order !== "tree") return sorted(tensors, order).map((tensor) => leaf(tensor, tensor.name, 1));
  const layers = new Map<string, Tensor[]>();
  for (const tensor of tensors) {
    const branch =
      tensor.block === null ? "" : tensor.name.slice(0, tensor.name.length - tensor.kind.length).replace(/\.$/, "");
    const members = layers.get(branch);
    if (members) members.push(tensor);
    else layers.set(branch, [tensor]);
  }
  const list: Row[] = (layers.get("") ?? []).map((tensor) => leaf(tensor, tensor.name, 1));
  for (const [name, members] of [...layers].filter(([name]) => name !== "").sort(([a], [b]) => compareNames(a, b))) {
    const row = branch(name, name, 1, members, all || opened.has(name));
    list.push(row);
    if (row.open) list.push(...groupRows(name, members, opened, all));
  }
  return list;
}

/** Returns the rows below a layer: its groups, such as attention and feed-forward. */
function groupRows(layer: string, tensors: Tensor[], opened: ReadonlySet<string>, all: boolean): Row[] {
  const groups = new Map<string, Tensor[]>();
  for (const tensor of tensors) {
    const name = group(tensor);
    const members = groups.get(name);
    if (members) members.push(tensor);
    else groups.set(name, [tensor]);
  }
  const list: Row[] = [];
  for (const [name, members] of groups) {
    const path = `${layer}/${name}`;
    // Groups are open by default.
    const row = branch(name, path, 2, members, all || !opened.has(path));
    list.push(row);
    if (row.open) list.push(...members.map((tensor) => leaf(tensor, tensor.kind, 3)));
  }
  return list;
}

function leaf(tensor: Tensor, name: string, level: number): Row {
  const missing = tensor.missing_bytes > 0;
  return {
    name,
    path: "",
    level,
    tensor,
    open: false,
    tensors: 1,
    bytes: tensor.bytes ?? 0,
    missing,
    damage: tensor.damage,
  };
}

function branch(name: string, path: string, level: number, members: Tensor[], open: boolean): Row {
  const bytes = members.reduce((sum, tensor) => sum + (tensor.bytes ?? 0), 0);
  const missing = members.some((tensor) => tensor.missing_bytes > 0);
  const damaged = members.find((tensor) => tensor.damage !== null);
  const damage = damaged ? `${damaged.name}: ${damaged.damage}` : null;
  return { name, path, level, tensor: null, open, tensors: members.length, bytes, missing, damage };
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

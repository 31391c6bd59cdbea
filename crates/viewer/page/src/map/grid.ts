// Arrangement of all tensors: layers across, kinds down; tensors outside layers in columns of their own.
import type { Tensor } from "../api/tensor-types";
import { partOf } from "../overview/groups";

export interface Grid {
  columns: string[];
  rows: string[];
  /** Column and row of each tensor. */
  cells: { tensor: Tensor; column: number; row: number }[];
}

/** Most columns and rows, for malicious files. */
const MAX = 400;

export function gridOf(tensors: Tensor[]): Grid {
  const key = (tensor: Tensor) => (tensor.block === null ? "" : `${partOf(tensor)} ${tensor.block}`.trim());
  const kindOf = (tensor: Tensor) => tensor.kind.replace(/\.weight$/, "");
  const order = (a: string, b: string) => a.localeCompare(b, "en", { numeric: true });
  const inLayers = tensors.filter(({ block }) => block !== null);
  const outside = tensors.filter(({ block }) => block === null);
  const columns = [...new Set(inLayers.map(key))].sort(order).slice(0, MAX);
  const rows = [...new Set(inLayers.map(kindOf))].sort(order).slice(0, MAX);
  const at = (list: string[]) => new Map(list.map((name, i) => [name, i]));
  const [columnOf, rowOf] = [at(columns), at(rows)];
  const cells = inLayers.flatMap((tensor) => {
    const [column, row] = [columnOf.get(key(tensor)), rowOf.get(kindOf(tensor))];
    return column === undefined || row === undefined ? [] : [{ tensor, column: column + 1, row }];
  });
  // The largest tensors outside layers come first.
  const others = [...outside].sort((a, b) => (b.bytes ?? 0) - (a.bytes ?? 0)).slice(0, Math.max(1, rows.length));
  cells.push(...others.map((tensor, row) => ({ tensor, column: 0, row })));
  return { columns: ["", ...columns], rows: rows.length > 0 ? rows : others.map(kindOf), cells };
}

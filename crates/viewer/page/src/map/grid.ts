// Arrangement of all tensors: layers across, kinds down; tensors outside layers in columns of their own.
import type { Tensor } from "../api/tensor-types";
import { partOf } from "../overview/groups";

/** A layer of a part of the model, such as the encoder; the first column has tensors outside layers. */
export interface Column {
  part: string;
  layer: number | null;
}

export interface Grid {
  columns: Column[];
  rows: string[];
  /** Column and row of each tensor. */
  cells: { tensor: Tensor; column: number; row: number }[];
}

/** Most columns and rows, for malicious files. */
const MAX = 400;

export function gridOf(tensors: Tensor[]): Grid {
  const key = (tensor: Tensor) => `${partOf(tensor)} ${tensor.block}`;
  const kindOf = (tensor: Tensor) => tensor.kind.replace(/\.weight$/, "");
  const order = (a: string, b: string) => a.localeCompare(b, "en", { numeric: true });
  const inLayers = tensors.filter(({ block }) => block !== null);
  const outside = tensors.filter(({ block }) => block === null);
  const layers = new Map(inLayers.map((tensor) => [key(tensor), { part: partOf(tensor), layer: tensor.block }]));
  const columns = [...layers].sort(([a], [b]) => order(a, b)).slice(0, MAX);
  const rows = [...new Set(inLayers.map(kindOf))].sort(order).slice(0, MAX);
  const at = (list: string[]) => new Map(list.map((name, i) => [name, i]));
  const [columnOf, rowOf] = [at(columns.map(([name]) => name)), at(rows)];
  const cells = inLayers.flatMap((tensor) => {
    const [column, row] = [columnOf.get(key(tensor)), rowOf.get(kindOf(tensor))];
    return column === undefined || row === undefined ? [] : [{ tensor, column: column + 1, row }];
  });
  // The largest tensors outside layers come first.
  const others = [...outside].sort((a, b) => (b.bytes ?? 0) - (a.bytes ?? 0)).slice(0, Math.max(1, rows.length));
  cells.push(...others.map((tensor, row) => ({ tensor, column: 0, row })));
  const outer = { part: "", layer: null };
  return {
    columns: [outer, ...columns.map(([, column]) => column)],
    rows: rows.length > 0 ? rows : others.map(kindOf),
    cells,
  };
}

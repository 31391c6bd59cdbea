// Arranges tensors by layer and kind.
import type { ComparedTensor } from "../api/tensor-types";

export interface Matrix {
  layers: string[];
  kinds: string[];
  /** Names of tensors by `layer/kind`. */
  names: Map<string, string>;
}

/** Most layers and kinds of a matrix, for malicious files. */
const MAX = 256;

/** Returns the layers and kinds of tensors; those outside layers are in the layer `–`. */
export function matrixOf(tensors: ComparedTensor[]): Matrix {
  const layers = new Set<string>();
  const kinds = new Set<string>();
  const names = new Map<string, string>();
  for (const { name } of tensors) {
    const found = /^(.*?)\.?blk\.(\d+)\.(.*)$/.exec(name);
    const prefix = found?.[1] ? `${found[1]} ` : "";
    const layer = found ? `${prefix}${found[2]}` : "–";
    const kind = (found?.[3] ?? name).replace(/\.weight$/, "");
    if ((layers.size >= MAX && !layers.has(layer)) || (kinds.size >= MAX && !kinds.has(kind))) continue;
    layers.add(layer);
    kinds.add(kind);
    names.set(`${layer}/${kind}`, name);
  }
  const order = (a: string, b: string) => a.localeCompare(b, "en", { numeric: true });
  return { layers: [...layers].sort(order), kinds: [...kinds].sort(order), names };
}

/** Returns the color of an error relative to the largest. */
export function errorColour(share: number): string {
  return `color-mix(in oklab, var(--warm) ${Math.round(100 * Math.min(1, Math.max(0, share)))}%, var(--grid))`;
}

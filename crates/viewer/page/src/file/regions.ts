// Names and colours of file regions.
import type { Tensor } from "../api/tensor-types";
import type { MapSpan } from "../api/types";
import { visible } from "../format";
import { bits, typeColour } from "../ui/type-colour";

const KINDS: Record<string, { name: string; colour: string }> = {
  start: { name: "header", colour: "var(--part-start)" },
  keys: { name: "metadata", colour: "var(--part-keys)" },
  directory: { name: "tensor info", colour: "var(--part-directory)" },
  padding: { name: "padding", colour: "var(--part-padding)" },
  gap: { name: "unused bytes", colour: "var(--part-gap)" },
  beyond: { name: "bytes after the last tensor", colour: "var(--part-gap)" },
  unreadable: { name: "unreadable", colour: "var(--part-gap)" },
};

export function regionName(span: MapSpan, tensors: Tensor[]): string {
  if (span.kind === "tensor") return visible(tensors[span.n ?? -1]?.name ?? `tensor ${span.n}`);
  return KINDS[span.kind]?.name ?? span.kind;
}

/** Returns the CSS colour of a region. */
export function regionColour(span: MapSpan, tensors: Tensor[]): string {
  const tensor = span.kind === "tensor" ? tensors[span.n ?? -1] : undefined;
  if (tensor) return typeColour(bits(tensor));
  return KINDS[span.kind]?.colour ?? "var(--part-padding)";
}

/** Returns the index of the region that contains an offset. */
export function regionAt(spans: MapSpan[], offset: number): number {
  let low = 0;
  let high = spans.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((spans[middle]?.start ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}

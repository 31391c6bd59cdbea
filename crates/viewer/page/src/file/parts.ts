// Names and colours of the parts of a file.
import type { Tensor } from "../api/tensor-types";
import type { MapSpan } from "../api/types";
import { visible } from "../format";
import { bits, typeColour } from "../ui/type-colour";

const KINDS: Record<string, { name: string; colour: string }> = {
  start: { name: "magic, version, counts", colour: "var(--part-start)" },
  keys: { name: "metadata", colour: "var(--part-keys)" },
  directory: { name: "tensor directory", colour: "var(--part-directory)" },
  padding: { name: "padding", colour: "var(--part-padding)" },
  gap: { name: "gap", colour: "var(--part-gap)" },
  beyond: { name: "beyond the last tensor", colour: "var(--part-gap)" },
  unreadable: { name: "unreadable", colour: "var(--part-gap)" },
};

export function partName(span: MapSpan, tensors: Tensor[]): string {
  if (span.kind === "tensor") return visible(tensors[span.n ?? -1]?.name ?? `tensor ${span.n}`);
  return KINDS[span.kind]?.name ?? span.kind;
}

/** The colour of a part, as CSS has it. */
export function partColour(span: MapSpan, tensors: Tensor[]): string {
  const tensor = span.kind === "tensor" ? tensors[span.n ?? -1] : undefined;
  if (tensor) return typeColour(bits(tensor));
  return KINDS[span.kind]?.colour ?? "var(--part-padding)";
}

/** The number of the part with a byte. */
export function partAt(spans: MapSpan[], offset: number): number {
  let low = 0;
  let high = spans.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((spans[middle]?.start ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}

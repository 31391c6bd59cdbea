// RoPE pairs of the rows of query and key projections.
import type { RopeProjection } from "../api/tensor-types";

/** Returns the RoPE pair of a dimension of a head, and which of its two elements it is. */
export function pairOf(rope: RopeProjection, dimension: number): string {
  const at = dimension - rope.start;
  if (at < 0 || at >= rope.dimensions) return "not rotated";
  const half = rope.dimensions / 2;
  const [pair, isSecond] = rope.layout === "interleaved" ? [Math.floor(at / 2), at % 2 === 1] : [at % half, at >= half];
  return `pair ${pair}${isSecond ? "b" : "a"}`;
}

/** Returns the row that is rotated together with a row of heads of `size` rows, or null. */
export function partnerOf(rope: RopeProjection, row: number, size: number): number | null {
  const at = (row % size) - rope.start;
  if (at < 0 || at >= rope.dimensions) return null;
  const half = rope.dimensions / 2;
  if (rope.layout === "interleaved") return at % 2 === 0 ? row + 1 : row - 1;
  return at < half ? row + half : row - half;
}

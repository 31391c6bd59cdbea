// How far the scale of a picture goes, to begin with.
import { useAnswer } from "../api/resource";
import type { Source } from "../heat/tiles";

/** This share of the weights lies within the scale: a few outliers must not make all others pale. */
const WITHIN = 0.995;

/** Told by the smallest picture of all: its extremes, or its means where there are none. Null until it is there. */
export function useRange(source: Source): number | null {
  const top = source.levels - 1;
  const { value, failure } = useAnswer(`range ${source.name}`, async (stop) => {
    const tile = await source.load(top, 0, 0, stop);
    // Of large pictures the extreme of a pixel is of many weights, and would make the scale too wide: means and
    // extremes together are between.
    const sizes = tile.planes.flatMap((plane) => sizesOf(plane));
    sizes.sort((a, b) => a - b);
    return {
      name: source.name,
      range: sizes[Math.floor((sizes.length - 1) * WITHIN)] || (sizes[sizes.length - 1] ?? 0) || 1,
    };
  });
  if (failure) return 1;
  return value?.name === source.name ? value.range : null;
}

function sizesOf(plane: Float32Array): number[] {
  const sizes: number[] = [];
  for (const value of plane) if (Number.isFinite(value)) sizes.push(Math.abs(value));
  return sizes;
}

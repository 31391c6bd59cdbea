// Initial range of the color scale.
import { useRequest } from "../api/resource";
import type { Source } from "../heatmap/tiles";

/** Quantile of magnitudes at the ends of the scale, so that outliers do not wash out the rest. */
const QUANTILE = 0.995;

/** Returns the initial range from the top mipmap level, or null until it is loaded. */
export function useColorRange(source: Source): number | null {
  const top = source.levels - 1;
  const { value, failure } = useRequest(`range ${source.name}`, async (stop) => {
    const tile = await source.load(top, 0, 0, stop);
    // The absmax of many weights alone would make the scale too wide, so use means and absmax values together.
    const values = tile.planes.flatMap((plane) => magnitudes(plane));
    values.sort((a, b) => a - b);
    return {
      name: source.name,
      range: values[Math.floor((values.length - 1) * QUANTILE)] || (values[values.length - 1] ?? 0) || 1,
    };
  });
  if (failure) return 1;
  return value?.name === source.name ? value.range : null;
}

function magnitudes(plane: Float32Array): number[] {
  const values: number[] = [];
  for (const value of plane) if (Number.isFinite(value)) values.push(Math.abs(value));
  return values;
}

// Column and row indices along the edges of the heat map.
import { whole } from "../format";
import { type Camera, type Size } from "./camera";
import { screen } from "./draw";
import type { Source } from "./tiles";

export function Rulers({ camera, size, source }: { camera: Camera; size: Size; source: Source }) {
  return (
    <>
      <div class="ruler ruler-columns" aria-hidden="true">
        {ticks(camera.column, camera, size.width, source.columns, 64).map((at) => (
          <span key={at} style={{ left: `${screen(at + shift(camera), camera.column, camera, size.width)}px` }}>
            {whole(at)}
          </span>
        ))}
      </div>
      <div class="ruler ruler-rows" aria-hidden="true">
        {ticks(camera.row, camera, size.height, source.rows, 36).map((at) => (
          <span key={at} style={{ top: `${screen(at + shift(camera), camera.row, camera, size.height)}px` }}>
            {whole(at)}
          </span>
        ))}
      </div>
    </>
  );
}

/** Returns the offset that centers labels on large weights. */
function shift(camera: Camera): number {
  return camera.scale >= 10 ? 0.5 : 0;
}

/** Returns round numbers at least `apart` pixels from each other. */
function ticks(middle: number, camera: Camera, length: number, count: number, apart: number): number[] {
  const minStep = apart / camera.scale;
  const power = 10 ** Math.floor(Math.log10(minStep));
  const every = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= minStep) ?? 10 * power);
  const half = length / 2 / camera.scale;
  const first = Math.max(0, Math.ceil((middle - half) / every) * every);
  const found: number[] = [];
  for (let at = first; at < count && at <= middle + half; at += every) found.push(at);
  return found;
}

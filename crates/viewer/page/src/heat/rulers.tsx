// Numbers of columns and rows along the edges of a picture.
import { whole } from "../format";
import { type Camera, type Room } from "./camera";
import { screen } from "./draw";
import type { Source } from "./tiles";

export function Rulers({ camera, room, source }: { camera: Camera; room: Room; source: Source }) {
  return (
    <>
      <div class="ruler ruler-columns" aria-hidden="true">
        {ticks(camera.column, camera, room.width, source.columns, 64).map((at) => (
          <span key={at} style={{ left: `${screen(at + shift(camera), camera.column, camera, room.width)}px` }}>
            {whole(at)}
          </span>
        ))}
      </div>
      <div class="ruler ruler-rows" aria-hidden="true">
        {ticks(camera.row, camera, room.height, source.rows, 36).map((at) => (
          <span key={at} style={{ top: `${screen(at + shift(camera), camera.row, camera, room.height)}px` }}>
            {whole(at)}
          </span>
        ))}
      </div>
    </>
  );
}

/** Where weights have room, their number stands at their middle. */
function shift(camera: Camera): number {
  return camera.scale >= 10 ? 0.5 : 0;
}

/** Round numbers that are so many pixels apart or more. */
function ticks(middle: number, camera: Camera, length: number, count: number, apart: number): number[] {
  const least = apart / camera.scale;
  const power = 10 ** Math.floor(Math.log10(least));
  const every = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least) ?? 10 * power);
  const half = length / 2 / camera.scale;
  const first = Math.max(0, Math.ceil((middle - half) / every) * every);
  const found: number[] = [];
  for (let at = first; at < count && at <= middle + half; at += every) found.push(at);
  return found;
}

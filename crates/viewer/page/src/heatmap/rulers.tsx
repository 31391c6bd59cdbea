// Column and row indices along the edges of the heat map, or the numbers of groups such as heads.
import { whole } from "../format";
import { type Camera, pixels, type Size } from "./camera";
import { screen } from "./draw";
import { groupLabel, type Groups, type Source } from "./tiles";

export function Rulers({ camera, size, source }: { camera: Camera; size: Size; source: Source }) {
  const per = pixels(camera, source);
  return (
    <>
      <div class="ruler ruler-columns" aria-hidden="true">
        {labels(camera.column, per.x, size.width, source.columns, source.columnGroups, 64).map(({ at, text }) => (
          <span key={at} style={{ left: `${screen(at, camera.column, per.x, size.width)}px` }}>
            {text}
          </span>
        ))}
      </div>
      <div class="ruler ruler-rows" aria-hidden="true">
        {labels(camera.row, per.y, size.height, source.rows, source.rowGroups, 36).map(({ at, text }) => (
          <span key={at} style={{ top: `${screen(at, camera.row, per.y, size.height)}px` }}>
            {text}
          </span>
        ))}
      </div>
    </>
  );
}

interface Label {
  at: number;
  text: string;
}

/** Returns the names of groups if several are visible and have room, else indices. */
function labels(
  middle: number,
  per: number,
  length: number,
  count: number,
  groups: Groups | null | undefined,
  apart: number,
): Label[] {
  const span = (groups?.size ?? 0) * per;
  if (groups && span > 0 && span < length) {
    const number = count / groups.size;
    const found = ticks(middle / groups.size, span, length, number, apart);
    return found.map((n) => ({ at: (n + 0.5) * groups.size, text: groupLabel(groups, n) }));
  }
  // Labels of large weights are centered.
  const shift = per >= 10 ? 0.5 : 0;
  return ticks(middle, per, length, count, apart).map((n) => ({ at: n + shift, text: whole(n) }));
}

/** Returns round numbers at least `apart` pixels from each other. */
function ticks(middle: number, per: number, length: number, count: number, apart: number): number[] {
  const minStep = apart / per;
  const power = 10 ** Math.floor(Math.log10(minStep));
  const every = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= minStep) ?? 10 * power);
  const half = length / 2 / per;
  const first = Math.max(0, Math.ceil((middle - half) / every) * every);
  const found: number[] = [];
  for (let at = first; at < count && at <= middle + half; at += every) found.push(at);
  return found;
}

// Camera geometry of the heat map, without drawing.
import { type Place, SIDE, type Source } from "./tiles";

/** Maximum pixels per weight: large enough for its value as text. */
const MAX_SCALE = 72;

export interface Camera {
  /** Column and row at the center, with fractions. */
  column: number;
  row: number;
  /** CSS pixels per weight. */
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

/** Returns the camera that fits the whole matrix. */
export function fitted(source: Source, size: Size): Camera {
  return { column: source.columns / 2, row: source.rows / 2, scale: minScale(source, size) };
}

function minScale(source: Source, size: Size): number {
  const fit = Math.min(size.width / Math.max(1, source.columns), size.height / Math.max(1, source.rows));
  return Math.min(MAX_SCALE, fit);
}

/** Clamps a camera: its center stays in the matrix, its scale between the whole matrix and `MAX_SCALE`. */
export function bounded(camera: Camera, source: Source, size: Size): Camera {
  const scale = Math.min(MAX_SCALE, Math.max(minScale(source, size), camera.scale));
  return {
    column: clampAxis(camera.column, source.columns, size.width / scale),
    row: clampAxis(camera.row, source.rows, size.height / scale),
    scale,
  };
}

/** Clamps the center of an axis. A matrix smaller than the canvas is centered. */
function clampAxis(at: number, count: number, visible: number): number {
  if (visible >= count) return count / 2;
  return Math.min(count - visible / 2, Math.max(visible / 2, at));
}

/** Zooms by a factor around a point of the canvas. */
export function zoomed(camera: Camera, factor: number, x: number, y: number, source: Source, size: Size): Camera {
  const scale = Math.min(MAX_SCALE, Math.max(minScale(source, size), camera.scale * factor));
  const offset = { x: x - size.width / 2, y: y - size.height / 2 };
  return bounded(
    {
      column: camera.column + offset.x / camera.scale - offset.x / scale,
      row: camera.row + offset.y / camera.scale - offset.y / scale,
      scale,
    },
    source,
    size,
  );
}

/** Returns the weight at a point of the canvas, or null outside the matrix. */
export function weightAt(
  camera: Camera,
  x: number,
  y: number,
  source: Source,
  size: Size,
): { column: number; row: number } | null {
  const column = Math.floor(camera.column + (x - size.width / 2) / camera.scale);
  const row = Math.floor(camera.row + (y - size.height / 2) / camera.scale);
  return column >= 0 && row >= 0 && column < source.columns && row < source.rows ? { column, row } : null;
}

/** Returns the mipmap level whose pixels are closest to screen pixels. */
export function level(camera: Camera, source: Source, density: number): number {
  const pixels = camera.scale * density;
  return Math.min(source.levels - 1, Math.max(0, Math.round(-Math.log2(pixels))));
}

/** Returns the visible tiles of a level, the central ones first. */
export function visibleTiles(camera: Camera, at: number, source: Source, size: Size): Place[] {
  const span = SIDE * 2 ** at;
  const range = (middle: number, half: number, count: number) => {
    const first = Math.max(0, Math.floor((middle - half) / span));
    const last = Math.min(Math.ceil(count / span) - 1, Math.floor((middle + half) / span));
    return { first, last };
  };
  const xs = range(camera.column, size.width / 2 / camera.scale, source.columns);
  const ys = range(camera.row, size.height / 2 / camera.scale, source.rows);
  const places: Place[] = [];
  for (let y = ys.first; y <= ys.last; y += 1)
    for (let x = xs.first; x <= xs.last; x += 1) places.push({ level: at, x, y });
  const distance = (place: Place) =>
    Math.hypot((place.x + 0.5) * span - camera.column, (place.y + 0.5) * span - camera.row);
  return places.sort((a, b) => distance(a) - distance(b));
}

/** Formats a camera as a URL parameter; `parsed` is the inverse. */
export function formatted(camera: Camera): string {
  return (
    [camera.column, camera.row].map((n) => String(Math.round(n * 10) / 10)).join(",") +
    `,${Number(camera.scale.toPrecision(4))}`
  );
}

export function parsed(text: string | null): Camera | null {
  const [column, row, scale] = (text ?? "").split(",").map(Number);
  if (column === undefined || row === undefined || scale === undefined) return null;
  return [column, row, scale].every(Number.isFinite) && scale > 0 ? { column, row, scale } : null;
}

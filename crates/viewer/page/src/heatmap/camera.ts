// Camera geometry of the heat map, without drawing.
import { type Place, SIDE, type Source } from "./tiles";

/** Maximum pixels per weight: large enough for its value as text. */
const MAX_SCALE = 72;
/** Pixels per weight at which a short side is fitted at most. */
const MAX_INITIAL_SCALE = 24;
/** Share of the canvas that a whole matrix must fill on both axes; a longer one is shown from its start. */
const MIN_SHARE = 0.2;
/** Ratio of the sides beyond which the weights of a short side are stretched, if it has few. */
const STRETCHED_RATIO = 8;
const FEW = 32;

export interface Camera {
  /** Column and row at the center, with fractions. */
  column: number;
  row: number;
  /** CSS pixels per weight, before the stretch of the source. */
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

/** Width and height of a weight, relative to the scale of the camera. */
export interface Stretch {
  x: number;
  y: number;
}

/** Returns the stretch that gives a matrix with few rows or columns a visible shape. */
export function stretchOf(columns: number, rows: number): Stretch {
  const factor = (short: number, long: number) =>
    short <= FEW && long > STRETCHED_RATIO * short ? long / (STRETCHED_RATIO / 2) / Math.max(1, short) : 1;
  return { x: factor(columns, rows), y: factor(rows, columns) };
}

/** Returns the pixels per column and per row. */
export function pixels(camera: Camera, source: Source): Stretch {
  return { x: camera.scale * source.stretch.x, y: camera.scale * source.stretch.y };
}

/** Returns the scales at which the width and the height of a matrix fit. */
function fits(source: Source, size: Size): Stretch {
  return {
    x: size.width / Math.max(1, source.columns) / source.stretch.x,
    y: size.height / Math.max(1, source.rows) / source.stretch.y,
  };
}

/** Returns the camera that fits the whole matrix. */
export function whole(source: Source, size: Size): Camera {
  return { column: source.columns / 2, row: source.rows / 2, scale: minScale(source, size) };
}

/** Returns the first camera: the whole matrix, or the start of a long one fitted by its short side. */
export function fitted(source: Source, size: Size): Camera {
  const { x, y } = fits(source, size);
  if (Math.min(x, y) / Math.max(x, y) >= MIN_SHARE || Math.max(x, y) <= 0) return whole(source, size);
  const scale = Math.min(MAX_INITIAL_SCALE, Math.max(x, y));
  return bounded({ column: 0, row: 0, scale: Math.max(scale, minScale(source, size)) }, source, size);
}

function minScale(source: Source, size: Size): number {
  const { x, y } = fits(source, size);
  return Math.min(maxScale(source), x, y);
}

/** A stretched weight is not larger than others on its long side. */
function maxScale(source: Source): number {
  return MAX_SCALE / Math.min(8, Math.max(source.stretch.x, source.stretch.y));
}

/** Clamps a camera: its center stays in the matrix, its scale between the whole matrix and the maximum. */
export function bounded(camera: Camera, source: Source, size: Size): Camera {
  const scale = Math.min(maxScale(source), Math.max(minScale(source, size), camera.scale));
  const { x, y } = pixels({ ...camera, scale }, source);
  return {
    column: clampAxis(camera.column, source.columns, size.width / x),
    row: clampAxis(camera.row, source.rows, size.height / y),
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
  const scale = Math.min(maxScale(source), Math.max(minScale(source, size), camera.scale * factor));
  const offset = { x: x - size.width / 2, y: y - size.height / 2 };
  const before = pixels(camera, source);
  const after = pixels({ ...camera, scale }, source);
  return bounded(
    {
      column: camera.column + offset.x / before.x - offset.x / after.x,
      row: camera.row + offset.y / before.y - offset.y / after.y,
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
  const per = pixels(camera, source);
  const column = Math.floor(camera.column + (x - size.width / 2) / per.x);
  const row = Math.floor(camera.row + (y - size.height / 2) / per.y);
  return column >= 0 && row >= 0 && column < source.columns && row < source.rows ? { column, row } : null;
}

/** Returns the mipmap level whose pixels are closest to screen pixels, on the axis with the smaller weights. */
export function level(camera: Camera, source: Source, density: number): number {
  const wanted = -Math.log2(camera.scale * density);
  // The weights of a stretched axis are large: averaging them would lose more than it saves.
  const isStretched = source.stretch.x > 1 || source.stretch.y > 1;
  return Math.min(source.levels - 1, Math.max(0, isStretched ? Math.floor(wanted / 2) : Math.round(wanted)));
}

/** Returns the range of columns and of rows on the canvas. */
export function visibleRange(camera: Camera, source: Source, size: Size) {
  const per = pixels(camera, source);
  const axis = (middle: number, half: number, count: number) => ({
    first: Math.max(0, Math.floor(middle - half)),
    end: Math.min(count, Math.ceil(middle + half)),
  });
  return {
    columns: axis(camera.column, size.width / 2 / per.x, source.columns),
    rows: axis(camera.row, size.height / 2 / per.y, source.rows),
  };
}

/** Returns the visible tiles of a level, the central ones first. */
export function visibleTiles(camera: Camera, at: number, source: Source, size: Size): Place[] {
  const span = SIDE * 2 ** at;
  const seen = visibleRange(camera, source, size);
  const last = (end: number) => Math.max(0, Math.ceil(end / span) - 1);
  const places: Place[] = [];
  for (let y = Math.floor(seen.rows.first / span); y <= last(seen.rows.end); y += 1)
    for (let x = Math.floor(seen.columns.first / span); x <= last(seen.columns.end); x += 1)
      places.push({ level: at, x, y });
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

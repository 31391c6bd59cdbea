// Which part of a matrix is seen, and how large. No drawing here.
import { type Place, SIDE, type Source } from "./tiles";

/** Pixels of a weight at most: then numbers fit in. */
const LARGEST = 72;

export interface Camera {
  /** The weight in the middle, with fractions. */
  column: number;
  row: number;
  /** Pixels of a weight, CSS pixels. */
  scale: number;
}

export interface Room {
  width: number;
  height: number;
}

/** All of the matrix. */
export function whole(source: Source, room: Room): Camera {
  return { column: source.columns / 2, row: source.rows / 2, scale: smallest(source, room) };
}

function smallest(source: Source, room: Room): number {
  const fit = Math.min(room.width / Math.max(1, source.columns), room.height / Math.max(1, source.rows));
  return Math.min(LARGEST, fit);
}

/** The same within bounds: the middle stays in the matrix, the scale between all and single weights. */
export function bounded(camera: Camera, source: Source, room: Room): Camera {
  const scale = Math.min(LARGEST, Math.max(smallest(source, room), camera.scale));
  return {
    column: axis(camera.column, source.columns, room.width / scale),
    row: axis(camera.row, source.rows, room.height / scale),
    scale,
  };
}

/** What is smaller than the room stays in its middle; else no room is left empty. */
function axis(at: number, count: number, seen: number): number {
  if (seen >= count) return count / 2;
  return Math.min(count - seen / 2, Math.max(seen / 2, at));
}

/** Larger or smaller, where the weight below a point of the room stays. */
export function zoomed(camera: Camera, factor: number, x: number, y: number, source: Source, room: Room): Camera {
  const scale = Math.min(LARGEST, Math.max(smallest(source, room), camera.scale * factor));
  const beside = { x: x - room.width / 2, y: y - room.height / 2 };
  return bounded(
    {
      column: camera.column + beside.x / camera.scale - beside.x / scale,
      row: camera.row + beside.y / camera.scale - beside.y / scale,
      scale,
    },
    source,
    room,
  );
}

/** The weight below a point of the room, or null beside the matrix. */
export function below(
  camera: Camera,
  x: number,
  y: number,
  source: Source,
  room: Room,
): { column: number; row: number } | null {
  const column = Math.floor(camera.column + (x - room.width / 2) / camera.scale);
  const row = Math.floor(camera.row + (y - room.height / 2) / camera.scale);
  return column >= 0 && row >= 0 && column < source.columns && row < source.rows ? { column, row } : null;
}

/** The level whose pixels are nearest to those of the screen. */
export function level(camera: Camera, source: Source, density: number): number {
  const pixels = camera.scale * density;
  return Math.min(source.levels - 1, Math.max(0, Math.round(-Math.log2(pixels))));
}

/** Tiles of a level that are seen, those in the middle first. */
export function seen(camera: Camera, at: number, source: Source, room: Room): Place[] {
  const size = SIDE * 2 ** at;
  const range = (middle: number, half: number, count: number) => {
    const first = Math.max(0, Math.floor((middle - half) / size));
    const last = Math.min(Math.ceil(count / size) - 1, Math.floor((middle + half) / size));
    return { first, last };
  };
  const xs = range(camera.column, room.width / 2 / camera.scale, source.columns);
  const ys = range(camera.row, room.height / 2 / camera.scale, source.rows);
  const places: Place[] = [];
  for (let y = ys.first; y <= ys.last; y += 1)
    for (let x = xs.first; x <= xs.last; x += 1) places.push({ level: at, x, y });
  const far = (place: Place) => Math.hypot((place.x + 0.5) * size - camera.column, (place.y + 0.5) * size - camera.row);
  return places.sort((a, b) => far(a) - far(b));
}

/** A part of the address, and back. */
export function written(camera: Camera): string {
  return (
    [camera.column, camera.row].map((n) => String(Math.round(n * 10) / 10)).join(",") +
    `,${Number(camera.scale.toPrecision(4))}`
  );
}

export function read(text: string | null): Camera | null {
  const [column, row, scale] = (text ?? "").split(",").map(Number);
  if (column === undefined || row === undefined || scale === undefined) return null;
  return [column, row, scale].every(Number.isFinite) && scale > 0 ? { column, row, scale } : null;
}

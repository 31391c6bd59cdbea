// Draws the visible part of a matrix.
import { significant } from "../format";
import { type Camera, level, pixels, type Size, visibleRange, visibleTiles } from "./camera";
import { css, step } from "./colormap";
import type { Stretch } from "./camera";
import { type Groups, type Place, SIDE, type Source, type Tile, type Tiles } from "./tiles";

/** Mapping of weights to colours. */
export interface ColorMapping {
  colours: Uint32Array;
  /** Cache key. */
  name: string;
  /** Magnitude at the ends of the color scale. */
  range: number;
  /** Show the value of largest magnitude of a pixel instead of the mean. */
  absmax: boolean;
  dark: boolean;
}

/** Minimum pixels per weight for block borders, weight borders and values. */
const BLOCK_LINES = 3;
const WEIGHT_LINES = 10;
const VALUES = 46;

/** Returns the means or the absmax values of a tile. */
export function plane(tile: Tile, absmax: boolean): Float32Array {
  const first = tile.planes[0] as Float32Array;
  return absmax ? (tile.planes[1] ?? first) : first;
}

/** Returns a function that paints a tile. */
export function paint(mapping: ColorMapping): (tile: Tile, into: Uint32Array) => void {
  return (tile, into) => {
    const values = plane(tile, mapping.absmax);
    const { colours, range } = mapping;
    for (let i = 0; i < into.length; i += 1) into[i] = colours[step(values[i] as number, range)] as number;
  };
}

/** Draws the loaded tiles, coarser levels where a tile is missing; returns the tiles that are needed. */
export function draw(
  canvas: CanvasRenderingContext2D,
  density: number,
  size: Size,
  camera: Camera,
  source: Source,
  tiles: Tiles,
  mapping: ColorMapping,
): Place[] {
  canvas.setTransform(density, 0, 0, density, 0, 0);
  canvas.clearRect(0, 0, size.width, size.height);
  const at = level(camera, source, density);
  const places = visibleTiles(camera, at, source, size);
  const colouring = paint(mapping);
  for (const place of places) tile(canvas, size, camera, place, source, tiles, mapping, colouring);
  const per = pixels(camera, source);
  const faint = mapping.dark ? "rgb(255 255 255 / .14)" : "rgb(0 0 0 / .12)";
  const strong = mapping.dark ? "rgb(255 255 255 / .4)" : "rgb(0 0 0 / .35)";
  const border = mapping.dark ? "rgb(255 255 255 / .55)" : "rgb(0 0 0 / .5)";
  // Blocks lie along rows, so they need no horizontal lines.
  if (per.x >= BLOCK_LINES && source.block > 1) lines(canvas, size, camera, source, { x: source.block, y: 0 }, strong);
  if (Math.min(per.x, per.y) >= WEIGHT_LINES) lines(canvas, size, camera, source, { x: 1, y: 1 }, faint);
  lines(canvas, size, camera, source, groupLines(source, per), border);
  innerLines(canvas, size, camera, source, strong);
  if (Math.min(per.x, per.y) >= VALUES && at === 0) numbers(canvas, size, camera, source, tiles, mapping);
  // Keep the top level as a fallback for missing tiles.
  const top = { level: source.levels - 1, x: 0, y: 0 };
  return at === top.level || source.remote ? places : [...(tiles.get(top) ? [] : [top]), ...places];
}

function tile(
  canvas: CanvasRenderingContext2D,
  size: Size,
  camera: Camera,
  place: Place,
  source: Source,
  tiles: Tiles,
  mapping: ColorMapping,
  colouring: ReturnType<typeof paint>,
): void {
  const span = SIDE * 2 ** place.level;
  const left = place.x * span;
  const top = place.y * span;
  const right = Math.min(source.columns, left + span);
  const bottom = Math.min(source.rows, top + span);
  for (let up = place.level; up < source.levels; up += 1) {
    const share = 2 ** (up - place.level);
    const from = { level: up, x: Math.floor(place.x / share), y: Math.floor(place.y / share) };
    const image = tiles.image(from, mapping.name, colouring);
    if (!image) continue;
    const pixel = 2 ** up;
    const x = left / pixel - from.x * SIDE;
    const y = top / pixel - from.y * SIDE;
    const per = pixels(camera, source);
    const to = { x: screen(left, camera.column, per.x, size.width), y: screen(top, camera.row, per.y, size.height) };
    // Interpolate when minifying; show each weight as a square when magnifying.
    canvas.imageSmoothingEnabled = Math.min(per.x, per.y) * pixel < 1;
    canvas.drawImage(
      image,
      x,
      y,
      Math.min(image.width - x, (right - left) / pixel),
      Math.min(image.height - y, (bottom - top) / pixel),
      to.x,
      to.y,
      (right - left) * per.x,
      (bottom - top) * per.y,
    );
    return;
  }
}

/** Returns the screen position of the start of a column or row, given the pixels of one. */
export function screen(at: number, middle: number, per: number, length: number): number {
  return (at - middle) * per + length / 2;
}

/** Minimum pixels of a group for its border. */
const GROUP_LINES = 10;

/** Returns the distances of the borders of groups, 0 for none. */
function groupLines(source: Source, per: Stretch): Stretch {
  const every = (groups: Groups | null | undefined, per: number) =>
    groups && groups.size > 1 && groups.size * per >= GROUP_LINES ? groups.size : 0;
  return { x: every(source.columnGroups, per.x), y: every(source.rowGroups, per.y) };
}

/** Draws vertical lines every `x` columns and horizontal lines every `y` rows; 0 draws none. */
function lines(
  canvas: CanvasRenderingContext2D,
  size: Size,
  camera: Camera,
  source: Source,
  every: Stretch,
  colour: string,
): void {
  if (every.x === 0 && every.y === 0) return;
  const per = pixels(camera, source);
  const seen = visibleRange(camera, source, size);
  canvas.strokeStyle = colour;
  canvas.lineWidth = 1;
  canvas.beginPath();
  const top = Math.max(0, screen(0, camera.row, per.y, size.height));
  const bottom = Math.min(size.height, screen(source.rows, camera.row, per.y, size.height));
  if (every.x > 0) {
    for (
      let column = Math.floor(seen.columns.first / every.x) * every.x;
      column <= seen.columns.end;
      column += every.x
    ) {
      const x = Math.round(screen(column, camera.column, per.x, size.width)) + 0.5;
      canvas.moveTo(x, top);
      canvas.lineTo(x, bottom);
    }
  }
  const left = Math.max(0, screen(0, camera.column, per.x, size.width));
  const right = Math.min(size.width, screen(source.columns, camera.column, per.x, size.width));
  if (every.y > 0) {
    for (let row = Math.floor(seen.rows.first / every.y) * every.y; row <= seen.rows.end; row += every.y) {
      const y = Math.round(screen(row, camera.row, per.y, size.height)) + 0.5;
      canvas.moveTo(left, y);
      canvas.lineTo(right, y);
    }
  }
  canvas.stroke();
}

/** Draws the lines within groups of rows, dashed. */
function innerLines(
  canvas: CanvasRenderingContext2D,
  size: Size,
  camera: Camera,
  source: Source,
  colour: string,
): void {
  const { size: every, inner, innerGroups } = source.rowGroups ?? { size: 0 };
  const per = pixels(camera, source).y;
  if (!inner || inner.length === 0 || (every / (inner.length + 1)) * per < GROUP_LINES) return;
  const seen = visibleRange(camera, source, size);
  const end = Math.min(seen.rows.end, every * (innerGroups ?? Infinity));
  const left = Math.max(0, screen(seen.columns.first, camera.column, pixels(camera, source).x, size.width));
  const right = Math.min(size.width, screen(seen.columns.end, camera.column, pixels(camera, source).x, size.width));
  canvas.strokeStyle = colour;
  canvas.lineWidth = 1;
  canvas.setLineDash([4, 4]);
  canvas.beginPath();
  for (let group = Math.floor(seen.rows.first / every) * every; group < end; group += every) {
    for (const at of inner) {
      if (group + at >= source.rows) break;
      const y = Math.round(screen(group + at, camera.row, per, size.height)) + 0.5;
      canvas.moveTo(left, y);
      canvas.lineTo(right, y);
    }
  }
  canvas.stroke();
  canvas.setLineDash([]);
}

function numbers(
  canvas: CanvasRenderingContext2D,
  size: Size,
  camera: Camera,
  source: Source,
  tiles: Tiles,
  mapping: ColorMapping,
): void {
  canvas.font = "11px ui-monospace, monospace";
  canvas.textAlign = "center";
  canvas.textBaseline = "middle";
  const per = pixels(camera, source);
  const seen = visibleRange(camera, source, size);
  for (let row = seen.rows.first; row < seen.rows.end; row += 1) {
    for (let column = seen.columns.first; column < seen.columns.end; column += 1) {
      const value = weight(tiles, column, row);
      if (value === null) continue;
      canvas.fillStyle = textColour(mapping.colours[step(value, mapping.range)] as number);
      const x = screen(column + 0.5, camera.column, per.x, size.width);
      canvas.fillText(significant(value), x, screen(row + 0.5, camera.row, per.y, size.height), per.x - 4);
    }
  }
}

/** Quantile of magnitudes at the ends of the color scale, so that outliers do not wash out the rest. */
const QUANTILE = 0.975;
/** Number of values that the quantile is computed from. */
const SAMPLE = 50_000;

/** Returns the range that suits the tiles that are drawn, and whether they have negative values; null if none is loaded. */
export function contrast(
  places: Place[],
  tiles: Pick<Tiles, "get">,
  absmax: boolean,
): { range: number; hasNegative: boolean } | null {
  const planes = places.flatMap((place) => {
    const tile = tiles.get(place);
    return tile ? [plane(tile, absmax)] : [];
  });
  const count = planes.reduce((sum, plane) => sum + plane.length, 0);
  if (count === 0) return null;
  const stride = Math.max(1, Math.floor(count / SAMPLE));
  const values: number[] = [];
  let hasNegative = false;
  for (const plane of planes) {
    for (let i = 0; i < plane.length; i += stride) {
      const value = plane[i] as number;
      if (!Number.isFinite(value)) continue;
      hasNegative ||= value < 0;
      values.push(Math.abs(value));
    }
  }
  values.sort((a, b) => a - b);
  return { range: values[Math.floor((values.length - 1) * QUANTILE)] || (values.at(-1) ?? 0) || 1, hasNegative };
}

/** Returns a weight, or null if its tile is not loaded. */
export function weight(tiles: Tiles, column: number, row: number): number | null {
  const tile = tiles.get({ level: 0, x: Math.floor(column / SIDE), y: Math.floor(row / SIDE) });
  if (!tile) return null;
  return plane(tile, false)[(row % SIDE) * tile.width + (column % SIDE)] ?? null;
}

/** Returns black or white, whichever contrasts with a colour. */
function textColour(colour: number): string {
  const light = 0.299 * (colour & 255) + 0.587 * ((colour >> 8) & 255) + 0.114 * ((colour >> 16) & 255);
  return light > 140 ? css(0x1d1a17) : css(0xffffff);
}

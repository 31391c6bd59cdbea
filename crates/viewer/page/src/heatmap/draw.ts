// Draws the visible part of a matrix.
import { significant } from "../format";
import { type Camera, level, type Size, visibleTiles } from "./camera";
import { css, step } from "./colormap";
import { type Place, SIDE, type Source, type Tile, type Tiles } from "./tiles";

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

function paint(mapping: ColorMapping): (tile: Tile, into: Uint32Array) => void {
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
  if (camera.scale >= BLOCK_LINES && source.block > 1) lines(canvas, size, camera, source, source.block, mapping);
  if (camera.scale >= WEIGHT_LINES) lines(canvas, size, camera, source, 1, mapping);
  if (camera.scale >= VALUES && at === 0) numbers(canvas, size, camera, source, tiles, mapping);
  // Keep the top level as a fallback for missing tiles.
  const top = { level: source.levels - 1, x: 0, y: 0 };
  return at === top.level ? places : [...(tiles.get(top) ? [] : [top]), ...places];
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
    const to = { x: screen(left, camera.column, camera, size.width), y: screen(top, camera.row, camera, size.height) };
    // Interpolate when minifying; show each weight as a square when magnifying.
    canvas.imageSmoothingEnabled = camera.scale * pixel < 1;
    canvas.drawImage(
      image,
      x,
      y,
      Math.min(image.width - x, (right - left) / pixel),
      Math.min(image.height - y, (bottom - top) / pixel),
      to.x,
      to.y,
      (right - left) * camera.scale,
      (bottom - top) * camera.scale,
    );
    return;
  }
}

/** Returns the screen position of the start of a column or row. */
export function screen(at: number, middle: number, camera: Camera, length: number): number {
  return (at - middle) * camera.scale + length / 2;
}

function lines(
  canvas: CanvasRenderingContext2D,
  size: Size,
  camera: Camera,
  source: Source,
  every: number,
  mapping: ColorMapping,
): void {
  canvas.strokeStyle = mapping.dark ? "rgb(255 255 255 / .14)" : "rgb(0 0 0 / .12)";
  if (every > 1) canvas.strokeStyle = mapping.dark ? "rgb(255 255 255 / .4)" : "rgb(0 0 0 / .35)";
  canvas.lineWidth = 1;
  canvas.beginPath();
  const ends = (middle: number, length: number, count: number) => {
    const half = length / 2 / camera.scale;
    return { first: Math.max(0, Math.floor((middle - half) / every) * every), last: Math.min(count, middle + half) };
  };
  const across = ends(camera.column, size.width, source.columns);
  const down = ends(camera.row, size.height, source.rows);
  const top = Math.max(0, screen(0, camera.row, camera, size.height));
  const bottom = Math.min(size.height, screen(source.rows, camera.row, camera, size.height));
  for (let column = across.first; column <= across.last; column += every) {
    const x = Math.round(screen(column, camera.column, camera, size.width)) + 0.5;
    canvas.moveTo(x, top);
    canvas.lineTo(x, bottom);
  }
  const left = Math.max(0, screen(0, camera.column, camera, size.width));
  const right = Math.min(size.width, screen(source.columns, camera.column, camera, size.width));
  // Blocks lie along rows, so they need no horizontal lines.
  if (every === 1) {
    for (let row = down.first; row <= down.last; row += 1) {
      const y = Math.round(screen(row, camera.row, camera, size.height)) + 0.5;
      canvas.moveTo(left, y);
      canvas.lineTo(right, y);
    }
  }
  canvas.stroke();
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
  const across = size.width / 2 / camera.scale;
  const down = size.height / 2 / camera.scale;
  const lastRow = Math.min(source.rows - 1, Math.floor(camera.row + down));
  const lastColumn = Math.min(source.columns - 1, Math.floor(camera.column + across));
  for (let row = Math.max(0, Math.floor(camera.row - down)); row <= lastRow; row += 1) {
    for (let column = Math.max(0, Math.floor(camera.column - across)); column <= lastColumn; column += 1) {
      const value = weight(tiles, column, row);
      if (value === null) continue;
      canvas.fillStyle = textColour(mapping.colours[step(value, mapping.range)] as number);
      const x = screen(column + 0.5, camera.column, camera, size.width);
      canvas.fillText(significant(value), x, screen(row + 0.5, camera.row, camera, size.height), camera.scale - 4);
    }
  }
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

// A picture of the part of a matrix that is seen.
import { significant } from "../format";
import { type Camera, level, type Room, seen } from "./camera";
import { css, step } from "./palette";
import { type Place, SIDE, type Source, type Tile, type Tiles } from "./tiles";

/** How weights become colours. */
export interface Look {
  colours: Uint32Array;
  /** Another text is another look. */
  name: string;
  /** The weight at the end of the scale. */
  range: number;
  /** Of pixels that stand for several weights, the mean or the extreme. */
  extreme: boolean;
  dark: boolean;
}

/** Above so many pixels, weights have lines between them; above the second, numbers in them. */
const LINES = 10;
const NUMBERS = 46;
/** Above so many pixels blocks have lines between them. */
const BLOCKS = 3;

/** The plane of a tile that a look shows. */
export function plane(tile: Tile, extreme: boolean): Float32Array {
  const first = tile.planes[0] as Float32Array;
  return extreme ? (tile.planes[1] ?? first) : first;
}

function paint(look: Look): (tile: Tile, into: Uint32Array) => void {
  return (tile, into) => {
    const values = plane(tile, look.extreme);
    const { colours, range } = look;
    for (let i = 0; i < into.length; i += 1) into[i] = colours[step(values[i] as number, range)] as number;
  };
}

/** Draws what is there, coarser where the right level is missing; gives the places that are needed. */
export function draw(
  canvas: CanvasRenderingContext2D,
  density: number,
  room: Room,
  camera: Camera,
  source: Source,
  tiles: Tiles,
  look: Look,
): Place[] {
  canvas.setTransform(density, 0, 0, density, 0, 0);
  canvas.clearRect(0, 0, room.width, room.height);
  const at = level(camera, source, density);
  const places = seen(camera, at, source, room);
  const colouring = paint(look);
  for (const place of places) tile(canvas, room, camera, place, source, tiles, look, colouring);
  if (camera.scale >= BLOCKS && source.block > 1) lines(canvas, room, camera, source, source.block, look);
  if (camera.scale >= LINES) lines(canvas, room, camera, source, 1, look);
  if (camera.scale >= NUMBERS && at === 0) numbers(canvas, room, camera, source, tiles, look);
  // All of the matrix is there to fall back on wherever one goes.
  const top = { level: source.levels - 1, x: 0, y: 0 };
  return at === top.level ? places : [...(tiles.get(top) ? [] : [top]), ...places];
}

function tile(
  canvas: CanvasRenderingContext2D,
  room: Room,
  camera: Camera,
  place: Place,
  source: Source,
  tiles: Tiles,
  look: Look,
  colouring: ReturnType<typeof paint>,
): void {
  const size = SIDE * 2 ** place.level;
  const left = place.x * size;
  const top = place.y * size;
  const right = Math.min(source.columns, left + size);
  const bottom = Math.min(source.rows, top + size);
  for (let up = place.level; up < source.levels; up += 1) {
    const share = 2 ** (up - place.level);
    const from = { level: up, x: Math.floor(place.x / share), y: Math.floor(place.y / share) };
    const picture = tiles.picture(from, look.name, colouring);
    if (!picture) continue;
    const pixel = 2 ** up;
    const x = left / pixel - from.x * SIDE;
    const y = top / pixel - from.y * SIDE;
    const to = { x: screen(left, camera.column, camera, room.width), y: screen(top, camera.row, camera, room.height) };
    // Smooth where several pixels share one of the screen, else each weight has its square.
    canvas.imageSmoothingEnabled = camera.scale * pixel < 1;
    canvas.drawImage(
      picture,
      x,
      y,
      Math.min(picture.width - x, (right - left) / pixel),
      Math.min(picture.height - y, (bottom - top) / pixel),
      to.x,
      to.y,
      (right - left) * camera.scale,
      (bottom - top) * camera.scale,
    );
    return;
  }
}

/** Where a column or a row begins on the screen. */
export function screen(at: number, middle: number, camera: Camera, length: number): number {
  return (at - middle) * camera.scale + length / 2;
}

function lines(
  canvas: CanvasRenderingContext2D,
  room: Room,
  camera: Camera,
  source: Source,
  every: number,
  look: Look,
): void {
  canvas.strokeStyle = look.dark ? "rgb(255 255 255 / .14)" : "rgb(0 0 0 / .12)";
  if (every > 1) canvas.strokeStyle = look.dark ? "rgb(255 255 255 / .4)" : "rgb(0 0 0 / .35)";
  canvas.lineWidth = 1;
  canvas.beginPath();
  const ends = (middle: number, length: number, count: number) => {
    const half = length / 2 / camera.scale;
    return { first: Math.max(0, Math.floor((middle - half) / every) * every), last: Math.min(count, middle + half) };
  };
  const across = ends(camera.column, room.width, source.columns);
  const down = ends(camera.row, room.height, source.rows);
  const top = Math.max(0, screen(0, camera.row, camera, room.height));
  const bottom = Math.min(room.height, screen(source.rows, camera.row, camera, room.height));
  for (let column = across.first; column <= across.last; column += every) {
    const x = Math.round(screen(column, camera.column, camera, room.width)) + 0.5;
    canvas.moveTo(x, top);
    canvas.lineTo(x, bottom);
  }
  const left = Math.max(0, screen(0, camera.column, camera, room.width));
  const right = Math.min(room.width, screen(source.columns, camera.column, camera, room.width));
  // Blocks lie along rows: between rows there are lines of weights only.
  if (every === 1) {
    for (let row = down.first; row <= down.last; row += 1) {
      const y = Math.round(screen(row, camera.row, camera, room.height)) + 0.5;
      canvas.moveTo(left, y);
      canvas.lineTo(right, y);
    }
  }
  canvas.stroke();
}

function numbers(
  canvas: CanvasRenderingContext2D,
  room: Room,
  camera: Camera,
  source: Source,
  tiles: Tiles,
  look: Look,
): void {
  canvas.font = "11px ui-monospace, monospace";
  canvas.textAlign = "center";
  canvas.textBaseline = "middle";
  const across = room.width / 2 / camera.scale;
  const down = room.height / 2 / camera.scale;
  const lastRow = Math.min(source.rows - 1, Math.floor(camera.row + down));
  const lastColumn = Math.min(source.columns - 1, Math.floor(camera.column + across));
  for (let row = Math.max(0, Math.floor(camera.row - down)); row <= lastRow; row += 1) {
    for (let column = Math.max(0, Math.floor(camera.column - across)); column <= lastColumn; column += 1) {
      const value = weight(tiles, column, row);
      if (value === null) continue;
      canvas.fillStyle = readable(look.colours[step(value, look.range)] as number);
      const x = screen(column + 0.5, camera.column, camera, room.width);
      canvas.fillText(significant(value), x, screen(row + 0.5, camera.row, camera, room.height), camera.scale - 4);
    }
  }
}

/** A weight, if its tile is there. */
export function weight(tiles: Tiles, column: number, row: number): number | null {
  const tile = tiles.get({ level: 0, x: Math.floor(column / SIDE), y: Math.floor(row / SIDE) });
  if (!tile) return null;
  return plane(tile, false)[(row % SIDE) * tile.width + (column % SIDE)] ?? null;
}

/** Black or white, whichever can be read on a colour. */
function readable(colour: number): string {
  const light = 0.299 * (colour & 255) + 0.587 * ((colour >> 8) & 255) + 0.114 * ((colour >> 16) & 255);
  return light > 140 ? css(0x1d1a17) : css(0xffffff);
}

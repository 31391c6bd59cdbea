// The picture of a matrix: colours, places, tiles. No browser needed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { below, bounded, level, read, seen, whole, written, zoomed } from "../src/heat/camera";
import { NOT_A_NUMBER, palette, STEPS, step } from "../src/heat/palette";
import { levels } from "../src/heat/source";
import { type Place, type Source, type Tile, Tiles } from "../src/heat/tiles";

const room = { width: 800, height: 500 };
function source(columns: number, rows: number, load: Source["load"] = () => new Promise(() => undefined)): Source {
  return { name: "x", columns, rows, levels: levels(columns, rows), block: 32, load };
}

/** A colour in OKLab. */
function lab(colour: number): [number, number, number] {
  const linear = [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255].map((byte) => {
    const x = byte / 255;
    return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  });
  const [r = 0, g = 0, b = 0] = linear;
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

test("steps of colours look equally large, and zero is in the middle", () => {
  for (const dark of [false, true]) {
    const colours = palette(dark);
    const parts = 16;
    const distances = Array.from({ length: parts }, (_, i) => {
      const a = lab(colours[(i * STEPS) / parts] as number);
      const b = lab(colours[((i + 1) * STEPS) / parts] as number);
      return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
    });
    const mean = distances.reduce((a, b) => a + b) / parts;
    // Rounding to bytes is at most so much.
    for (const distance of distances) assert.ok(Math.abs(distance / mean - 1) < 0.08, `${distance} beside ${mean}`);
    const [, a, b] = lab(colours[STEPS / 2] as number);
    assert.ok(Math.hypot(a, b) < 0.002, "zero has a hue");
  }
});

test("values become steps, whatever they are", () => {
  assert.equal(step(0, 1), STEPS / 2);
  assert.equal(step(1, 1), STEPS);
  assert.equal(step(-7, 1), 0);
  assert.equal(step(Number.POSITIVE_INFINITY, 1), STEPS);
  assert.equal(step(Number.NaN, 1), NOT_A_NUMBER);
  assert.equal(step(0, 0), STEPS / 2);
});

test("a level fits the screen, and the last one fits a tile", () => {
  assert.equal(levels(256, 256), 1);
  assert.equal(levels(257, 1), 2);
  assert.equal(levels(4096, 14336), 7);
  const matrix = source(4096, 14336);
  const all = whole(matrix, room);
  assert.equal(level(all, matrix, 1), 5);
  assert.equal(level({ ...all, scale: 1 }, matrix, 1), 0);
  assert.equal(level({ ...all, scale: 1 }, matrix, 2), 0);
  assert.equal(level({ ...all, scale: 0.0001 }, matrix, 1), 6);
});

test("only tiles that are seen are asked for", () => {
  const matrix = source(4096, 14336);
  const camera = bounded({ column: 2000, row: 7000, scale: 1 }, matrix, room);
  const places = seen(camera, 0, matrix, room);
  // 800 x 500 pixels at one weight each touch at most 5 x 3 tiles.
  assert.ok(places.length <= 15 && places.length >= 8);
  for (const { x, y } of places) {
    assert.ok((x + 1) * 256 > 1600 && x * 256 < 2400 && (y + 1) * 256 > 6750 && y * 256 < 7250);
  }
});

test("what is below the pointer stays there", () => {
  const matrix = source(4096, 14336);
  const camera = { column: 2000, row: 7000, scale: 2 };
  const before = below(camera, 123, 321, matrix, room);
  assert.deepEqual(below(zoomed(camera, 3, 123, 321, matrix, room), 123, 321, matrix, room), before);
  assert.equal(below(whole(source(10, 10), room), 1, 1, source(10, 10), room), null);
  assert.deepEqual(read(written(camera)), camera);
  assert.equal(read("1,2"), null);
  assert.equal(read("a,b,c"), null);
});

test("requests that went out of sight are called off", async () => {
  const asked: string[] = [];
  const stopped: string[] = [];
  const answers = new Map<string, (tile: Tile) => void>();
  const tiles = new Tiles(
    source(4096, 4096, (level, x, y, stop) => {
      const name = `${level}/${x}/${y}`;
      asked.push(name);
      stop.addEventListener("abort", () => stopped.push(name));
      return new Promise((resolve) => answers.set(name, resolve));
    }),
    () => undefined,
  );
  const place = (x: number): Place => ({ level: 0, x, y: 0 });
  tiles.want([0, 1, 2, 3, 4, 5, 6, 7].map(place));
  assert.deepEqual(asked, ["0/0/0", "0/1/0", "0/2/0", "0/3/0", "0/4/0", "0/5/0"], "six at a time");
  tiles.want([5, 6, 7, 8].map(place));
  assert.deepEqual(stopped, ["0/0/0", "0/1/0", "0/2/0", "0/3/0", "0/4/0"]);
  assert.deepEqual(asked.slice(6), ["0/6/0", "0/7/0", "0/8/0"]);
  answers.get("0/5/0")?.({ width: 1, height: 1, planes: [new Float32Array(1)], exact: true });
  await new Promise((done) => setTimeout(done, 0));
  assert.ok(tiles.get(place(5)));
  assert.equal(tiles.missing(), 3);
});

// Heat map without a browser: colormap, camera, tiles.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bounded,
  fitted,
  formatted,
  level,
  parsed,
  visibleTiles,
  weightAt,
  whole,
  zoomed,
} from "../src/heatmap/camera";
import { colormap, NAN_STEP, STEPS, step } from "../src/heatmap/colormap";
import { levels } from "../src/heatmap/source";
import { type Place, type Source, type Tile, Tiles } from "../src/heatmap/tiles";

const size = { width: 800, height: 500 };
function source(columns: number, rows: number, load: Source["load"] = () => new Promise(() => undefined)): Source {
  return { name: "x", columns, rows, levels: levels(columns, rows), block: 32, stretch: { x: 1, y: 1 }, load };
}

/** Converts a colour to OKLab. */
function oklab(colour: number): [number, number, number] {
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

test("the colormap is perceptually uniform and neutral at zero", () => {
  for (const dark of [false, true]) {
    const colours = colormap(dark);
    const parts = 16;
    const distances = Array.from({ length: parts }, (_, i) => {
      const a = oklab(colours[(i * STEPS) / parts] as number);
      const b = oklab(colours[((i + 1) * STEPS) / parts] as number);
      return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
    });
    const mean = distances.reduce((a, b) => a + b) / parts;
    // The tolerance covers rounding to bytes.
    for (const distance of distances) assert.ok(Math.abs(distance / mean - 1) < 0.08, `${distance} beside ${mean}`);
    const [, a, b] = oklab(colours[STEPS / 2] as number);
    assert.ok(Math.hypot(a, b) < 0.002, "zero has a hue");
  }
});

test("values map to steps, including NaN and infinity", () => {
  assert.equal(step(0, 1), STEPS / 2);
  assert.equal(step(1, 1), STEPS);
  assert.equal(step(-7, 1), 0);
  assert.equal(step(Number.POSITIVE_INFINITY, 1), STEPS);
  assert.equal(step(Number.NaN, 1), NAN_STEP);
  assert.equal(step(0, 0), STEPS / 2);
});

test("the mipmap level matches the screen, and the last level fits a tile", () => {
  assert.equal(levels(256, 256), 1);
  assert.equal(levels(257, 1), 2);
  assert.equal(levels(4096, 14336), 7);
  const matrix = source(4096, 14336);
  const all = whole(matrix, size);
  assert.equal(level(all, matrix, 1), 5);
  assert.equal(level({ ...all, scale: 1 }, matrix, 1), 0);
  assert.equal(level({ ...all, scale: 1 }, matrix, 2), 0);
  assert.equal(level({ ...all, scale: 0.0001 }, matrix, 1), 6);
});

test("only visible tiles are requested", () => {
  const matrix = source(4096, 14336);
  const camera = bounded({ column: 2000, row: 7000, scale: 1 }, matrix, size);
  const places = visibleTiles(camera, 0, matrix, size);
  // 800 x 500 pixels at one weight each touch at max 5 x 3 tiles.
  assert.ok(places.length <= 15 && places.length >= 8);
  for (const { x, y } of places) {
    assert.ok((x + 1) * 256 > 1600 && x * 256 < 2400 && (y + 1) * 256 > 6750 && y * 256 < 7250);
  }
});

test("zooming keeps the weight under the pointer", () => {
  const matrix = source(4096, 14336);
  const camera = { column: 2000, row: 7000, scale: 2 };
  const before = weightAt(camera, 123, 321, matrix, size);
  assert.deepEqual(weightAt(zoomed(camera, 3, 123, 321, matrix, size), 123, 321, matrix, size), before);
  assert.equal(weightAt(fitted(source(10, 10), size), 1, 1, source(10, 10), size), null);
  assert.deepEqual(parsed(formatted(camera)), camera);
  assert.equal(parsed("1,2"), null);
  assert.equal(parsed("a,b,c"), null);
});

test("requests for tiles that are no longer visible are cancelled", async () => {
  const requested: string[] = [];
  const cancelled: string[] = [];
  const answers = new Map<string, (tile: Tile) => void>();
  const tiles = new Tiles(
    source(4096, 4096, (level, x, y, stop) => {
      const name = `${level}/${x}/${y}`;
      requested.push(name);
      stop.addEventListener("abort", () => cancelled.push(name));
      return new Promise((resolve) => answers.set(name, resolve));
    }),
    () => undefined,
  );
  const place = (x: number): Place => ({ level: 0, x, y: 0 });
  tiles.request([0, 1, 2, 3, 4, 5, 6, 7].map(place));
  assert.deepEqual(requested, ["0/0/0", "0/1/0", "0/2/0", "0/3/0", "0/4/0", "0/5/0"], "six at a time");
  tiles.request([5, 6, 7, 8].map(place));
  assert.deepEqual(cancelled, ["0/0/0", "0/1/0", "0/2/0", "0/3/0", "0/4/0"]);
  assert.deepEqual(requested.slice(6), ["0/6/0", "0/7/0", "0/8/0"]);
  answers.get("0/5/0")?.({ width: 1, height: 1, planes: [new Float32Array(1)], exact: true });
  await new Promise((done) => setTimeout(done, 0));
  assert.ok(tiles.get(place(5)));
  assert.equal(tiles.missing(), 3);
});

// Tile sources of the server: a tensor, a field of its blocks, a difference of two tensors.
import { address, ApiError, request } from "../api/request";
import { stretchOf } from "./camera";
import { SIDE, type Source, type Tile } from "./tiles";

/** Returns the number of mipmap levels; the last fits one tile. */
export function levels(columns: number, rows: number): number {
  let level = 1;
  for (let size = SIDE; size < Math.max(columns, rows); size *= 2) level += 1;
  return level;
}

/** Returns the source of the weights of a tensor, or of the block field `of`. */
export function tensorSource(
  model: number,
  tensor: { n: number; rows: number; columns: number; block: number; blocks_per_row: number },
  of: string,
): Source {
  const columns = of ? tensor.blocks_per_row : tensor.columns;
  return {
    name: `${model}/${tensor.n}/${of}`,
    columns,
    rows: tensor.rows,
    levels: levels(columns, tensor.rows),
    block: of ? 1 : tensor.block,
    // The scale of a block is as wide as its weights, so that a map of scales has the shape of the matrix.
    stretch: of ? { x: Math.max(1, tensor.block), y: 1 } : stretchOf(columns, tensor.rows),
    load: (level, x, y, stop) =>
      load(address(["models", model, "tensor", "tile"], { n: tensor.n, level, x, y, of }), stop),
  };
}

/** Returns the source of the difference `b - a`. */
export function differenceSource(a: number, b: number, name: string, columns: number, rows: number): Source {
  return {
    name: `${a}/${b}/${name}`,
    columns,
    rows,
    levels: levels(columns, rows),
    block: 1,
    stretch: stretchOf(columns, rows),
    load: (level, x, y, stop) => load(address(["compare", a, b, "tile"], { name, level, x, y }), stop),
  };
}

async function load(path: string, stop: AbortSignal): Promise<Tile> {
  const response = await request(path, { signal: stop });
  const number = (name: string) => Number(response.headers.get(name));
  const width = number("tile-width");
  const height = number("tile-height");
  const body = await response.arrayBuffer();
  const planes = number("tile-planes");
  if (width * height * planes * 4 !== body.byteLength)
    throw new ApiError(0, "page", "the size of a tile does not match its headers", null);
  const plane = (n: number) => new Float32Array(body, n * width * height * 4, width * height);
  return {
    width,
    height,
    planes: Array.from({ length: planes }, (_, n) => plane(n)),
    exact: response.headers.get("tile-exact") === "true",
  };
}

// Pictures of the server: of a tensor, of one of its scales, of a difference.
import { address, Failure, request } from "../api/request";
import { SIDE, type Source, type Tile } from "./tiles";

/** How many levels a picture has: the last fits a tile. */
export function levels(columns: number, rows: number): number {
  let level = 1;
  for (let size = SIDE; size < Math.max(columns, rows); size *= 2) level += 1;
  return level;
}

/** The weights of a tensor, or with `of` one of the fields of its blocks. */
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
    load: (level, x, y, stop) =>
      load(address(["models", model, "tensor", "tile"], { n: tensor.n, level, x, y, of }), stop),
  };
}

/** What is different between two models: `b - a`. */
export function differenceSource(a: number, b: number, name: string, columns: number, rows: number): Source {
  return {
    name: `${a}/${b}/${name}`,
    columns,
    rows,
    levels: levels(columns, rows),
    block: 1,
    load: (level, x, y, stop) => load(address(["compare", a, b, "tile"], { name, level, x, y }), stop),
  };
}

async function load(path: string, stop: AbortSignal): Promise<Tile> {
  const answer = await request(path, { signal: stop });
  const number = (name: string) => Number(answer.headers.get(name));
  const width = number("tile-width");
  const height = number("tile-height");
  const body = await answer.arrayBuffer();
  const planes = number("tile-planes");
  if (width * height * planes * 4 !== body.byteLength)
    throw new Failure(0, "page", "a tile has another size than it says", null);
  const plane = (n: number) => new Float32Array(body, n * width * height * 4, width * height);
  return {
    width,
    height,
    planes: Array.from({ length: planes }, (_, n) => plane(n)),
    exact: answer.headers.get("tile-exact") === "true",
  };
}

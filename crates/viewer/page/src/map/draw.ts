// Draws the picture of a whole model.
import { typeColour, bits } from "../ui/type-colour";
import type { ColorMapping } from "../heatmap/draw";
import type { Grid } from "./grid";
import type { Thumbnails } from "./thumbnails";

export interface Layout {
  /** Pixels of a cell, and of the labels beside and above the cells. */
  cell: number;
  left: number;
  top: number;
}

export type Colouring = "weights" | "types";

export function sizeOf(grid: Grid, { cell, left, top }: Layout): { width: number; height: number } {
  return { width: left + grid.columns.length * cell, height: top + grid.rows.length * cell };
}

export function drawMap(
  context: CanvasRenderingContext2D,
  grid: Grid,
  layout: Layout,
  colouring: Colouring,
  thumbnails: Thumbnails,
  mapping: Omit<ColorMapping, "range">,
  colour: (variable: string) => string,
  active: number | null,
): void {
  const { cell, left, top } = layout;
  const size = sizeOf(grid, layout);
  context.clearRect(0, 0, size.width, size.height);
  const gap = cell >= 16 ? 2 : 1;
  context.font = `${Math.min(12, Math.max(8, cell * 0.6))}px system-ui, sans-serif`;
  context.fillStyle = colour("--soft");
  context.textBaseline = "middle";
  context.textAlign = "right";
  if (cell >= 10)
    for (const [row, name] of grid.rows.entries())
      context.fillText(name, left - 8, top + (row + 0.5) * cell, left - 12);
  context.textAlign = "center";
  const every = Math.max(1, Math.ceil(22 / cell));
  for (const [column, name] of grid.columns.entries())
    if (name !== "" && (column - 1) % every === 0)
      context.fillText(name, left + (column + 0.5) * cell, top - 9, cell * every - 2);
  context.imageSmoothingEnabled = true;
  for (const [index, { tensor, column, row }] of grid.cells.entries()) {
    const [x, y] = [left + column * cell, top + row * cell];
    const image = colouring === "weights" ? thumbnails.image(tensor.n, mapping) : null;
    const side = cell - gap;
    if (image) context.drawImage(image, x, y, side, side);
    else {
      context.globalAlpha = colouring === "types" ? 1 : 0.25;
      context.fillStyle = colour(typeColour(bits(tensor)).slice(4, -1));
      context.fillRect(x, y, side, side);
      context.globalAlpha = 1;
    }
    if (index === active) {
      context.strokeStyle = colour("--ink");
      context.lineWidth = 2;
      context.strokeRect(x - 1, y - 1, side + 2, side + 2);
    }
  }
}

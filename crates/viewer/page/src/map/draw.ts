// Draws the picture of a whole model.
import { typeColour, bits } from "../ui/type-colour";
import type { ColorMapping } from "../heatmap/draw";
import type { Grid } from "./grid";
import type { Thumbnails } from "./thumbnails";

export interface Layout {
  /** Pixels of a cell. */
  cell: { width: number; height: number };
  /** Pixels of the labels beside and above the cells. */
  left: number;
  top: number;
}

export type Colouring = "weights" | "types";

export function sizeOf(grid: Grid, { cell, left, top }: Layout): { width: number; height: number } {
  return { width: left + grid.columns.length * cell.width, height: top + grid.rows.length * cell.height };
}

/** Pixels above the cells: one line for numbers of layers, and one for the parts of the model if it has several. */
export function labelHeight(grid: Grid): number {
  return grid.columns.some(({ part }) => part !== "") ? 36 : 20;
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
  const gap = Math.min(cell.width, cell.height) >= 16 ? 2 : 1;
  context.font = `${Math.min(12, Math.max(8, cell.height * 0.6))}px system-ui, sans-serif`;
  context.fillStyle = colour("--soft");
  context.textBaseline = "middle";
  context.textAlign = "right";
  if (cell.height >= 10)
    for (const [row, name] of grid.rows.entries())
      context.fillText(name, left - 8, top + (row + 0.5) * cell.height, left - 12);
  const every = Math.max(1, Math.ceil(22 / cell.width));
  let start = 1;
  for (const [column, { part, layer }] of grid.columns.entries()) {
    if (layer === null) continue;
    if (part !== grid.columns[column - 1]?.part) {
      start = column;
      const count = grid.columns.filter((other) => other.part === part).length;
      context.textAlign = "left";
      context.fillText(part, left + column * cell.width, top - 26, cell.width * count - 4);
    }
    context.textAlign = "center";
    if ((column - start) % every === 0)
      context.fillText(String(layer), left + (column + 0.5) * cell.width, top - 9, cell.width * every - 2);
  }
  context.imageSmoothingEnabled = true;
  for (const [index, { tensor, column, row }] of grid.cells.entries()) {
    const [x, y] = [left + column * cell.width, top + row * cell.height];
    const image = colouring === "weights" ? thumbnails.image(tensor.n, mapping) : null;
    const [width, height] = [cell.width - gap, cell.height - gap];
    if (image) context.drawImage(image, x, y, width, height);
    else {
      context.globalAlpha = colouring === "types" ? 1 : 0.25;
      context.fillStyle = colour(typeColour(bits(tensor)).slice(4, -1));
      context.fillRect(x, y, width, height);
      context.globalAlpha = 1;
    }
    if (index === active) {
      context.strokeStyle = colour("--ink");
      context.lineWidth = 2;
      context.strokeRect(x - 1, y - 1, width + 2, height + 2);
    }
  }
}

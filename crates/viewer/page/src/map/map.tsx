// The whole model as one picture: every tensor in its layer, zoomable, saved as a poster.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useDocument } from "../api/resource";
import type { Tensor } from "../api/tensor-types";
import type { Model, Summary } from "../api/types";
import { bytes, count, fixed, plural, shape, visible, whole } from "../format";
import { colormap } from "../heatmap/colormap";
import type { ColorMapping } from "../heatmap/draw";
import { link, navigate, setParams } from "../route";
import { modelName } from "../ui/model-name";
import { savePng } from "../ui/save";
import { Loaded } from "../ui/states";
import { isDark, scheme } from "../ui/theme";
import { bits } from "../ui/type-colour";
import { param, type ViewProps } from "../ui/view";
import { useWidth } from "../ui/width";
import { type Colouring, drawMap, labelHeight, type Layout, sizeOf } from "./draw";
import { type Grid, gridOf } from "./grid";
import { Thumbnails } from "./thumbnails";

const [MIN_CELL, MAX_CELL] = [4, 200];
/** Height of cells that are narrower, and the least height of all if there are many rows. */
const [NARROW_HEIGHT, MIN_HEIGHT] = [36, 20];
/** Most pixels of a side of a canvas. */
const MAX_SIDE = 16_000;
/** Pixels of the poster. */
const POSTER = { width: 3840, height: 2160 };

export function MapView({ model }: ViewProps) {
  const tensors = useDocument<{ tensors: Tensor[] }>(`models/${model.id}/tensors`);
  const summary = useDocument<Summary>(`models/${model.id}/summary`);
  return (
    <>
      <div class="view-head">
        <h1>Map</h1>
        <p class="faint">All tensors: layers across, kinds down. Click one to open it.</p>
      </div>
      <Loaded
        resource={tensors}
        render={({ tensors }) => <Picture model={model} tensors={tensors} summary={summary.value} />}
        fallback={<div class="split-room" role="status" aria-label="Loading" />}
      />
    </>
  );
}

function Picture({ model, tensors, summary }: { model: Model; tensors: Tensor[]; summary: Summary | null }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { element, width } = useWidth<HTMLDivElement>();
  const grid = useMemo(() => gridOf(tensors), [tensors]);
  const thumbnails = useMemo(() => new Thumbnails(model.id), [model.id]);
  const colouring: Colouring = param("color") === "types" ? "types" : "weights";
  const zoom = useSignal(1);
  const active = useSignal<number | null>(null);
  const edition = scheme.value;
  const loaded = thumbnails.edition.value;
  useEffect(() => () => thumbnails.stop(), [thumbnails]);
  useEffect(() => {
    // Column by column, as the picture is read.
    const ordered = [...grid.cells].sort((a, b) => a.column - b.column || a.row - b.row);
    if (colouring === "weights") thumbnails.request(ordered.map(({ tensor }) => tensor));
  }, [thumbnails, grid, colouring]);
  const mapping = useMemo(() => mappingOf(isDark()), [edition]);
  const labels = { left: Math.min(170, Math.max(70, width * 0.16)), top: labelHeight(grid) };
  const fitted = Math.max(MIN_CELL, Math.min(64, (width - labels.left - 2) / grid.columns.length));
  // Cells are squares, unless many layers make them low, or many kinds of tensors need more than the window.
  const room = (innerHeight * 0.76 - labels.top) / Math.max(1, grid.rows.length);
  const fittedHeight = Math.min(Math.max(fitted, NARROW_HEIGHT), Math.max(MIN_HEIGHT, room));
  const scaled = (fitted: number, count: number) =>
    Math.min(MAX_CELL, (MAX_SIDE - 200) / count, Math.max(MIN_CELL, fitted * zoom.value));
  const cell = { width: scaled(fitted, grid.columns.length), height: scaled(fittedHeight, grid.rows.length) };
  const layout: Layout = { cell, ...labels };
  const size = sizeOf(grid, layout);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!canvas.current || !context || width === 0) return;
    const density = Math.min(devicePixelRatio || 1, MAX_SIDE / Math.max(size.width, size.height));
    canvas.current.width = Math.round(size.width * density);
    canvas.current.height = Math.round(size.height * density);
    context.setTransform(density, 0, 0, density, 0, 0);
    drawMap(context, grid, layout, colouring, thumbnails, mapping, variable(), active.value);
  }, [grid, cell.width, cell.height, width, colouring, loaded, mapping, active.value]);
  useEffect(() => {
    const found = canvas.current;
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      set(zoom.value * Math.exp(-event.deltaY * 0.002));
    };
    found?.addEventListener("wheel", wheel, { passive: false });
    return () => found?.removeEventListener("wheel", wheel);
  }, [fitted]);
  function set(to: number): void {
    zoom.value = Math.min(MAX_CELL / fitted, Math.max(0.25, to));
  }
  function cellAt(event: PointerEvent | MouseEvent): number | null {
    const column = Math.floor((event.offsetX - labels.left) / cell.width);
    const row = Math.floor((event.offsetY - labels.top) / cell.height);
    const index = grid.cells.findIndex((entry) => entry.column === column && entry.row === row);
    return index < 0 ? null : index;
  }
  function open(index: number | null): void {
    const entry = index === null ? undefined : grid.cells[index];
    if (entry) navigate(link([model.id, "tensors", entry.tensor.n]));
  }
  function key(event: KeyboardEvent): void {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter") open(active.value);
    else if (event.key === "+" || event.key === "=") set(zoom.value * 1.3);
    else if (event.key === "-") set(zoom.value / 1.3);
    else if (event.key === "0") set(1);
    else if (step) active.value = neighbour(grid, active.value, step as [number, number]);
    else return;
    event.preventDefault();
  }
  const drawable = grid.cells.filter(({ tensor }) => tensor.missing_bytes === 0).length;
  const isDrawing = colouring === "weights" && thumbnails.done < drawable;
  const chosen = active.value === null ? null : grid.cells[active.value]?.tensor;
  return (
    <figure class="map">
      <div class="heat-tools" role="group" aria-label="Map">
        <button type="button" aria-label="Zoom in" onClick={() => set(zoom.value * 1.4)}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => set(zoom.value / 1.4)}>
          −
        </button>
        <button type="button" onClick={() => set(1)}>
          Fit
        </button>
        <button
          type="button"
          disabled={isDrawing}
          title="PNG of 3840 × 2160 pixels"
          onClick={() => savePoster(model, summary, grid, colouring, thumbnails, mapping)}
        >
          Save poster
        </button>
        <div class="segments" role="group" aria-label="Color by">
          <button type="button" aria-pressed={colouring === "weights"} onClick={() => setParams({ color: null })}>
            Weights
          </button>
          <button type="button" aria-pressed={colouring === "types"} onClick={() => setParams({ color: "types" })}>
            Types
          </button>
        </div>
      </div>
      <p class="map-reading" role="status">
        {chosen
          ? `${visible(chosen.name)}: ${chosen.type} ${shape(chosen.shape)}, ${bytes(chosen.bytes ?? 0)}, ${fixed(bits(chosen), 2)} bits per weight`
          : isDrawing
            ? `${whole(thumbnails.done)} of ${plural(grid.cells.length, "tensor")} drawn`
            : `${plural(grid.cells.length, "tensor")}`}
      </p>
      <div ref={element} class="map-scroll">
        <canvas
          ref={canvas}
          class="map-canvas"
          role="application"
          aria-roledescription="map of tensors"
          aria-label={`${grid.cells.length} tensors in ${grid.columns.length - 1} layers. Arrow keys move, Enter opens a tensor. The Tensors view lists them.`}
          tabIndex={0}
          style={{ width: `${size.width}px`, height: `${size.height}px` }}
          onPointerMove={(event) => (active.value = cellAt(event))}
          onPointerLeave={() => (active.value = null)}
          onClick={(event) => open(cellAt(event))}
          onKeyDown={key}
        />
      </div>
      <figcaption class="faint">
        {colouring === "weights"
          ? "Each cell shows the weights of a tensor, with its own contrast: negative weights are blue, positive ones red."
          : "Colors are bits per weight, from warm (few) to cool (many)."}
      </figcaption>
    </figure>
  );
}

function mappingOf(dark: boolean): Omit<ColorMapping, "range"> {
  return { colours: colormap(dark), name: `map ${dark}`, absmax: true, dark };
}

/** Returns a function that resolves CSS variables. */
function variable(): (name: string) => string {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(name).trim();
}

/** Returns the nearest cell in a direction. */
function neighbour(grid: Grid, from: number | null, [across, down]: [number, number]): number | null {
  const start = from === null ? null : grid.cells[from];
  if (!start) return grid.cells.length > 0 ? 0 : null;
  for (let far = 1; far < Math.max(grid.columns.length, grid.rows.length); far += 1) {
    const found = grid.cells.findIndex(
      ({ column, row }) => column === start.column + across * far && row === start.row + down * far,
    );
    if (found >= 0) return found;
  }
  return from;
}

/** Saves a picture of 3840 x 2160 pixels with the name and the figures of the model. */
function savePoster(
  model: Model,
  summary: Summary | null,
  grid: Grid,
  colouring: Colouring,
  thumbnails: Thumbnails,
  mapping: Omit<ColorMapping, "range">,
): void {
  const poster = document.createElement("canvas");
  [poster.width, poster.height] = [POSTER.width, POSTER.height];
  const context = poster.getContext("2d");
  if (!context) return;
  const colour = variable();
  context.fillStyle = colour("--paper");
  context.fillRect(0, 0, POSTER.width, POSTER.height);
  context.fillStyle = colour("--ink");
  context.font = "700 96px system-ui, sans-serif";
  context.fillText(summary?.name || modelName(model), 140, 210, POSTER.width - 280);
  context.fillStyle = colour("--soft");
  context.font = "48px system-ui, sans-serif";
  const facts = [
    summary?.architecture,
    summary && `${count(summary.parameters)} parameters`,
    bytes(model.bytes),
    summary?.bits_per_weight && `${fixed(summary.bits_per_weight, 2)} bits per weight`,
    plural(model.tensor_count ?? 0, "tensor"),
  ].filter(Boolean);
  context.fillText(facts.join("  ·  "), 140, 300, POSTER.width - 280);
  const room = { width: POSTER.width - 280, height: POSTER.height - 480 };
  const labels = { left: 170, top: labelHeight(grid) };
  // The map is laid out at half size, so that its labels are legible.
  const width = (room.width / 2 - labels.left) / grid.columns.length;
  const height = (room.height / 2 - labels.top) / grid.rows.length;
  // Cells are at most three times as high as wide.
  const cell = { width: Math.min(width, height), height: Math.min(height, 3 * width) };
  const layer = document.createElement("canvas");
  const size = sizeOf(grid, { cell, ...labels });
  [layer.width, layer.height] = [Math.ceil(size.width * 2), Math.ceil(size.height * 2)];
  const inner = layer.getContext("2d");
  if (!inner) return;
  inner.scale(2, 2);
  drawMap(inner, grid, { cell, ...labels }, colouring, thumbnails, mapping, colour, null);
  context.drawImage(layer, (POSTER.width - layer.width) / 2, 380);
  context.fillStyle = colour("--faint");
  context.font = "36px system-ui, sans-serif";
  context.textAlign = "right";
  context.fillText("gguf view", POSTER.width - 140, POSTER.height - 60);
  savePng(poster, `${summary?.name || modelName(model)} map`);
}

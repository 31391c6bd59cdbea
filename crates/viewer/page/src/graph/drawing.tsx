// Drawing of a graph segment with pan and zoom.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { GraphDocument, Operation } from "../api/tensor-types";
import { share, visible } from "../format";
import { layout, path } from "./layout";
import { saveSvg } from "./save-svg";
import type { Segment } from "./segments";

interface Props {
  graph: GraphDocument;
  segment: Segment;
  total: { bytes: number; compute: number };
  chosen: number | null;
  onChoose: (op: number) => void;
}

export function Drawing({ graph, segment, total, chosen, onChoose }: Props) {
  const svg = useRef<SVGSVGElement>(null);
  const drawn = useMemo(() => layout(graph, segment), [graph, segment]);
  const operations = useMemo(
    () => new Map(segment.operations.map((operation) => [operation.number, operation])),
    [segment],
  );
  const largest = useMemo(
    () => ({
      bytes: Math.max(...segment.operations.map((operation) => operation.bytes_read)),
      compute: Math.max(...segment.operations.map((operation) => operation.multiply_adds)),
    }),
    [segment],
  );
  const viewport = useSignal({ x: 0, y: 0, width: drawn.width, height: Math.min(drawn.height, drawn.width) });
  const drag = useRef<{ x: number; y: number } | null>(null);

  function zoom(factor: number, x: number, y: number): void {
    const now = viewport.value;
    const widest = Math.max(drawn.width, drawn.height) * 4;
    const width = Math.min(widest, Math.max(160, now.width * factor));
    const by = width / now.width;
    viewport.value = { x: x - (x - now.x) * by, y: y - (y - now.y) * by, width, height: now.height * by };
  }
  /** Shows the top at natural size. */
  function start(): void {
    const box = svg.current?.getBoundingClientRect();
    if (!box || box.width === 0) return;
    const width = Math.max(drawn.width, box.width * 0.8);
    viewport.value = { x: (drawn.width - width) / 2, y: 0, width, height: (width * box.height) / box.width };
  }
  /** Shows everything. */
  function fit(): void {
    const box = svg.current?.getBoundingClientRect();
    if (!box || box.width === 0 || box.height === 0) return;
    const width = Math.max(drawn.width, (drawn.height * box.width) / box.height, 160);
    const height = (width * box.height) / box.width;
    viewport.value = { x: (drawn.width - width) / 2, y: (drawn.height - height) / 2, width, height };
  }
  useEffect(() => {
    start();
    const element = svg.current;
    if (!element) return;
    const observer = new ResizeObserver(start);
    observer.observe(element);
    const wheel = (event: WheelEvent) => {
      // The wheel scrolls the page; a pinch on a touchpad arrives as Ctrl and wheel.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const { x, y } = place(event.clientX, event.clientY);
      zoom(Math.exp(event.deltaY * 0.0015), x, y);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => {
      observer.disconnect();
      element.removeEventListener("wheel", wheel);
    };
  }, [drawn]);
  function place(x: number, y: number): { x: number; y: number } {
    const box = svg.current?.getBoundingClientRect();
    const now = viewport.value;
    if (!box) return { x: 0, y: 0 };
    return {
      x: now.x + ((x - box.left) / box.width) * now.width,
      y: now.y + ((y - box.top) / box.height) * now.height,
    };
  }
  function move(x: number, y: number): void {
    const now = viewport.value;
    viewport.value = { ...now, x: now.x + x, y: now.y + y };
  }
  function key(event: KeyboardEvent): void {
    const { x, y, width, height } = viewport.value;
    const middle = [x + width / 2, y + height / 2] as const;
    const steps: Record<string, () => void> = {
      ArrowLeft: () => move(-width / 10, 0),
      ArrowRight: () => move(width / 10, 0),
      ArrowUp: () => move(0, -height / 10),
      ArrowDown: () => move(0, height / 10),
      "+": () => zoom(0.8, ...middle),
      "=": () => zoom(0.8, ...middle),
      "-": () => zoom(1.25, ...middle),
      0: fit,
    };
    const step = steps[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    step();
  }
  const { x, y, width, height } = viewport.value;
  return (
    <figure class="drawing">
      <div class="drawing-tools buttons" role="group" aria-label="Drawing">
        <button type="button" aria-label="Zoom in" onClick={() => zoom(0.8, x + width / 2, y + height / 2)}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => zoom(1.25, x + width / 2, y + height / 2)}>
          −
        </button>
        <button type="button" onClick={fit}>
          Fit
        </button>
        <button type="button" onClick={() => svg.current && saveSvg(svg.current, drawn, segment.name)}>
          Save SVG
        </button>
      </div>
      <svg
        ref={svg}
        class="graph-svg"
        viewBox={`${x} ${y} ${width} ${height}`}
        preserveAspectRatio="xMidYMin meet"
        role="group"
        aria-label={`Graph of ${segment.name}: ${segment.operations.length} operations. The table below lists them.`}
        tabIndex={0}
        onKeyDown={key}
        onPointerDown={(event) => {
          drag.current = { x: event.clientX, y: event.clientY };
        }}
        onPointerMove={(event) => {
          const from = drag.current;
          const box = svg.current?.getBoundingClientRect();
          // A finger scrolls the page.
          if (!from || !box || event.buttons === 0 || event.pointerType === "touch") return;
          move(((from.x - event.clientX) / box.width) * width, ((from.y - event.clientY) / box.height) * height);
          drag.current = { x: event.clientX, y: event.clientY };
        }}
        onPointerUp={() => (drag.current = null)}
      >
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0L8 4L0 8z" class="arrow" />
          </marker>
        </defs>
        {drawn.edges.map((edge) => (
          <path key={edge.id} class="edge" d={path(edge.points)} marker-end="url(#arrow)" />
        ))}
        {drawn.boxes.map((box) => {
          const operation = box.number === null ? undefined : operations.get(box.number);
          const at = `translate(${box.x - box.width / 2} ${box.y - box.height / 2})`;
          if (!operation) {
            return (
              <g key={box.id} transform={at} class="outside">
                <rect width={box.width} height={box.height} rx={13} />
                <text x={box.width / 2} y={17}>
                  {source(graph, segment, Number(box.id.slice(1)))}
                </text>
              </g>
            );
          }
          return (
            <g
              key={box.id}
              transform={at}
              class={`operation${box.number === chosen ? " chosen" : ""}`}
              onClick={() => onChoose(operation.number)}
            >
              <Operation operation={operation} width={box.width} height={box.height} total={total} largest={largest} />
            </g>
          );
        })}
      </svg>
      <figcaption class="drawing-legend faint">
        <span class="dot cost-bytes" aria-hidden="true" />
        bytes read, <span class="dot cost-compute" aria-hidden="true" />
        compute; a full bar is the largest of this segment. Drag to pan, Ctrl + scroll to zoom.
      </figcaption>
    </figure>
  );
}

function Operation({
  operation,
  width,
  height,
  total,
  largest,
}: {
  operation: Operation;
  width: number;
  height: number;
  total: Props["total"];
  /** Costs of a full bar. */
  largest: Props["total"];
}) {
  const weight = operation.weights[0]?.replace(/^.*blk\.\d+\./, "").replace(/\.weight$/, "");
  const room = width - 24;
  // Bars compare the operations of this segment.
  const bar = (part: number, of: number) => (of > 0 ? (room * part) / of : 0);
  const bytes = bar(operation.bytes_read, largest.bytes);
  const compute = bar(operation.multiply_adds, largest.compute);
  return (
    <>
      <title>{`${operation.number} ${operation.op}, ${operation.shape}: ${share(operation.bytes_read, total.bytes)} of bytes, ${share(operation.multiply_adds, total.compute)} of compute`}</title>
      <rect class="operation-box" width={width} height={height} rx={9} />
      <text x={12} y={20} class="operation-name">
        {operation.op}
      </text>
      <text x={width - 12} y={20} class="operation-shape">
        {operation.shape.replace("tokens x ", "× ")}
      </text>
      <text x={12} y={38} class="operation-weight">
        {weight ? ellipsis(visible(weight)) : ""}
      </text>
      <rect class="cost-bytes" x={12} y={height - 16} width={bytes} height={4} rx={2} />
      <rect class="cost-compute" x={12} y={height - 10} width={compute} height={4} rx={2} />
    </>
  );
}

function ellipsis(text: string): string {
  return text.length > 26 ? `${text.slice(0, 25)}…` : text;
}

/** Names the operation that produces a value from outside the segment. */
function source(graph: GraphDocument, segment: Segment, value: number): string {
  const operation = graph.operations.find(
    (operation) => operation.program === segment.program && operation.number === value,
  );
  return operation ? `${operation.op} ${value}` : `value ${value}`;
}

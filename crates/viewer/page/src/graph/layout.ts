// Layered layout of operations, computed by dagre.
import { Graph, layout as arrange } from "@dagrejs/dagre";
import type { GraphDocument } from "../api/tensor-types";
import { inputs, type Segment } from "./segments";

export interface Box {
  id: string;
  /** Number of the operation; null for an input from another segment. */
  number: number | null;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Edge {
  id: string;
  points: { x: number; y: number }[];
}

export interface Layout {
  boxes: Box[];
  edges: Edge[];
  width: number;
  height: number;
}

const OPERATION_SIZE = { width: 228, height: 64 };
const INPUT_SIZE = { width: 120, height: 26 };

export function layout(graph: GraphDocument, segment: Segment): Layout {
  const ops = (segment.program === "encoder" ? graph.graph.encoder?.ops : graph.graph.main.ops) ?? [];
  const drawing = new Graph({ multigraph: true });
  drawing.setGraph({ rankdir: "TB", nodesep: 26, ranksep: 34, marginx: 12, marginy: 12 });
  drawing.setDefaultEdgeLabel(() => ({}));
  for (const { number } of segment.operations) drawing.setNode(`o${number}`, { ...OPERATION_SIZE });
  for (const { number } of segment.operations) {
    for (const { name, value } of inputs(ops[number] ?? {})) {
      const inside = value >= segment.first && value < segment.end;
      const from = inside ? `o${value}` : `v${value}`;
      if (!inside) drawing.setNode(from, { ...INPUT_SIZE });
      drawing.setEdge(from, `o${number}`, {}, name);
    }
  }
  arrange(drawing);
  const boxes = drawing.nodes().map((id) => {
    const { x = 0, y = 0, width = 0, height = 0 } = drawing.node(id) as Partial<Box>;
    return { id, number: id.startsWith("o") ? Number(id.slice(1)) : null, x, y, width, height };
  });
  const edges = drawing.edges().map((edge) => {
    const { points = [] } = drawing.edge(edge) as { points?: { x: number; y: number }[] };
    return { id: `${edge.v} ${edge.w} ${edge.name ?? ""}`, points };
  });
  const { width = 0, height = 0 } = drawing.graph() as { width?: number; height?: number };
  return { boxes, edges, width, height };
}

/** Returns the SVG path through points, with rounded corners. */
export function path(points: { x: number; y: number }[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let text = `M${first.x} ${first.y}`;
  rest.forEach((point, i) => {
    const next = rest[i + 1];
    if (!next) text += ` L${point.x} ${point.y}`;
    else text += ` Q${point.x} ${point.y} ${(point.x + next.x) / 2} ${(point.y + next.y) / 2}`;
  });
  return text;
}

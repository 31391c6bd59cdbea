// What the model computes: its pieces with their costs, and each piece as a drawing.
import { useMemo } from "preact/hooks";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { GraphDocument, Tensor } from "../api/tensor-types";
import type { Model } from "../api/types";
import { bytes, count, plural, share } from "../format";
import { choose } from "../route";
import { Shown } from "../ui/notice";
import { chosenNumber, type ViewProps } from "../ui/view";
import { VirtualRows } from "../ui/virtual";
import { Drawing } from "./drawing";
import { OperationDetail, OperationTable } from "./operation";
import { type Segment, segments } from "./segments";

const BATCHES = [1, 8, 64, 512];

export function GraphView({ model }: ViewProps) {
  const tokens = chosenNumber("tokens") ?? 1;
  const graph = useDocument<GraphDocument>(address(["models", model.id, "graph"], { tokens }));
  const tensors = useDocument<{ tensors: Tensor[] }>(`models/${model.id}/tensors`);
  return (
    <>
      <div class="view-head">
        <h1>Graph</h1>
      </div>
      <Shown
        of={graph}
        show={(value) => <Pieces graph={value} model={model} tokens={tokens} tensors={tensors.value?.tensors ?? []} />}
        waiting={<div class="split-room" role="status" aria-label="Loading" />}
      />
    </>
  );
}

function Pieces({
  graph,
  model,
  tokens,
  tensors,
}: {
  graph: GraphDocument;
  model: Model;
  tokens: number;
  tensors: Tensor[];
}) {
  const pieces = useMemo(() => segments(graph), [graph]);
  const numbers = useMemo(() => new Map(tensors.map((tensor) => [tensor.name, tensor.n])), [tensors]);
  const number = Math.min(pieces.length - 1, chosenNumber("piece") ?? Math.min(1, pieces.length - 1));
  const piece = pieces[number];
  const op = chosenNumber("op");
  const operation = piece?.operations.find((entry) => entry.number === op) ?? null;
  const total = { bytes: graph.bytes_read, arithmetic: graph.multiply_adds };
  return (
    <>
      <p class="detail-about">
        <span>{graph.architecture}</span>
        <span>{plural(graph.operations.length, "operation")}</span>
        <span>{bytes(graph.bytes_read)} read</span>
        <span>{count(graph.multiply_adds)} multiply-adds</span>
      </p>
      <fieldset class="segments">
        <legend>For a batch of</legend>
        {BATCHES.map((n) => (
          <button
            key={n}
            type="button"
            aria-pressed={tokens === n}
            onClick={() => choose({ tokens: n === 1 ? null : n })}
          >
            {plural(n, "token")}
          </button>
        ))}
      </fieldset>
      <div class="graph-split">
        <div class="graph-pieces">
          <VirtualRows
            class="piece-rows"
            label="Pieces of the graph"
            count={pieces.length}
            height={44}
            selected={number}
            reveal={number}
            onChoose={(index) => choose({ piece: index, op: null }, false)}
            render={(index) => <Piece piece={pieces[index]} total={total} most={pieces} />}
          />
          <p class="graph-legend faint">
            <span>
              <span class="dot cost-bytes" aria-hidden="true" /> share of bytes read
            </span>
            <span>
              <span class="dot cost-arithmetic" aria-hidden="true" /> share of arithmetic
            </span>
          </p>
        </div>
        {piece && (
          <div class="graph-main">
            <Drawing
              key={`${piece.program} ${piece.first}`}
              graph={graph}
              segment={piece}
              total={total}
              chosen={op}
              onChoose={(op) => choose({ op })}
            />
            {operation && (
              <OperationDetail graph={graph} operation={operation} total={total} model={model} numbers={numbers} />
            )}
            <OperationTable segment={piece} total={total} chosen={op} onChoose={(op) => choose({ op })} />
          </div>
        )}
      </div>
    </>
  );
}

function Piece({
  piece,
  total,
  most,
}: {
  piece: Segment | undefined;
  total: { bytes: number; arithmetic: number };
  most: Segment[];
}) {
  if (!piece) return null;
  const widest = Math.max(
    ...most.map((entry) => Math.max(entry.bytes / (total.bytes || 1), entry.arithmetic / (total.arithmetic || 1))),
  );
  const width = (part: number, of: number) =>
    `${of > 0 && widest > 0 ? Math.max(part > 0 ? 0.5 : 0, (100 * part) / of / widest) : 0}%`;
  return (
    <>
      <span class="piece-name">{piece.name}</span>
      <span class="cost">
        <span class="cost-bar cost-bytes" style={{ width: width(piece.bytes, total.bytes) }} />
        <span class="cost-bar cost-arithmetic" style={{ width: width(piece.arithmetic, total.arithmetic) }} />
      </span>
      <span class="piece-share number">
        <span>{share(piece.bytes, total.bytes)}</span>
        <span>{share(piece.arithmetic, total.arithmetic)}</span>
      </span>
    </>
  );
}

// Computation graph: segments with their costs, and a drawing of the selected segment.
import { useMemo } from "preact/hooks";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { GraphDocument, Tensor } from "../api/tensor-types";
import type { Model } from "../api/types";
import { bytes, count, plural, share } from "../format";
import { setParams } from "../route";
import { Loaded } from "../ui/states";
import { numberParam, type ViewProps } from "../ui/view";
import { VirtualList } from "../ui/virtual-list";
import { Drawing } from "./drawing";
import { OperationDetail, OperationTable } from "./operation";
import { type Segment, segments } from "./segments";

const BATCHES = [1, 8, 64, 512];

export function GraphView({ model }: ViewProps) {
  const tokens = numberParam("tokens") ?? 1;
  const graph = useDocument<GraphDocument>(address(["models", model.id, "graph"], { tokens }));
  const tensors = useDocument<{ tensors: Tensor[] }>(`models/${model.id}/tensors`);
  return (
    <>
      <div class="view-head">
        <h1>Graph</h1>
      </div>
      <Loaded
        resource={graph}
        render={(value) => (
          <Segments graph={value} model={model} tokens={tokens} tensors={tensors.value?.tensors ?? []} />
        )}
        fallback={<div class="split-room" role="status" aria-label="Loading" />}
      />
    </>
  );
}

function Segments({
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
  const list = useMemo(() => segments(graph), [graph]);
  const numbers = useMemo(() => new Map(tensors.map((tensor) => [tensor.name, tensor.n])), [tensors]);
  const number = Math.min(list.length - 1, numberParam("piece") ?? Math.min(1, list.length - 1));
  const segment = list[number];
  const op = numberParam("op");
  const operation = segment?.operations.find((entry) => entry.number === op) ?? null;
  const total = { bytes: graph.bytes_read, compute: graph.multiply_adds };
  return (
    <>
      <p class="detail-about">
        <span>{graph.architecture}</span>
        <span>{plural(graph.operations.length, "operation")}</span>
        <span>{bytes(graph.bytes_read)} read</span>
        <span>{count(graph.multiply_adds)} multiply-adds</span>
      </p>
      <fieldset class="segments">
        <legend>Batch size</legend>
        {BATCHES.map((n) => (
          <button
            key={n}
            type="button"
            aria-pressed={tokens === n}
            onClick={() => setParams({ tokens: n === 1 ? null : n })}
          >
            {plural(n, "token")}
          </button>
        ))}
      </fieldset>
      <div class="graph-split">
        <div class="graph-pieces">
          <VirtualList
            class="piece-rows"
            label="Segments of the graph"
            count={list.length}
            height={44}
            selected={number}
            reveal={number}
            onChoose={(index) => setParams({ piece: index, op: null }, false)}
            render={(index) => <SegmentRow segment={list[index]} total={total} all={list} />}
          />
          <p class="graph-legend faint">
            <span>
              <span class="dot cost-bytes" aria-hidden="true" /> share of bytes read
            </span>
            <span>
              <span class="dot cost-compute" aria-hidden="true" /> share of compute
            </span>
          </p>
        </div>
        {segment && (
          <div class="graph-main">
            <Drawing
              key={`${segment.program} ${segment.first}`}
              graph={graph}
              segment={segment}
              total={total}
              chosen={op}
              onChoose={(op) => setParams({ op })}
            />
            {operation && (
              <OperationDetail graph={graph} operation={operation} total={total} model={model} numbers={numbers} />
            )}
            <OperationTable segment={segment} total={total} chosen={op} onChoose={(op) => setParams({ op })} />
          </div>
        )}
      </div>
    </>
  );
}

function SegmentRow({
  segment,
  total,
  all,
}: {
  segment: Segment | undefined;
  total: { bytes: number; compute: number };
  all: Segment[];
}) {
  if (!segment) return null;
  const widest = Math.max(
    ...all.map((entry) => Math.max(entry.bytes / (total.bytes || 1), entry.compute / (total.compute || 1))),
  );
  const width = (part: number, of: number) =>
    `${of > 0 && widest > 0 ? Math.max(part > 0 ? 0.5 : 0, (100 * part) / of / widest) : 0}%`;
  return (
    <>
      <span class="piece-name">{segment.name}</span>
      <span class="cost">
        <span class="cost-bar cost-bytes" style={{ width: width(segment.bytes, total.bytes) }} />
        <span class="cost-bar cost-compute" style={{ width: width(segment.compute, total.compute) }} />
      </span>
      <span class="piece-share number">
        <span>{share(segment.bytes, total.bytes)}</span>
        <span>{share(segment.compute, total.compute)}</span>
      </span>
    </>
  );
}

// Computation graph: segments with their costs, and a drawing of the selected segment.
import { useMemo } from "preact/hooks";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { GraphDocument, Tensor } from "../api/tensor-types";
import type { Model } from "../api/types";
import { bytes, count, plural, share, whole } from "../format";
import { setParams } from "../route";
import { Loaded } from "../ui/states";
import { numberParam, param, type ViewProps } from "../ui/view";
import { VirtualList } from "../ui/virtual-list";
import { Drawing } from "./drawing";
import { OperationDetail, OperationTable } from "./operation";
import { type Fold, folded, type Segment, segments } from "./segments";

const BATCHES = [1, 8, 64, 512];
/** Numbers of tokens before the batch. */
const CONTEXTS = [0, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072];

export function GraphView({ model }: ViewProps) {
  const tokens = numberParam("tokens") ?? 1;
  const before = numberParam("before") ?? 0;
  const graph = useDocument<GraphDocument>(
    address(["models", model.id, "graph"], { tokens, before: before > 0 ? before : null }),
  );
  const tensors = useDocument<{ tensors: Tensor[] }>(`models/${model.id}/tensors`);
  return (
    <>
      <div class="view-head">
        <h1>Graph</h1>
      </div>
      <Loaded
        resource={graph}
        render={(value) => (
          <Segments
            graph={value}
            model={model}
            tokens={tokens}
            before={before}
            tensors={tensors.value?.tensors ?? []}
          />
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
  before,
  tensors,
}: {
  graph: GraphDocument;
  model: Model;
  tokens: number;
  before: number;
  tensors: Tensor[];
}) {
  const list = useMemo(() => segments(graph), [graph]);
  const unfolded = param("fold") === "0";
  const folds = useMemo(
    () => (unfolded ? list.map((_, first) => ({ first, count: 1 })) : folded(list, graph.graph)),
    [list, graph, unfolded],
  );
  const isFoldable = useMemo(() => folded(list, graph.graph).length < list.length, [list, graph]);
  const numbers = useMemo(() => new Map(tensors.map((tensor) => [tensor.name, tensor.n])), [tensors]);
  const number = Math.min(list.length - 1, numberParam("piece") ?? Math.min(1, list.length - 1));
  const segment = list[number];
  const row = folds.findIndex(({ first, count }) => first <= number && number < first + count);
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
      <div class="graph-choices">
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
        <label class="context-choice">
          Tokens in the KV cache
          <input
            type="range"
            min={0}
            max={CONTEXTS.length - 1}
            value={Math.max(0, CONTEXTS.indexOf(before))}
            aria-valuetext={plural(before, "token")}
            onInput={(event) => setParams({ before: CONTEXTS[Number(event.currentTarget.value)] || null })}
          />
          <output>{whole(before)}</output>
        </label>
        {isFoldable && (
          <button type="button" aria-pressed={!unfolded} onClick={() => setParams({ fold: unfolded ? null : "0" })}>
            Fold equal layers
          </button>
        )}
      </div>
      <div class="graph-split">
        <div class="graph-pieces">
          <VirtualList
            class="piece-rows"
            label="Segments of the graph"
            count={folds.length}
            height={44}
            selected={row}
            reveal={row}
            onChoose={(index) => setParams({ piece: folds[index]?.first, op: null }, false)}
            render={(index) => <SegmentRow fold={folds[index]} total={total} all={list} />}
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
  fold,
  total,
  all,
}: {
  fold: Fold | undefined;
  total: { bytes: number; compute: number };
  all: Segment[];
}) {
  const segment = fold && all[fold.first];
  if (!segment) return null;
  const widest = Math.max(
    ...all.map((entry) => Math.max(entry.bytes / (total.bytes || 1), entry.compute / (total.compute || 1))),
  );
  const width = (part: number, of: number) => `${of > 0 && widest > 0 ? (100 * part) / of / widest : 0}%`;
  const last = all[fold.first + fold.count - 1];
  const members = all.slice(fold.first, fold.first + fold.count);
  const sum = (cost: "bytes" | "compute") => members.reduce((sum, member) => sum + member[cost], 0);
  const name =
    fold.count === 1
      ? segment.name
      : `${segment.name.replace("layer", "layers")} to ${last?.name.replace(/^.*layer /, "")}`;
  return (
    <>
      <span class="piece-name">
        {name} {fold.count > 1 && <span class="chip">×{fold.count}</span>}
      </span>
      <span class="cost">
        <span class="cost-bar cost-bytes" style={{ width: width(segment.bytes, total.bytes) }} />
        <span class="cost-bar cost-compute" style={{ width: width(segment.compute, total.compute) }} />
      </span>
      <span class="piece-share number">
        <span>{share(sum("bytes"), total.bytes)}</span>
        <span>{share(sum("compute"), total.compute)}</span>
      </span>
    </>
  );
}

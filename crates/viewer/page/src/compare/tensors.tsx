// Tensors of both models. The error of a tensor is computed when its row becomes visible.
import { useCallback, useEffect, useMemo } from "preact/hooks";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { ComparedTensor } from "../api/tensor-types";
import type { Model } from "../api/types";
import { fixed, plural, shape, significant, visible } from "../format";
import { setParams, route } from "../route";
import { Empty, Loaded } from "../ui/states";
import { Search } from "../ui/search";
import { VirtualList } from "../ui/virtual-list";
import { Difference } from "./difference";
import { matches } from "../tensors/names";
import { ErrorMetrics } from "./error-metrics";
import { CompareSummary } from "./summary";

const CHANGES = { added: "only in B", removed: "only in A", reshaped: "shape differs", data: "" };

export function ComparedTensorList({ a, b }: { a: Model; b: Model }) {
  const tensors = useDocument<{ tensors: ComparedTensor[] }>(address(["compare", a.id, b.id, "tensors"]));
  return <Loaded resource={tensors} render={({ tensors }) => <List a={a} b={b} tensors={tensors} />} />;
}

function List({ a, b, tensors }: { a: Model; b: Model; tensors: ComparedTensor[] }) {
  const { query } = route.value;
  const search = query.get("search") ?? "";
  const byError = query.get("sort") === "error";
  const metrics = useMemo(() => new ErrorMetrics(a.id, b.id), [a.id, b.id]);
  useEffect(() => () => metrics.stop(), [metrics]);
  // The summary and the order need the errors of all tensors.
  useEffect(() => metrics.request(tensors, true), [metrics, tensors]);
  // Render again with each response.
  metrics.edition.value;
  const comparable = tensors.filter(({ change }) => change === "data").length;
  const isComplete = metrics.done >= comparable;
  // Rows keep their places until all errors are known.
  const found = useMemo(() => {
    const list = tensors.filter((tensor) => matches(tensor.name, search));
    const error = (tensor: ComparedTensor) => metrics.get(tensor.name)?.relative ?? -1;
    const byName = (a: ComparedTensor, b: ComparedTensor) => a.name.localeCompare(b.name, "en", { numeric: true });
    return list.sort(byError && isComplete ? (a, b) => error(b) - error(a) : byName);
  }, [tensors, search, byError, isComplete]);
  const chosen = query.get("tensor");
  const at = chosen === null ? -1 : found.findIndex((tensor) => tensor.name === chosen);
  const tensor = tensors.find((entry) => entry.name === chosen);
  const seen = useCallback((first: number, end: number) => metrics.request(found.slice(first, end)), [metrics, found]);
  const choose = (name: string | undefined) => setParams({ tensor: name, at: null }, false);
  return (
    <>
      <CompareSummary a={a} b={b} tensors={tensors} metrics={metrics} chosen={chosen} onChoose={choose} />
      <div class={`split wide-list${tensor ? " has-detail" : ""}`}>
        <div class="split-list">
          <Search label="Filter by name" value={search} onSearch={(search) => setParams({ search })} />
          <p class="list-about faint">
            {plural(found.length, "tensor")}{" "}
            <button type="button" aria-pressed={byError} onClick={() => setParams({ sort: byError ? null : "error" })}>
              Sort by error
            </button>{" "}
            {byError && !isComplete && (
              <span role="status">
                sorted when all are compared: {metrics.done} of {comparable}
              </span>
            )}
          </p>
          <VirtualList
            class="compare-rows"
            label="Tensors of both models"
            role="grid"
            count={found.length}
            height={46}
            selected={at}
            reveal={at}
            onSeen={seen}
            onChoose={(index) => choose(found[index]?.name)}
            render={(index) => <Row tensor={found[index]} metrics={metrics} />}
          />
        </div>
        <div class="split-detail">
          {tensor ? (
            <>
              <button type="button" class="back" onClick={() => setParams({ tensor: null })}>
                All tensors
              </button>
              <Detail key={tensor.name} a={a} b={b} tensor={tensor} />
            </>
          ) : (
            <p class="nothing">Select a tensor to see the differences.</p>
          )}
        </div>
      </div>
    </>
  );
}

function Row({ tensor, metrics }: { tensor: ComparedTensor | undefined; metrics: ErrorMetrics }) {
  if (!tensor) return null;
  const error = metrics.get(tensor.name);
  const types = [tensor.a?.type, tensor.b?.type].filter(Boolean);
  return (
    <>
      <span role="gridcell" class="compare-name">
        <span class="compare-text">{visible(tensor.name)}</span>
        <span class="faint">{types[0] === types[1] ? types[0] : types.join(" → ")}</span>
      </span>
      <span role="gridcell" class="number compare-error">
        {CHANGES[tensor.change] ||
          (error
            ? error.same
              ? "identical"
              : error.relative === null
                ? "NaN"
                : `${fixed(100 * error.relative, 3)}%`
            : "…")}
        {error && !error.same && <span class="faint">RMSE {significant(error.rmse)}</span>}
      </span>
    </>
  );
}

function Detail({ a, b, tensor }: { a: Model; b: Model; tensor: ComparedTensor }) {
  const dimensions = tensor.a?.shape ?? tensor.b?.shape ?? [];
  const [columns = 1, ...rest] = dimensions;
  const rows = rest.reduce((product, n) => product * n, 1);
  return (
    <article aria-labelledby="compared">
      <h2 id="compared" class="detail-title">
        {visible(tensor.name)}
      </h2>
      <p class="detail-about">
        <span>{[tensor.a?.type, tensor.b?.type].filter(Boolean).join(" → ")}</span>
        <span>{shape(dimensions)}</span>
        {tensor.change === "reshaped" && tensor.b && <span>{shape(tensor.b.shape)}</span>}
      </p>
      {tensor.change === "data" && tensor.b ? (
        <Difference
          a={a.id}
          b={b.id}
          name={tensor.name}
          columns={columns}
          rows={rows}
          link={{ model: b, n: tensor.b.n }}
        />
      ) : (
        <Empty>Cannot compare: {CHANGES[tensor.change]}.</Empty>
      )}
    </article>
  );
}

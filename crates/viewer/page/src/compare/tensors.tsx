// Tensors of both models; the error of each is computed when its row comes into sight.
import { useSignal } from "@preact/signals";
import { useCallback, useEffect, useMemo } from "preact/hooks";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { ComparedTensor } from "../api/tensor-types";
import type { Model } from "../api/types";
import { fixed, plural, shape, significant, visible } from "../format";
import { choose, place } from "../route";
import { Nothing, Shown } from "../ui/notice";
import { Search } from "../ui/search";
import { VirtualRows } from "../ui/virtual";
import { Difference } from "./difference";
import { Figures } from "./figures";

const CHANGES = { added: "only in the other", removed: "only in the original", reshaped: "another shape", data: "" };

export function ComparedTensorList({ a, b }: { a: Model; b: Model }) {
  const tensors = useDocument<{ tensors: ComparedTensor[] }>(address(["compare", a.id, b.id, "tensors"]));
  return <Shown of={tensors} show={({ tensors }) => <List a={a} b={b} tensors={tensors} />} />;
}

function List({ a, b, tensors }: { a: Model; b: Model; tensors: ComparedTensor[] }) {
  const { query } = place.value;
  const search = query.get("search") ?? "";
  const byError = useSignal(false);
  const figures = useMemo(() => new Figures(a.id, b.id), [a.id, b.id]);
  useEffect(() => () => figures.stop(), [figures]);
  // Shown anew with each figure that comes.
  const edition = figures.edition.value;
  const found = useMemo(() => {
    const list = tensors.filter((tensor) => tensor.name.toLowerCase().includes(search.toLowerCase()));
    const error = (tensor: ComparedTensor) => figures.of(tensor.name)?.relative ?? -1;
    return byError.value ? list.sort((a, b) => error(b) - error(a)) : list;
  }, [tensors, search, byError.value, byError.value ? edition : 0]);
  const chosen = query.get("tensor");
  const at = chosen === null ? -1 : found.findIndex((tensor) => tensor.name === chosen);
  const tensor = tensors.find((entry) => entry.name === chosen);
  const seen = useCallback((first: number, end: number) => figures.want(found.slice(first, end)), [figures, found]);
  return (
    <div class={`split wide-list${tensor ? " has-detail" : ""}`}>
      <div class="split-list">
        <Search label="Filter by name" value={search} onSearch={(search) => choose({ search })} />
        <p class="list-about faint">
          {plural(found.length, "tensor")}{" "}
          <button
            type="button"
            aria-pressed={byError.value}
            onClick={() => {
              byError.value = !byError.value;
              // An order needs the figures of all.
              if (byError.value) figures.want(tensors, true);
            }}
          >
            Largest error first
          </button>
        </p>
        <VirtualRows
          class="compare-rows"
          label="Tensors of both models"
          role="grid"
          count={found.length}
          height={46}
          selected={at}
          reveal={at}
          onSeen={seen}
          onChoose={(index) => choose({ tensor: found[index]?.name, at: null }, false)}
          render={(index) => <Row tensor={found[index]} figures={figures} />}
        />
      </div>
      <div class="split-detail">
        {tensor ? (
          <>
            <button type="button" class="back" onClick={() => choose({ tensor: null })}>
              All tensors
            </button>
            <Detail key={tensor.name} a={a} b={b} tensor={tensor} />
          </>
        ) : (
          <p class="nothing">Choose a tensor to see where both differ.</p>
        )}
      </div>
    </div>
  );
}

function Row({ tensor, figures }: { tensor: ComparedTensor | undefined; figures: Figures }) {
  if (!tensor) return null;
  const error = figures.of(tensor.name);
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
              ? "the same"
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
        <Nothing>There is nothing to compare: {CHANGES[tensor.change]}.</Nothing>
      )}
    </article>
  );
}

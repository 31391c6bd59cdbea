// Tensors view: the list of tensors, and details of the selected tensor.
import { useMemo } from "preact/hooks";
import { useDocument } from "../api/resource";
import type { Tensor } from "../api/tensor-types";
import type { Model } from "../api/types";
import { link, route } from "../route";
import { Loaded } from "../ui/states";
import type { ViewProps } from "../ui/view";
import { TensorDetail } from "./detail";
import { TensorList } from "./list";

export function Tensors({ model }: ViewProps) {
  const tensors = useDocument<{ tensors: Tensor[] }>(`models/${model.id}/tensors`);
  return (
    <>
      <div class="view-head">
        <h1>Tensors</h1>
      </div>
      <Loaded
        resource={tensors}
        render={({ tensors }) => <ListAndDetail tensors={tensors} model={model} />}
        fallback={<div class="split-room" role="status" aria-label="Loading" />}
      />
    </>
  );
}

function ListAndDetail({ tensors, model }: { tensors: Tensor[]; model: Model }) {
  const { path, query } = route.value;
  const wanted = path[2];
  const tensor = useMemo(() => find(tensors, wanted), [tensors, wanted]);
  const filter = { search: query.get("search"), type: query.get("type"), sort: query.get("sort") };
  return (
    <div class={`split${wanted !== undefined ? " has-detail" : ""}`}>
      <div class="split-list">
        <TensorList tensors={tensors} model={model} selected={tensor?.n ?? null} />
      </div>
      <div class="split-detail">
        {wanted !== undefined && (
          <a class="back" href={link([model.id, "tensors"], filter)}>
            All tensors
          </a>
        )}
        {tensor ? (
          <TensorDetail key={`${model.id}/${tensor.n}`} model={model} tensor={tensor} />
        ) : (
          <p class="nothing">{wanted === undefined ? "Select a tensor to see its values." : `No tensor ${wanted}.`}</p>
        )}
      </div>
    </div>
  );
}

/** Finds a tensor by its index or name. */
function find(tensors: Tensor[], wanted: string | undefined): Tensor | undefined {
  if (wanted === undefined) return undefined;
  return /^\d+$/.test(wanted) ? tensors[Number(wanted)] : tensors.find((tensor) => tensor.name === wanted);
}

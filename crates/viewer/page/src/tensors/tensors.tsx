// All tensors as a tree or a sorted list, and all about the one that was chosen.
import { useMemo } from "preact/hooks";
import { useDocument } from "../api/resource";
import type { Tensor } from "../api/tensor-types";
import type { Model } from "../api/types";
import { link, place } from "../route";
import { Shown } from "../ui/notice";
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
      <Shown
        of={tensors}
        show={({ tensors }) => <Both tensors={tensors} model={model} />}
        waiting={<div class="split-room" role="status" aria-label="Loading" />}
      />
    </>
  );
}

function Both({ tensors, model }: { tensors: Tensor[]; model: Model }) {
  const { path, query } = place.value;
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
          <p class="nothing">
            {wanted === undefined ? "Choose a tensor to see its values." : `There is no tensor ${wanted}.`}
          </p>
        )}
      </div>
    </div>
  );
}

/** A tensor by its number, or by its name. */
function find(tensors: Tensor[], wanted: string | undefined): Tensor | undefined {
  if (wanted === undefined) return undefined;
  return /^\d+$/.test(wanted) ? tensors[Number(wanted)] : tensors.find((tensor) => tensor.name === wanted);
}

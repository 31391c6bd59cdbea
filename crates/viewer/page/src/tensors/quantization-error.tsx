// Quantization error of a tensor: the difference from the original model.
import type { TensorFacts } from "../api/tensor-types";
import type { Model } from "../api/types";
import { Difference } from "../compare/difference";
import { visible } from "../format";
import { modelName } from "../ui/model-name";

export function ErrorView({ model, original, tensor }: { model: Model; original: Model; tensor: TensorFacts }) {
  return (
    <>
      <p class="faint">Difference: this model − {visible(modelName(original))}.</p>
      <Difference
        a={original.id}
        b={model.id}
        name={tensor.name}
        columns={tensor.columns}
        rows={tensor.rows}
        link={{ model, n: tensor.n }}
      />
    </>
  );
}

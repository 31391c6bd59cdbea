// What quantization did to a tensor: its difference from the original.
import type { TensorFacts } from "../api/tensor-types";
import type { Model } from "../api/types";
import { Difference } from "../compare/difference";
import { visible } from "../format";

export function ErrorView({ model, original, tensor }: { model: Model; original: Model; tensor: TensorFacts }) {
  return (
    <>
      <p class="faint">This model minus {visible(original.name)}.</p>
      <Difference a={original.id} b={model.id} name={tensor.name} columns={tensor.columns} rows={tensor.rows} link={{ model, n: tensor.n }} />
    </>
  );
}

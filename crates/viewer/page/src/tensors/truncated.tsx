// Says that the data of a tensor is missing.
import type { TensorFacts } from "../api/tensor-types";
import { bytes } from "../format";

export function Truncated({ tensor }: { tensor: TensorFacts }) {
  return (
    <p class="problem" role="alert">
      The file is truncated: {bytes(tensor.missing_bytes)} of the {bytes(tensor.bytes ?? 0)} of this tensor are missing.
      Download the file again, or fetch the missing part with <code>gguf check FILE --against SOURCE --repair</code>.
    </p>
  );
}

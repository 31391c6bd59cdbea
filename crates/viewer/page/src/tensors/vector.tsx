// Chart of a vector, such as a norm or a bias.
import { useMemo } from "preact/hooks";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { Rows, TensorFacts } from "../api/tensor-types";
import type { Model } from "../api/types";
import { plural, visible } from "../format";
import { type Line, Plot } from "../ui/plot";
import { Loaded } from "../ui/states";

/** Most elements that are drawn as bars. */
const MAX_BARS = 128;

export function VectorPlot({
  model,
  tensor,
  onPick,
}: {
  model: Model;
  tensor: TensorFacts;
  onPick: (column: number) => void;
}) {
  const rows = useDocument<Rows>(address(["models", model.id, "tensor", "rows"], { n: tensor.n, start: 0, count: 1 }));
  return (
    <Loaded
      resource={rows}
      fallback={<div class="vector-room" />}
      render={(value) => <Chart values={value.rows[0] ?? []} tensor={tensor} onPick={onPick} />}
    />
  );
}

function Chart({
  values,
  tensor,
  onPick,
}: {
  values: (number | null)[];
  tensor: TensorFacts;
  onPick: (column: number) => void;
}) {
  const { x, lines } = useMemo(() => {
    const kind = values.length <= MAX_BARS ? "bars" : "line";
    const lines: Line[] = [{ name: "value", values, colour: "accent", kind }];
    return { x: values.map((_, i) => i), lines };
  }, [values]);
  return (
    <figure class="vector">
      <Plot
        label={`${visible(tensor.name)}: ${plural(values.length, "value")} by index`}
        x={x}
        xName="index"
        lines={lines}
        height={320}
        xWhole
        onPick={onPick}
      />
      <figcaption class="faint">
        {plural(values.length, "value")}; click to see the values around one, drag to enlarge, double-click to reset
      </figcaption>
    </figure>
  );
}

// What all weights of a tensor are like.
import { useSignal } from "@preact/signals";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { Statistics, TensorFacts } from "../api/tensor-types";
import type { Model } from "../api/types";
import { significant, whole } from "../format";
import { Shown, Waiting } from "../ui/notice";
import { LinePlot } from "./lines";
import { HistogramPlot } from "./histogram";
import { Outliers } from "./outliers";
import { Read } from "./read";

export function StatisticsView({ model, tensor }: { model: Model; tensor: TensorFacts }) {
  const exact = useSignal(false);
  const statistics = useDocument<Statistics>(
    address(["models", model.id, "tensor", "statistics"], { n: tensor.n, exact: exact.value || null }),
  );
  return (
    <Shown
      of={statistics}
      waiting={<Waiting what="Reading weights" />}
      show={(value) => (
        <>
          <Read of={value} count={value.count} loading={statistics.loading} onAll={() => (exact.value = true)} />
          <Figures of={value} />
          <HistogramPlot of={value.histogram} />
          <LinePlot title="Rows" of={value.rows} name="row" />
          <LinePlot title="Columns" of={value.columns} name="column" />
          <Outliers model={model} n={tensor.n} of={value.outliers} />
        </>
      )}
    />
  );
}

function Figures({ of }: { of: Statistics }) {
  const facts: [string, string][] = [
    ["values", whole(of.count)],
    ["zero", whole(of.zeros)],
    ["mean", significant(of.mean)],
    ["deviation", significant(of.deviation)],
    ["least", significant(of.min)],
    ["most", significant(of.max)],
  ];
  if (of.nan + of.infinite > 0) facts.push(["NaN", whole(of.nan)], ["infinite", whole(of.infinite)]);
  return (
    <dl class="figures">
      {facts.map(([name, value]) => (
        <div key={name} data-figure={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

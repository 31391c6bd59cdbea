// Statistics of the weights of a tensor.
import { useSignal } from "@preact/signals";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { Statistics, TensorFacts } from "../api/tensor-types";
import type { Model } from "../api/types";
import { significant, whole } from "../format";
import { Loaded, Loading } from "../ui/states";
import { ProfilePlot } from "./profile";
import { HistogramPlot } from "./histogram";
import { Outliers } from "./outliers";
import { SampleInfo } from "./sampling";

export function StatisticsView({ model, tensor }: { model: Model; tensor: TensorFacts }) {
  const exact = useSignal(false);
  const statistics = useDocument<Statistics>(
    address(["models", model.id, "tensor", "statistics"], { n: tensor.n, exact: exact.value || null }),
  );
  return (
    <Loaded
      resource={statistics}
      fallback={<Loading what="Reading weights" />}
      render={(value) => (
        <>
          <SampleInfo
            data={value}
            count={value.count}
            loading={statistics.loading}
            onAll={() => (exact.value = true)}
          />
          <Figures data={value} />
          <HistogramPlot data={value.histogram} />
          <ProfilePlot title="Rows" data={value.rows} name="row" />
          <ProfilePlot title="Columns" data={value.columns} name="column" />
          <Outliers model={model} n={tensor.n} data={value.outliers} />
        </>
      )}
    />
  );
}

function Figures({ data }: { data: Statistics }) {
  const facts: [string, string][] = [
    ["values", whole(data.count)],
    ["zeros", whole(data.zeros)],
    ["mean", significant(data.mean)],
    ["std dev", significant(data.stddev)],
    ["min", significant(data.min)],
    ["max", significant(data.max)],
  ];
  if (data.nan + data.infinite > 0) facts.push(["NaN", whole(data.nan)], ["inf", whole(data.infinite)]);
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

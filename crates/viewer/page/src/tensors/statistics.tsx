// Statistics of the weights of a tensor.
import { useSignal } from "@preact/signals";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { Statistics, TensorFacts } from "../api/tensor-types";
import type { Model } from "../api/types";
import { share, significant, whole } from "../format";
import { Loaded, Loading } from "../ui/states";
import { Term } from "../ui/term";
import { isTerm } from "../ui/terms";
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
  const about = data.exact ? "" : "≈ ";
  const facts: [string, string][] = [
    ["values", whole(data.count)],
    ["zeros", part(data.zeros, data)],
    ["mean", about + significant(data.mean)],
    ["std dev", about + significant(data.stddev)],
    ["min", data.exact ? significant(data.min) : `≤ ${significant(data.min)}`],
    ["max", data.exact ? significant(data.max) : `≥ ${significant(data.max)}`],
  ];
  if (data.nan + data.infinite > 0) facts.push(["NaN", part(data.nan, data)], ["inf", part(data.infinite, data)]);
  return (
    <dl class="figures">
      {facts.map(([name, value]) => (
        <div key={name} data-figure={name}>
          <dt>{isTerm(name) ? <Term name={name} /> : name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Formats a count of values; that of a sample as its share. */
function part(count: number, { exact, read }: Statistics): string {
  return exact ? whole(count) : `≈ ${share(count, read)}`;
}

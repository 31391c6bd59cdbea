// Error statistics and heat map of the difference of two tensors.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { ErrorStatistics } from "../api/tensor-types";
import type { Model } from "../api/types";
import { fixed, significant } from "../format";
import { differenceSource } from "../heatmap/source";
import { BothStatistics } from "./both-statistics";
import { Pictures } from "./pictures";
import { HistogramPlot } from "../tensors/histogram";
import { ProfilePlot } from "../tensors/profile";
import { Outliers } from "../tensors/outliers";
import { SampleInfo } from "../tensors/sampling";
import { Loaded, Loading } from "../ui/states";
import { Term } from "../ui/term";
import { isTerm } from "../ui/terms";

interface Props {
  a: number;
  b: number;
  name: string;
  columns: number;
  rows: number;
  /** The tensor that outliers link to. */
  link: { model: Model; n: number };
}

export function Difference({ a, b, name, columns, rows, link }: Props) {
  const exact = useSignal(false);
  const errors = useDocument<ErrorStatistics>(
    address(["compare", a, b, "tensor"], { name, exact: exact.value || null }),
  );
  const source = useMemo(() => differenceSource(a, b, name, columns, rows), [a, b, name, columns, rows]);
  return (
    <>
      <Loaded
        resource={errors}
        fallback={<Loading what="Reading both tensors" />}
        render={(value) => (
          <>
            <SampleInfo
              data={value}
              count={value.elements}
              loading={errors.loading}
              onAll={() => (exact.value = true)}
            />
            <ErrorFigures data={value} />
          </>
        )}
      />
      <Pictures a={a} b={b} name={name} difference={source} />
      <BothStatistics a={a} b={b} name={name} />
      {errors.value && !errors.value.same && (
        <>
          <HistogramPlot data={errors.value.histogram} title="Differences" />
          <ProfilePlot title="Rows" data={errors.value.rows} name="row" />
          <ProfilePlot title="Columns" data={errors.value.columns} name="column" />
          <Outliers model={link.model} n={link.n} data={errors.value.outliers} />
        </>
      )}
    </>
  );
}

export function ErrorFigures({ data }: { data: ErrorStatistics }) {
  if (data.same) return <p class="fine">Bit-identical.</p>;
  const about = data.exact ? "" : "≈ ";
  const facts: [string, string][] = [
    ["RMSE", about + significant(data.rmse)],
    ["relative RMSE", data.relative === null ? "NaN" : `${about}${fixed(data.relative * 100, 3)}%`],
    ["cosine similarity", data.cosine === null ? "NaN" : about + fixed(data.cosine, 6)],
    ["max error", (data.exact ? "" : "≥ ") + significant(data.max)],
    ["mean error", about + significant(data.mean)],
  ];
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

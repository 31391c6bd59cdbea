// Two tensors of the same name and shape: how far they are apart, and where.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { Errors } from "../api/tensor-types";
import type { Model } from "../api/types";
import { fixed, significant } from "../format";
import { HeatMap } from "../heat/heat-map";
import { differenceSource } from "../heat/source";
import { choose } from "../route";
import { HistogramPlot } from "../tensors/histogram";
import { LinePlot } from "../tensors/lines";
import { Outliers } from "../tensors/outliers";
import { useRange } from "../tensors/range";
import { Read } from "../tensors/read";
import { Shown, Waiting } from "../ui/notice";
import { chosen } from "../ui/view";

interface Props {
  a: number;
  b: number;
  name: string;
  columns: number;
  rows: number;
  /** The tensor that outliers lead to. */
  link: { model: Model; n: number };
}

export function Difference({ a, b, name, columns, rows, link }: Props) {
  const exact = useSignal(false);
  const errors = useDocument<Errors>(address(["compare", a, b, "tensor"], { name, exact: exact.value || null }));
  const source = useMemo(() => differenceSource(a, b, name, columns, rows), [a, b, name, columns, rows]);
  const range = useRange(source);
  return (
    <>
      <Shown
        of={errors}
        waiting={<Waiting what="Reading both" />}
        show={(value) => (
          <>
            <Read of={value} count={value.elements} loading={errors.loading} onAll={() => (exact.value = true)} />
            <ErrorFigures of={value} />
          </>
        )}
      />
      <HeatMap
        source={source}
        label={`Differences of ${name}`}
        range={range}
        at={chosen("at") || null}
        onMove={(at) => choose({ at })}
      />
      {errors.value && !errors.value.same && (
        <>
          <HistogramPlot of={errors.value.histogram} title="Differences" />
          <LinePlot title="Rows" of={errors.value.rows} name="row" />
          <LinePlot title="Columns" of={errors.value.columns} name="column" />
          <Outliers model={link.model} n={link.n} of={errors.value.outliers} />
        </>
      )}
    </>
  );
}

export function ErrorFigures({ of }: { of: Errors }) {
  if (of.same) return <p class="fine">Both are the same, bit by bit.</p>;
  const facts: [string, string][] = [
    ["RMSE", significant(of.rmse)],
    ["relative", of.relative === null ? "NaN" : `${fixed(of.relative * 100, 3)}%`],
    ["cosine", of.cosine === null ? "NaN" : fixed(of.cosine, 6)],
    ["largest", significant(of.max)],
    ["mean", significant(of.mean)],
  ];
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

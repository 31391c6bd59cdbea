// Min, mean, standard deviation and max per row or column.
import { useMemo } from "preact/hooks";
import type { Profile } from "../api/tensor-types";
import { whole } from "../format";
import { type Line, Plot } from "../ui/plot";

export function ProfilePlot({
  title,
  data,
  name,
  onPick,
}: {
  title: string;
  data: Profile;
  name: string;
  onPick?: (at: number) => void;
}) {
  const { x, lines } = useMemo(() => {
    const lines: Line[] = [
      { name: "min", values: data.min, colour: "cold", kind: "band" },
      { name: "max", values: data.max, colour: "warm", kind: "band" },
      { name: "std dev", values: data.stddev, colour: "soft", kind: "line" },
      { name: "mean", values: data.mean, colour: "accent", kind: "line" },
    ];
    return { x: data.mean.map((_, i) => i * data.per), lines };
  }, [data]);
  if (x.length < 2) return null;
  return (
    <section class="plot-section">
      <div class="section-head">
        <h3>{title}</h3>
        <span class="faint">{data.per > 1 && `1 point = ${whole(data.per)} ${name}s`}</span>
      </div>
      <Plot
        label={`Min, max, standard deviation and mean of ${whole(x.length)} ${data.per > 1 ? `groups of ${data.per} ${name}s` : `${name}s`}`}
        x={x}
        xName={name}
        lines={lines}
        xWhole
        {...(onPick ? { onPick: (index: number) => onPick(index * data.per) } : {})}
      />
    </section>
  );
}

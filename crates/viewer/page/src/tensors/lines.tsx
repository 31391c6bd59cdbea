// Least, mean and most of each row, or of each column.
import { useMemo } from "preact/hooks";
import type { Lines } from "../api/tensor-types";
import { whole } from "../format";
import { type Line, Plot } from "../ui/plot";

export function LinePlot({
  title,
  of,
  name,
  onPick,
}: {
  title: string;
  of: Lines;
  name: string;
  onPick?: (at: number) => void;
}) {
  const { x, lines } = useMemo(() => {
    const lines: Line[] = [
      { name: "least", values: of.min, colour: "cold", kind: "band" },
      { name: "most", values: of.max, colour: "warm", kind: "band" },
      { name: "deviation", values: of.deviation, colour: "soft", kind: "line" },
      { name: "mean", values: of.mean, colour: "accent", kind: "line" },
    ];
    return { x: of.mean.map((_, i) => i * of.per), lines };
  }, [of]);
  if (x.length < 2) return null;
  return (
    <section class="plot-section">
      <div class="section-head">
        <h3>{title}</h3>
        <span class="faint">{of.per > 1 && `${whole(of.per)} ${name}s a point`}</span>
      </div>
      <Plot
        label={`Least, mean, deviation and most of ${whole(x.length)} ${of.per > 1 ? `groups of ${of.per} ${name}s` : `${name}s`}`}
        x={x}
        xName={name}
        lines={lines}
        xWhole
        {...(onPick ? { onPick: (index: number) => onPick(index * of.per) } : {})}
      />
    </section>
  );
}

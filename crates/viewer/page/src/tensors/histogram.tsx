// Histogram of weights.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Histogram } from "../api/tensor-types";
import { significant } from "../format";
import { type Line, Plot } from "../ui/plot";

export function HistogramPlot({ data, title = "Histogram" }: { data: Histogram; title?: string }) {
  const logarithmic = useSignal(false);
  const { x, lines } = useMemo(() => {
    const step = (data.to - data.from) / Math.max(1, data.counts.length);
    const x = data.counts.map((_, i) => data.from + step * (i + 0.5));
    // A log scale has no zero.
    const values = data.counts.map((count) => (count > 0 || !logarithmic.value ? count : null));
    const lines: Line[] = [{ name: "weights", values, colour: "accent", kind: "bars" }];
    return { x, lines };
  }, [data, logarithmic.value]);
  if (data.counts.length === 0) return <p class="nothing">All values are equal.</p>;
  const peak = data.counts.indexOf(Math.max(...data.counts));
  return (
    <section class="plot-section">
      <div class="section-head">
        <h3>{title}</h3>
        <button type="button" aria-pressed={logarithmic.value} onClick={() => (logarithmic.value = !logarithmic.value)}>
          Log scale
        </button>
      </div>
      <Plot
        label={`${title} with ${data.counts.length} bins from ${significant(data.from)} to ${significant(data.to)}, max values near ${significant(x[peak] ?? 0)}`}
        x={x}
        xName="value"
        lines={lines}
        logarithmic={logarithmic.value}
        yWhole
      />
    </section>
  );
}

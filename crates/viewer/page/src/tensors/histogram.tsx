// How many weights lie in each part of the range.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Histogram } from "../api/tensor-types";
import { significant } from "../format";
import { type Line, Plot } from "../ui/plot";

export function HistogramPlot({ of, title = "Histogram" }: { of: Histogram; title?: string }) {
  const logarithmic = useSignal(false);
  const { x, lines } = useMemo(() => {
    const step = (of.to - of.from) / Math.max(1, of.counts.length);
    const x = of.counts.map((_, i) => of.from + step * (i + 0.5));
    // A scale by orders of magnitude has no zero.
    const values = of.counts.map((count) => (count > 0 || !logarithmic.value ? count : null));
    const lines: Line[] = [{ name: "weights", values, colour: "accent", kind: "bars" }];
    return { x, lines };
  }, [of, logarithmic.value]);
  if (of.counts.length === 0) return <p class="nothing">All values are the same.</p>;
  const most = of.counts.indexOf(Math.max(...of.counts));
  return (
    <section class="plot-section">
      <div class="section-head">
        <h3>{title}</h3>
        <button type="button" aria-pressed={logarithmic.value} onClick={() => (logarithmic.value = !logarithmic.value)}>
          Logarithmic
        </button>
      </div>
      <Plot
        label={`${title} in ${of.counts.length} parts from ${significant(of.from)} to ${significant(of.to)}, most values near ${significant(x[most] ?? 0)}`}
        x={x}
        xName="value"
        lines={lines}
        logarithmic={logarithmic.value}
        yWhole
      />
    </section>
  );
}

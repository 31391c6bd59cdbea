// Color scale with a slider for its range.
import { useEffect, useRef } from "preact/hooks";
import { significant } from "../format";
import { STEPS } from "./colormap";

/** Bounds of the slider: powers of ten, relative to the initial range. */
const MIN_EXPONENT = -2;
const MAX_EXPONENT = 1;

export function Legend({
  colours,
  range,
  initial,
  hasNegative,
  onRange,
}: {
  colours: Uint32Array;
  range: number;
  initial: number;
  /** Without negative values, the scale begins at 0. */
  hasNegative: boolean;
  onRange: (range: number) => void;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    const shown = hasNegative ? colours.subarray(0, STEPS + 1) : colours.subarray(STEPS / 2, STEPS + 1);
    const image = new ImageData(shown.length, 1);
    new Uint32Array(image.data.buffer).set(shown);
    context.canvas.width = shown.length;
    context.putImageData(image, 0, 0);
  }, [colours, hasNegative]);
  return (
    <div class="legend">
      <canvas
        ref={canvas}
        class="legend-bar"
        width={STEPS + 1}
        height={1}
        role="img"
        aria-label={`Color scale from ${hasNegative ? `${significant(-range)} through 0` : "0"} to ${significant(range)}`}
      />
      <div class="legend-ticks" aria-hidden="true">
        {hasNegative && <span>{significant(-range)}</span>}
        <span>0</span>
        <span>{significant(range)}</span>
      </div>
      <input
        type="range"
        aria-label="Range of the color scale"
        aria-valuetext={significant(range)}
        min={MIN_EXPONENT}
        max={MAX_EXPONENT}
        step={0.02}
        value={Math.log10(range / initial)}
        onInput={(event) => onRange(initial * 10 ** Number(event.currentTarget.value))}
      />
    </div>
  );
}

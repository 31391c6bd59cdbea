// What the colours mean, and a slider for how far the scale goes.
import { useEffect, useRef } from "preact/hooks";
import { significant } from "../format";
import { STEPS } from "./palette";

/** The slider goes from a hundredth of the usual range to ten times it. */
const LEAST = -2;
const MOST = 1;

export function Legend({
  colours,
  range,
  usual,
  onRange,
}: {
  colours: Uint32Array;
  range: number;
  usual: number;
  onRange: (range: number) => void;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    const image = new ImageData(STEPS + 1, 1);
    new Uint32Array(image.data.buffer).set(colours.subarray(0, STEPS + 1));
    context.putImageData(image, 0, 0);
  }, [colours]);
  return (
    <div class="legend">
      <canvas
        ref={canvas}
        class="legend-bar"
        width={STEPS + 1}
        height={1}
        role="img"
        aria-label={`Colours from ${significant(-range)} by 0 to ${significant(range)}`}
      />
      <div class="legend-ticks" aria-hidden="true">
        <span>{significant(-range)}</span>
        <span>0</span>
        <span>{significant(range)}</span>
      </div>
      <input
        type="range"
        aria-label="End of the colour scale"
        aria-valuetext={significant(range)}
        min={LEAST}
        max={MOST}
        step={0.02}
        value={Math.log10(range / usual)}
        onInput={(event) => onRange(usual * 10 ** Number(event.currentTarget.value))}
      />
    </div>
  );
}

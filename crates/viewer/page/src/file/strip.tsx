// File map as a horizontal strip: drag to pan, Ctrl + scroll to zoom.
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Tensor } from "../api/tensor-types";
import type { MapFile } from "../api/types";
import { bytes, hex, whole } from "../format";
import { scheme } from "../ui/theme";
import { regionAt, regionColour, regionName } from "./regions";

/** Minimum number of visible bytes. */
const MIN_BYTES = 64;
/** Height in pixels. */
const HEIGHT = 56;

interface Props {
  file: MapFile;
  tensors: Tensor[];
  offset: number;
  onGo: (offset: number) => void;
}

export function Strip({ file, tensors, offset, onGo }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useSignal(0);
  const range = useSignal({ from: 0, to: file.bytes });
  const hover = useSignal<number | null>(null);
  const drag = useRef<{ x: number; moved: number } | null>(null);
  const edition = scheme.value;
  const { from, to } = range.value;
  const pixel = (to - from) / Math.max(1, width.value);

  useLayoutEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const measure = () => {
      width.value = element.clientWidth;
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    const wheel = (event: WheelEvent) => {
      // The wheel scrolls the page; a pinch on a touchpad arrives as Ctrl and wheel.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const { from, to } = range.value;
      const at = from + ((to - from) * event.offsetX) / Math.max(1, element.clientWidth);
      zoom(Math.exp(event.deltaY * 0.002), at);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => {
      observer.disconnect();
      element.removeEventListener("wheel", wheel);
    };
  }, [file]);
  useEffect(() => {
    const element = canvas.current;
    if (element && width.value > 0) paint(element, file, tensors, range.value, offset);
  }, [file, tensors, range.value, width.value, offset, edition]);
  // Scroll to an offset that was selected elsewhere, and describe it.
  useEffect(() => {
    hover.value = null;
    const { from, to } = range.value;
    if (offset < from || offset >= to) set(offset - (to - from) / 2, to - from);
  }, [offset]);

  function set(from: number, length: number): void {
    const size = Math.min(file.bytes, Math.max(MIN_BYTES, length));
    const start = Math.max(0, Math.min(file.bytes - size, from));
    range.value = { from: start, to: start + size };
  }
  function zoom(factor: number, at: number): void {
    const { from, to } = range.value;
    const length = Math.min(file.bytes, Math.max(MIN_BYTES, (to - from) * factor));
    set(at - ((at - from) / (to - from)) * length, length);
  }
  function key(event: KeyboardEvent): void {
    const part = regionAt(file.spans, offset);
    const steps: Record<string, () => void> = {
      ArrowRight: () => onGo(file.spans[part + 1]?.start ?? offset),
      ArrowLeft: () =>
        onGo((offset > (file.spans[part]?.start ?? 0) ? file.spans[part]?.start : file.spans[part - 1]?.start) ?? 0),
      Home: () => onGo(0),
      End: () => onGo(file.spans[file.spans.length - 1]?.start ?? 0),
      "+": () => zoom(0.5, offset),
      "=": () => zoom(0.5, offset),
      "-": () => zoom(2, offset),
      0: () => set(0, file.bytes),
    };
    const step = steps[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    step();
  }
  const at = hover.value ?? offset;
  const part = file.spans[regionAt(file.spans, at)];
  const chosen = file.spans[regionAt(file.spans, offset)];
  return (
    <figure class="strip">
      <canvas
        ref={canvas}
        class="strip-canvas"
        height={HEIGHT}
        tabIndex={0}
        role="slider"
        aria-label="Position in the file. Arrow keys move between regions, plus and minus zoom."
        aria-valuemin={0}
        aria-valuemax={file.bytes}
        aria-valuenow={offset}
        aria-valuetext={chosen ? `${regionName(chosen, tensors)}, byte ${hex(offset)}` : undefined}
        onKeyDown={key}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          drag.current = { x: event.offsetX, moved: 0 };
        }}
        onPointerMove={(event) => {
          const start = drag.current;
          hover.value = Math.min(file.bytes - 1, Math.max(0, from + event.offsetX * pixel));
          if (!start) return;
          set(from - (event.offsetX - start.x) * pixel, to - from);
          drag.current = { x: event.offsetX, moved: start.moved + Math.abs(event.offsetX - start.x) };
        }}
        onPointerUp={(event) => {
          if (drag.current && drag.current.moved < 4) {
            const place = Math.floor(from + event.offsetX * pixel);
            const picked = file.spans[regionAt(file.spans, place)];
            // If a pixel covers many bytes, select the whole region.
            onGo(picked && pixel > 64 ? picked.start : place);
          }
          drag.current = null;
        }}
        onPointerLeave={() => (hover.value = null)}
      />
      <p class="strip-ends faint" aria-hidden="true">
        <span>{hex(Math.floor(from))}</span>
        <span>{bytes(Math.ceil(to - from))}</span>
        <span>{hex(Math.ceil(to))}</span>
      </p>
      <figcaption class="strip-reading">
        <span>
          {part ? `${regionName(part, tensors)}: ${hex(part.start)}, ${whole(part.end - part.start)} B` : "\u00a0"}
        </span>
        <span class="buttons">
          <button
            type="button"
            aria-label="Zoom in"
            onClick={() => zoom(0.5, offset >= from && offset < to ? offset : (from + to) / 2)}
          >
            +
          </button>
          <button type="button" aria-label="Zoom out" onClick={() => zoom(2, (from + to) / 2)}>
            −
          </button>
          <button type="button" onClick={() => set(0, file.bytes)}>
            Fit
          </button>
        </span>
      </figcaption>
    </figure>
  );
}

function paint(
  element: HTMLCanvasElement,
  file: MapFile,
  tensors: Tensor[],
  { from, to }: { from: number; to: number },
  offset: number,
): void {
  const density = devicePixelRatio || 1;
  const width = element.clientWidth;
  element.width = Math.round(width * density);
  element.height = HEIGHT * density;
  const canvas = element.getContext("2d");
  if (!canvas) return;
  canvas.scale(density, density);
  const style = getComputedStyle(document.documentElement);
  const known = new Map<string, string>();
  const colour = (text: string) => {
    const found = known.get(text) ?? style.getPropertyValue(text.slice(4, -1)).trim();
    known.set(text, found);
    return found;
  };
  const scale = width / (to - from);
  // Skip regions much narrower than a pixel.
  let drawn = -1;
  for (let i = regionAt(file.spans, from); i < file.spans.length; i += 1) {
    const span = file.spans[i];
    if (!span || span.start >= to) break;
    const left = Math.max(0, (span.start - from) * scale);
    const right = Math.min(width, (span.end - from) * scale);
    if (right - drawn < 0.25) continue;
    canvas.fillStyle = colour(regionColour(span, tensors));
    const gap = right - left > 4 ? 1 : 0;
    const low = span.kind === "padding";
    canvas.fillRect(left, low ? 18 : 6, Math.max(0.5, right - left - gap), low ? HEIGHT - 36 : HEIGHT - 12);
    drawn = right;
    const room = right - left;
    if (room > 70)
      label(canvas, regionName(span, tensors), left + 6, room - 12, span.kind === "tensor" || span.kind === "keys");
  }
  canvas.fillStyle = style.getPropertyValue("--ink");
  const mark = (offset - from) * scale;
  canvas.fillRect(Math.round(mark) - 1, 0, 2, HEIGHT);
}

function label(canvas: CanvasRenderingContext2D, text: string, x: number, room: number, light: boolean): void {
  canvas.save();
  canvas.beginPath();
  canvas.rect(x, 0, room, HEIGHT);
  canvas.clip();
  canvas.font = "12px system-ui, sans-serif";
  canvas.textBaseline = "middle";
  canvas.fillStyle = light ? "rgb(255 255 255)" : getComputedStyle(document.documentElement).getPropertyValue("--ink");
  canvas.fillText(text, x, HEIGHT / 2);
  canvas.restore();
}

// Heat map of a matrix with pan and zoom down to single weights.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { ApiError } from "../api/request";
import { significant, whole } from "../format";
import { isDark, scheme } from "../ui/theme";
import {
  bounded,
  type Camera,
  fitted,
  formatted,
  level,
  parsed,
  pixels,
  type Size,
  visibleRange,
  weightAt,
  whole as wholeMatrix,
  zoomed,
} from "./camera";
import { type ColorMapping, contrast, draw, plane, screen, weight } from "./draw";
import { savePicture } from "./picture";
import { Minimap } from "./minimap";
import { Legend } from "./legend";
import { colormap } from "./colormap";
import { Rulers } from "./rulers";
import { type Place, SIDE, type Source, Tiles } from "./tiles";

interface Props {
  source: Source;
  /** Accessible description. */
  label: string;
  /** Weight that is marked. */
  picked?: { row: number; column: number } | null;
  /** Returns what a weight is, such as its attention head. */
  describe?: (row: number, column: number) => string | null;
  /** Returns the row that belongs to another, such as the other half of a RoPE pair. */
  partner?: (row: number) => number | null;
  /** What rows and columns are. */
  about?: string | null;
  /** Names of rows, shown when rows are high enough. */
  names?: RowNames | null;
  /** Camera of several heat maps that move together. */
  shared?: Signal<Camera | null>;
  /** Initial camera, as passed to `onMove`. */
  at: string | null;
  onMove?: (at: string) => void;
  /** Called for a weight that is clicked or selected with Enter. */
  onPick?: (row: number, column: number) => void;
}

/** Names of rows. `request` loads those of a range. */
export interface RowNames {
  get: (row: number) => string | null;
  request: (first: number, end: number) => void;
}

/** Pixels per row from which on names of rows are shown. */
const NAMES = 15;

const coarse = matchMedia("(pointer: coarse)");

/** Returns how much larger than a weight its mark is: small weights need a visible one. */
function grown(pixels: number): number {
  return Math.max(0, 12 - pixels);
}

/** Pixels that an arrow key pans by. */
const PAN_STEP = 60;

export function Heatmap({ source, label, at, picked, describe, partner, about, names, shared, onMove, onPick }: Props) {
  const figure = useRef<HTMLElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const frame = useRef(0);
  const camera = useRef<Camera | null>(null);
  const canvasSize = useRef<Size>({ width: 0, height: 0 });
  const view = useSignal<{
    camera: Camera;
    size: Size;
    missing: number;
    level: number;
    sampled: boolean;
    failure: unknown;
  } | null>(null);
  const cursor = useSignal<{ column: number; row: number } | null>(null);
  const announcement = useSignal("");
  const chosenRange = useSignal<number | null>(null);
  /** Range that suits what is drawn, and what it was computed for. */
  const auto = useSignal<{ source: string; key: string; range: number; hasNegative: boolean } | null>(null);
  const absmax = useSignal(true);
  const hint = useSignal(false);
  const hintTimer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const settled = useRef<ReturnType<typeof setTimeout> | null>(null);
  const edition = scheme.value;

  const tiles = useMemo(() => new Tiles(source, () => requestDraw()), [source.name]);
  useEffect(() => () => tiles.stop(), [tiles]);
  const suited = auto.value?.source === source.name ? auto.value : null;
  const end = chosenRange.value ?? suited?.range ?? 1;
  const mapping = useMemo<ColorMapping>(() => {
    const dark = isDark();
    return {
      colours: colormap(dark),
      name: `${dark} ${end} ${absmax.value}`,
      range: end,
      absmax: absmax.value,
      dark,
    };
  }, [end, absmax.value, edition]);
  const drawn = useRef<() => void>(() => undefined);
  drawn.current = () => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || canvasSize.current.width === 0) return;
    camera.current = bounded(
      camera.current ?? parsed(at) ?? fitted(source, canvasSize.current),
      source,
      canvasSize.current,
    );
    const density = devicePixelRatio || 1;
    const places = draw(context, density, canvasSize.current, camera.current, source, tiles, mapping);
    tiles.request(places);
    const now = level(camera.current, source, density);
    suit(places, now);
    const sampled = places.some((place) => place.level === now && tiles.get(place)?.exact === false);
    view.value = {
      camera: camera.current,
      size: canvasSize.current,
      missing: tiles.missing(),
      level: now,
      sampled,
      failure: tiles.failure,
    };
  };

  /** Computes the color range for the drawn tiles, again at every level. */
  function suit(places: Place[], now: number): void {
    const isComplete = places.every((place) => tiles.get(place) !== null);
    const key = `${now} ${absmax.value}`;
    const known = auto.value?.source === source.name ? auto.value : null;
    // Until all tiles are loaded, a range for the first ones must do.
    if (known && (known.key === key || !isComplete)) return;
    const drawn = places.filter((place) => place.level === now && tiles.get(place));
    const found = contrast(drawn.length > 0 ? drawn : places, tiles, absmax.value);
    if (found) auto.value = { source: source.name, key: isComplete ? key : "", ...found };
  }

  /** Schedules one draw for the next animation frame. */
  function requestDraw(): void {
    if (frame.current) return;
    frame.current = requestAnimationFrame(() => {
      frame.current = 0;
      drawn.current();
    });
  }
  useEffect(() => () => cancelAnimationFrame(frame.current), []);

  useLayoutEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const measure = () => {
      const density = devicePixelRatio || 1;
      const box = element.getBoundingClientRect();
      canvasSize.current = { width: box.width, height: box.height };
      element.width = Math.round(box.width * density);
      element.height = Math.round(box.height * density);
      drawn.current();
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    const wheel = (event: WheelEvent) => {
      // The wheel scrolls the page; a pinch on a touchpad arrives as Ctrl and wheel.
      if (!event.ctrlKey && !event.metaKey && !document.fullscreenElement) {
        hint.value = true;
        if (hintTimer.current) clearTimeout(hintTimer.current);
        hintTimer.current = setTimeout(() => (hint.value = false), 1200);
        return;
      }
      event.preventDefault();
      const pixels = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
      zoom(Math.exp(-pixels * 0.002), event.offsetX, event.offsetY);
    };
    // Only a listener that is not passive can prevent scrolling.
    element.addEventListener("wheel", wheel, { passive: false });
    // One finger scrolls the page, two move the picture.
    const touch = (event: TouchEvent) => {
      if (event.touches.length > 1) event.preventDefault();
    };
    element.addEventListener("touchmove", touch, { passive: false });
    return () => {
      observer.disconnect();
      element.removeEventListener("wheel", wheel);
      element.removeEventListener("touchmove", touch);
    };
  }, [source.name]);
  useEffect(() => {
    camera.current = parsed(at);
    chosenRange.value = null;
    cursor.value = null;
    requestDraw();
  }, [source.name]);
  useEffect(requestDraw, [mapping, tiles, source.rowGroups, source.columnGroups]);
  const common = shared?.value ?? null;
  useEffect(() => {
    if (!common || !camera.current || formatted(common) === formatted(camera.current)) return;
    camera.current = common;
    requestDraw();
  }, [common]);
  // The URL changed: back, or a link.
  useEffect(() => {
    const wanted = parsed(at);
    if (wanted && camera.current && formatted(wanted) !== formatted(camera.current)) {
      camera.current = wanted;
      requestDraw();
    }
  }, [at]);

  function set(to: Camera): void {
    camera.current = bounded(to, source, canvasSize.current);
    if (shared) shared.value = camera.current;
    requestDraw();
    if (settled.current) clearTimeout(settled.current);
    settled.current = setTimeout(() => camera.current && onMove?.(formatted(camera.current)), 300);
  }
  function zoom(factor: number, x = canvasSize.current.width / 2, y = canvasSize.current.height / 2): void {
    if (camera.current) set(zoomed(camera.current, factor, x, y, source, canvasSize.current));
  }
  function pan(x: number, y: number): void {
    const now = camera.current;
    if (!now) return;
    const per = pixels(now, source);
    set({ ...now, column: now.column - x / per.x, row: now.row - y / per.y });
  }

  const pointers = useRef(new Map<number, { x: number; y: number }>());
  const travelled = useRef(0);
  function down(event: PointerEvent): void {
    canvas.current?.setPointerCapture(event.pointerId);
    pointers.current.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    travelled.current = 0;
  }
  function moved(event: PointerEvent): void {
    const now = { x: event.offsetX, y: event.offsetY };
    const before = pointers.current.get(event.pointerId);
    if (!before) {
      if (camera.current) cursor.value = weightAt(camera.current, now.x, now.y, source, canvasSize.current);
      return;
    }
    const [other] = [...pointers.current].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    travelled.current += Math.hypot(now.x - before.x, now.y - before.y);
    pointers.current.set(event.pointerId, now);
    if (event.pointerType === "touch" && !other && !document.fullscreenElement) return;
    pan((now.x - before.x) / (other ? 2 : 1), (now.y - before.y) / (other ? 2 : 1));
    if (other) {
      const distance = (place: { x: number; y: number }) =>
        Math.max(8, Math.hypot(place.x - other.x, place.y - other.y));
      zoom(distance(now) / distance(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
    }
  }
  function up(event: PointerEvent): void {
    pointers.current.delete(event.pointerId);
    if (travelled.current > 4 || event.type !== "pointerup" || !camera.current) return;
    const place = weightAt(camera.current, event.offsetX, event.offsetY, source, canvasSize.current);
    cursor.value = place;
    if (place) onPick?.(place.row, place.column);
  }

  function key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || !camera.current) return;
    const arrows: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    };
    const arrow = arrows[event.key];
    if (arrow && camera.current.scale >= 8) step(arrow);
    else if (arrow) pan(-arrow[0] * PAN_STEP, -arrow[1] * PAN_STEP);
    else if (event.key === "+" || event.key === "=") zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else if (event.key === "0") set(fitted(source, canvasSize.current));
    else if (event.key === "Enter" && cursor.value) onPick?.(cursor.value.row, cursor.value.column);
    else return;
    event.preventDefault();
  }
  /** Moves the cursor to the next weight and announces it. */
  function step([across, down]: [number, number]): void {
    const now = camera.current as Camera;
    const from = cursor.value ?? { column: Math.floor(now.column), row: Math.floor(now.row) };
    const to = {
      column: Math.min(source.columns - 1, Math.max(0, from.column + across)),
      row: Math.min(source.rows - 1, Math.max(0, from.row + down)),
    };
    cursor.value = to;
    const per = pixels(now, source);
    const isOutside = (at: number, middle: number, per: number, length: number) =>
      Math.abs(at + 0.5 - middle) * per > length / 2 - per;
    if (
      isOutside(to.column, now.column, per.x, canvasSize.current.width) ||
      isOutside(to.row, now.row, per.y, canvasSize.current.height)
    )
      set({ ...now, column: to.column, row: to.row });
    announcement.value = reading(to);
  }

  function reading(place: { column: number; row: number }): string {
    const meaning = describe?.(place.row, place.column);
    const where = `row ${whole(place.row)}, column ${whole(place.column)}${meaning ? ` (${meaning})` : ""}`;
    const exact = weight(tiles, place.column, place.row);
    if (exact !== null) return `${where}: ${significant(exact)}`;
    for (let up = Math.max(1, view.value?.level ?? 1); up < source.levels; up += 1) {
      const pixel = 2 ** up;
      const tile = tiles.get({
        level: up,
        x: Math.floor(place.column / (SIDE * pixel)),
        y: Math.floor(place.row / (SIDE * pixel)),
      });
      if (!tile) continue;
      const index = Math.floor((place.row / pixel) % SIDE) * tile.width + Math.floor((place.column / pixel) % SIDE);
      const values = [plane(tile, false)[index], plane(tile, true)[index]].map((value) => significant(value ?? null));
      return `${where}, ${pixel}×${pixel} weights: mean ${values[0]}, absmax ${values[1]}`;
    }
    return where;
  }

  const now = view.value;
  const mark = cursor.value;
  const partnerRow = mark ? (partner?.(mark.row) ?? null) : null;
  const partnerPlace = mark && partnerRow !== null ? { column: mark.column, row: partnerRow } : null;
  // A wide matrix that fits as a whole needs no room above and below.
  const ratio = (source.columns * source.stretch.x) / (source.rows * source.stretch.y);
  const isFlat = ratio > 1.2 && ratio < 5;
  const hasNegative = suited?.hasNegative ?? true;
  const per = now ? pixels(now.camera, source) : { x: 1, y: 1 };
  const isLong = now !== null && fitted(source, now.size).scale > wholeMatrix(source, now.size).scale * 1.05;
  const named = names && now && per.y >= NAMES ? visibleRange(now.camera, source, now.size).rows : null;
  useEffect(() => {
    if (named) names?.request(named.first, named.end);
  }, [named?.first, named?.end]);
  const failure = now?.failure instanceof ApiError ? now.failure : null;
  return (
    <figure ref={figure} class="heat">
      <div class="heat-tools" role="group" aria-label="Heat map">
        <button type="button" onClick={() => zoom(1.6)} aria-label="Zoom in">
          +
        </button>
        <button type="button" onClick={() => zoom(1 / 1.6)} aria-label="Zoom out">
          −
        </button>
        <button type="button" onClick={() => set(fitted(source, canvasSize.current))}>
          Fit
        </button>
        {isLong && (
          <button type="button" onClick={() => set(wholeMatrix(source, canvasSize.current))}>
            Whole
          </button>
        )}
        <button type="button" onClick={() => camera.current && set({ ...camera.current, scale: 1 })}>
          1:1
        </button>
        <button
          type="button"
          title="Fit the color scale to what is visible"
          onClick={() => {
            chosenRange.value = null;
            if (auto.value) auto.value = { ...auto.value, key: "" };
            requestDraw();
          }}
        >
          Auto contrast
        </button>
        <button
          type="button"
          onClick={() => canvas.current && savePicture(canvas.current, label, mapping, hasNegative)}
        >
          Save PNG
        </button>
        {document.fullscreenEnabled && (
          <button type="button" onClick={() => void figure.current?.requestFullscreen()}>
            Full screen
          </button>
        )}
        <div class="segments" role="group" aria-label="Aggregation">
          <button type="button" aria-pressed={!absmax.value} onClick={() => (absmax.value = false)}>
            Mean
          </button>
          <button type="button" aria-pressed={absmax.value} onClick={() => (absmax.value = true)}>
            Absmax
          </button>
        </div>
      </div>
      <div class="heat-frame">
        {now && <Rulers camera={now.camera} size={now.size} source={source} />}
        <div
          class={`heat-stage${isFlat ? " flat" : ""}`}
          style={
            isFlat ? { aspectRatio: `${source.columns * source.stretch.x} / ${source.rows * source.stretch.y}` } : {}
          }
        >
          <canvas
            ref={canvas}
            class="heat-canvas"
            role="application"
            aria-roledescription="heat map"
            aria-label={`${label}. Arrow keys pan, plus and minus zoom, 0 fits the matrix.`}
            tabIndex={0}
            data-level={now?.level}
            data-missing={now?.missing}
            onPointerDown={down}
            onPointerMove={moved}
            onPointerUp={up}
            onPointerCancel={up}
            onPointerLeave={() => (cursor.value = null)}
            onKeyDown={key}
          />
          {now &&
            [
              { place: picked ?? null, name: " picked" },
              { place: mark, name: "" },
              { place: partnerPlace, name: " partner" },
            ].map(
              ({ place, name }) =>
                place &&
                (name === " picked" || Math.min(per.x, per.y) >= 4) && (
                  <div
                    key={name}
                    class={`heat-cursor${name}`}
                    style={{
                      left: `${screen(place.column, now.camera.column, per.x, now.size.width) - grown(per.x) / 2}px`,
                      top: `${screen(place.row, now.camera.row, per.y, now.size.height) - grown(per.y) / 2}px`,
                      width: `${per.x + grown(per.x)}px`,
                      height: `${per.y + grown(per.y)}px`,
                    }}
                  />
                ),
            )}
          {named && now && (
            <div class="heat-names" aria-hidden="true">
              {Array.from({ length: named.end - named.first }, (_, i) => named.first + i).map((row) => (
                <span key={row} style={{ top: `${screen(row + 0.5, now.camera.row, per.y, now.size.height)}px` }}>
                  {names?.get(row)}
                </span>
              ))}
            </div>
          )}
          {hint.value && (
            <p class="heat-hint" aria-hidden="true">
              Ctrl + scroll to zoom
            </p>
          )}
        </div>
        {isLong && now && (
          <Minimap
            source={source}
            tiles={tiles}
            camera={now.camera}
            size={now.size}
            mapping={mapping}
            edition={now.missing}
            onMove={set}
          />
        )}
      </div>
      <figcaption class="heat-caption">
        {about && <p class="heat-axes faint">{about}</p>}
        <p class="heat-reading">
          {mark
            ? reading(mark)
            : failure
              ? `${failure.message}`
              : coarse.matches
                ? "Tap a weight to read it; two fingers move and zoom"
                : "Hover over a weight to read it; drag to pan, Ctrl + scroll to zoom"}
        </p>
        <Legend
          colours={mapping.colours}
          range={end}
          initial={suited?.range ?? 1}
          hasNegative={hasNegative}
          onRange={(to) => (chosenRange.value = to)}
        />
        <p class="heat-level faint">
          {now && (now.level === 0 ? "1 px = 1 weight" : `1 px = ${2 ** now.level}×${2 ** now.level} weights`)}
          {now?.sampled && ", sampled"}
          {now !== null && now.missing > 0 && " …"}
        </p>
      </figcaption>
      <p class="for-readers" role="status">
        {announcement.value}
      </p>
    </figure>
  );
}

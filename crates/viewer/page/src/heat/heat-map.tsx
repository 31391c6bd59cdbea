// A matrix as a picture that can be moved and enlarged down to single weights.
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Failure } from "../api/request";
import { significant, whole as digits } from "../format";
import { scheme } from "../ui/plot";
import { below, bounded, type Camera, level, read, type Room, whole, written, zoomed } from "./camera";
import { draw, type Look, plane, screen, weight } from "./draw";
import { Legend } from "./legend";
import { palette } from "./palette";
import { Rulers } from "./rulers";
import { SIDE, type Source, Tiles } from "./tiles";

interface Props {
  source: Source;
  /** What is shown, for those who do not see it. */
  label: string;
  /** The weight at the end of the scale, to begin with; null until it is known. */
  range: number | null;
  /** Where to begin, as `onMove` gave it. */
  at: string | null;
  onMove?: (at: string) => void;
  /** Called for the weight that was clicked or chosen by Enter. */
  onPick?: (row: number, column: number) => void;
}

/** Pixels that an arrow key moves by. */
const STEP = 60;

export function HeatMap({ source, label, range, at, onMove, onPick }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const frame = useRef(0);
  const camera = useRef<Camera | null>(null);
  const room = useRef<Room>({ width: 0, height: 0 });
  const view = useSignal<{
    camera: Camera;
    room: Room;
    missing: number;
    level: number;
    sampled: boolean;
    failure: unknown;
  } | null>(null);
  const cursor = useSignal<{ column: number; row: number } | null>(null);
  const spoken = useSignal("");
  const chosenRange = useSignal<number | null>(null);
  const extreme = useSignal(false);
  const settled = useRef<ReturnType<typeof setTimeout> | null>(null);
  const edition = scheme.value;

  const tiles = useMemo(() => new Tiles(source, () => again()), [source.name]);
  useEffect(() => () => tiles.stop(), [tiles]);
  const end = chosenRange.value ?? range ?? 1;
  const look = useMemo<Look>(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    return {
      colours: palette(dark),
      name: `${dark} ${end} ${extreme.value}`,
      range: end,
      extreme: extreme.value,
      dark,
    };
  }, [end, extreme.value, edition]);
  const drawn = useRef<() => void>(() => undefined);
  drawn.current = () => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || room.current.width === 0) return;
    camera.current = bounded(camera.current ?? read(at) ?? whole(source, room.current), source, room.current);
    const density = devicePixelRatio || 1;
    const places = draw(context, density, room.current, camera.current, source, tiles, look);
    tiles.want(places);
    const now = level(camera.current, source, density);
    const sampled = places.some((place) => place.level === now && tiles.get(place)?.exact === false);
    view.value = {
      camera: camera.current,
      room: room.current,
      missing: tiles.missing(),
      level: now,
      sampled,
      failure: tiles.failure,
    };
  };

  /** Draws once before the screen is next shown, however often it is called. */
  function again(): void {
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
      room.current = { width: box.width, height: box.height };
      element.width = Math.round(box.width * density);
      element.height = Math.round(box.height * density);
      drawn.current();
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const pixels = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
      zoom(Math.exp(-pixels * 0.002), event.offsetX, event.offsetY);
    };
    // Only listeners that are not passive may keep the page from scrolling.
    element.addEventListener("wheel", wheel, { passive: false });
    return () => {
      observer.disconnect();
      element.removeEventListener("wheel", wheel);
    };
  }, [source.name]);
  useEffect(() => {
    camera.current = read(at);
    chosenRange.value = null;
    cursor.value = null;
    again();
  }, [source.name]);
  useEffect(again, [look, tiles]);
  // The address changed by itself: back, or a link.
  useEffect(() => {
    const wanted = read(at);
    if (wanted && camera.current && written(wanted) !== written(camera.current)) {
      camera.current = wanted;
      again();
    }
  }, [at]);

  function set(to: Camera): void {
    camera.current = bounded(to, source, room.current);
    again();
    if (settled.current) clearTimeout(settled.current);
    settled.current = setTimeout(() => camera.current && onMove?.(written(camera.current)), 300);
  }
  function zoom(factor: number, x = room.current.width / 2, y = room.current.height / 2): void {
    if (camera.current) set(zoomed(camera.current, factor, x, y, source, room.current));
  }
  function pan(x: number, y: number): void {
    const now = camera.current;
    if (now) set({ ...now, column: now.column - x / now.scale, row: now.row - y / now.scale });
  }

  const hands = useRef(new Map<number, { x: number; y: number }>());
  const travelled = useRef(0);
  function down(event: PointerEvent): void {
    canvas.current?.setPointerCapture(event.pointerId);
    hands.current.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    travelled.current = 0;
  }
  function moved(event: PointerEvent): void {
    const now = { x: event.offsetX, y: event.offsetY };
    const before = hands.current.get(event.pointerId);
    if (!before) {
      if (camera.current) cursor.value = below(camera.current, now.x, now.y, source, room.current);
      return;
    }
    const [other] = [...hands.current].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    pan((now.x - before.x) / (other ? 2 : 1), (now.y - before.y) / (other ? 2 : 1));
    if (other) {
      const apart = (place: { x: number; y: number }) => Math.max(8, Math.hypot(place.x - other.x, place.y - other.y));
      zoom(apart(now) / apart(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
    }
    travelled.current += Math.hypot(now.x - before.x, now.y - before.y);
    hands.current.set(event.pointerId, now);
  }
  function up(event: PointerEvent): void {
    hands.current.delete(event.pointerId);
    if (travelled.current > 4 || event.type !== "pointerup" || !camera.current) return;
    const place = below(camera.current, event.offsetX, event.offsetY, source, room.current);
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
    else if (arrow) pan(-arrow[0] * STEP, -arrow[1] * STEP);
    else if (event.key === "+" || event.key === "=") zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else if (event.key === "0") set(whole(source, room.current));
    else if (event.key === "Enter" && cursor.value) onPick?.(cursor.value.row, cursor.value.column);
    else return;
    event.preventDefault();
  }
  /** Where weights are large enough, arrows go from weight to weight and say each. */
  function step([across, down]: [number, number]): void {
    const now = camera.current as Camera;
    const from = cursor.value ?? { column: Math.floor(now.column), row: Math.floor(now.row) };
    const to = {
      column: Math.min(source.columns - 1, Math.max(0, from.column + across)),
      row: Math.min(source.rows - 1, Math.max(0, from.row + down)),
    };
    cursor.value = to;
    const beside = (at: number, middle: number, length: number) =>
      Math.abs(at + 0.5 - middle) * now.scale > length / 2 - now.scale;
    if (beside(to.column, now.column, room.current.width) || beside(to.row, now.row, room.current.height))
      set({ ...now, column: to.column, row: to.row });
    spoken.value = reading(to);
  }

  function reading(place: { column: number; row: number }): string {
    const where = `row ${digits(place.row)}, column ${digits(place.column)}`;
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
      return `${where} and ${pixel} x ${pixel} weights: mean ${values[0]}, extreme ${values[1]}`;
    }
    return where;
  }

  const now = view.value;
  const mark = cursor.value;
  const failure = now?.failure instanceof Failure ? now.failure : null;
  return (
    <figure class="heat">
      <div class="heat-tools" role="group" aria-label="Picture">
        <button type="button" onClick={() => zoom(1.6)} aria-label="Larger">
          +
        </button>
        <button type="button" onClick={() => zoom(1 / 1.6)} aria-label="Smaller">
          −
        </button>
        <button type="button" onClick={() => set(whole(source, room.current))}>
          All
        </button>
        <button type="button" onClick={() => camera.current && set({ ...camera.current, scale: 1 })}>
          1:1
        </button>
        <div class="segments" role="group" aria-label="Pixels of several weights show">
          <button type="button" aria-pressed={!extreme.value} onClick={() => (extreme.value = false)}>
            Mean
          </button>
          <button type="button" aria-pressed={extreme.value} onClick={() => (extreme.value = true)}>
            Extreme
          </button>
        </div>
      </div>
      <div class="heat-frame">
        {now && <Rulers camera={now.camera} room={now.room} source={source} />}
        <div class="heat-stage">
          <canvas
            ref={canvas}
            class="heat-canvas"
            role="application"
            aria-roledescription="heat map"
            aria-label={`${label}. Arrow keys move, plus and minus change the size, 0 shows all.`}
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
          {mark && now && now.camera.scale >= 4 && (
            <div
              class="heat-cursor"
              style={{
                left: `${screen(mark.column, now.camera.column, now.camera, now.room.width)}px`,
                top: `${screen(mark.row, now.camera.row, now.camera, now.room.height)}px`,
                width: `${now.camera.scale}px`,
                height: `${now.camera.scale}px`,
              }}
            />
          )}
        </div>
      </div>
      <figcaption class="heat-caption">
        <p class="heat-reading">
          {mark
            ? reading(mark)
            : failure
              ? `${failure.message}`
              : "Point at a weight; drag to move, turn the wheel to enlarge"}
        </p>
        <Legend colours={look.colours} range={end} usual={range ?? 1} onRange={(to) => (chosenRange.value = to)} />
        <p class="heat-level faint">
          {now && (now.level === 0 ? "each weight" : `${2 ** now.level} x ${2 ** now.level} weights a pixel`)}
          {now?.sampled && ", sampled"}
          {now !== null && now.missing > 0 && " …"}
        </p>
      </figcaption>
      <p class="for-readers" role="status">
        {spoken.value}
      </p>
    </figure>
  );
}

// Virtual list: only visible rows are in the document.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";

/** Maximum height of an element in pixels; browsers clamp beyond it. */
const MAX_HEIGHT = 30_000_000;
/** Rows rendered outside the visible range. */
const OVERSCAN = 6;

interface Props {
  count: number;
  /** Height of a row in pixels. */
  height: number;
  label: string;
  /** `grid` if rows have cells, `treegrid` if they are nested too. */
  role?: "listbox" | "grid" | "treegrid";
  render: (index: number) => ComponentChildren;
  /** Additional ARIA attributes of a row, such as level and expanded. */
  attributes?: (index: number) => Record<string, string | number | boolean | undefined>;
  selected?: number | null;
  /** Called on Enter or click. */
  onChoose?: (index: number) => void;
  /** Handles other keys; returns whether it did. */
  onKey?: (key: string, index: number) => boolean;
  /** Called with the range of rendered rows. */
  onSeen?: (first: number, end: number) => void;
  /** Row to scroll to when it changes. */
  reveal?: number | null;
  class?: string;
  head?: ComponentChildren;
}

export function VirtualList(props: Props) {
  const { count, height, role = "listbox" } = props;
  const box = useRef<HTMLDivElement>(null);
  const name = useId();
  const top = useSignal(0);
  const room = useSignal(0);
  const active = useSignal(props.selected ?? 0);
  const full = Math.min(count * height, MAX_HEIGHT);
  // Beyond the maximum height, a scroll pixel is more than a pixel of the list.
  const stretch = full > room.value ? Math.max(1, (count * height - room.value) / Math.max(1, full - room.value)) : 1;
  const at = top.value * stretch;
  const first = Math.max(0, Math.floor(at / height) - OVERSCAN);
  const end = Math.min(count, Math.ceil((at + room.value) / height) + OVERSCAN);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => {
      room.value = element.clientHeight;
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (end > first) props.onSeen?.(first, end);
  }, [first, end, props.onSeen]);
  useLayoutEffect(() => {
    if (props.reveal !== null && props.reveal !== undefined && props.reveal >= 0) {
      active.value = props.reveal;
      show(props.reveal);
    }
  }, [props.reveal, count > 0, room.value > 0]);

  function show(index: number): void {
    const element = box.current;
    if (!element || room.value === 0) return;
    const place = (index * height) / stretch;
    if (place < element.scrollTop) element.scrollTop = place;
    else if (place + height > element.scrollTop + room.value) element.scrollTop = place + height - room.value;
    top.value = element.scrollTop;
  }
  function move(to: number): void {
    active.value = Math.max(0, Math.min(count - 1, to));
    show(active.value);
  }
  function key(event: KeyboardEvent): void {
    if (event.target !== box.current || event.ctrlKey || event.metaKey || event.altKey || count === 0) return;
    const page = Math.max(1, Math.floor(room.value / height) - 1);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -count,
      End: count,
    };
    const step = steps[event.key];
    if (step !== undefined) move(active.value + step);
    else if ((event.key === "Enter" || event.key === " ") && props.onChoose) props.onChoose(active.value);
    else if (!props.onKey?.(event.key, active.value)) return;
    event.preventDefault();
  }

  const rows = [];
  for (let index = first; index < end; index += 1) {
    const place = index * height - at + top.value;
    rows.push(
      <div
        key={index}
        id={`${name}-${index}`}
        class={`row${index === active.value ? " active" : ""}${index === props.selected ? " selected" : ""}`}
        role={role === "listbox" ? "option" : "row"}
        aria-selected={props.selected === undefined ? undefined : index === props.selected}
        {...(role === "listbox"
          ? { "aria-posinset": index + 1, "aria-setsize": count }
          : { "aria-rowindex": index + 1 })}
        {...props.attributes?.(index)}
        style={{ top: `${place}px`, height: `${height}px` }}
        onClick={() => {
          active.value = index;
          props.onChoose?.(index);
        }}
      >
        {props.render(index)}
      </div>,
    );
  }
  const seen = active.value >= first && active.value < end;
  return (
    <div class={`virtual ${props.onChoose ? "choosable " : ""}${props.class ?? ""}`}>
      {props.head}
      <div
        ref={box}
        class="virtual-box"
        role={role}
        aria-label={props.label}
        aria-rowcount={role === "listbox" ? undefined : count}
        aria-activedescendant={seen && count > 0 ? `${name}-${active.value}` : undefined}
        tabIndex={0}
        onScroll={(event) => {
          top.value = event.currentTarget.scrollTop;
        }}
        onKeyDown={key}
      >
        <div class="virtual-all" role="presentation" style={{ height: `${full}px` }}>
          {rows}
        </div>
      </div>
    </div>
  );
}

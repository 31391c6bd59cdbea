// Width of an element.
import { useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** Returns a reference for an element and its width in pixels; 0 until it is measured. */
export function useWidth<T extends HTMLElement>(): { element: RefObject<T | null>; width: number } {
  const element = useRef<T>(null);
  const width = useSignal(0);
  useLayoutEffect(() => {
    const found = element.current;
    if (!found) return;
    const measure = () => {
      width.value = found.clientWidth;
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(found);
    return () => observer.disconnect();
  }, []);
  return { element, width: width.value };
}

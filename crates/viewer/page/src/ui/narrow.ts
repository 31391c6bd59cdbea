// Detects narrow windows, such as phones.
import { signal } from "@preact/signals";

const query = matchMedia("(max-width: 640px)");
const narrow = signal(query.matches);
query.addEventListener("change", () => {
  narrow.value = query.matches;
});

/** Returns whether the window is narrow. */
export function useNarrow(): boolean {
  return narrow.value;
}

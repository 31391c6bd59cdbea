// Detects windows in which 16 bytes do not fit a line: phones, and those in which the sidebar leaves little room.
import { signal } from "@preact/signals";

const query = matchMedia(
  "(max-width: 700px), (min-width: 861px) and (max-width: 960px), (min-width: 1181px) and (max-width: 1310px)",
);
const narrow = signal(query.matches);
query.addEventListener("change", () => {
  narrow.value = query.matches;
});

/** Returns whether the page has little room. */
export function useNarrow(): boolean {
  return narrow.value;
}

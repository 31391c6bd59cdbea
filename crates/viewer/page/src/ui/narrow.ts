// Is this a phone?
import { signal } from "@preact/signals";

const query = matchMedia("(max-width: 640px)");
const narrow = signal(query.matches);
query.addEventListener("change", () => {
  narrow.value = query.matches;
});

/** True where the page is as narrow as a phone. */
export function useNarrow(): boolean {
  return narrow.value;
}

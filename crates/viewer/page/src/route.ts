// The address says what is shown: `#/0/tensors/blk.0.attn_q.weight?sort=size`. Links and the way back work by that.
import { computed, signal } from "@preact/signals";

/** A place in the page: the parts of the path, and what is chosen there. */
export interface Place {
  path: string[];
  query: URLSearchParams;
}

export const place = signal<Place>(read());
/** Model numbers of the address, and the view. */
export const model = computed(() => {
  const first = place.value.path[0];
  return first !== undefined && /^\d+$/.test(first) ? Number(first) : 0;
});
export const view = computed(() => {
  const { path } = place.value;
  return path[0] === "compare" ? "compare" : (path[1] ?? "overview");
});

addEventListener("hashchange", () => {
  place.value = read();
});

function read(): Place {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter((part) => part !== "");
  return { path: parts.map(decoded), query: new URLSearchParams(query) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a place. Empty choices are left out. */
export function link(
  path: (string | number)[],
  query: Record<string, string | number | null | undefined> = {},
): string {
  const chosen = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") chosen.set(name, String(value));
  }
  const rest = chosen.toString();
  return `#/${path.map((part) => encodeURIComponent(part)).join("/")}${rest ? `?${rest}` : ""}`;
}

/** Goes to a place; with `replace`, back does not lead to the present one. */
export function go(address: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", address);
    place.value = read();
  } else {
    location.hash = address;
  }
}

/** Changes what is chosen in the present place. */
export function choose(changes: Record<string, string | number | null | undefined>, replace = true): void {
  const { path, query } = place.value;
  go(link(path, { ...Object.fromEntries(query), ...changes }), replace);
}

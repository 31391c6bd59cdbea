// The URL fragment holds the state of the page: `#/0/tensors/blk.0.attn_q.weight?sort=size`.
import { computed, signal } from "@preact/signals";

/** Path segments and query parameters of the fragment. */
export interface Route {
  path: string[];
  query: URLSearchParams;
}

export const route = signal<Route>(read());
/** Index of the current model. */
export const model = computed(() => {
  const first = route.value.path[0];
  return first !== undefined && /^\d+$/.test(first) ? Number(first) : 0;
});
export const view = computed(() => {
  const { path } = route.value;
  return path[0] === "compare" ? "compare" : (path[1] ?? "overview");
});

addEventListener("hashchange", () => {
  route.value = read();
});

function read(): Route {
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

/** Returns the URL fragment, without empty parameters. */
export function link(
  path: (string | number)[],
  query: Record<string, string | number | null | undefined> = {},
): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") params.set(name, String(value));
  }
  const rest = params.toString();
  return `#/${path.map((part) => encodeURIComponent(part)).join("/")}${rest ? `?${rest}` : ""}`;
}

/** Navigates to a fragment; `replace` replaces the current history entry. */
export function navigate(address: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", address);
    route.value = read();
  } else {
    location.hash = address;
  }
}

/** Changes query parameters of the current route. */
export function setParams(changes: Record<string, string | number | null | undefined>, replace = true): void {
  const { path, query } = route.value;
  navigate(link(path, { ...Object.fromEntries(query), ...changes }), replace);
}

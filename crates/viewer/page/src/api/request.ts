// Requests to the server, relative to the page so that they include the secret.
import { signal } from "@preact/signals";

/** Whether the server is unreachable. */
export const offline = signal(false);

/** An error response, or a connection error with status 0. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly help: string | null,
    /** The error document of the server. */
    readonly detail: Record<string, unknown> = {},
  ) {
    super(message);
  }
}

/** Prefetched responses; the first `get` of the same path consumes them. */
const prefetched = new Map<string, Promise<unknown>>();

/** Requests a document before a view needs it. Resolves when the request ends, even if it failed. */
export async function prefetch(path: string): Promise<void> {
  const document = get(path);
  prefetched.set(path, document);
  // `get` reports the error.
  await document.catch(() => undefined);
}

/** Requests the JSON document at `api/1/{path}`. */
export async function get<T>(path: string, stop?: AbortSignal): Promise<T> {
  const early = prefetched.get(path);
  prefetched.delete(path);
  if (early) return (await early) as T;
  return (await (await request(path, { signal: stop })).json()) as T;
}

/** Posts a JSON document and returns the response. */
export async function post<T>(path: string, body: unknown, stop?: AbortSignal): Promise<T> {
  const headers = { "content-type": "application/json" };
  return (await (
    await request(path, { method: "POST", headers, body: JSON.stringify(body), signal: stop })
  ).json()) as T;
}

/** Sends a request; the body of the response is unread. */
export async function request(
  path: string,
  init: Omit<RequestInit, "signal"> & { signal?: AbortSignal | undefined } = {},
): Promise<Response> {
  const { signal: stop, ...rest } = init;
  let response: Response;
  try {
    response = await fetch(`api/1/${path}`, stop ? { ...rest, signal: stop } : rest);
  } catch (error) {
    if (stop?.aborted) throw error;
    offline.value = true;
    throw new ApiError(0, "server-gone", "the server does not respond", "start `gguf view` again");
  }
  offline.value = false;
  if (response.ok) return response;
  throw await errorOf(response);
}

async function errorOf(response: Response): Promise<ApiError> {
  const document: unknown = await response.json().catch(() => null);
  const error = (document as { error?: Record<string, unknown> } | null)?.error ?? {};
  const text = (name: string) => (typeof error[name] === "string" ? (error[name] as string) : null);
  const message = text("message") ?? `the server responded with status ${response.status}`;
  return new ApiError(response.status, text("code") ?? "unknown", message, text("help"), error);
}

/** Returns an escaped path below `api/1/`. */
export function address(
  parts: (string | number)[],
  query: Record<string, string | number | boolean | null | undefined> = {},
): string {
  const chosen = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") chosen.set(name, String(value));
  }
  const rest = chosen.toString();
  return parts.map((part) => encodeURIComponent(part)).join("/") + (rest ? `?${rest}` : "");
}

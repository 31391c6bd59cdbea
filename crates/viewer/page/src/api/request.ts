// Requests to the server: relative to the page, so that the secret in the address goes with them.
import { signal } from "@preact/signals";

/** The server does not answer. */
export const lost = signal(false);

/** What the server, or the way to it, says is wrong. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly help: string | null,
    /** The error as the server sent it. */
    readonly detail: Record<string, unknown> = {},
  ) {
    super(message);
  }
}

/** Documents that a page which just starts has asked for, each for the first who asks the same. */
const begun = new Map<string, Promise<unknown>>();

/** Asks for a document before a view wants it. Ends when it is there, or is not to be had. */
export async function begin(path: string): Promise<void> {
  const document = get(path);
  begun.set(path, document);
  // Who takes it sees how it ended.
  await document.catch(() => undefined);
}

/** The document at an address below `api/1/`. */
export async function get<T>(path: string, stop?: AbortSignal): Promise<T> {
  const early = begun.get(path);
  begun.delete(path);
  if (early) return (await early) as T;
  return (await (await request(path, { signal: stop })).json()) as T;
}

/** Sends a document, gives the answer. */
export async function post<T>(path: string, body: unknown, stop?: AbortSignal): Promise<T> {
  const headers = { "content-type": "application/json" };
  return (await (
    await request(path, { method: "POST", headers, body: JSON.stringify(body), signal: stop })
  ).json()) as T;
}

/** The answer to a request; its body has not been read. */
export async function request(
  path: string,
  init: Omit<RequestInit, "signal"> & { signal?: AbortSignal | undefined } = {},
): Promise<Response> {
  const { signal: stop, ...rest } = init;
  let answer: Response;
  try {
    answer = await fetch(`api/1/${path}`, stop ? { ...rest, signal: stop } : rest);
  } catch (error) {
    if (stop?.aborted) throw error;
    lost.value = true;
    throw new Failure(0, "server-gone", "the server does not answer", "start `gguf view` again");
  }
  lost.value = false;
  if (answer.ok) return answer;
  throw await failed(answer);
}

async function failed(answer: Response): Promise<Failure> {
  const document: unknown = await answer.json().catch(() => null);
  const error = (document as { error?: Record<string, unknown> } | null)?.error ?? {};
  const text = (name: string) => (typeof error[name] === "string" ? (error[name] as string) : null);
  const message = text("message") ?? `the server answered with ${answer.status}`;
  return new Failure(answer.status, text("code") ?? "unknown", message, text("help"), error);
}

/** An address below `api/1/` with its parts and choices escaped. */
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

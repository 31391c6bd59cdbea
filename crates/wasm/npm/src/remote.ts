// Remote files, read by HTTP range requests.
import { GgufError } from "./error.js";
import { firstRead } from "./gguf_wasm.js";
import type { Options, Push, Reader } from "./source.js";

/** Opens a remote file: requests its first bytes, which also tells its length. */
export async function remote(source: string | URL, options: Options): Promise<Reader> {
  const file = new RemoteFile(String(source), options);
  const response = await file.request(0, firstRead());
  return response.status === 206 ? file.byRanges(response) : file.byStream(response);
}

class RemoteFile {
  readonly #url: string;
  readonly #options: Options;
  readonly #abort = new AbortController();

  constructor(url: string, options: Options) {
    this.#url = url;
    this.#options = options;
    const { signal } = options;
    const abort = (): void => this.#abort.abort(signal?.reason);
    signal?.addEventListener("abort", abort, { signal: this.#abort.signal });
  }

  /** Ends running responses. */
  #close(): void {
    this.#abort.abort();
  }

  /** Requests a range. The server may respond with the whole file. */
  async request(start: number, end: number, method = "GET"): Promise<Response> {
    const headers = new Headers(this.#options.headers);
    if (method === "GET") headers.set("Range", `bytes=${start}-${end - 1}`);
    const { signal } = this.#options;
    signal?.throwIfAborted();
    const send = this.#options.fetch ?? fetch;
    // Caches of browsers join ranges of different versions of a file.
    const init: RequestInit = { method, headers, signal: this.#abort.signal, cache: "no-store" };
    let response;
    try {
      response = await send(this.#url, init);
    } catch (cause) {
      signal?.throwIfAborted();
      throw this.#error(
        "the request failed",
        "check the URL and the network; in a browser the server must allow CORS",
        cause,
      );
    }
    // An empty file has no first byte.
    if (response.ok || (response.status === 416 && emptyLength(response) === 0)) return response;
    void response.body?.cancel();
    throw this.#error(`the server responded with status ${response.status}`, "check the URL and the credentials");
  }

  /** Reader that requests each range. */
  async byRanges(first: Response): Promise<Reader> {
    const tag = first.headers.get("etag");
    const length = rangeOf(first)?.length ?? (await this.#lengthByHead());
    return {
      name: this.#name(),
      length,
      close: () => this.#close(),
      read: async (from, to, push) => {
        if (from === 0) return this.#body(first, from, to, push);
        const response = await this.request(from, to);
        const otherTag = response.headers.get("etag");
        if (tag !== otherTag || (rangeOf(response)?.length ?? length) !== length) {
          void response.body?.cancel();
          throw this.#error("it changed while it was read", "open it again", undefined, "file-changed");
        }
        return this.#body(response, from, to, push);
      },
    };
  }

  /** Reader of the response of a server that ignores ranges. The rest of the file is not received. */
  async byStream(response: Response): Promise<Reader> {
    if (response.status === 416) return { name: this.#name(), length: 0, read: async () => {} };
    const stated = response.headers.has("content-encoding") ? null : response.headers.get("content-length");
    if (stated === null || !response.body) {
      this.#close();
      throw this.#error("the server supports no range requests and does not state the length", "download the file");
    }
    const stream = new Chunks(response.body.getReader());
    return {
      name: this.#name(),
      length: Number(stated),
      read: (start, end, push) => this.#received(stream.take(end - start, push)),
      close: () => this.#close(),
    };
  }

  /** Length from a HEAD request: servers of other origins often hide the header `Content-Range`. */
  async #lengthByHead(): Promise<number> {
    const length = (await this.request(0, 0, "HEAD")).headers.get("content-length");
    if (length !== null) return Number(length);
    throw this.#error(
      "the server does not state its length",
      "let it expose the header Content-Range (CORS), or download the file",
    );
  }

  /** Reads at most the requested bytes of a response. */
  async #body(response: Response, start: number, end: number, push: Push): Promise<void> {
    const range = rangeOf(response);
    if (response.status !== 206 || (range && range.start !== start) || !response.body) {
      void response.body?.cancel();
      throw this.#error(`the server did not send the bytes from ${start} on`, "download the file");
    }
    const reader = response.body.getReader();
    await this.#received(new Chunks(reader).take(end - start, push));
    void reader.cancel();
  }

  async #received(bytes: Promise<void>): Promise<void> {
    try {
      await bytes;
    } catch (cause) {
      this.#options.signal?.throwIfAborted();
      throw this.#error("the connection broke", "try again", cause);
    }
  }

  #name(): string {
    const path = this.#url.replace(/[?#].*$/s, "");
    const name = path.slice(path.lastIndexOf("/") + 1);
    try {
      return decodeURIComponent(name);
    } catch {
      return name;
    }
  }

  #error(what: string, help: string, cause?: unknown, code = "environment"): GgufError {
    // Queries can have credentials.
    const url = this.#url.replace(/[?#].*$/s, "").replace(/^(\w+:\/\/)[^/]*@/, "$1");
    return new GgufError({ code, fault: "environment", message: `cannot read ${url}: ${what}`, help }, cause);
  }
}

/** Bytes of a stream, taken in portions. */
class Chunks {
  #rest = new Uint8Array();
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;

  constructor(reader: ReadableStreamDefaultReader<Uint8Array>) {
    this.#reader = reader;
  }

  /** Passes the next bytes on; fewer if the stream ends. */
  async take(count: number, push: Push): Promise<void> {
    for (let left = count; left > 0;) {
      if (this.#rest.length === 0) {
        const { value, done } = await this.#reader.read();
        if (done) return;
        this.#rest = value as Uint8Array<ArrayBuffer>;
      }
      const part = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(part.length);
      left -= part.length;
      push(part);
    }
  }
}

/** First byte and length of the file in the header `Content-Range`. */
function rangeOf(response: Response): { start: number; length: number } | undefined {
  const [, start, length] = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get("content-range") ?? "") ?? [];
  return start && length ? { start: Number(start), length: Number(length) } : undefined;
}

/** Length of the file in a response to a range beyond its end. */
function emptyLength(response: Response): number | undefined {
  const [, length] = /^bytes \*\/(\d+)$/.exec(response.headers.get("content-range") ?? "") ?? [];
  return length === undefined ? undefined : Number(length);
}

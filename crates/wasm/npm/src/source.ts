// Sources of bytes.
import { remote } from "./remote.js";

/** A URL, a local `File` or `Blob`, or the bytes of a file. */
export type Source = string | URL | Blob | BufferSource;

/** Options of `open` and `check`. */
export interface Options {
  /** Name of the file, which is checked too; by default that of the URL or `File`. */
  name?: string;
  /** Maximum length of the header in bytes; 256 MiB by default. */
  maxHeaderBytes?: number;
  /** Function to use instead of the global `fetch`. */
  fetch?: typeof fetch;
  /** Headers of the requests, such as `Authorization`. */
  headers?: HeadersInit;
  /** Cancels the requests. */
  signal?: AbortSignal;
}

/** Receiver of bytes. */
export type Push = (bytes: Uint8Array) => void;

/** Reader of a source. */
export interface Reader {
  /** Name of the file; empty if it is unknown. */
  name: string;
  /** File size in bytes. */
  length: number;
  /** Reads a range, and passes its bytes on in order. Ranges follow each other without gaps. */
  read(start: number, end: number, push: Push): Promise<void>;
  /** Ends the reading. */
  close?(): void;
}

/** Returns the reader of a source. */
export async function readerOf(source: Source, options: Options): Promise<Reader> {
  if (typeof source === "string" || source instanceof URL) return remote(source, options);
  if (source instanceof Blob) {
    const name = "name" in source && typeof source.name === "string" ? source.name : "";
    return {
      name,
      length: source.size,
      read: async (start, end, push) => push(new Uint8Array(await source.slice(start, end).arrayBuffer())),
    };
  }
  const bytes = ArrayBuffer.isView(source)
    ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
    : new Uint8Array(source);
  return { name: "", length: bytes.length, read: async (start, end, push) => push(bytes.subarray(start, end)) };
}

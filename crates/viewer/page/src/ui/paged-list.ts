// A long list that is loaded in pages as they become visible.
import { type Signal, signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { reloads } from "../api/status";
import { ApiError } from "../api/request";

/** Entries per page. */
const SIZE = 200;

export interface Page<T> {
  total: number;
  found: number;
  entries: T[];
}

type Load<T> = (offset: number, limit: number, stop: AbortSignal) => Promise<Page<T>>;

/** The loaded pages. `edition` increases with each page. */
export class PagedList<T> {
  readonly edition = signal(0);
  readonly failure: Signal<ApiError | null> = signal(null);
  total = 0;
  found = 0;
  known = false;
  #pages = new Map<number, T[]>();
  #loading = new Map<number, AbortController>();

  constructor(readonly load: Load<T>) {}

  at(index: number): T | undefined {
    return this.#pages.get(Math.floor(index / SIZE))?.[index % SIZE];
  }

  /** Loads the pages of a range and cancels requests for other pages. */
  request(first: number, end: number): void {
    const pages = new Set<number>();
    for (let page = Math.floor(first / SIZE); page <= Math.floor(Math.max(first, end - 1) / SIZE); page += 1)
      pages.add(page);
    for (const [page, stop] of this.#loading) {
      if (pages.has(page)) continue;
      stop.abort();
      this.#loading.delete(page);
    }
    for (const page of pages) if (!this.#pages.has(page) && !this.#loading.has(page)) void this.#fetch(page);
  }

  stop(): void {
    for (const stop of this.#loading.values()) stop.abort();
    this.#loading.clear();
  }

  async #fetch(page: number): Promise<void> {
    const stop = new AbortController();
    this.#loading.set(page, stop);
    try {
      const { total, found, entries } = await this.load(page * SIZE, SIZE, stop.signal);
      if (stop.signal.aborted) return;
      this.total = total;
      this.found = found;
      this.known = true;
      this.#pages.set(page, entries);
      this.edition.value += 1;
    } catch (error) {
      if (!stop.signal.aborted)
        this.failure.value = error instanceof ApiError ? error : new ApiError(0, "page", String(error), null);
    } finally {
      if (this.#loading.get(page) === stop) this.#loading.delete(page);
    }
  }
}

/** Returns the list that `key` identifies, and loads its first page. */
export function usePagedList<T>(key: string, load: Load<T>): PagedList<T> {
  const edition = reloads.value;
  const pages = useMemo(() => new PagedList<T>(load), [key, edition]);
  useEffect(() => {
    pages.request(0, 1);
    return () => pages.stop();
  }, [pages]);
  // Subscribe the component to new pages.
  pages.edition.value;
  pages.failure.value;
  // The previous list stays until the first page of the new one is there.
  const shown = useRef(pages);
  if (pages.known || pages.failure.value) shown.current = pages;
  return shown.current;
}

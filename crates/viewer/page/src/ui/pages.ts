// A long list of the server, fetched by pages as they come into sight.
import { type Signal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { opened } from "../api/health";
import { Failure } from "../api/request";

/** Entries of a page. */
const SIZE = 200;

export interface Page<T> {
  total: number;
  found: number;
  entries: T[];
}

type Load<T> = (offset: number, limit: number, stop: AbortSignal) => Promise<Page<T>>;

/** Pages that have come so far. `edition` grows with each. */
export class Pages<T> {
  readonly edition = signal(0);
  readonly failure: Signal<Failure | null> = signal(null);
  total = 0;
  found = 0;
  known = false;
  #pages = new Map<number, T[]>();
  #asked = new Map<number, AbortController>();

  constructor(readonly load: Load<T>) {}

  at(index: number): T | undefined {
    return this.#pages.get(Math.floor(index / SIZE))?.[index % SIZE];
  }

  /** Fetches what is missing of these entries; what is on its way for others is called off. */
  want(first: number, end: number): void {
    const pages = new Set<number>();
    for (let page = Math.floor(first / SIZE); page <= Math.floor(Math.max(first, end - 1) / SIZE); page += 1)
      pages.add(page);
    for (const [page, stop] of this.#asked) {
      if (pages.has(page)) continue;
      stop.abort();
      this.#asked.delete(page);
    }
    for (const page of pages) if (!this.#pages.has(page) && !this.#asked.has(page)) void this.#fetch(page);
  }

  stop(): void {
    for (const stop of this.#asked.values()) stop.abort();
    this.#asked.clear();
  }

  async #fetch(page: number): Promise<void> {
    const stop = new AbortController();
    this.#asked.set(page, stop);
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
        this.failure.value = error instanceof Failure ? error : new Failure(0, "page", String(error), null);
    } finally {
      if (this.#asked.get(page) === stop) this.#asked.delete(page);
    }
  }
}

/** Pages of the list that `question` names; its beginning is fetched at once. */
export function usePages<T>(question: string, load: Load<T>): Pages<T> {
  const edition = opened.value;
  const pages = useMemo(() => new Pages<T>(load), [question, edition]);
  useEffect(() => {
    pages.want(0, 1);
    return () => pages.stop();
  }, [pages]);
  // Who shows them is shown anew with each page.
  pages.edition.value;
  return pages;
}

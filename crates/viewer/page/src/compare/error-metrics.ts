// Loads error statistics of tensors, visible rows first.
import { signal } from "@preact/signals";
import { address, get } from "../api/request";
import type { ComparedTensor, ErrorStatistics } from "../api/tensor-types";

/** Concurrent requests. Each reads two tensors, so more would not be faster. */
const MAX_CONCURRENT = 2;

export class ErrorMetrics {
  readonly edition = signal(0);
  #loaded = new Map<string, ErrorStatistics | null>();
  #visible: string[] = [];
  #rest: string[] = [];
  #loading = new Set<string>();
  #stop = new AbortController();

  constructor(
    readonly a: number,
    readonly b: number,
  ) {}

  get(name: string): ErrorStatistics | null {
    return this.#loaded.get(name) ?? null;
  }

  /** Returns the number of tensors whose request has ended. */
  get done(): number {
    return this.#loaded.size;
  }

  /** Requests the visible tensors, or with `all` the given ones after them. */
  request(tensors: ComparedTensor[], all = false): void {
    const names = tensors.filter(({ change }) => change === "data").map(({ name }) => name);
    if (all) this.#rest = names;
    else this.#visible = names;
    this.#next();
  }

  stop(): void {
    this.#stop.abort();
  }

  #next(): void {
    for (const name of [...this.#visible, ...this.#rest]) {
      if (this.#loading.size >= MAX_CONCURRENT || this.#stop.signal.aborted) return;
      if (!this.#loaded.has(name) && !this.#loading.has(name)) void this.#fetch(name);
    }
  }

  async #fetch(name: string): Promise<void> {
    this.#loading.add(name);
    try {
      this.#loaded.set(
        name,
        await get<ErrorStatistics>(address(["compare", this.a, this.b, "tensor"], { name }), this.#stop.signal),
      );
    } catch {
      // The row stays empty; the detail view reports the error.
      this.#loaded.set(name, null);
    }
    this.#loading.delete(name);
    if (this.#stop.signal.aborted) return;
    this.edition.value += 1;
    this.#next();
  }
}

// Error figures of tensors, asked for one after the other as rows come into sight.
import { signal } from "@preact/signals";
import { address, get } from "../api/request";
import type { ComparedTensor, Errors } from "../api/tensor-types";

/** Each of them reads two tensors: more at once would only wait for each other. */
const AT_ONCE = 2;

export class Figures {
  readonly edition = signal(0);
  #known = new Map<string, Errors | null>();
  #waiting: string[] = [];
  #rest: string[] = [];
  #asked = new Set<string>();
  #stop = new AbortController();

  constructor(
    readonly a: number,
    readonly b: number,
  ) {}

  of(name: string): Errors | null {
    return this.#known.get(name) ?? null;
  }

  /** These next; with `all`, after those that are seen. */
  want(tensors: ComparedTensor[], all = false): void {
    const names = tensors.filter(({ change }) => change === "data").map(({ name }) => name);
    if (all) this.#rest = names;
    else this.#waiting = names;
    this.#next();
  }

  stop(): void {
    this.#stop.abort();
  }

  #next(): void {
    for (const name of [...this.#waiting, ...this.#rest]) {
      if (this.#asked.size >= AT_ONCE || this.#stop.signal.aborted) return;
      if (!this.#known.has(name) && !this.#asked.has(name)) void this.#fetch(name);
    }
  }

  async #fetch(name: string): Promise<void> {
    this.#asked.add(name);
    try {
      this.#known.set(
        name,
        await get<Errors>(address(["compare", this.a, this.b, "tensor"], { name }), this.#stop.signal),
      );
    } catch {
      // Its row stays without figures; the detail says why.
      this.#known.set(name, null);
    }
    this.#asked.delete(name);
    if (this.#stop.signal.aborted) return;
    this.edition.value += 1;
    this.#next();
  }
}

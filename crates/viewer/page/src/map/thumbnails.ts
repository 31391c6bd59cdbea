// Small pictures of tensors, loaded one after another.
import { signal } from "@preact/signals";
import { address, get } from "../api/request";
import type { Tensor, TensorFacts } from "../api/tensor-types";
import { type ColorMapping, contrast, paint } from "../heatmap/draw";
import { tensorSource } from "../heatmap/source";
import type { Tile } from "../heatmap/tiles";

/** Concurrent requests: half of what a browser opens, so that other requests are not kept waiting. */
const MAX_CONCURRENT = 3;
/** Side of a thumbnail in pixels. */
const SIDE = 128;

export class Thumbnails {
  readonly edition = signal(0);
  #tiles = new Map<number, Tile | null>();
  #images = new Map<number, { canvas: HTMLCanvasElement; colours: string }>();
  #waiting: Tensor[] = [];
  #running = 0;
  #stop = new AbortController();

  constructor(readonly model: number) {}

  /** Number of tensors that are loaded. */
  get done(): number {
    return this.#tiles.size;
  }

  request(tensors: Tensor[]): void {
    // Layers fill from the first to the last.
    this.#waiting = tensors.filter(({ n, missing_bytes }) => !this.#tiles.has(n) && missing_bytes === 0);
    for (let i = this.#running; i < MAX_CONCURRENT; i += 1) void this.#next();
  }

  stop(): void {
    this.#stop.abort();
    this.#waiting = [];
  }

  /** Returns the picture of a tensor in given colors, or null until it is loaded. */
  image(n: number, mapping: Omit<ColorMapping, "range">): HTMLCanvasElement | null {
    const known = this.#images.get(n);
    if (known?.colours === mapping.name) return known.canvas;
    const tile = this.#tiles.get(n);
    if (!tile) return null;
    const suited = contrast([{ level: 0, x: 0, y: 0 }], { get: () => tile }, mapping.absmax);
    const pixels = new ImageData(tile.width, tile.height);
    paint({ ...mapping, range: suited?.range ?? 1 })(tile, new Uint32Array(pixels.data.buffer));
    const full = document.createElement("canvas");
    [full.width, full.height] = [tile.width, tile.height];
    full.getContext("2d")?.putImageData(pixels, 0, 0);
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [Math.min(SIDE, tile.width), Math.min(SIDE, tile.height)];
    canvas.getContext("2d")?.drawImage(full, 0, 0, canvas.width, canvas.height);
    this.#images.set(n, { canvas, colours: mapping.name });
    return canvas;
  }

  async #next(): Promise<void> {
    const tensor = this.#waiting.shift();
    if (!tensor || this.#stop.signal.aborted) return;
    this.#running += 1;
    try {
      const facts = await get<TensorFacts>(
        address(["models", this.model, "tensor"], { n: tensor.n }),
        this.#stop.signal,
      );
      if (facts.decodable && facts.rows > 0 && facts.columns > 0) {
        const source = tensorSource(this.model, { ...facts, block: facts.block_weights }, "");
        this.#tiles.set(tensor.n, await source.load(source.levels - 1, 0, 0, this.#stop.signal));
      } else this.#tiles.set(tensor.n, null);
    } catch {
      this.#tiles.set(tensor.n, null);
    }
    this.#running -= 1;
    if (this.#stop.signal.aborted) return;
    this.edition.value += 1;
    void this.#next();
  }
}

// Tile cache: fetches visible tiles and cancels requests for tiles that are no longer visible.

import { whole } from "../format";
import type { Stretch } from "./camera";

/** Width and height of a tile in pixels. */
export const SIDE = 256;
/** Concurrent requests: browsers open six connections per server. */
const MAX_CONCURRENT = 6;
/** Capacity of the cache in tiles: about 60 MB with their images. */
const CAPACITY = 96;

/** A tile: weights at level 0, else a plane of means and a plane of absmax values. */
export interface Tile {
  width: number;
  height: number;
  planes: Float32Array[];
  exact: boolean;
}

/** Equal groups of rows or columns. */
export interface Groups {
  size: number;
  /** What one is, such as `head`, and a row or column in it. */
  name: string;
  part: string;
  /** Returns the name of one, such as `K head 2`; without it, they are numbered. */
  label?: (group: number) => string;
  /** Lines within a group, such as between RoPE pairs, and the number of groups that have them if not all. */
  inner?: number[];
  innerGroups?: number;
}

/** Returns the name of a group. */
export function groupLabel(groups: Groups, group: number): string {
  return groups.label?.(group) ?? `${groups.name} ${whole(group)}`;
}

/** Source of tiles. */
export interface Source {
  /** Cache key. */
  name: string;
  columns: number;
  rows: number;
  levels: number;
  /** Weights per block, for block borders; 1 for none. */
  block: number;
  /** Relative width and height of a weight. */
  stretch: Stretch;
  /** Reading much is slow: no overview is loaded beside what is visible. */
  remote?: boolean;
  /** Equal groups of rows and of columns, such as attention heads. */
  rowGroups?: Groups | null;
  columnGroups?: Groups | null;
  load: (level: number, x: number, y: number, stop: AbortSignal) => Promise<Tile>;
}

export interface Place {
  level: number;
  x: number;
  y: number;
}

interface Entry {
  tile: Tile;
  /** Rendered image and the key of its color mapping. */
  image: HTMLCanvasElement | null;
  colours: string;
}

export class Tiles {
  failure: unknown = null;
  /** Numbers of sent and cancelled requests, for tests. */
  requests = 0;
  cancelled = 0;
  #cache = new Map<string, Entry>();
  #loading = new Map<string, AbortController>();
  #wanted: Place[] = [];

  constructor(
    readonly source: Source,
    /** Called when a tile has loaded or failed. */
    readonly onLoad: () => void,
  ) {}

  /** Sets the visible tiles, most urgent first. */
  request(places: Place[]): void {
    this.#wanted = places;
    const names = new Set(places.map(keyOf));
    for (const [name, stop] of this.#loading) {
      if (names.has(name)) continue;
      stop.abort();
      this.cancelled += 1;
      this.#loading.delete(name);
    }
    this.#next();
  }

  get(place: Place): Tile | null {
    return this.#cache.get(keyOf(place))?.tile ?? null;
  }

  /** Returns the image of a tile. `colours` is the cache key of the mapping that `paint` applies. */
  image(place: Place, colours: string, paint: (tile: Tile, into: Uint32Array) => void): HTMLCanvasElement | null {
    const name = keyOf(place);
    const entry = this.#cache.get(name);
    if (!entry) return null;
    // Keep the map in LRU order.
    this.#cache.delete(name);
    this.#cache.set(name, entry);
    if (entry.image && entry.colours === colours) return entry.image;
    const { width, height } = entry.tile;
    const canvas = entry.image ?? document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    const pixels = new ImageData(width, height);
    paint(entry.tile, new Uint32Array(pixels.data.buffer));
    canvas.getContext("2d")?.putImageData(pixels, 0, 0);
    entry.image = canvas;
    entry.colours = colours;
    return canvas;
  }

  /** Returns the number of visible tiles that are not loaded. */
  missing(): number {
    return this.#wanted.filter((place) => !this.#cache.has(keyOf(place))).length;
  }

  stop(): void {
    this.request([]);
    this.#cache.clear();
  }

  #next(): void {
    for (const place of this.#wanted) {
      if (this.#loading.size >= MAX_CONCURRENT) return;
      const name = keyOf(place);
      if (!this.#cache.has(name) && !this.#loading.has(name)) void this.#fetch(place, name);
    }
  }

  async #fetch(place: Place, name: string): Promise<void> {
    const stop = new AbortController();
    this.#loading.set(name, stop);
    this.requests += 1;
    try {
      const tile = await this.source.load(place.level, place.x, place.y, stop.signal);
      if (stop.signal.aborted) return;
      this.#cache.set(name, { tile, image: null, colours: "" });
      this.failure = null;
      for (const oldest of this.#cache.keys()) {
        if (this.#cache.size <= CAPACITY) break;
        this.#cache.delete(oldest);
      }
    } catch (error) {
      if (stop.signal.aborted) return;
      this.failure = error;
      // Do not retry until the view changes.
      this.#wanted = this.#wanted.filter((other) => keyOf(other) !== name);
    } finally {
      if (this.#loading.get(name) === stop) this.#loading.delete(name);
    }
    this.#next();
    this.onLoad();
  }
}

function keyOf({ level, x, y }: Place): string {
  return `${level}/${x}/${y}`;
}

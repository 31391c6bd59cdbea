// Tiles of a picture: only those that are seen are fetched, what went out of sight is called off.

/** Pixels of a side. */
export const SIDE = 256;
/** Requests at the same time: browsers have six connections to a server. */
const AT_ONCE = 6;
/** Tiles that are kept: about 60 MB with their pictures. */
const KEPT = 96;

/** A tile as the server sends it: one plane at level 0, else mean and extreme. */
export interface Tile {
  width: number;
  height: number;
  planes: Float32Array[];
  exact: boolean;
}

/** Where pictures come from. */
export interface Source {
  /** Another text is another picture. */
  name: string;
  columns: number;
  rows: number;
  levels: number;
  /** Weights of a block along a row, for lines between blocks; 1 for none. */
  block: number;
  load: (level: number, x: number, y: number, stop: AbortSignal) => Promise<Tile>;
}

export interface Place {
  level: number;
  x: number;
  y: number;
}

interface Kept {
  tile: Tile;
  /** Its picture, and the colours that it was made with. */
  picture: HTMLCanvasElement | null;
  colours: string;
}

export class Tiles {
  failure: unknown = null;
  /** How many requests were made and called off, for tests. */
  requests = 0;
  cancelled = 0;
  #kept = new Map<string, Kept>();
  #asked = new Map<string, AbortController>();
  #wanted: Place[] = [];

  constructor(
    readonly source: Source,
    /** Called when a tile has come. */
    readonly came: () => void,
  ) {}

  /** What is seen now, the most urgent first. */
  want(places: Place[]): void {
    this.#wanted = places;
    const names = new Set(places.map(named));
    for (const [name, stop] of this.#asked) {
      if (names.has(name)) continue;
      stop.abort();
      this.cancelled += 1;
      this.#asked.delete(name);
    }
    this.#next();
  }

  get(place: Place): Tile | null {
    return this.#kept.get(named(place))?.tile ?? null;
  }

  /** The picture of a tile. `colours` names those that `paint` gives it. */
  picture(place: Place, colours: string, paint: (tile: Tile, into: Uint32Array) => void): HTMLCanvasElement | null {
    const name = named(place);
    const kept = this.#kept.get(name);
    if (!kept) return null;
    // What was used last is at the end, and dropped last.
    this.#kept.delete(name);
    this.#kept.set(name, kept);
    if (kept.picture && kept.colours === colours) return kept.picture;
    const { width, height } = kept.tile;
    const canvas = kept.picture ?? document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    const image = new ImageData(width, height);
    paint(kept.tile, new Uint32Array(image.data.buffer));
    canvas.getContext("2d")?.putImageData(image, 0, 0);
    kept.picture = canvas;
    kept.colours = colours;
    return canvas;
  }

  /** How many seen tiles are still missing. */
  missing(): number {
    return this.#wanted.filter((place) => !this.#kept.has(named(place))).length;
  }

  stop(): void {
    this.want([]);
    this.#kept.clear();
  }

  #next(): void {
    for (const place of this.#wanted) {
      if (this.#asked.size >= AT_ONCE) return;
      const name = named(place);
      if (!this.#kept.has(name) && !this.#asked.has(name)) void this.#fetch(place, name);
    }
  }

  async #fetch(place: Place, name: string): Promise<void> {
    const stop = new AbortController();
    this.#asked.set(name, stop);
    this.requests += 1;
    try {
      const tile = await this.source.load(place.level, place.x, place.y, stop.signal);
      if (stop.signal.aborted) return;
      this.#kept.set(name, { tile, picture: null, colours: "" });
      this.failure = null;
      for (const oldest of this.#kept.keys()) {
        if (this.#kept.size <= KEPT) break;
        this.#kept.delete(oldest);
      }
    } catch (error) {
      if (stop.signal.aborted) return;
      this.failure = error;
      // Not asked for again until the view changes.
      this.#wanted = this.#wanted.filter((other) => named(other) !== name);
    } finally {
      if (this.#asked.get(name) === stop) this.#asked.delete(name);
    }
    this.#next();
    this.came();
  }
}

function named({ level, x, y }: Place): string {
  return `${level}/${x}/${y}`;
}

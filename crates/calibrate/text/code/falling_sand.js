/**
 * Falling-sand toy for a <canvas>.
 *
 * The world is one byte per cell. Each step scans the rows from the bottom up, so
 * that a grain falls at most one cell per step, and alternates the horizontal
 * direction, so that piles do not lean. Cells that have been moved in the current
 * step carry the step's parity in bit 7 and are skipped when met a second time.
 *
 *     const toy = new FallingSand(document.querySelector('canvas'), { scale: 4 });
 *     toy.material = 'water';
 *     toy.start();
 */

const EMPTY = 0;
const WALL = 1;
const SAND = 2;
const WATER = 3;
const OIL = 4;
const FIRE = 5;
const PLANT = 6;
const STEAM = 7;

const KIND = 0x0f;
const PARITY = 0x80;

/** Heavier liquids and powders sink through lighter ones. */
const DENSITY = Float32Array.of(0, Infinity, 3, 2, 1.5, -1, Infinity, -2);

const MATERIALS = Object.freeze({
  eraser: EMPTY,
  wall: WALL,
  sand: SAND,
  water: WATER,
  oil: OIL,
  fire: FIRE,
  plant: PLANT,
});

/** Base colours as [red, green, blue, jitter]. */
const COLORS = [
  [18, 18, 24, 0],
  [122, 116, 110, 10],
  [219, 184, 110, 22],
  [52, 120, 210, 12],
  [92, 66, 40, 8],
  [240, 110, 30, 60],
  [60, 150, 62, 26],
  [176, 196, 208, 14],
];

/** xorshift32: fast, small, and plenty random for flickering flames. */
function makeRandom(seed = 0x9e3779b9) {
  let state = seed | 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 4294967296;
  };
}

export class FallingSand {
  #canvas;
  #context;
  #image;
  #pixels;
  #cells;
  #noise;
  #width;
  #height;
  #scale;
  #tick = 0;
  #frame = 0;
  #pointer = null;
  #random = makeRandom(Date.now());
  #abort = new AbortController();

  material = 'sand';
  brush = 4;

  constructor(canvas, { scale = 4 } = {}) {
    this.#canvas = canvas;
    this.#scale = scale;
    this.#width = Math.floor(canvas.clientWidth / scale);
    this.#height = Math.floor(canvas.clientHeight / scale);
    canvas.width = this.#width;
    canvas.height = this.#height;
    canvas.style.imageRendering = 'pixelated';

    this.#context = canvas.getContext('2d', { alpha: false });
    this.#image = this.#context.createImageData(this.#width, this.#height);
    this.#pixels = new Uint32Array(this.#image.data.buffer);
    this.#cells = new Uint8Array(this.#width * this.#height);
    // A fixed grain texture: colour belongs to the place, not to the particle.
    this.#noise = Int8Array.from(this.#cells, () => this.#random() * 256 - 128);
    this.#listen();
  }

  start() {
    if (this.#frame) return;
    let last = performance.now();
    let debt = 0;
    const loop = (now) => {
      // Simulate at a steady 60 steps per second on any display, but never try
      // to catch up more than a few steps after the tab was in the background.
      debt = Math.min(debt + (now - last) * 0.06, 4);
      last = now;
      this.#paintUnderPointer();
      for (; debt >= 1; debt--) this.#step();
      this.#draw();
      this.#frame = requestAnimationFrame(loop);
    };
    this.#frame = requestAnimationFrame(loop);
  }

  stop() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
  }

  destroy() {
    this.stop();
    this.#abort.abort();
  }

  clear() {
    this.#cells.fill(EMPTY);
  }

  /** Run-length encoding, handy for saving a scene in the address bar. */
  serialize() {
    const runs = [];
    for (let i = 0; i < this.#cells.length; ) {
      const kind = this.#cells[i] & KIND;
      let end = i + 1;
      while (end < this.#cells.length && (this.#cells[end] & KIND) === kind) end++;
      runs.push(kind.toString(16) + (end - i).toString(36));
      i = end;
    }
    return `${this.#width}x${this.#height}:${runs.join('.')}`;
  }

  restore(text) {
    const match = /^(\d+)x(\d+):(.*)$/.exec(text);
    if (!match) throw new SyntaxError('not a saved scene');
    const [, width, height, body] = match;
    if (+width !== this.#width || +height !== this.#height) {
      throw new RangeError(`scene is ${width}×${height}, canvas is ${this.#width}×${this.#height}`);
    }
    let i = 0;
    for (const run of body.split('.')) {
      const length = parseInt(run.slice(1), 36);
      this.#cells.fill(parseInt(run[0], 16), i, i + length);
      i += length;
    }
  }

  #listen() {
    const { signal } = this.#abort;
    const locate = (event) => {
      const box = this.#canvas.getBoundingClientRect();
      return {
        x: Math.floor((event.clientX - box.left) / this.#scale),
        y: Math.floor((event.clientY - box.top) / this.#scale),
      };
    };
    this.#canvas.addEventListener('pointerdown', (event) => {
      this.#canvas.setPointerCapture(event.pointerId);
      const here = locate(event);
      this.#pointer = { from: here, to: here };
    }, { signal });
    this.#canvas.addEventListener('pointermove', (event) => {
      if (this.#pointer) this.#pointer.to = locate(event);
    }, { signal });
    for (const name of ['pointerup', 'pointercancel']) {
      this.#canvas.addEventListener(name, () => { this.#pointer = null; }, { signal });
    }
  }

  /** Draws a thick line from the previous to the current pointer position. */
  #paintUnderPointer() {
    if (!this.#pointer) return;
    const { from, to } = this.#pointer;
    const steps = Math.max(1, Math.abs(to.x - from.x), Math.abs(to.y - from.y));
    const kind = MATERIALS[this.material] ?? EMPTY;
    const solid = kind === WALL || kind === EMPTY || kind === PLANT;
    for (let s = 0; s <= steps; s++) {
      const cx = Math.round(from.x + ((to.x - from.x) * s) / steps);
      const cy = Math.round(from.y + ((to.y - from.y) * s) / steps);
      for (let dy = -this.brush; dy <= this.brush; dy++) {
        for (let dx = -this.brush; dx <= this.brush; dx++) {
          if (dx * dx + dy * dy > this.brush * this.brush) continue;
          const x = cx + dx;
          const y = cy + dy;
          if (x < 0 || y < 0 || x >= this.#width || y >= this.#height) continue;
          // Loose stuff is sprinkled, solid stuff is drawn.
          if (solid || this.#random() < 0.15) this.#cells[y * this.#width + x] = kind;
        }
      }
    }
    this.#pointer.from = to;
  }

  #step() {
    this.#tick ^= PARITY;
    const width = this.#width;
    const leftToRight = this.#random() < 0.5;
    for (let y = this.#height - 1; y >= 0; y--) {
      for (let i = 0; i < width; i++) {
        const x = leftToRight ? i : width - 1 - i;
        const at = y * width + x;
        const cell = this.#cells[at];
        if (cell === EMPTY || (cell & PARITY) === this.#tick) continue;
        switch (cell & KIND) {
          case SAND: this.#fall(x, y, at, false); break;
          case WATER:
          case OIL: this.#fall(x, y, at, true); break;
          case FIRE: this.#burn(x, y, at); break;
          case STEAM: this.#rise(x, y, at); break;
          case PLANT: this.#grow(x, y); break;
        }
      }
    }
  }

  #trySwap(at, x, y) {
    if (x < 0 || y < 0 || x >= this.#width || y >= this.#height) return false;
    const there = y * this.#width + x;
    const mine = this.#cells[at] & KIND;
    const other = this.#cells[there] & KIND;
    if (DENSITY[other] >= DENSITY[mine] || other === PLANT) return false;
    // Sinking through a liquid takes time.
    if (other !== EMPTY && this.#random() < 0.4) return false;
    this.#cells[at] = other === EMPTY ? EMPTY : other | this.#tick;
    this.#cells[there] = mine | this.#tick;
    return true;
  }

  #fall(x, y, at, liquid) {
    if (this.#trySwap(at, x, y + 1)) return;
    const side = this.#random() < 0.5 ? -1 : 1;
    if (this.#trySwap(at, x + side, y + 1) || this.#trySwap(at, x - side, y + 1)) return;
    if (liquid) this.#trySwap(at, x + side, y) || this.#trySwap(at, x - side, y);
  }

  #rise(x, y, at) {
    if (this.#random() < 0.004) {
      this.#cells[at] = WATER | this.#tick; // condensation
      return;
    }
    const drift = Math.floor(this.#random() * 3) - 1;
    const there = (y - 1) * this.#width + x + drift;
    if (y > 0 && x + drift >= 0 && x + drift < this.#width && this.#cells[there] === EMPTY) {
      this.#cells[there] = STEAM | this.#tick;
      this.#cells[at] = EMPTY;
    }
  }

  #burn(x, y, at) {
    let fuel = false;
    this.#neighbours(x, y, (there, kind) => {
      if (kind === WATER) {
        this.#cells[there] = STEAM | this.#tick;
        this.#cells[at] = EMPTY;
      } else if ((kind === OIL && this.#random() < 0.3) || (kind === PLANT && this.#random() < 0.08)) {
        this.#cells[there] = FIRE | this.#tick;
        fuel = true;
      }
    });
    if (!fuel && this.#random() < 0.12) this.#cells[at] = EMPTY;
  }

  #grow(x, y) {
    this.#neighbours(x, y, (there, kind) => {
      if (kind === WATER && this.#random() < 0.02) this.#cells[there] = PLANT | this.#tick;
    });
  }

  #neighbours(x, y, visit) {
    const width = this.#width;
    if (x > 0) visit(y * width + x - 1, this.#cells[y * width + x - 1] & KIND);
    if (x < width - 1) visit(y * width + x + 1, this.#cells[y * width + x + 1] & KIND);
    if (y > 0) visit((y - 1) * width + x, this.#cells[(y - 1) * width + x] & KIND);
    if (y < this.#height - 1) visit((y + 1) * width + x, this.#cells[(y + 1) * width + x] & KIND);
  }

  #draw() {
    for (let i = 0; i < this.#cells.length; i++) {
      const [r, g, b, jitter] = COLORS[this.#cells[i] & KIND];
      const shade = (this.#noise[i] * jitter) >> 7;
      // Little-endian RGBA, written as one 32-bit word.
      this.#pixels[i] =
        0xff000000 | (clampByte(b + shade) << 16) | (clampByte(g + shade) << 8) | clampByte(r + shade);
    }
    this.#context.putImageData(this.#image, 0, 0);
  }
}

function clampByte(value) {
  return value < 0 ? 0 : value > 255 ? 255 : value;
}

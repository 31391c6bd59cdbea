import { randomUUID } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";

/** A half-open interval of time, in milliseconds since the epoch. */
export interface Interval {
  readonly from: number;
  readonly to: number;
}

export type BookingState = "held" | "confirmed" | "cancelled";

export interface Booking extends Interval {
  readonly id: string;
  readonly court: string;
  readonly player: string;
  readonly state: BookingState;
}

export type Result<T, E extends string> = { ok: true; value: T } | { ok: false; reason: E };

const ok = <T>(value: T): Result<T, never> => ({ ok: true, value });
const no = <E extends string>(reason: E): Result<never, E> => ({ ok: false, reason });

const overlaps = (a: Interval, b: Interval): boolean => a.from < b.to && b.from < a.to;

/** How long a court is held for a player who has not paid. */
const HOLD_MS = 10 * 60_000;

export class BookingStore {
  #bookings = new Map<string, Booking>();
  #timers = new Map<string, NodeJS.Timeout>();
  #saving: Promise<void> = Promise.resolve();

  private constructor(private readonly path: string, private readonly now: () => number) {}

  static async open(path: string, now: () => number = Date.now): Promise<BookingStore> {
    const store = new BookingStore(path, now);
    try {
      const saved: unknown = JSON.parse(await readFile(path, "utf8"));
      if (!Array.isArray(saved)) throw new TypeError(`${path} has no list of bookings`);
      for (const booking of saved as Booking[]) store.#bookings.set(booking.id, booking);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    return store;
  }

  hold(court: string, player: string, when: Interval): Result<Booking, "past" | "taken" | "too-many"> {
    if (when.from < this.now() || when.to <= when.from) return no("past");
    const active = [...this.#bookings.values()].filter((one) => one.state !== "cancelled");
    if (active.some((one) => one.court === court && overlaps(one, when))) return no("taken");
    if (active.filter((one) => one.player === player && one.to > this.now()).length >= 3) return no("too-many");

    const booking: Booking = { id: randomUUID(), court, player, state: "held", from: when.from, to: when.to };
    this.#bookings.set(booking.id, booking);
    const timer = setTimeout(() => this.#expire(booking.id), HOLD_MS);
    timer.unref();
    this.#timers.set(booking.id, timer);
    return ok(booking);
  }

  async confirm(id: string): Promise<Result<Booking, "unknown" | "expired">> {
    const booking = this.#bookings.get(id);
    if (booking === undefined) return no("unknown");
    if (booking.state === "cancelled") return no("expired");
    return ok(await this.#replace({ ...booking, state: "confirmed" }));
  }

  async cancel(id: string): Promise<boolean> {
    const booking = this.#bookings.get(id);
    if (!booking || booking.state === "cancelled") return false;
    await this.#replace({ ...booking, state: "cancelled" });
    return true;
  }

  /** Free intervals of a court within a day, longest first. */
  free(court: string, day: Interval, shortest = 30 * 60_000): Interval[] {
    const taken = [...this.#bookings.values()]
      .filter((one) => one.court === court && one.state !== "cancelled" && overlaps(one, day))
      .sort((a, b) => a.from - b.from);
    const gaps: Interval[] = [];
    let from = day.from;
    for (const one of taken) {
      if (one.from - from >= shortest) gaps.push({ from, to: one.from });
      from = Math.max(from, one.to);
    }
    if (day.to - from >= shortest) gaps.push({ from, to: day.to });
    return gaps.sort((a, b) => b.to - b.from - (a.to - a.from));
  }

  async #replace(booking: Booking): Promise<Booking> {
    clearTimeout(this.#timers.get(booking.id));
    this.#timers.delete(booking.id);
    this.#bookings.set(booking.id, booking);
    // Saves run one after another, each with all changes before it.
    this.#saving = this.#saving.then(() => this.#save());
    await this.#saving;
    return booking;
  }

  async #save(): Promise<void> {
    const lasting = [...this.#bookings.values()].filter((one) => one.state !== "held");
    const beside = `${this.path}.new`;
    await writeFile(beside, JSON.stringify(lasting, null, 1));
    await rename(beside, this.path);
  }

  #expire(id: string): void {
    const booking = this.#bookings.get(id);
    if (booking?.state === "held") this.#bookings.set(id, { ...booking, state: "cancelled" });
    this.#timers.delete(id);
  }
}

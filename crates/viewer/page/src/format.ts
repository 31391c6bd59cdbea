// Number formats of the command line (crates/kit/src/units.rs, `gguf inspect --values`).

/** Formats bytes in decimal units: `8.45 MB`. */
export function bytes(n: number): string {
  return scaled(n, ["B", "kB", "MB", "GB", "TB"], " ");
}

/** Formats a count: `4.20M`. */
export function count(n: number): string {
  return scaled(n, ["", "K", "M", "B", "T"], "");
}

/** Formats a count in few characters, for axes: `5K`. */
export function compact(n: number): string {
  return count(n).replace(/\.?0+(?=[KMBT])/, "");
}

function scaled(n: number, units: string[], space: string): string {
  let value = n;
  let unit = 0;
  while (value >= 999.5 && unit + 1 < units.length) {
    value /= 1000;
    unit += 1;
  }
  if (unit === 0) return `${value}${space}${units[0]}`;
  return `${fixed(value, value < 9.95 ? 2 : 1)}${space}${units[unit]}`;
}

/** Formats with a fixed number of decimals. Ties round to even, as in Rust. */
export function fixed(value: number, digits: number): string {
  const tie = Math.abs((value * 2 ** (digits + 1)) % 2) === 1;
  if (!tie) return value.toFixed(digits);
  const down = Math.floor(value * 10 ** digits);
  return ((down % 2 === 0 ? down : down + 1) / 10 ** digits).toFixed(digits);
}

/** Formats a weight or statistic with four significant digits. */
export function significant(value: number | null): string {
  if (value === null || Number.isNaN(value)) return "NaN";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (!Number.isFinite(value)) return value < 0 ? "-inf" : "inf";
  if (size < 1e-4 || size >= 1e5) return value.toExponential(3).replace("e+", "e");
  return fixed(value, size >= 1000 ? 0 : size >= 1 ? 3 : 5);
}

/** Formats a decoded field of a block: quants are integers, scales are not. */
export function exact(value: number | null): string {
  return value !== null && Number.isInteger(value) && Math.abs(value) < 1e5 ? String(value) : significant(value);
}

/** Formats an integer with thin spaces between thousands: `262 144`. */
export function whole(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** Formats a fraction in percent: `68.7%`. */
export function share(part: number, of: number): string {
  return of > 0 ? `${fixed((100 * part) / of, 1)}%` : "0.0%";
}

/** Formats a count with a noun: `1 tensor`, `39 tensors`. */
export function plural(n: number, word: string): string {
  return `${whole(n)} ${n === 1 ? word : `${word}s`}`;
}

/** Formats a shape, fastest dimension first: `[576, 49152]`. */
export function shape(dimensions: readonly number[]): string {
  return `[${dimensions.join(", ")}]`;
}

/** Formats an offset in hexadecimal: `0x1a2b`. */
export function hex(n: number, digits = 0): string {
  return `0x${n.toString(16).padStart(digits, "0")}`;
}

/** Makes control characters visible and keeps the text on one line. */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (c) => {
    const code = c.codePointAt(0) ?? 0;
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return code === 0x7f ? "\u2421" : `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
  });
}

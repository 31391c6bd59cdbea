// A colour for each tensor type: few bits are warm, many are cool. Names always stand beside it.

const STEPS: [number, string][] = [
  [2.2, "bits-1"],
  [3.3, "bits-2"],
  [3.9, "bits-3"],
  [5.05, "bits-4"],
  [6.2, "bits-5"],
  [7.5, "bits-6"],
  [9.5, "bits-7"],
  [17, "bits-8"],
];

/** The variable of the colour of a type, by its bits for a weight. */
export function typeColour(bits: number): string {
  return `var(--${STEPS.find(([most]) => bits <= most)?.[1] ?? "bits-9"})`;
}

/** Bits for a weight. */
export function bits(of: { bytes: number | null; parameters: number }): number {
  return of.parameters > 0 ? ((of.bytes ?? 0) * 8) / of.parameters : 0;
}

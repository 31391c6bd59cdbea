// Colours of tensor types: few bits are warm, many are cool. The name is always shown too.

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

/** Returns the CSS colour for a number of bits per weight. */
export function typeColour(bits: number): string {
  return `var(--${STEPS.find(([max]) => bits <= max)?.[1] ?? "bits-9"})`;
}

/** Returns bits per weight. */
export function bits(of: { bytes: number | null; parameters: number }): number {
  return of.parameters > 0 ? ((of.bytes ?? 0) * 8) / of.parameters : 0;
}

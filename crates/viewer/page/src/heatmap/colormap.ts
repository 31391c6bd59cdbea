// Diverging colormap centered at zero. It is perceptually uniform: lightness and chroma are linear in OKLab
// (Ottosson, "A perceptual color space for image processing", 2020).

/** Number of steps from -1 to 1. The last entry is the colour of NaN. */
export const STEPS = 1024;
export const NAN_STEP = STEPS + 1;

/** Lightness of the center and the ends, and chroma of the ends. */
interface Scale {
  middle: number;
  end: number;
  chroma: number;
}
// The strongest chroma within the sRGB gamut.
const LIGHT: Scale = { middle: 0.965, end: 0.45, chroma: 0.16 };
const DARK: Scale = { middle: 0.2, end: 0.76, chroma: 0.13 };
/** Hues of negative and positive weights in degrees. */
const NEGATIVE = 260;
const POSITIVE = 34;

/** Returns 0xAABBGGRR for each step: the layout of ImageData on a little-endian machine. */
export function colormap(dark: boolean): Uint32Array {
  const ends = dark ? DARK : LIGHT;
  const colours = new Uint32Array(STEPS + 2);
  for (let step = 0; step <= STEPS; step += 1) {
    const at = (2 * step) / STEPS - 1;
    const size = Math.abs(at);
    const lightness = ends.middle + (ends.end - ends.middle) * size;
    colours[step] = oklch(lightness, ends.chroma * size, at < 0 ? NEGATIVE : POSITIVE);
  }
  // NaN is magenta.
  colours[NAN_STEP] = oklch(0.6, 0.27, 328);
  return colours;
}

/** Returns the step of a value on a scale from `-range` to `range`. */
export function step(value: number, range: number): number {
  if (Number.isNaN(value)) return NAN_STEP;
  const at = value / range;
  // Clamp to the ends, infinities too. 0 / 0 is the center.
  if (at >= 1) return STEPS;
  if (at <= -1) return 0;
  return Number.isNaN(at) ? STEPS / 2 : Math.round((at + 1) * (STEPS / 2));
}

/** Formats a colour for CSS. */
export function css(colour: number): string {
  return `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;
}

function oklch(lightness: number, chroma: number, hue: number): number {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const red = byte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s);
  const green = byte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s);
  const blue = byte(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s);
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Converts linear light to an sRGB byte. */
function byte(linear: number): number {
  const x = Math.min(1, Math.max(0, linear));
  return Math.round(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055));
}

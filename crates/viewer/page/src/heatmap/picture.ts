// Saves the heat map as a PNG with its title and color scale.
import { significant } from "../format";
import { savePng } from "../ui/save";
import { css, STEPS } from "./colormap";
import type { ColorMapping } from "./draw";

const MARGIN = 24;
const TITLE = 34;
const LEGEND = { width: 320, height: 12, room: 52 };

/** Saves what the canvas shows. */
export function savePicture(
  canvas: HTMLCanvasElement,
  title: string,
  mapping: ColorMapping,
  hasNegative: boolean,
): void {
  const density = devicePixelRatio || 1;
  const [width, height] = [canvas.width / density, canvas.height / density];
  const picture = document.createElement("canvas");
  picture.width = (width + 2 * MARGIN) * density;
  picture.height = (height + 2 * MARGIN + TITLE + LEGEND.room) * density;
  const context = picture.getContext("2d");
  if (!context) return;
  context.scale(density, density);
  context.fillStyle = mapping.dark ? "#14171c" : "#fbfaf8";
  context.fillRect(0, 0, picture.width, picture.height);
  context.fillStyle = mapping.dark ? "#e7e9ed" : "#1d2129";
  context.font = "600 16px system-ui, sans-serif";
  context.fillText(title, MARGIN, MARGIN + 14, width);
  context.drawImage(canvas, MARGIN, MARGIN + TITLE, width, height);
  const top = MARGIN + TITLE + height + 16;
  const first = hasNegative ? 0 : STEPS / 2;
  for (let x = 0; x < LEGEND.width; x += 1) {
    const step = first + Math.round((x / (LEGEND.width - 1)) * (STEPS - first));
    context.fillStyle = css(mapping.colours[step] as number);
    context.fillRect(MARGIN + x, top, 1.5, LEGEND.height);
  }
  context.fillStyle = mapping.dark ? "#b3bac6" : "#4f5765";
  context.font = "12px system-ui, sans-serif";
  const ends = [significant(hasNegative ? -mapping.range : 0), significant(mapping.range)] as const;
  context.fillText(ends[0], MARGIN, top + LEGEND.height + 16);
  context.textAlign = "right";
  context.fillText(ends[1], MARGIN + LEGEND.width, top + LEGEND.height + 16);
  context.fillText(mapping.absmax ? "largest magnitude per pixel" : "mean per pixel", MARGIN + width, top + 10);
  savePng(picture, title);
}

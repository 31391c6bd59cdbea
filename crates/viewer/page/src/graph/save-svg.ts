// Saves the drawing of a graph segment as SVG.
import { saveBlob } from "../ui/save";

/** Properties that the style sheet sets, copied into the file. */
const PROPERTIES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font", "text-anchor"];

/** Saves the whole drawing with its current colors. */
export function saveSvg(svg: SVGSVGElement, size: { width: number; height: number }, name: string): void {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = svg.querySelectorAll("*");
  for (const [i, element] of [...copy.querySelectorAll("*")].entries()) {
    const source = from[i];
    if (!source) continue;
    const style = getComputedStyle(source);
    for (const property of PROPERTIES) {
      const value = style.getPropertyValue(property);
      if (value) element.setAttribute(property, value);
    }
  }
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
  copy.setAttribute("width", String(size.width));
  copy.setAttribute("height", String(size.height));
  const text = new XMLSerializer().serializeToString(copy);
  saveBlob(new Blob([text], { type: "image/svg+xml" }), `graph ${name}`, "svg");
}

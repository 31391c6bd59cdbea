// A strip of the whole matrix beside the heat map, with the visible part. Click or drag to move.
import { useEffect, useRef } from "preact/hooks";
import { type Camera, type Size, visibleRange } from "./camera";
import { type ColorMapping, contrast, paint } from "./draw";
import type { Source, Tiles } from "./tiles";

interface Props {
  source: Source;
  tiles: Tiles;
  camera: Camera;
  size: Size;
  mapping: ColorMapping;
  /** Changes when tiles have been loaded. */
  edition: number;
  onMove: (camera: Camera) => void;
}

export function Minimap({ source, tiles, camera, size, mapping, edition, onMove }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const isTall = source.rows * source.stretch.y > source.columns * source.stretch.x;
  const seen = visibleRange(camera, source, size);
  const part = isTall ? seen.rows : seen.columns;
  const count = isTall ? source.rows : source.columns;
  useEffect(() => {
    const element = canvas.current;
    const top = { level: source.levels - 1, x: 0, y: 0 };
    const tile = tiles.get(top);
    if (!element || !tile) return;
    element.width = tile.width;
    element.height = tile.height;
    const image = new ImageData(tile.width, tile.height);
    // A pixel of the strip covers many weights, so its values have another range than those of the picture.
    const { range } = contrast([top], tiles, mapping.absmax) ?? mapping;
    paint({ ...mapping, range })(tile, new Uint32Array(image.data.buffer));
    element.getContext("2d")?.putImageData(image, 0, 0);
  }, [mapping, edition, source.name]);
  function move(event: PointerEvent): void {
    if (event.buttons === 0) return;
    const box = canvas.current?.getBoundingClientRect();
    if (!box) return;
    const at = isTall ? (event.clientY - box.top) / box.height : (event.clientX - box.left) / box.width;
    const to = Math.min(1, Math.max(0, at)) * count;
    onMove(isTall ? { ...camera, row: to } : { ...camera, column: to });
  }
  const share = (n: number) => `${(100 * n) / count}%`;
  const [start, length] = [share(part.first), share(part.end - part.first)];
  return (
    <div
      class={`minimap ${isTall ? "tall" : "wide"}`}
      aria-hidden="true"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        move(event);
      }}
      onPointerMove={move}
    >
      <canvas ref={canvas} />
      <span class="minimap-part" style={isTall ? { top: start, height: length } : { left: start, width: length }} />
    </div>
  );
}

// Plots drawn by uPlot. `label` is the accessible description.
import { useEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { compact, significant, whole } from "../format";
import { scheme } from "./theme";

/** Returns the value of a CSS colour variable. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export interface Line {
  name: string;
  values: (number | null)[];
  /** Name of the CSS colour variable. */
  colour: string;
  kind: "line" | "bars" | "band";
}

interface Props {
  label: string;
  /** X coordinates, as many as values. */
  x: number[];
  xName: string;
  /** Compared by identity: a new array redraws the plot. */
  lines: Line[];
  height?: number;
  /** Use a log scale. */
  logarithmic?: boolean;
  xWhole?: boolean;
  yWhole?: boolean;
  onPick?: (index: number) => void;
}

/** Height of a plot in pixels, without its legend. */
const HEIGHT = 240;

export function Plot(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const edition = scheme.value;
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const height = props.height ?? HEIGHT;
    let plot: uPlot | null = null;
    let isUnmounted = false;
    const observer = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height }));
    // Load the library with the first plot only.
    void import("uplot").then(({ default: Plotter }) => {
      if (isUnmounted) return;
      plot = new Plotter(options(props, element.clientWidth, height, Plotter), data(props), element);
      observer.observe(element);
    });
    return () => {
      isUnmounted = true;
      observer.disconnect();
      plot?.destroy();
    };
  }, [props.x, props.lines, props.logarithmic, edition]);
  return (
    <div
      ref={box}
      class={`plot${props.lines.length > 1 ? "" : " single"}`}
      role="img"
      aria-label={props.label}
      style={{ minHeight: `${(props.height ?? HEIGHT) + 30}px` }}
    />
  );
}

function data({ x, lines }: Props): uPlot.AlignedData {
  return [x, ...lines.map((line) => line.values)] as uPlot.AlignedData;
}

function options(props: Props, width: number, height: number, plotter: typeof uPlot): uPlot.Options {
  const axis = {
    stroke: colour("soft"),
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { stroke: colour("grid"), width: 1 },
    font: "12px system-ui, sans-serif",
  };
  const number = (is: boolean | undefined) => (value: number | null) =>
    value === null ? "–" : is ? whole(value) : significant(value);
  const label = (is: boolean | undefined) => (_: uPlot, values: (number | null)[]) =>
    values.map((value) =>
      value === null ? "" : !is ? short(value) : values.some(isLong) ? compact(value) : whole(value),
    );
  return {
    width,
    height,
    cursor: { y: false, drag: { x: true, y: false }, points: { size: 5 } },
    // A single series needs no legend while nothing is pointed at.
    legend: { live: true, markers: { show: props.lines.length > 1 } },
    scales: { x: { time: false }, y: { distr: props.logarithmic ? 3 : 1 } },
    axes: [
      { ...axis, size: 34, values: label(props.xWhole) as uPlot.Axis.Values },
      { ...axis, size: 78, values: label(props.yWhole) as uPlot.Axis.Values },
    ],
    series: [
      { label: props.xName, value: (_, value) => number(props.xWhole)(value) },
      ...props.lines.map((line) => series(line, number(props.yWhole), plotter)),
    ],
    hooks: {
      ready: [
        (plot) => {
          plot.over.addEventListener("click", () => {
            if (typeof plot.cursor.idx === "number") props.onPick?.(plot.cursor.idx);
          });
        },
      ],
      // The style hides values, and a legend of a single series, while nothing is pointed at.
      setLegend: [
        (plot) => plot.root.classList.toggle("pointed", plot.legend.idx !== null && plot.legend.idx !== undefined),
      ],
    },
  };
}

function series(line: Line, text: (value: number | null) => string, plotter: typeof uPlot): uPlot.Series {
  const stroke = colour(line.colour);
  const common: uPlot.Series = {
    label: line.name,
    stroke,
    width: 1,
    value: (_, value) => text(value),
    points: { show: false },
  };
  if (line.kind !== "bars") return line.kind === "band" ? { ...common, width: 0.75 } : { ...common, width: 1.5 };
  const bars = plotter.paths.bars?.({ size: [1, Number.POSITIVE_INFINITY], gap: 1 });
  return { ...common, fill: stroke, width: 0, ...(bars ? { paths: bars } : {}) };
}

/** Whether an integer has no room on an axis. */
function isLong(value: number | null): boolean {
  return value !== null && Math.abs(value) >= 1e4;
}

function short(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  return size < 1e-3 || size >= 1e5 ? value.toExponential(0).replace("e+", "e") : String(Number(value.toPrecision(4)));
}

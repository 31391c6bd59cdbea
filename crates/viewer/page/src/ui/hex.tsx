// Hex dump with named spans.
import type { Span } from "../api/types";
import { hex, visible, whole } from "../format";

interface Props {
  bytes: Uint8Array;
  /** Offset of the first byte in the file. */
  start: number;
  /** Named spans in order; empty until loaded. */
  spans: Span[];
  /** Bytes per line. */
  across: number;
  marked: number | null;
  onMark: (span: number | null) => void;
}

/** Lines of bytes, grouped by span. */
export function HexLines({ bytes, start, spans, across, marked, onMark }: Props) {
  const width = Math.max(6, (start + bytes.length).toString(16).length);
  const lines = [];
  const begin = Math.floor(start / across) * across;
  for (let at = begin; at < start + bytes.length; at += across) {
    const runs = splitRuns(spans, Math.max(at, start), Math.min(at + across, start + bytes.length));
    const before = Math.max(0, start - at);
    lines.push(
      <div key={at} class="hex-line">
        <span class="hex-at">{at.toString(16).padStart(width, "0")}</span>
        <span class="hex-bytes" style={{ minWidth: `${3 * across}ch` }}>
          {before > 0 && <span class="hex-empty">{"   ".repeat(before)}</span>}
          {runs.map((run) => (
            <Run
              key={run.from}
              run={run}
              text={hexText(bytes.subarray(run.from - start, run.to - start))}
              marked={marked}
              onMark={onMark}
              spans={spans}
            />
          ))}
        </span>
        <span class="hex-signs">
          {before > 0 && " ".repeat(before)}
          {runs.map((run) => (
            <Run
              key={run.from}
              run={run}
              text={asciiText(bytes.subarray(run.from - start, run.to - start))}
              marked={marked}
              onMark={onMark}
              spans={spans}
            />
          ))}
        </span>
      </div>,
    );
  }
  return <div class="hex">{lines}</div>;
}

interface SpanRun {
  from: number;
  to: number;
  span: number | null;
}

function Run({
  run,
  text,
  marked,
  onMark,
  spans,
}: {
  run: SpanRun;
  text: string;
  marked: number | null;
  onMark: Props["onMark"];
  spans: Span[];
}) {
  const span = run.span === null ? null : spans[run.span];
  if (!span) return <span>{text}</span>;
  return (
    <span
      class={`run ${tone(span.kind)} ${(run.span ?? 0) % 2 ? "odd" : "even"}${marked === run.span ? " marked" : ""}`}
      onPointerEnter={() => onMark(run.span)}
      onClick={() => onMark(run.span)}
    >
      {text}
    </span>
  );
}

/** Splits a line at span boundaries. */
function splitRuns(spans: Span[], from: number, to: number): SpanRun[] {
  const runs: SpanRun[] = [];
  let at = from;
  let index = first(spans, from);
  while (at < to) {
    const span = spans[index];
    if (!span || span.start >= to) {
      runs.push({ from: at, to, span: null });
      break;
    }
    if (span.start > at) runs.push({ from: at, to: span.start, span: null });
    const start = Math.max(at, span.start);
    const end = Math.min(to, span.end);
    if (end > start) runs.push({ from: start, to: end, span: index });
    at = Math.max(at, end);
    index += 1;
  }
  return runs;
}

/** Returns the index of the first span that ends after an offset. */
function first(spans: Span[], at: number): number {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((spans[middle]?.end ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

function hexText(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += `${byte.toString(16).padStart(2, "0")} `;
  return text;
}

function asciiText(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·";
  return text;
}

/** Returns the colour class of a span kind. */
export function tone(kind: string): string {
  if (/^(key|name)$/.test(kind)) return "tone-name";
  if (/length|count|type|offset|dimension|version/.test(kind)) return "tone-count";
  if (/^(value|string|element|elements)$/.test(kind)) return "tone-value";
  if (/^(block|numbers)$/.test(kind)) return "tone-data";
  if (/unreadable/.test(kind)) return "tone-wrong";
  return "tone-rest";
}

/** Describes a span. */
export function spanText(span: Span): string {
  return `${span.kind.replaceAll("-", " ")}${span.text ? ` ${visible(span.text)}` : ""}`;
}

/** Formats the offset and length of a span. */
export function spanPlace(span: Span): string {
  return `${hex(span.start)}, ${whole(span.end - span.start)} B`;
}

/** Parses hexadecimal digits. */
export function fromHex(text: string): Uint8Array {
  return Uint8Array.from({ length: text.length >> 1 }, (_, i) => Number.parseInt(text.slice(2 * i, 2 * i + 2), 16));
}

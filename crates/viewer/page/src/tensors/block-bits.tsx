// Bits of a quantization block, least significant first, coloured by field.
import { useMemo } from "preact/hooks";
import type { Block } from "../api/tensor-types";
import { useNarrow } from "../ui/narrow";
import type { Mark } from "./block";

/** Height of a line of bits, and the gap between lines, in pixels. */
const LINE_HEIGHT = 18;
const GAP = 6;

interface Run {
  field: number;
  item: number;
  line: number;
  from: number;
  bits: number;
}

export function BlockBits({ block, mark, onMark }: { block: Block; mark: Mark; onMark: (mark: Mark) => void }) {
  const across = useNarrow() ? 64 : 128;
  const total = block.hex.length * 4;
  const lines = Math.ceil(total / across);
  const runs = useMemo(() => splitRuns(block, across), [block, across]);
  const marked = (run: Run) => {
    if (mark === null) return false;
    if ("field" in mark) return mark.field === run.field && mark.item === run.item;
    return block.weights[mark.weight]?.items.some(([field, item]) => field === run.field && item === run.item) ?? false;
  };
  const width = 8;
  return (
    <figure class="bits">
      <svg
        viewBox={`0 0 ${across * width} ${lines * (LINE_HEIGHT + GAP)}`}
        role="img"
        aria-label={`${total / 8} bytes: ${block.fields.map((field) => `${field.items.length} x ${field.name}`).join(", ")}`}
      >
        {runs.map((run) => (
          <rect
            key={`${run.field}/${run.item}/${run.line}/${run.from}`}
            class={`bit field-${run.field % 8}${marked(run) ? " marked" : ""}${run.item % 2 ? " odd" : ""}`}
            x={run.from * width + 0.5}
            y={run.line * (LINE_HEIGHT + GAP)}
            width={run.bits * width - 1}
            height={LINE_HEIGHT}
            onPointerEnter={() => onMark({ field: run.field, item: run.item })}
          />
        ))}
        {Array.from({ length: lines }, (_, line) =>
          Array.from({ length: Math.min(across / 8, Math.ceil((total - line * across) / 8)) + 1 }, (_, byte) => (
            <line
              key={`${line}/${byte}`}
              class="byte"
              x1={byte * 8 * width}
              x2={byte * 8 * width}
              y1={line * (LINE_HEIGHT + GAP) + LINE_HEIGHT}
              y2={line * (LINE_HEIGHT + GAP) + LINE_HEIGHT + 4}
            />
          )),
        )}
      </svg>
      <figcaption class="faint">{across / 8} bytes per line, least significant bit first</figcaption>
    </figure>
  );
}

/** Splits the fields into runs of bits that do not cross lines. */
function splitRuns(block: Block, across: number): Run[] {
  const runs: Run[] = [];
  block.fields.forEach((entry, field) => {
    entry.items.forEach(({ bits }, item) => {
      for (const [first, count] of bits) {
        for (let at = first; at < first + count;) {
          const line = Math.floor(at / across);
          const end = Math.min(first + count, (line + 1) * across);
          runs.push({ field, item, line, from: at % across, bits: end - at });
          at = end;
        }
      }
    });
  });
  return runs;
}

// Hex view of the file with named spans.
import { useSignal } from "@preact/signals";
import type { Tensor } from "../api/tensor-types";
import type { MapFile, Model, Span } from "../api/types";
import { hex, plural } from "../format";
import { link } from "../route";
import { HexLines, spanPlace, spanText } from "../ui/hex";
import { useNarrow } from "../ui/narrow";
import { Loaded } from "../ui/states";
import { useByteRange } from "../ui/raw-bytes";

/** Number of lines. */
const LINES = 32;

interface Props {
  model: Model;
  number: number;
  file: MapFile;
  offset: number;
  onGo: (offset: number) => void;
  tensors: Tensor[];
}

export function HexView({ model, number, file, offset, onGo, tensors }: Props) {
  const across = useNarrow() ? 8 : 16;
  const size = across * LINES;
  const start = Math.floor(offset / across) * across;
  const length = Math.min(size, file.bytes - start);
  const range = useByteRange(model.id, number, start, length);
  const marked = useSignal<{ start: number; span: number } | null>(null);
  const field = useSignal("");
  const isInvalid = useSignal(false);
  const here = marked.value?.start === start ? marked.value.span : null;
  function jump(event: Event): void {
    event.preventDefault();
    const text = field.value.trim();
    const wanted = /^0x[0-9a-f]+$/i.test(text) || /^\d+$/.test(text) ? Number(text) : Number.NaN;
    isInvalid.value = !Number.isSafeInteger(wanted) || wanted >= file.bytes;
    if (!isInvalid.value) onGo(wanted);
  }
  return (
    <section aria-labelledby="bytes" class="file-hex">
      <div class="section-head">
        <h2 id="bytes">Bytes</h2>
        <div class="buttons">
          <button type="button" disabled={start === 0} onClick={() => onGo(Math.max(0, start - size))}>
            Previous
          </button>
          <button type="button" disabled={start + length >= file.bytes} onClick={() => onGo(start + size)}>
            Next
          </button>
          <form onSubmit={jump}>
            <input
              class="offset"
              aria-label="Go to byte"
              placeholder={hex(start)}
              value={field.value}
              aria-invalid={isInvalid.value}
              spellcheck={false}
              onInput={(event) => (field.value = event.currentTarget.value)}
            />
          </form>
        </div>
      </div>
      {isInvalid.value && (
        <p class="problem" role="alert">
          Not an offset of this file: expected 0 to {hex(file.bytes - 1)}, in decimal or as 0x….
        </p>
      )}
      <Loaded
        resource={range}
        fallback={<div class="hex-room" />}
        render={({ bytes, spans }) => {
          const at = here ?? spans.findIndex((span) => span.start <= offset && offset < span.end);
          return (
            <>
              <HexLines
                bytes={bytes}
                start={start}
                spans={spans}
                across={across}
                marked={at}
                onMark={(span) => (marked.value = span === null ? null : { start, span })}
              />
              <SpanInfo span={spans[at]} model={model} tensors={tensors} />
              <Spans spans={spans} marked={at} onMark={(span) => (marked.value = { start, span })} />
            </>
          );
        }}
      />
    </section>
  );
}

/** The span under the pointer, with links to its key or tensor. */
function SpanInfo({ span, model, tensors }: { span: Span | undefined; model: Model; tensors: Tensor[] }) {
  if (!span) return <p class="span-name">&nbsp;</p>;
  return (
    <p class="span-name" role="status">
      <span class="span-words">
        {spanText(span)} <span class="faint">({spanPlace(span)})</span>
      </span>
      {span.key_n !== null && <a href={link([model.id, "metadata"], { key: span.key_n })}>key</a>}
      {span.tensor_n !== null && (
        <a
          href={link(
            [model.id, "tensors", span.tensor_n],
            span.block === null ? {} : { tab: "block", index: span.block },
          )}
        >
          {tensors[span.tensor_n]?.name ?? "tensor"}
          {span.block !== null && `, block ${span.block}`}
        </a>
      )}
    </p>
  );
}

/** List of all spans in the hex view. */
function Spans({ spans, marked, onMark }: { spans: Span[]; marked: number; onMark: (span: number) => void }) {
  return (
    <details class="span-all">
      <summary>{plural(spans.length, "span")}</summary>
      <ol tabIndex={0} aria-label="Spans">
        {spans.map((span, i) => (
          <li key={span.start} class={i === marked ? "marked" : ""} onPointerEnter={() => onMark(i)}>
            <code>{hex(span.start)}</code> {spanText(span)}
          </li>
        ))}
      </ol>
    </details>
  );
}

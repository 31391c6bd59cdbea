// Bytes of the file around a place, each with its name.
import { useSignal } from "@preact/signals";
import type { Tensor } from "../api/tensor-types";
import type { MapFile, Model, Span } from "../api/types";
import { hex } from "../format";
import { link } from "../route";
import { HexLines, spanPlace, spanText } from "../ui/hex";
import { useNarrow } from "../ui/narrow";
import { Shown } from "../ui/notice";
import { usePiece } from "../ui/raw-bytes";

/** Lines that are shown. */
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
  const piece = usePiece(model.id, number, start, length);
  const marked = useSignal<{ start: number; span: number } | null>(null);
  const field = useSignal("");
  const here = marked.value?.start === start ? marked.value.span : null;
  function jump(event: Event): void {
    event.preventDefault();
    const text = field.value.trim();
    const wanted = /^0x[0-9a-f]+$/i.test(text) || /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (Number.isSafeInteger(wanted)) onGo(Math.min(file.bytes - 1, wanted));
  }
  return (
    <section aria-labelledby="bytes" class="file-hex">
      <div class="section-head">
        <h2 id="bytes">Bytes</h2>
        <div class="buttons">
          <button type="button" disabled={start === 0} onClick={() => onGo(Math.max(0, start - size))}>
            Before
          </button>
          <button type="button" disabled={start + length >= file.bytes} onClick={() => onGo(start + size)}>
            After
          </button>
          <form onSubmit={jump}>
            <input
              class="offset"
              aria-label="Go to byte"
              placeholder={hex(start)}
              value={field.value}
              spellcheck={false}
              onInput={(event) => (field.value = event.currentTarget.value)}
            />
          </form>
        </div>
      </div>
      <Shown
        of={piece}
        waiting={<div class="hex-room" />}
        show={({ bytes, spans }) => {
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
              <Named span={spans[at]} model={model} tensors={tensors} />
              <Spans spans={spans} marked={at} onMark={(span) => (marked.value = { start, span })} />
            </>
          );
        }}
      />
    </section>
  );
}

/** The span that was pointed at, with the way to what it belongs to. */
function Named({ span, model, tensors }: { span: Span | undefined; model: Model; tensors: Tensor[] }) {
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

/** All spans of the bytes that are shown, by name. */
function Spans({ spans, marked, onMark }: { spans: Span[]; marked: number; onMark: (span: number) => void }) {
  return (
    <details class="span-all">
      <summary>{spans.length} spans by name</summary>
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

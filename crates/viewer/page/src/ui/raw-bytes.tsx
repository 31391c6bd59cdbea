// A piece of a file as it is, with the names of its spans.
import { useSignal } from "@preact/signals";
import { address, get, request } from "../api/request";
import { useAnswer } from "../api/resource";
import type { Model, Span } from "../api/types";
import { link } from "../route";
import { HexLines, spanPlace, spanText } from "./hex";
import { Shown } from "./notice";
import { useNarrow } from "./narrow";

export interface Piece {
  bytes: Uint8Array;
  spans: Span[];
}

/** Bytes and what they are, both at once. */
export function usePiece(model: number, file: number, start: number, length: number) {
  const query = { file, offset: start, length };
  return useAnswer<Piece>(length > 0 ? address(["models", model, "bytes"], query) : null, async (stop) => {
    const [bytes, named] = await Promise.all([
      request(address(["models", model, "bytes"], query), { signal: stop }).then((answer) => answer.arrayBuffer()),
      // A file that cannot be read as a model has bytes, but no names for them.
      get<{ spans: Span[] }>(address(["models", model, "spans"], query), stop).catch(() => ({ spans: [] })),
    ]);
    return { bytes: new Uint8Array(bytes), spans: named.spans };
  });
}

export function RawBytes({
  model,
  file,
  start,
  length,
  of,
}: {
  model: Model;
  file: number;
  start: number;
  length: number;
  of: number;
}) {
  const marked = useSignal<number | null>(null);
  const piece = usePiece(model.id, file, start, length);
  const narrow = useNarrow();
  return (
    <Shown
      of={piece}
      show={({ bytes, spans }) => {
        const span = marked.value === null ? null : spans[marked.value];
        return (
          <>
            <HexLines
              bytes={bytes}
              start={start}
              spans={spans}
              across={narrow ? 8 : 16}
              marked={marked.value}
              onMark={(at) => (marked.value = at)}
            />
            <p class="span-name">
              {span ? `${spanText(span)} (${spanPlace(span)})` : "Point at bytes for what they are"}
            </p>
            {of > length && (
              <p class="faint">
                the first {length} of {of} B;{" "}
                <a href={link([model.id, "file"], { file, offset: start })}>all in the file</a>
              </p>
            )}
          </>
        );
      }}
    />
  );
}

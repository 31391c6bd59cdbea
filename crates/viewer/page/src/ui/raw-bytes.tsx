// Raw bytes of a file range with named spans.
import { useSignal } from "@preact/signals";
import { address, get, request } from "../api/request";
import { useRequest } from "../api/resource";
import type { Model, Span } from "../api/types";
import { link } from "../route";
import { HexLines, spanPlace, spanText } from "./hex";
import { Loaded } from "./states";
import { useNarrow } from "./narrow";

export interface ByteRange {
  bytes: Uint8Array;
  spans: Span[];
}

/** Loads the bytes and spans of a range. */
export function useByteRange(model: number, file: number, start: number, length: number) {
  const query = { file, offset: start, length };
  return useRequest<ByteRange>(length > 0 ? address(["models", model, "bytes"], query) : null, async (stop) => {
    const [bytes, named] = await Promise.all([
      request(address(["models", model, "bytes"], query), { signal: stop }).then((answer) => answer.arrayBuffer()),
      // A file with an invalid header has bytes, but no spans.
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
  const range = useByteRange(model.id, file, start, length);
  const narrow = useNarrow();
  return (
    <Loaded
      resource={range}
      render={({ bytes, spans }) => {
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
              {span ? `${spanText(span)} (${spanPlace(span)})` : "Hover over a byte to see its meaning"}
            </p>
            {of > length && (
              <p class="faint">
                first {length} of {of} bytes;{" "}
                <a href={link([model.id, "file"], { file, offset: start })}>show all in File</a>
              </p>
            )}
          </>
        );
      }}
    />
  );
}

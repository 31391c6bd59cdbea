// Every part of the file in a list: the strip for those who read.
import type { Tensor } from "../api/tensor-types";
import type { MapFile } from "../api/types";
import { bytes, hex } from "../format";
import { VirtualRows } from "../ui/virtual";
import { partAt, partColour, partName } from "./parts";

export function SpanList({
  file,
  tensors,
  offset,
  onGo,
}: {
  file: MapFile;
  tensors: Tensor[];
  offset: number;
  onGo: (offset: number) => void;
}) {
  const at = partAt(file.spans, offset);
  return (
    <VirtualRows
      class="span-rows"
      label="Parts of the file"
      count={file.spans.length}
      height={30}
      selected={at}
      reveal={at}
      onChoose={(index) => onGo(file.spans[index]?.start ?? 0)}
      render={(index) => {
        const span = file.spans[index];
        if (!span) return null;
        return (
          <>
            <span class="dot" style={{ background: partColour(span, tensors) }} aria-hidden="true" />
            <span class="span-text">{partName(span, tensors)}</span>
            <span class="faint span-at">{hex(span.start)}</span>
            <span class="number">{bytes(span.end - span.start)}</span>
          </>
        );
      }}
    />
  );
}

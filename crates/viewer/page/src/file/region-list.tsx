// List of all regions: the accessible form of the file map.
import type { Tensor } from "../api/tensor-types";
import type { MapFile } from "../api/types";
import { bytes, hex } from "../format";
import { VirtualList } from "../ui/virtual-list";
import { regionAt, regionColour, regionName } from "./regions";

export function RegionList({
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
  const at = regionAt(file.spans, offset);
  return (
    <VirtualList
      class="span-rows"
      label="Regions of the file"
      count={file.spans.length}
      height={46}
      selected={at}
      reveal={at}
      onChoose={(index) => onGo(file.spans[index]?.start ?? 0)}
      render={(index) => {
        const span = file.spans[index];
        if (!span) return null;
        return (
          <>
            <span class="dot" style={{ background: regionColour(span, tensors) }} aria-hidden="true" />
            <span class="span-about">
              <span class="span-text" title={regionName(span, tensors)}>
                {regionName(span, tensors)}
              </span>
              <span class="span-place faint">
                <span class="span-at">{hex(span.start)}</span>
                <span>{bytes(span.end - span.start)}</span>
              </span>
            </span>
          </>
        );
      }}
    />
  );
}

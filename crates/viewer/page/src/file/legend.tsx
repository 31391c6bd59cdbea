// Legend of the file map.
import { useMemo } from "preact/hooks";
import type { Tensor } from "../api/tensor-types";
import type { MapFile } from "../api/types";
import { bytes } from "../format";
import { regionColour, regionName } from "./regions";

export function Legend({ file, tensors }: { file: MapFile; tensors: Tensor[] }) {
  const entries = useMemo(() => {
    const found = new Map<string, { colour: string; bytes: number }>();
    for (const span of file.spans) {
      const name = span.kind === "tensor" ? (tensors[span.n ?? -1]?.type ?? "tensors") : regionName(span, tensors);
      const entry = found.get(name) ?? { colour: regionColour(span, tensors), bytes: 0 };
      entry.bytes += span.end - span.start;
      found.set(name, entry);
    }
    return [...found];
  }, [file, tensors]);
  return (
    <ul class="strip-legend">
      {entries.map(([name, entry]) => (
        <li key={name}>
          <span class="dot" style={{ background: entry.colour }} aria-hidden="true" />
          {name} <span class="faint">{bytes(entry.bytes)}</span>
        </li>
      ))}
    </ul>
  );
}

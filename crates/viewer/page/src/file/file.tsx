// The whole file from header to last tensor, and the bytes at the place that was chosen.
import { useMemo } from "preact/hooks";
import { useDocument } from "../api/resource";
import type { Tensor } from "../api/tensor-types";
import type { FileMap, MapFile, Model } from "../api/types";
import { bytes, hex, plural, whole } from "../format";
import { choose } from "../route";
import { fileName } from "../ui/model-name";
import { Shown } from "../ui/notice";
import { chosenNumber, type ViewProps } from "../ui/view";
import { HexView } from "./hex-view";
import { Legend } from "./legend";
import { SpanList } from "./span-list";
import { Strip } from "./strip";

export function FileView({ model }: ViewProps) {
  const map = useDocument<FileMap>(`models/${model.id}/map`);
  const tensors = useDocument<{ tensors: Tensor[] }>(model.readable ? `models/${model.id}/tensors` : null);
  return (
    <>
      <div class="view-head">
        <h1>File</h1>
      </div>
      <Shown
        of={map}
        show={({ files }) => <Mapped files={files} model={model} tensors={tensors.value?.tensors ?? []} />}
        waiting={<div class="split-room" role="status" aria-label="Loading" />}
      />
    </>
  );
}

function Mapped({ files, model, tensors }: { files: MapFile[]; model: Model; tensors: Tensor[] }) {
  const number = Math.min(files.length - 1, chosenNumber("file") ?? 0);
  const file = files[number];
  const offset = Math.max(0, Math.min((file?.bytes ?? 1) - 1, chosenNumber("offset") ?? 0));
  const go = (offset: number) => choose({ file: number || null, offset: Math.max(0, Math.floor(offset)) });
  const gaps = useMemo(
    () =>
      file
        ? file.spans
            .filter(({ kind }) => kind === "gap" || kind === "beyond")
            .reduce((sum, span) => sum + span.end - span.start, 0)
        : 0,
    [file],
  );
  if (!file) return <p class="nothing">There is no file.</p>;
  return (
    <>
      {files.length > 1 && (
        <label class="file-choice">
          File{" "}
          <select value={number} onChange={(event) => choose({ file: event.currentTarget.value, offset: 0 })}>
            {files.map((entry, i) => (
              <option key={i} value={i}>
                {fileName(entry.name)} ({bytes(entry.bytes)})
              </option>
            ))}
          </select>
        </label>
      )}
      <p class="detail-about">
        <span title={file.name}>{fileName(file.name)}</span>
        <span>
          {bytes(file.bytes)} ({whole(file.bytes)} B)
        </span>
        {file.version !== null && <span>GGUF version {file.version}</span>}
        {file.order && <span>{file.order}-endian</span>}
        {file.alignment !== null && <span>aligned to {file.alignment}</span>}
        {file.data_start !== null && <span>data from {hex(file.data_start)}</span>}
        {gaps > 0 && <span class="oddity">{bytes(gaps)} that nothing claims</span>}
      </p>
      {file.bytes === 0 ? (
        <p class="nothing">The file is empty.</p>
      ) : (
        <>
          <Strip key={`${model.id}/${number}`} file={file} tensors={tensors} offset={offset} onGo={go} />
          <Legend file={file} tensors={tensors} />
          <div class="file-split">
            <HexView model={model} number={number} file={file} offset={offset} onGo={go} tensors={tensors} />
            <section aria-labelledby="parts" class="file-parts">
              <h2 id="parts">{plural(file.spans.length, "part")}</h2>
              <SpanList file={file} tensors={tensors} offset={offset} onGo={go} />
            </section>
          </div>
        </>
      )}
    </>
  );
}

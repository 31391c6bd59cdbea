// File map, and a hex view of the selected offset.
import { useMemo } from "preact/hooks";
import { useDocument } from "../api/resource";
import type { Tensor } from "../api/tensor-types";
import type { FileMap, MapFile, Model } from "../api/types";
import { bytes, hex, plural, whole } from "../format";
import { setParams } from "../route";
import { fileName } from "../ui/model-name";
import { Loaded } from "../ui/states";
import { numberParam, type ViewProps } from "../ui/view";
import { HexView } from "./hex-view";
import { Legend } from "./legend";
import { RegionList } from "./region-list";
import { Strip } from "./strip";

export function FileView({ model }: ViewProps) {
  const map = useDocument<FileMap>(`models/${model.id}/map`);
  const tensors = useDocument<{ tensors: Tensor[] }>(model.readable ? `models/${model.id}/tensors` : null);
  return (
    <>
      <div class="view-head">
        <h1>File</h1>
      </div>
      <Loaded
        resource={map}
        render={({ files }) => <Mapped files={files} model={model} tensors={tensors.value?.tensors ?? []} />}
        fallback={<div class="split-room" role="status" aria-label="Loading" />}
      />
    </>
  );
}

function Mapped({ files, model, tensors }: { files: MapFile[]; model: Model; tensors: Tensor[] }) {
  const number = Math.min(files.length - 1, numberParam("file") ?? 0);
  const file = files[number];
  const offset = Math.max(0, Math.min((file?.bytes ?? 1) - 1, numberParam("offset") ?? 0));
  const go = (offset: number) => setParams({ file: number || null, offset: Math.max(0, Math.floor(offset)) });
  const gaps = useMemo(
    () =>
      file
        ? file.spans
            .filter(({ kind }) => kind === "gap" || kind === "beyond")
            .reduce((sum, span) => sum + span.end - span.start, 0)
        : 0,
    [file],
  );
  if (!file) return <p class="nothing">No such file.</p>;
  return (
    <>
      {files.length > 1 && (
        <label class="file-choice">
          File{" "}
          <select value={number} onChange={(event) => setParams({ file: event.currentTarget.value, offset: 0 })}>
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
          {bytes(file.bytes)} ({whole(file.bytes)} bytes)
        </span>
        {file.version !== null && <span>GGUF version {file.version}</span>}
        {file.order && <span>{file.order}-endian</span>}
        {file.alignment !== null && <span>alignment {file.alignment}</span>}
        {file.data_start !== null && <span>data at {hex(file.data_start)}</span>}
        {gaps > 0 && <span class="oddity">{bytes(gaps)} unused</span>}
      </p>
      {file.bytes === 0 ? (
        <p class="nothing">The file is empty.</p>
      ) : (
        <>
          <Strip key={`${model.id}/${number}`} file={file} tensors={tensors} offset={offset} onGo={go} />
          <Legend file={file} tensors={tensors} />
          <div class="file-split">
            <HexView model={model} number={number} file={file} offset={offset} onGo={go} tensors={tensors} />
            <section aria-labelledby="regions" class="file-regions">
              <h2 id="regions">{plural(file.spans.length, "region")}</h2>
              <RegionList file={file} tensors={tensors} offset={offset} onGo={go} />
            </section>
          </div>
        </>
      )}
    </>
  );
}

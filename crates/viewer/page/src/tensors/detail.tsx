// Details of a tensor, in tabs.
import { models } from "../api/status";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { Tensor, TensorFacts } from "../api/tensor-types";
import type { Model } from "../api/types";
import { bytes, count, fixed, hex, shape, visible, whole } from "../format";
import { setParams, link } from "../route";
import { Copy } from "../ui/copy";
import { Loaded } from "../ui/states";
import { Tabs } from "../ui/tabs";
import { bits, typeColour } from "../ui/type-colour";
import { param } from "../ui/view";
import { BlockView } from "./block";
import { ErrorView } from "./quantization-error";
import { StatisticsView } from "./statistics";
import { Truncated } from "./truncated";
import { Values } from "./values";

export function TensorDetail({ model, tensor }: { model: Model; tensor: Tensor }) {
  const facts = useDocument<TensorFacts>(address(["models", model.id, "tensor"], { n: tensor.n }));
  return (
    <article aria-labelledby="tensor-title">
      <h2 id="tensor-title" class="detail-title">
        {visible(tensor.name)}
      </h2>
      <p class="detail-about">
        <span class="chip">
          <span class="dot" style={{ background: typeColour(bits(tensor)) }} aria-hidden="true" />
          {tensor.type}
        </span>
        <span>{shape(tensor.shape)}</span>
        <span>{count(tensor.parameters)} weights</span>
        <span>
          {tensor.bytes === null ? "size unknown" : bytes(tensor.bytes)}
          {tensor.bytes !== null && `, ${fixed(bits(tensor), 2)} bits per weight`}
        </span>
        <a href={link([model.id, "file"], { file: tensor.file, offset: tensor.offset })}>byte {hex(tensor.offset)}</a>
        <Copy text={tensor.name} label="Copy name" />
      </p>
      <Loaded
        resource={facts}
        fallback={<div class="detail-room" />}
        render={(value) => (
          <>
            {value.damage !== null && <p class="problem">The file is damaged: {value.damage}.</p>}
            {value.documentation && <p class="documentation">{value.documentation}</p>}
            <TensorTabs model={model} tensor={value} />
          </>
        )}
      />
    </article>
  );
}

function TensorTabs({ model, tensor }: { model: Model; tensor: TensorFacts }) {
  const original = models.value?.models.find((entry) => entry.id === model.original);
  const tabs = [
    { name: "values", title: "Values", show: () => <Values model={model} tensor={tensor} /> },
    { name: "statistics", title: "Statistics", show: () => <StatisticsView model={model} tensor={tensor} /> },
    { name: "block", title: "Quantization blocks", show: () => <BlockView model={model} tensor={tensor} /> },
    ...(original
      ? [{ name: "error", title: "Error", show: () => <ErrorView model={model} original={original} tensor={tensor} /> }]
      : []),
  ];
  if (!tensor.decodable) {
    return (
      <p class="nothing">
        Values of type {tensor.type} cannot be decoded.{" "}
        {tensor.rows > 0 && `${whole(tensor.rows)} rows of ${whole(tensor.columns)}.`}
      </p>
    );
  }
  if (tensor.missing_bytes > 0) return <Truncated tensor={tensor} />;
  if (tensor.rows === 0 || tensor.columns === 0) return <p class="nothing">The tensor is empty.</p>;
  return (
    <Tabs
      label="Tensor views"
      tabs={tabs}
      chosen={param("tab") || "values"}
      onChoose={(tab) => setParams({ tab, at: null, of: null, index: null })}
    />
  );
}

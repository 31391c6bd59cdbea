// All about one tensor: what it is, then one side of it at a time.
import { models } from "../api/health";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { Tensor, TensorFacts } from "../api/tensor-types";
import type { Model } from "../api/types";
import { bytes, count, fixed, hex, shape, visible, whole } from "../format";
import { choose, link } from "../route";
import { Shown } from "../ui/notice";
import { Tabs } from "../ui/tabs";
import { bits, typeColour } from "../ui/type-colour";
import { chosen } from "../ui/view";
import { BlockView } from "./block";
import { ErrorView } from "./error";
import { StatisticsView } from "./statistics";
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
          {tensor.bytes !== null && `, ${fixed(bits(tensor), 2)} bits each`}
        </span>
        <a href={link([model.id, "file"], { file: tensor.file, offset: tensor.offset })}>byte {hex(tensor.offset)}</a>
      </p>
      <Shown
        of={facts}
        waiting={<div class="detail-room" />}
        show={(value) => (
          <>
            {value.documentation && <p class="documentation">{value.documentation}</p>}
            <Sides model={model} tensor={value} />
          </>
        )}
      />
    </article>
  );
}

function Sides({ model, tensor }: { model: Model; tensor: TensorFacts }) {
  const original = models.value?.models.find((entry) => entry.id === model.original);
  const tabs = [
    { name: "values", title: "Values", show: () => <Values model={model} tensor={tensor} /> },
    { name: "statistics", title: "Statistics", show: () => <StatisticsView model={model} tensor={tensor} /> },
    { name: "block", title: "Blocks", show: () => <BlockView model={model} tensor={tensor} /> },
    ...(original
      ? [{ name: "error", title: "Error", show: () => <ErrorView model={model} original={original} tensor={tensor} /> }]
      : []),
  ];
  if (!tensor.decodable) {
    return (
      <p class="nothing">
        Values of the type {tensor.type} cannot be decoded here.{" "}
        {tensor.rows > 0 && `${whole(tensor.rows)} rows of ${whole(tensor.columns)}.`}
      </p>
    );
  }
  if (tensor.rows === 0 || tensor.columns === 0) return <p class="nothing">This tensor has no weights.</p>;
  return (
    <Tabs
      label="Sides of the tensor"
      tabs={tabs}
      chosen={chosen("tab") || "values"}
      onChoose={(tab) => choose({ tab, at: null, of: null, index: null })}
    />
  );
}

// One quantization block: bits, fields, weights.
import { useSignal } from "@preact/signals";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { Block, TensorFacts } from "../api/tensor-types";
import type { Model } from "../api/types";
import { hex, plural, whole } from "../format";
import { setParams, link } from "../route";
import { Loaded } from "../ui/states";
import { numberParam } from "../ui/view";
import { BlockBits } from "./block-bits";
import { BlockFields } from "./block-fields";
import { BlockWeights } from "./block-weights";

/** The highlighted weight or field item. */
export type Mark = { weight: number } | { field: number; item: number } | null;

export function BlockView({ model, tensor }: { model: Model; tensor: TensorFacts }) {
  const index = Math.min(tensor.blocks - 1, numberParam("index") ?? 0);
  const block = useDocument<Block>(address(["models", model.id, "tensor", "block"], { n: tensor.n, index }));
  const to = (index: number) => setParams({ index: Math.max(0, Math.min(tensor.blocks - 1, index)) });
  return (
    <>
      <div class="block-choice" role="group" aria-label="Block">
        <button type="button" disabled={index === 0} onClick={() => to(index - 1)} aria-label="Previous block">
          ‹
        </button>
        <label>
          Block{" "}
          <input
            type="number"
            min={0}
            max={tensor.blocks - 1}
            value={index}
            onChange={(event) => to(Math.floor(Number(event.currentTarget.value)) || 0)}
          />
        </label>
        <button
          type="button"
          disabled={index >= tensor.blocks - 1}
          onClick={() => to(index + 1)}
          aria-label="Next block"
        >
          ›
        </button>
        <span class="faint">
          of {whole(tensor.blocks)}, {plural(tensor.block_weights, "weight")} in {whole(tensor.block_bytes)} bytes
        </span>
      </div>
      <Loaded
        resource={block}
        render={(value) => <BlockDetail key={value.index} block={value} model={model} tensor={tensor} />}
      />
    </>
  );
}

function BlockDetail({ block, model, tensor }: { block: Block; model: Model; tensor: TensorFacts }) {
  const mark = useSignal<Mark>({ weight: 0 });
  const on = (to: Mark) => {
    mark.value = to;
  };
  const last = block.column + block.weights.length - 1;
  return (
    <>
      <p class="detail-about">
        <span>
          row {whole(block.row)}, columns {whole(block.column)} to {whole(last)}
        </span>
        <a href={link([model.id, "file"], { file: block.file, offset: block.offset })}>byte {hex(block.offset)}</a>
        <a
          href={link([model.id, "tensors", tensor.n], {
            row: block.row,
            column: block.column,
            at: `${block.column + block.weights.length / 2},${block.row + 0.5},20`,
          })}
        >
          show in heat map
        </a>
      </p>
      {block.formula && <p class="formula">{block.formula}</p>}
      <BlockBits block={block} mark={mark.value} onMark={on} />
      <BlockWeights block={block} mark={mark.value} onMark={on} />
      <BlockFields block={block} mark={mark.value} onMark={on} />
    </>
  );
}

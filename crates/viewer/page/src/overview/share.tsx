// Copies the summary of a model as Markdown, and saves its report.
import { useSignal } from "@preact/signals";
import { ApiError, request } from "../api/request";
import type { Model, Summary } from "../api/types";
import { bytes, count, fixed, plural, whole } from "../format";
import { Copy } from "../ui/copy";
import { fileName, modelName } from "../ui/model-name";
import { saveBlob } from "../ui/save";

export function Share({ model, summary }: { model: Model; summary: Summary }) {
  const state = useSignal("");
  const save = async () => {
    state.value = "Writing…";
    try {
      const response = await request(`models/${model.id}/report`);
      saveBlob(await response.blob(), `${modelName(model)} report`, "html");
      state.value = "";
    } catch (error) {
      state.value = error instanceof ApiError ? error.message : String(error);
    }
  };
  return (
    <div class="buttons share">
      <Copy text={markdown(model, summary)} label="Copy summary as Markdown" />
      <button type="button" disabled={state.value === "Writing…"} onClick={() => void save()}>
        Save report
      </button>
      {state.value && <span role="status">{state.value}</span>}
    </div>
  );
}

/** Returns the summary as a Markdown table. */
export function markdown(model: Model, summary: Summary): string {
  const list = (value: number | number[] | null) =>
    value === null ? null : [...new Set([value].flat())].map(whole).join(" / ");
  const rows: [string, string | null][] = [
    ["File", `\`${fileName(model.source)}\``],
    ["Architecture", summary.architecture],
    ["Parameters", count(summary.parameters)],
    [
      "Size",
      `${bytes(summary.file_bytes)}${summary.bits_per_weight === null ? "" : `, ${fixed(summary.bits_per_weight, 2)} bits per weight`}`,
    ],
    ["File type", summary.file_type],
    ["Context", summary.context_length === null ? null : plural(summary.context_length, "token")],
    ["Layers", summary.block_count === null ? null : whole(summary.block_count)],
    ["Embedding length", summary.embedding_length === null ? null : whole(summary.embedding_length)],
    ["Attention heads", list(summary.head_count)],
    ["KV heads", list(summary.head_count_kv)],
    ["Vocabulary", summary.tokenizer?.tokens ? plural(summary.tokenizer.tokens, "token") : null],
    [
      "Tensor types",
      Object.entries(summary.tensor_types)
        .map(([type, { tensors }]) => `${tensors} ${type}`)
        .join(", "),
    ],
    ["License", summary.origin.license],
  ];
  const cell = (text: string) => text.replaceAll("|", "\\|").replaceAll("\n", " ").replaceAll("\u202f", "\u00a0");
  const lines = rows.flatMap(([name, value]) => (value ? [`| ${name} | ${cell(value)} |`] : []));
  return [`## ${cell(summary.name ?? modelName(model))}`, "", "| | |", "|---|---|", ...lines, ""].join("\n");
}

// Overview: summary, findings, sizes, memory estimate.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useDocument } from "../api/resource";
import type { Summary } from "../api/types";
import { Loaded, Loading } from "../ui/states";
import { modelName } from "../ui/model-name";
import type { ViewProps } from "../ui/view";
import { SummaryFacts } from "./summary";
import { Findings } from "./findings";
import { MemoryEstimate } from "./memory";
import { Share } from "./share";
import { Sizes } from "./sizes";

export function Overview({ model }: ViewProps) {
  const summary = useDocument<Summary>(model.readable ? `models/${model.id}/summary` : null);
  // Load the other sections after the summary is rendered, so that they do not delay it.
  const known = !model.readable || summary.value !== null || summary.failure !== null;
  const drawn = useSignal(false);
  useEffect(() => {
    if (known) drawn.value = true;
  }, [known]);
  return (
    <>
      <div class="view-head with-actions">
        <div>
          <h1>{summary.value?.name || modelName(model)}</h1>
          <p class="source">{model.source}</p>
        </div>
        {summary.value && <Share model={model} summary={summary.value} />}
      </div>
      {!model.readable && (
        <p class="problem" role="alert">
          Invalid GGUF file: {model.error?.message}. The findings and the File view show what could be read.
        </p>
      )}
      {model.readable && (
        <Loaded
          resource={summary}
          render={(value) => <SummaryFacts summary={value} model={model} />}
          fallback={<div class="facts-room" role="status" aria-label="Loading" />}
        />
      )}
      {drawn.value ? (
        <>
          <Findings model={model} />
          {model.tensor_count !== null && model.tensor_count > 0 && <Sizes model={model} />}
          {model.header_complete && summary.value?.context_length && (
            <MemoryEstimate model={model} summary={summary.value} trained={summary.value.context_length} />
          )}
        </>
      ) : (
        <Loading />
      )}
    </>
  );
}

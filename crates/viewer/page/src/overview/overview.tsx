// What people ask first: what is it, what is wrong with it, where do its bytes go, does it fit.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useDocument } from "../api/resource";
import type { Summary } from "../api/types";
import { Shown, Waiting } from "../ui/notice";
import { modelName } from "../ui/model-name";
import type { ViewProps } from "../ui/view";
import { Facts } from "./facts";
import { Findings } from "./findings";
import { MemoryEstimate } from "./memory";
import { Sizes } from "./sizes";

export function Overview({ model }: ViewProps) {
  const summary = useDocument<Summary>(model.readable ? `models/${model.id}/summary` : null);
  // What is below the facts is asked for when these are on the screen: it would take the processor from them.
  const known = !model.readable || summary.value !== null || summary.failure !== null;
  const drawn = useSignal(false);
  useEffect(() => {
    if (known) drawn.value = true;
  }, [known]);
  return (
    <>
      <div class="view-head">
        <h1>{summary.value?.name || modelName(model)}</h1>
        <p class="source">{model.source}</p>
      </div>
      {!model.readable && (
        <p class="problem" role="alert">
          This file cannot be read as a model: {model.error?.message}. What is known of it is below and in the view of
          the file.
        </p>
      )}
      {model.readable && (
        <Shown
          of={summary}
          show={(value) => <Facts summary={value} model={model} />}
          waiting={<div class="facts-room" role="status" aria-label="Loading" />}
        />
      )}
      {drawn.value ? (
        <>
          <Findings model={model} />
          {model.readable && <Sizes model={model} />}
          {summary.value?.context_length && <MemoryEstimate model={model} trained={summary.value.context_length} />}
        </>
      ) : (
        <Waiting />
      )}
    </>
  );
}

// What a run takes, for a context and a type of cache.
import { useSignal } from "@preact/signals";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { Memory, Model } from "../api/types";
import { bytes, whole } from "../format";
import { Section, Shown } from "../ui/notice";

const CACHES = ["f32", "f16", "q8_0"];
const BATCHES = [1, 32, 64, 128, 256, 512, 1024, 2048, 4096];

export function MemoryEstimate({ model, trained }: { model: Model; trained: number }) {
  // Contexts double from 256 on, up to eight times what the model was trained on.
  const steps = [];
  for (let context = 256; context < trained; context *= 2) steps.push(context);
  const contexts = [...steps, trained, trained * 2, trained * 4, trained * 8];
  const context = useSignal(steps.length);
  const batch = useSignal(BATCHES.indexOf(512));
  const cache = useSignal("f16");
  const chosen = {
    context: contexts[context.value] ?? trained,
    batch: BATCHES[batch.value] ?? 512,
    kv_type: cache.value,
  };
  const memory = useDocument<Memory>(address(["models", model.id, "memory"], chosen));
  return (
    <Section title="Memory to run it" id="memory">
      <div class="memory-choices">
        <label>
          <span>
            Context <output>{whole(chosen.context)} tokens</output>
          </span>
          <input
            type="range"
            min={0}
            max={contexts.length - 1}
            value={context.value}
            aria-valuetext={`${chosen.context} tokens`}
            onInput={(event) => (context.value = Number(event.currentTarget.value))}
          />
          <span class="faint">
            {chosen.context > trained
              ? "more than it was trained on"
              : chosen.context === trained
                ? "what it was trained on"
                : "\u00a0"}
          </span>
        </label>
        <label>
          <span>
            Batch <output>{whole(chosen.batch)} tokens</output>
          </span>
          <input
            type="range"
            min={0}
            max={BATCHES.length - 1}
            value={batch.value}
            aria-valuetext={`${chosen.batch} tokens`}
            onInput={(event) => (batch.value = Number(event.currentTarget.value))}
          />
        </label>
        <fieldset class="segments">
          <legend>Cache type</legend>
          {CACHES.map((name) => (
            <button key={name} type="button" aria-pressed={cache.value === name} onClick={() => (cache.value = name)}>
              {name}
            </button>
          ))}
        </fieldset>
      </div>
      <Shown of={memory} show={(value) => <Bar memory={value} />} waiting={<div class="memory-room" />} />
    </Section>
  );
}

function Bar({ memory }: { memory: Memory }) {
  const parts = [
    { name: "weights", bytes: memory.weights, about: "mapped from the file" },
    { name: "cache", bytes: memory.cache, about: `${bytes(memory.cache_per_token)} for a token` },
    { name: "scratch", bytes: memory.scratch, about: `values of a batch of ${memory.batch}` },
  ];
  return (
    <div class="memory">
      <p class="memory-total">
        <strong>{bytes(memory.total)}</strong> <span class="faint">in all</span>
      </p>
      <div class="stack" aria-hidden="true">
        {parts.map((part) => (
          <span key={part.name} class={`part-${part.name}`} style={{ flexGrow: part.bytes }} />
        ))}
      </div>
      <dl class="memory-parts">
        {parts.map((part) => (
          <div key={part.name}>
            <dt>
              <span class={`dot part-${part.name}`} aria-hidden="true" />
              {part.name}
            </dt>
            <dd>{bytes(part.bytes)}</dd>
            <dd class="faint">{part.about}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

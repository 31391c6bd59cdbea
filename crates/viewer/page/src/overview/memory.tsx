// Memory estimate by context length, batch size and KV cache type.
import { useSignal } from "@preact/signals";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { Memory, Model } from "../api/types";
import { bytes, plural, whole } from "../format";
import { Section, Loaded } from "../ui/states";

const CACHE_TYPES = ["f32", "f16", "q8_0"];
const BATCHES = [1, 32, 64, 128, 256, 512, 1024, 2048, 4096];

export function MemoryEstimate({ model, trained }: { model: Model; trained: number }) {
  // Powers of two from 256, then up to eight times the training context.
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
    <Section title="Memory estimate" id="memory">
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
              ? "exceeds the training context"
              : chosen.context === trained
                ? "training context"
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
          <legend>KV cache type</legend>
          {CACHE_TYPES.map((name) => (
            <button key={name} type="button" aria-pressed={cache.value === name} onClick={() => (cache.value = name)}>
              {name}
            </button>
          ))}
        </fieldset>
      </div>
      <Loaded resource={memory} render={(value) => <Bar memory={value} />} fallback={<div class="memory-room" />} />
    </Section>
  );
}

function Bar({ memory }: { memory: Memory }) {
  const parts = [
    { name: "weights", key: "weights", bytes: memory.weights, about: "memory-mapped file" },
    { name: "KV cache", key: "cache", bytes: memory.kv_cache, about: `${bytes(memory.kv_cache_per_token)} per token` },
    {
      name: "compute buffer",
      key: "compute_buffer",
      bytes: memory.compute_buffer,
      about: `batch of ${plural(memory.batch, "token")}`,
    },
  ];
  return (
    <div class="memory">
      <p class="memory-total">
        <strong>{bytes(memory.total)}</strong> <span class="faint">total</span>
      </p>
      <div class="stack" aria-hidden="true">
        {parts.map((part) => (
          <span key={part.name} class={`part-${part.key}`} style={{ flexGrow: part.bytes }} />
        ))}
      </div>
      <dl class="memory-parts">
        {parts.map((part) => (
          <div key={part.name}>
            <dt>
              <span class={`dot part-${part.key}`} aria-hidden="true" />
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

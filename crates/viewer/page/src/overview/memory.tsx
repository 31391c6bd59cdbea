// Memory estimate by runtime, context length, batch size and KV cache type, and whether a device has room.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { Tensor } from "../api/tensor-types";
import type { Layers, Memory, Model, Summary } from "../api/types";
import { bytes, fixed, plural, whole } from "../format";
import { Section, Loaded } from "../ui/states";
import { Term } from "../ui/term";
import { CACHE_TYPES, cacheOf, type Device, DEVICES, divided, hasRoom, longestContext, type Sizes } from "./fit";

const OWN_CACHE_TYPES = ["f32", "f16", "q8_0"];
const BATCHES = [1, 32, 64, 128, 256, 512, 1024, 2048, 4096];
/** Longest context that is searched for a device. */
const MAX_CONTEXT = 1 << 22;

type Runtime = "llama.cpp" | "gguf-kit";

export function MemoryEstimate({ model, summary, trained }: { model: Model; summary: Summary; trained: number }) {
  // Powers of two from 256, then up to eight times the training context.
  const steps = [];
  for (let context = 256; context < trained; context *= 2) steps.push(context);
  const contexts = [...steps, trained, trained * 2, trained * 4, trained * 8];
  const runtime = useSignal<Runtime>("llama.cpp");
  const context = useSignal(steps.length);
  const batch = useSignal(BATCHES.indexOf(512));
  const cache = useSignal("f16");
  const types = runtime.value === "llama.cpp" ? Object.keys(CACHE_TYPES) : OWN_CACHE_TYPES;
  const type = types.includes(cache.value) ? cache.value : "f16";
  const chosen = {
    context: contexts[context.value] ?? trained,
    batch: BATCHES[batch.value] ?? 512,
  };
  const memory = useDocument<Memory>(
    address(["models", model.id, "memory"], { ...chosen, kv_type: OWN_CACHE_TYPES.includes(type) ? type : "f16" }),
  );
  const layers = useDocument<Layers>(`models/${model.id}/layers`);
  const tensors = useDocument<{ tensors: Tensor[] }>(`models/${model.id}/tensors`);
  const sizes = useMemo(
    () => (layers.value && tensors.value ? sizesOf(layers.value, tensors.value.tensors, summary) : null),
    [layers.value, tensors.value, summary],
  );
  return (
    <Section title="Memory estimate" id="memory">
      <div class="memory-choices">
        <fieldset class="segments">
          <legend>Runtime</legend>
          {(["llama.cpp", "gguf-kit"] as const).map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={runtime.value === name}
              onClick={() => (runtime.value = name)}
            >
              {name}
            </button>
          ))}
        </fieldset>
        <fieldset class="segments">
          <legend>
            <Term name="KV cache" /> type
          </legend>
          {types.map((name) => (
            <button key={name} type="button" aria-pressed={type === name} onClick={() => (cache.value = name)}>
              {name}
            </button>
          ))}
        </fieldset>
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
      </div>
      <Loaded
        resource={memory}
        render={(value) => {
          if (!sizes) return <div class="memory-room" />;
          const vocabulary = summary.tokenizer?.tokens ?? 0;
          // llama.cpp reserves logits for a whole batch.
          const computeBuffer =
            runtime.value === "llama.cpp"
              ? Math.max(value.compute_buffer, 4 * value.batch * vocabulary)
              : value.compute_buffer;
          const element = CACHE_TYPES[type] ?? 2;
          const settings = { ...chosen, element };
          const isLlama = runtime.value === "llama.cpp";
          const kvCache = isLlama
            ? sizes.layers.reduce((sum, layer) => sum + cacheOf(layer, settings), 0)
            : value.kv_cache;
          const windowed = sizes.layers.filter(({ caches }) => caches.some(({ window }) => window !== null)).length;
          return (
            <>
              <Bar
                weights={value.weights}
                cache={kvCache}
                computeBuffer={computeBuffer}
                about={
                  isLlama && windowed > 0
                    ? `${plural(windowed, "sliding-window layer")} keep only the window`
                    : isLlama
                      ? `${type}, ${plural(sizes.layers.length, "layer")}`
                      : `${bytes(value.kv_cache_per_token)} per token${windowed > 0 ? "; sliding-window layers keep all tokens" : ""}`
                }
                isEstimate={isLlama}
                batch={value.batch}
              />
              {isLlama && (
                <DeviceFit sizes={{ ...sizes, computeBuffer }} settings={settings} total={value.weights + kvCache} />
              )}
            </>
          );
        }}
        fallback={<div class="memory-room" />}
      />
    </Section>
  );
}

/** Returns the sizes that matter for a device. */
function sizesOf({ layers }: Layers, tensors: Tensor[], summary: Summary): Sizes {
  const sum = (list: Tensor[]) => list.reduce((sum, tensor) => sum + (tensor.bytes ?? 0), 0);
  const outside = tensors.filter(({ block }) => block === null);
  const named = (pattern: RegExp) => outside.filter(({ name }) => pattern.test(name));
  const output = named(/^output/);
  // A tied embedding is the output projection too.
  const isTied = !output.some(({ name }) => name === "output.weight");
  const outputBytes = sum(output) + (isTied ? sum(named(/^token_embd\.weight$/)) : 0);
  const inLayers = tensors.filter(({ block }) => block !== null);
  const experts = sum(inLayers.filter(({ kind }) => /_exps/.test(kind)));
  const { count, used } = summary.experts ?? {};
  const all = Math.max(1, sum(inLayers));
  const active = count && used ? 1 - (experts / all) * (1 - used / count) : 1;
  return { layers, output: outputBytes, rest: sum(outside) - sum(output), active, computeBuffer: 0 };
}

function Bar({
  weights,
  cache,
  computeBuffer,
  about,
  batch,
  isEstimate,
}: {
  weights: number;
  cache: number;
  computeBuffer: number;
  about: string;
  batch: number;
  isEstimate: boolean;
}) {
  const parts = [
    { name: "weights", key: "weights", bytes: weights, about: "memory-mapped file" },
    { name: "KV cache", key: "cache", bytes: cache, about },
    {
      name: "compute buffer",
      key: "compute_buffer",
      bytes: computeBuffer,
      about: `${isEstimate ? "approximate, " : ""}batch of ${plural(batch, "token")}`,
    },
  ];
  return (
    <div class="memory">
      <p class="memory-total">
        <strong>{bytes(weights + cache + computeBuffer)}</strong> <span class="faint">total</span>
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

/** Whether a device has room, with how many layers, and how fast it can be at most. */
function DeviceFit({
  sizes,
  settings,
  total,
}: {
  sizes: Sizes;
  settings: { context: number; batch: number; element: number };
  total: number;
}) {
  const name = useSignal(DEVICES.find((device) => hasRoom(device, total))?.name ?? "H100");
  const gigabytes = useSignal(8);
  const layers = useSignal<number | null>(null);
  const custom: Device = { name: "other", gigabytes: gigabytes.value, bandwidth: 500 };
  const device = DEVICES.find((entry) => entry.name === name.value) ?? custom;
  const fit = divided(sizes, settings, device, layers.value);
  const isOver = !hasRoom(device, fit.deviceBytes);
  const longest = longestContext(sizes, settings, device, MAX_CONTEXT);
  const room = device.gigabytes * 1e9;
  return (
    <section class="fit" aria-labelledby="fit">
      <h3 id="fit">Does it fit?</h3>
      <div class="fit-choices">
        <label>
          Device{" "}
          <select
            value={device === custom ? "other" : device.name}
            onChange={(event) => (name.value = event.currentTarget.value)}
          >
            {DEVICES.map((entry) => (
              <option key={entry.name} value={entry.name}>
                {entry.name}, {entry.gigabytes} GB
              </option>
            ))}
            <option value="other">other</option>
          </select>
        </label>
        {device === custom && (
          <label>
            Memory{" "}
            <input
              type="number"
              min={1}
              max={4096}
              value={gigabytes.value}
              onInput={(event) => (gigabytes.value = Math.max(1, Number(event.currentTarget.value) || 1))}
            />{" "}
            GB
          </label>
        )}
        <label class="fit-layers">
          <Term name="offloaded layers" />{" "}
          <output>
            {fit.onDevice} of {fit.count}
            {layers.value === null ? " (automatic)" : ""}
          </output>
          <input
            type="range"
            min={0}
            max={fit.count}
            value={fit.onDevice}
            onInput={(event) => (layers.value = Number(event.currentTarget.value))}
          />
        </label>
        {layers.value !== null && (
          <button type="button" onClick={() => (layers.value = null)}>
            Automatic
          </button>
        )}
      </div>
      <div class="fit-bar" aria-hidden="true">
        <span class={isOver ? "over" : ""} style={{ width: `${Math.min(100, (100 * fit.deviceBytes) / room)}%` }} />
      </div>
      <p class={`fit-verdict${isOver ? " oddity" : ""}`} role="status">
        <strong>
          {isOver
            ? "Does not fit."
            : fit.onDevice === fit.count
              ? "Fits."
              : fit.onDevice === 0
                ? "No layer fits."
                : `${fit.onDevice} of ${fit.count} layers fit; the host computes the rest.`}
        </strong>{" "}
        {bytes(fit.deviceBytes)} of {device.gigabytes} GB on the device, {bytes(fit.hostBytes)} on the host.{" "}
        {fit.onDevice < fit.count && longest > 0 && (
          <>All layers fit with a context of up to {whole(longest)} tokens. </>
        )}
        {fit.onDevice === fit.count && longest > settings.context && (
          <>There is room for a context of {longest >= MAX_CONTEXT ? "millions of" : `${whole(longest)}`} tokens. </>
        )}
        {device !== custom && fit.tokensPerSecond > 0 && (
          <>
            At most ≈{" "}
            {fit.tokensPerSecond >= 100 ? whole(Math.round(fit.tokensPerSecond)) : fixed(fit.tokensPerSecond, 1)}{" "}
            tokens/s with a full context, by <Term name="memory bandwidth" text="memory bandwidth" /> (
            {device.bandwidth} GB/s).
          </>
        )}
      </p>
    </section>
  );
}

// Summary of the model, like `gguf inspect`.
import type { ComponentChildren } from "preact";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { Tensor } from "../api/tensor-types";
import type { Keys, Model, Summary } from "../api/types";
import { bytes, count, fixed, plural, whole } from "../format";
import { link } from "../route";
import { Term } from "../ui/term";
import { isTerm } from "../ui/terms";

export function SummaryFacts({ summary, model }: { summary: Summary; model: Model }) {
  const isAdapter = summary.kind === "adapter";
  const adapter = useAdapter(model, isAdapter);
  const projector = useProjector(model, summary.kind === "mmproj");
  const facts = [...adapter, ...architecture(summary), ...projector, ...tokenizer(summary, model), ...origin(summary)];
  return (
    <section aria-label="Summary">
      <dl class="cards">
        <Card
          name={isAdapter ? "adapter parameters" : "parameters"}
          value={count(summary.parameters)}
          about={`in ${plural(summary.tensor_count, "tensor")}`}
        />
        <Card
          name="size"
          value={bytes(summary.file_bytes)}
          about={`${fixed(summary.bits_per_weight ?? 0, 2)} bits per weight${summary.file_type ? `, ${summary.file_type}` : ""}`}
        />
        {summary.context_length !== null && (
          <Card name="context" value={whole(summary.context_length)} about="tokens" />
        )}
        {summary.tokenizer?.tokens && (
          <Card
            name="vocabulary"
            value={whole(summary.tokenizer.tokens)}
            about={`tokens${summary.tokenizer.model ? `, ${summary.tokenizer.model}` : ""}${summary.tokenizer.pre ? ` (${summary.tokenizer.pre})` : ""}`}
          />
        )}
      </dl>
      <dl class="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{isTerm(name) ? <Term name={name} /> : name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** Returns a function that looks up the value of a key, null if it is missing; null while the keys are loaded. */
function useValues(model: Model, isWanted: boolean): ((name: string) => Keys["keys"][number]["value"]) | null {
  const keys = useDocument<Keys>(isWanted ? address(["models", model.id, "keys"], { limit: 200 }) : null);
  const list = keys.value?.keys;
  return list ? (name) => list.find((key) => key.name === name)?.value ?? null : null;
}

/** Returns what an adapter is: its rank and alpha, and the model that it changes. */
function useAdapter(model: Model, isAdapter: boolean): Fact[] {
  const value = useValues(model, isAdapter);
  const tensors = useDocument<{ tensors: Tensor[] }>(isAdapter ? `models/${model.id}/tensors` : null);
  if (!value || !tensors.value) return [];
  const halves = tensors.value.tensors.filter(({ name }) => name.endsWith(".lora_a"));
  const ranks = [...new Set(halves.map(({ shape }) => shape[1] ?? 1))].sort((a, b) => a - b);
  const alpha = value("adapter.lora.alpha");
  const targets = [...new Set(halves.map(({ kind }) => kind.replace(/(\.weight)?\.lora_a$/, "")))];
  const base = value("general.base_model.0.name");
  const facts: Fact[] = [
    ["adapter", `${String(value("adapter.type") ?? "unknown")}, changes ${plural(halves.length, "tensor")}`],
  ];
  if (ranks.length > 0)
    facts.push([
      "rank",
      `${ranks.join(", ")}${typeof alpha === "number" ? `; alpha ${alpha}, scale ${ranks.map((rank) => fixed(alpha / rank, 2)).join(", ")}` : ""}`,
    ]);
  if (targets.length > 0) facts.push(["target modules", targets.join(", ")]);
  facts.push(["base model", base === null ? "not stated" : String(base)]);
  return facts;
}

/** Returns what a multimodal projector encodes: images or audio. */
function useProjector(model: Model, isProjector: boolean): Fact[] {
  const value = useValues(model, isProjector);
  if (!value) return [];
  const facts: Fact[] = [];
  for (const input of ["vision", "audio"]) {
    const part = (name: string) => value(`clip.${input}.${name}`);
    const layers = part("block_count");
    if (typeof layers !== "number" && value(`clip.has_${input}_encoder`) !== true) continue;
    const parts = [
      typeof layers === "number" && plural(layers, "layer"),
      part("embedding_length") !== null && `embedding length ${String(part("embedding_length"))}`,
      part("attention.head_count") !== null && `${String(part("attention.head_count"))} heads`,
      part("image_size") !== null && `images of ${String(part("image_size"))} × ${String(part("image_size"))} pixels`,
      part("patch_size") !== null && `patches of ${String(part("patch_size"))} × ${String(part("patch_size"))}`,
      part("num_mel_bins") !== null && `${String(part("num_mel_bins"))} mel bins`,
    ];
    facts.push([`${input} encoder`, parts.filter(Boolean).join(", ") || "yes"]);
    const projector = part("projector_type") ?? value("clip.projector_type");
    if (projector !== null) facts.push(["projector", String(projector)]);
    if (part("projection_dim") !== null) facts.push(["projection dim", String(part("projection_dim"))]);
  }
  return facts;
}

/** Architectures of models that propose tokens for another model. */
const DRAFTS = /^(eagle3|dflash)/;

function Card({ name, value, about }: { name: string; value: string; about: string }) {
  return (
    <div class="card">
      <dt>{isTerm(name) ? <Term name={name} /> : name}</dt>
      <dd>
        <span class="card-value">{value}</span> <span class="card-about">{about}</span>
      </dd>
    </div>
  );
}

type Fact = [string, ComponentChildren];

function architecture(summary: Summary): Fact[] {
  const facts: Fact[] = [];
  const list = (value: number | number[] | null) =>
    Array.isArray(value) ? [...new Set(value)].map(whole).join(" / ") : value === null ? null : whole(value);
  const parts = [
    summary.block_count !== null && plural(summary.block_count, "layer"),
    summary.embedding_length !== null && `embedding length ${whole(summary.embedding_length)}`,
    list(summary.feed_forward_length) !== null &&
      list(summary.feed_forward_length) !== "0" &&
      `feed-forward length ${list(summary.feed_forward_length)}`,
  ].filter(Boolean);
  facts.push(["architecture", `${summary.architecture ?? "unknown"}${parts.length ? `: ${parts.join(", ")}` : ""}`]);
  if (summary.kind !== null && summary.kind !== "model")
    facts.unshift([
      "kind",
      summary.kind === "mmproj" ? "mmproj: encoder and projector of a multimodal model" : summary.kind,
    ]);
  if (DRAFTS.test(summary.architecture ?? ""))
    facts.unshift(["kind", "draft model for speculative decoding: it runs with its target model"]);
  const heads = list(summary.head_count);
  // Models without attention, such as Mamba, have 0 heads.
  if (heads !== null && heads !== "0") {
    const kv = list(summary.head_count_kv);
    facts.push([
      "attention",
      `${heads} heads${kv !== null ? `, ${kv} KV heads` : ""}${summary.key_length ? `, head dim ${summary.key_length}` : ""}`,
    ]);
  }
  if (summary.sliding_window) facts.push(["sliding window", `${whole(summary.sliding_window)} tokens`]);
  if (summary.experts?.count)
    facts.push([
      "experts",
      `${summary.experts.count}${summary.experts.used ? `, ${summary.experts.used} active per token` : ""}`,
    ]);
  const rope = summary.rope;
  if (rope && rope.base !== null) {
    const scaling = rope.scaling ? `, ${rope.scaling} scaling${rope.factor !== null ? ` x ${rope.factor}` : ""}` : "";
    facts.push([
      "RoPE",
      `θ ${whole(rope.base)}${rope.dimensions !== null ? `, ${rope.dimensions} rotary dimensions` : ""}${scaling}`,
    ]);
  }
  return facts;
}

function tokenizer(summary: Summary, model: Model): Fact[] {
  const facts: Fact[] = [];
  const special = Object.entries(summary.tokenizer?.special ?? {});
  if (special.length) {
    const tokens = special.map(([role, token]) => (
      <a key={role} class="special" href={link([model.id, "tokenizer"], { search: `#${token.id}` })}>
        {role} {whole(token.id)} <code>{token.text ?? ""}</code>
      </a>
    ));
    facts.push(["special tokens", <span class="specials">{tokens}</span>]);
  }
  if (summary.chat_template) {
    const address = link([model.id, "tokenizer"], { tab: "template" });
    facts.push(["chat template", <a href={address}>{bytes(summary.chat_template.bytes)}</a>]);
  }
  facts.push([
    "format",
    `GGUF version ${summary.version}${summary.files > 1 ? `, ${plural(summary.files, "file")}` : ""}`,
  ]);
  return facts;
}

function origin({ origin }: Summary): Fact[] {
  const facts: [string, string | null][] = [
    ["license", origin.license],
    ["author", origin.author],
    ["quantized by", origin.quantized_by],
    ["languages", origin.languages.join(", ")],
    ["tags", origin.tags.join(", ")],
    ["URL", origin.url],
  ];
  return facts.filter((fact): fact is [string, string] => Boolean(fact[1]));
}

// Meaning of the rows and columns of a tensor: attention heads, RoPE pairs, experts, tokens.
import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { address, get } from "../api/request";
import { useDocument } from "../api/resource";
import type { Token, Tokens } from "../api/token-types";
import type { Rope, RopeProjection, TensorFacts } from "../api/tensor-types";
import type { Model, Summary } from "../api/types";
import { plural, visible, whole } from "../format";
import type { RowNames } from "../heatmap/heatmap";
import { groupLabel, type Groups } from "../heatmap/tiles";
import { pairOf, partnerOf } from "./rope";

export interface Axes {
  rows: Groups | null;
  columns: Groups | null;
  /** Names of rows: tokens, or dimensions of heads. */
  names: RowNames | null;
  /** Returns the meaning of a position, or null. */
  describe: (row: number, column: number) => string | null;
  /** Returns the row that RoPE rotates together with this one, or null. */
  partner: (row: number) => number | null;
  /** What rows and columns are, in words. */
  about: string | null;
}

/** Returns the meaning of the axes of a tensor. */
export function useAxes(model: Model, tensor: TensorFacts): Axes {
  const summary = useDocument<Summary>(`models/${model.id}/summary`);
  const rope = useDocument<Rope>(/attn_(q|k|qkv|q_b)\b/.test(tensor.kind) ? `models/${model.id}/rope` : null);
  const projections = rope.value?.projections;
  const rotated = useMemo(
    () => projections?.filter((projection) => projection.tensor === tensor.name) ?? [],
    [projections, tensor.name],
  );
  const tokens = summary.value?.tokenizer?.tokens ?? null;
  const tokenNames = useMemo(
    () => (isByToken(tensor, tokens) ? new TokenNames(model.id) : null),
    [model.id, tensor.n, tokens],
  );
  // Render again when names have been loaded.
  tokenNames?.edition.value;
  return useMemo(() => {
    const groups = groupsOf(tensor, summary.value);
    const rows = withPairs(groups.rows, rotated, tensor);
    const { columns } = groups;
    const pairsAt = (row: number) =>
      rotated.find(({ first_row: first, rows }) => row >= first && row < first + rows) ?? null;
    const part = (row: number) => {
      const pairs = pairsAt(row);
      return [within(rows, row), pairs && rows ? ropeOf(pairs, row % rows.size) : null];
    };
    const partName = (row: number) => {
      if (!rows || rows.size <= 1) return null;
      const pairs = pairsAt(row);
      const dimension = row % rows.size;
      const names = [groupLabel(rows, Math.floor(row / rows.size)), `${rows.part} ${dimension}`];
      return [...names, ...(pairs ? [pairOf(pairs, dimension)] : [])].join(" · ");
    };
    return {
      rows,
      columns,
      names: tokenNames ?? (rows && rows.size > 1 ? { get: partName, request: () => undefined } : null),
      describe: (row, column) => {
        const parts = [...part(row), within(columns, column)].filter((part) => part !== null);
        if (tokenNames) {
          tokenNames.request(row, row + 1);
          const name = tokenNames.get(row);
          if (name !== null) parts.unshift(`token ${name}`);
        }
        return parts.length > 0 ? parts.join(", ") : null;
      },
      partner: (row) => {
        const pairs = pairsAt(row);
        return pairs && rows ? partnerOf(pairs, row, rows.size) : null;
      },
      about: aboutAxes(tensor, summary.value, rows, columns, rotated[0] ?? null, tokenNames !== null),
    };
  }, [tensor.n, summary.value, rotated, tokenNames]);
}

/** Adds the lines that separate RoPE pairs to the groups of heads. */
function withPairs(rows: Groups | null, rotated: RopeProjection[], tensor: TensorFacts): Groups | null {
  const [pairs] = rotated;
  if (!pairs) return rows;
  // The graph knows single heads, and heads that the metadata does not state.
  const name = tensor.kind.startsWith("attn_k") ? "KV head" : "head";
  const groups = rows ?? { size: pairs.rows / Math.max(1, pairs.heads), name, part: "dim" };
  // The rows of a fused projection are named only if its heads are equal.
  const isEqual = rotated.every(
    ({ rows, heads, first_row: first }) => rows / heads === groups.size && first % groups.size === 0,
  );
  if (!Number.isInteger(groups.size) || !isEqual) return rows;
  const { start, dimensions, layout } = pairs;
  const inner =
    layout === "interleaved"
      ? Array.from({ length: dimensions / 2 }, (_, i) => start + 2 * (i + 1))
      : [start + dimensions / 2, start + dimensions];
  const end = Math.max(...rotated.map(({ first_row: first, rows }) => first + rows));
  return {
    ...groups,
    inner: [...(start > 0 ? [start] : []), ...inner].filter((at) => at < groups.size),
    innerGroups: end / groups.size,
  };
}

/** Describes a dimension outside the names of rows, where the word RoPE is missing. */
function ropeOf(pairs: RopeProjection, dimension: number): string {
  const pair = pairOf(pairs, dimension);
  return pair.startsWith("pair") ? `RoPE ${pair}` : pair;
}

/** Says what rows and columns are. */
function aboutAxes(
  tensor: TensorFacts,
  summary: Summary | null,
  rows: Groups | null,
  columns: Groups | null,
  pairs: RopeProjection | null,
  isByToken: boolean,
): string | null {
  if (!summary) return null;
  const axis = (count: number, groups: Groups | null, isTokens: boolean) => {
    if (isTokens) return `${whole(count)} tokens`;
    if (groups) {
      const number = Math.round(count / groups.size);
      return `${plural(number, groups.name)}${groups.size > 1 ? ` × ${plural(groups.size, groups.part)}` : ""}`;
    }
    if (count === summary.embedding_length) return `${whole(count)} embedding dims`;
    if (count === number(summary.feed_forward_length)) return `${whole(count)} FFN neurons`;
    return whole(count);
  };
  const rope = pairs
    ? `, RoPE pairs ${pairs.layout === "interleaved" ? "of neighbors (2i, 2i+1)" : `(i, i+${pairs.dimensions / 2}) (NeoX)`}`
    : "";
  return `Rows: ${axis(tensor.rows, rows, isByToken)}${rope}. Columns: ${axis(tensor.columns, columns, false)}.`;
}

function within(groups: Groups | null, at: number): string | null {
  if (!groups) return null;
  const name = groupLabel(groups, Math.floor(at / groups.size));
  return groups.size > 1 ? `${name}, ${groups.part} ${at % groups.size}` : name;
}

function isByToken(tensor: TensorFacts, tokens: number | null): boolean {
  return (
    /^(token_embd|output|per_layer_token_embd)\.weight$/.test(tensor.name) && tokens !== null && tensor.rows >= tokens
  );
}

/** Returns the groups of rows and columns that are heads or experts. */
export function groupsOf(
  tensor: Pick<TensorFacts, "kind" | "shape" | "rows" | "columns">,
  summary: Summary | null,
): { rows: Groups | null; columns: Groups | null } {
  const none = { rows: null, columns: null };
  if (!summary) return none;
  const kind = tensor.kind.replace(/\.(weight|bias)$/, "");
  if (/_exps$/.test(kind) && tensor.shape.length === 3)
    return { rows: { size: tensor.shape[1] ?? 1, name: "expert", part: "row" }, columns: null };
  // The rows of a router are experts.
  const experts = summary.experts?.count;
  if (kind === "ffn_gate_inp" && experts !== undefined && tensor.rows === experts)
    return { rows: { size: 1, name: "expert", part: "" }, columns: null };
  const heads = number(summary.head_count);
  const keyValueHeads = number(summary.head_count_kv) ?? heads;
  const split = (length: number, count: number | null, name: string): Groups | null =>
    count !== null && count > 1 && length % count === 0 ? { size: length / count, name, part: "dim" } : null;
  switch (kind) {
    case "attn_q":
    case "attn_q_b":
      return { rows: split(tensor.rows, heads, "head"), columns: null };
    case "attn_k":
    case "attn_v":
      return { rows: split(tensor.rows, keyValueHeads, "KV head"), columns: null };
    case "attn_qkv":
      return { rows: fusedHeads(tensor.rows, heads, keyValueHeads), columns: null };
    case "attn_output":
    case "attn_out":
      return { rows: null, columns: split(tensor.columns, heads, "head") };
    default:
      return none;
  }
}

/** Returns the heads of a fused projection: queries, then keys, then values. */
function fusedHeads(rows: number, heads: number | null, keyValueHeads: number | null): Groups | null {
  if (heads === null || keyValueHeads === null || heads === 0 || rows % (heads + 2 * keyValueHeads) !== 0) return null;
  const label = (group: number) => {
    if (group < heads) return `Q head ${group}`;
    const isKey = group < heads + keyValueHeads;
    return isKey ? `K head ${group - heads}` : `V head ${group - heads - keyValueHeads}`;
  };
  return { size: rows / (heads + 2 * keyValueHeads), name: "Q, K and V head", part: "dim", label };
}

/** Returns a number that is the same in all layers. */
function number(value: number | number[] | null): number | null {
  if (!Array.isArray(value)) return value;
  return new Set(value).size === 1 ? (value[0] ?? null) : null;
}

/** Loads the texts of tokens in pages. */
class TokenNames implements RowNames {
  readonly edition = signal(0);
  #pages = new Map<number, Token[] | null>();

  constructor(readonly model: number) {}

  get(row: number): string | null {
    const token = this.#pages.get(Math.floor(row / PAGE))?.[row % PAGE];
    return token ? visible(token.stands_for || token.text) : null;
  }

  request(first: number, end: number): void {
    for (let page = Math.floor(first / PAGE); page * PAGE < end; page += 1) {
      if (this.#pages.has(page)) continue;
      this.#pages.set(page, null);
      void get<Tokens>(address(["models", this.model, "tokens"], { offset: page * PAGE, limit: PAGE })).then(
        ({ tokens }) => {
          this.#pages.set(page, tokens);
          this.edition.value += 1;
        },
        () => this.#pages.delete(page),
      );
    }
  }
}

/** Tokens per request. */
const PAGE = 100;

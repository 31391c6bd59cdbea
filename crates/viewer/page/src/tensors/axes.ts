// Meaning of the rows and columns of a tensor: attention heads, experts, tokens.
import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { address, get } from "../api/request";
import { useDocument } from "../api/resource";
import type { Token, Tokens } from "../api/token-types";
import type { TensorFacts } from "../api/tensor-types";
import type { Model, Summary } from "../api/types";
import { visible } from "../format";
import type { RowNames } from "../heatmap/heatmap";
import type { Groups } from "../heatmap/tiles";

export interface Axes {
  rows: Groups | null;
  columns: Groups | null;
  /** Names of rows that are tokens. */
  names: RowNames | null;
  /** Returns the meaning of a position, or null. */
  describe: (row: number, column: number) => string | null;
}

/** Returns the meaning of the axes of a tensor. */
export function useAxes(model: Model, tensor: TensorFacts): Axes {
  const summary = useDocument<Summary>(`models/${model.id}/summary`);
  const tokens = summary.value?.tokenizer?.tokens ?? null;
  const names = useMemo(
    () => (isByToken(tensor, tokens) ? new TokenNames(model.id) : null),
    [model.id, tensor.n, tokens],
  );
  // Render again when names have been loaded.
  names?.edition.value;
  const { rows, columns } = useMemo(() => groupsOf(tensor, summary.value), [tensor.n, summary.value]);
  return {
    rows,
    columns,
    names,
    describe: (row, column) => {
      const parts = [within(rows, row), within(columns, column)].filter((part) => part !== null);
      if (names) {
        names.request(row, row + 1);
        const name = names.get(row);
        if (name !== null) parts.unshift(`token ${name}`);
      }
      return parts.length > 0 ? parts.join(", ") : null;
    },
  };
}

function within(groups: Groups | null, at: number): string | null {
  if (!groups) return null;
  return `${groups.name} ${Math.floor(at / groups.size)}, ${groups.part} ${at % groups.size}`;
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
    case "attn_output":
    case "attn_out":
      return { rows: null, columns: split(tensor.columns, heads, "head") };
    default:
      return none;
  }
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

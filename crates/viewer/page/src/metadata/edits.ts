// Staged edits of metadata, by model.
import { signal } from "@preact/signals";
import { loadModels, reloads } from "../api/status";
import { post } from "../api/request";
import type { EditResponse } from "../api/types";

export interface Edits {
  set: { key: string; type: string | null; value: string }[];
  remove: string[];
  /** Old and new names. The server renames before it sets values. */
  rename: [string, string][];
  special_tokens: { role: string; id: number }[];
}

export const NONE: Edits = { set: [], remove: [], rename: [], special_tokens: [] };
const staged = signal<Readonly<Record<number, Edits>>>({});
/** Whether a rewritten file gets room for later edits. */
export const withReserve = signal(true);

/** Whether edits of any model are staged. */
export function isAnyStaged(): boolean {
  return Object.values(staged.value).some((edits) => countOf(edits) > 0);
}

export function editsOf(model: number): Edits {
  return staged.value[model] ?? NONE;
}

export function countOf({ set, remove, rename, special_tokens }: Edits): number {
  // A renamed key with a new value is one change.
  const renamed = set.filter(({ key }) => rename.some(([, to]) => to === key)).length;
  return set.length + remove.length + rename.length + special_tokens.length - renamed;
}

export function stage(model: number, edits: Edits): void {
  staged.value = { ...staged.value, [model]: edits };
}

/** Returns edits with a new value, a new name, or both for a key. Earlier edits of the key are replaced. */
export function withKey(
  edits: Edits,
  key: string,
  change: { name?: string; value?: string; type?: string | null },
): Edits {
  const rest = without(edits, key);
  const name = change.name ?? key;
  return {
    ...rest,
    rename: name === key ? rest.rename : [...rest.rename, [key, name]],
    set:
      change.value === undefined
        ? rest.set
        : [...rest.set, { key: name, type: change.type ?? null, value: change.value }],
  };
}

export function withRemoved(edits: Edits, key: string): Edits {
  const rest = without(edits, key);
  return { ...rest, remove: [...rest.remove, key] };
}

export function withSpecialToken(edits: Edits, role: string, id: number): Edits {
  const others = edits.special_tokens.filter((token) => token.role !== role);
  return { ...edits, special_tokens: [...others, { role, id }] };
}

/** Returns edits without those of a key, given by its old or new name. */
export function without(edits: Edits, key: string): Edits {
  const rename = edits.rename.find((names) => names.includes(key));
  const names = new Set([key, ...(rename ?? [])]);
  return {
    set: edits.set.filter((entry) => !names.has(entry.key)),
    remove: edits.remove.filter((entry) => entry !== key),
    rename: edits.rename.filter((entry) => entry !== rename),
    special_tokens: edits.special_tokens.filter(({ role }) => tokenKey(role) !== key),
  };
}

/** Returns the key of a special token. */
export function tokenKey(role: string): string {
  return `tokenizer.ggml.${role}_token_id`;
}

/** Whether edits change a key. */
export function changes(edits: Edits, key: string): boolean {
  return countOf(without(edits, key)) < countOf(edits);
}

export function discardAll(model: number): void {
  stage(model, NONE);
}

function body(edits: Edits): Record<string, unknown> {
  return withReserve.value ? { ...edits } : { ...edits, reserve: 0 };
}

/** Returns the effect of edits without writing. */
export function preview(model: number, edits: Edits, stop?: AbortSignal): Promise<EditResponse> {
  return post<EditResponse>(`models/${model}/edit`, { preview: true, ...body(edits) }, stop);
}

/** Writes the staged edits to the file, or to a new file beside it. */
export async function save(model: number, copy: string | null): Promise<EditResponse> {
  const edits = body(editsOf(model));
  const response = await post<EditResponse>(`models/${model}/edit`, { preview: false, ...edits, copy });
  discardAll(model);
  if (copy !== null) return response;
  // The server has reopened the file.
  await loadModels().catch(() => undefined);
  reloads.value += 1;
  return response;
}

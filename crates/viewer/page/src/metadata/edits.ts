// Staged edits of metadata.
import { signal } from "@preact/signals";
import { loadModels, reloads } from "../api/status";
import { post } from "../api/request";
import type { EditResponse } from "../api/types";

export interface Edits {
  set: { key: string; type: string | null; value: string }[];
  remove: string[];
  rename: [string, string][];
}

const NONE: Edits = { set: [], remove: [], rename: [] };
export const edits = signal<Edits>(NONE);

export function stagedCount(): number {
  const { set, remove, rename } = edits.value;
  return set.length + remove.length + rename.length;
}

/** Stages a new value and replaces earlier edits of the key. */
export function setKey(key: string, type: string | null, value: string): void {
  const rest = without(key);
  edits.value = { ...rest, set: [...rest.set, { key, type, value }] };
}

export function removeKey(key: string): void {
  const rest = without(key);
  edits.value = { ...rest, remove: [...rest.remove, key] };
}

export function renameKey(key: string, to: string): void {
  const rest = without(key);
  edits.value = { ...rest, rename: [...rest.rename, [key, to]] };
}

export function without(key: string): Edits {
  const { set, remove, rename } = edits.value;
  return {
    set: set.filter((entry) => entry.key !== key),
    remove: remove.filter((entry) => entry !== key),
    rename: rename.filter(([from]) => from !== key),
  };
}

export function discardAll(): void {
  edits.value = NONE;
}

/** Returns the effect of the staged edits without writing. */
export function preview(model: number, stop: AbortSignal): Promise<EditResponse> {
  return post<EditResponse>(`models/${model}/edit`, { preview: true, ...edits.value }, stop);
}

/** Writes the staged edits to the file. */
export async function save(model: number): Promise<EditResponse> {
  const response = await post<EditResponse>(`models/${model}/edit`, { preview: false, ...edits.value });
  discardAll();
  // The server has reopened the file.
  await loadModels().catch(() => undefined);
  reloads.value += 1;
  return response;
}

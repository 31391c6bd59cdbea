// Changes that were asked for and not yet written.
import { signal } from "@preact/signals";
import { ask, opened } from "../api/health";
import { post } from "../api/request";
import type { EditAnswer } from "../api/types";

export interface Edits {
  set: { key: string; type: string | null; value: string }[];
  remove: string[];
  rename: [string, string][];
}

const NONE: Edits = { set: [], remove: [], rename: [] };
export const edits = signal<Edits>(NONE);

export function waiting(): number {
  const { set, remove, rename } = edits.value;
  return set.length + remove.length + rename.length;
}

/** Sets a key; what was asked for it before is forgotten. */
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

export function forget(): void {
  edits.value = NONE;
}

/** What the changes would do; nothing is written. */
export function preview(model: number, stop: AbortSignal): Promise<EditAnswer> {
  return post<EditAnswer>(`models/${model}/edit`, { preview: true, ...edits.value }, stop);
}

/** Writes the changes into the file. */
export async function save(model: number): Promise<EditAnswer> {
  const answer = await post<EditAnswer>(`models/${model}/edit`, { preview: false, ...edits.value });
  forget();
  // The server has opened the file anew by itself.
  await ask().catch(() => undefined);
  opened.value += 1;
  return answer;
}

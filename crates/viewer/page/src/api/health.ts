// Is the server still there, are the files those that it opened, and what was fetched of far ones?
import { signal } from "@preact/signals";
import { get, lost, post } from "./request";
import type { Model, Models, State, Traffic } from "./types";

/** All models, once they are known. */
export const models = signal<Models | null>(null);
/** By model: a file is not what it was when it was opened. */
export const changed = signal<Record<number, State>>({});
/** By far model: what was fetched. */
export const traffic = signal<Record<number, Traffic>>({});
/** Grows when a model was opened anew, so that views ask again. */
export const opened = signal(0);

/** Time between two looks, milliseconds. */
const PAUSE = 2000;

/** Looks at files and counters as long as the page is open. */
export function watch(): void {
  const glance = async () => {
    // A page in the background asks nothing.
    if (document.visibilityState === "visible") await look().catch(() => undefined);
  };
  const again = () => setTimeout(() => void glance().then(again), PAUSE);
  again();
  document.addEventListener("visibilitychange", () => void glance());
}

/** Asks for the list of models. */
export async function ask(): Promise<void> {
  models.value = await get<Models>("models");
}

async function look(): Promise<void> {
  // A server that came back at the same address may have other models.
  if (models.value === null || lost.value) await ask();
  for (const model of models.value?.models ?? []) {
    const state = await get<State>(`models/${model.id}/state`);
    if (state.changed !== model.id in changed.value) {
      const { [model.id]: _, ...others } = changed.value;
      changed.value = state.changed ? { ...others, [model.id]: state } : others;
    }
    if (model.far) await count(model.id);
  }
}

async function count(id: number): Promise<void> {
  const now = await get<Traffic>(`models/${id}/traffic`);
  const before = traffic.value[id];
  if (before?.fetched_bytes === now.fetched_bytes && before.requests === now.requests) return;
  traffic.value = { ...traffic.value, [id]: now };
}

/** Opens the files of a model anew; all views ask again. */
export async function reload(id: number): Promise<void> {
  await post<Model>(`models/${id}/reload`, {});
  const { [id]: _, ...others } = changed.value;
  changed.value = others;
  await ask();
  opened.value += 1;
}

// Polls the server: availability, changed files, traffic of remote models.
import { signal } from "@preact/signals";
import { get, offline, post } from "./request";
import type { Model, Models, State, Traffic } from "./types";

/** All models; null until loaded. */
export const models = signal<Models | null>(null);
/** States of models with changed files, by model. */
export const changed = signal<Record<number, State>>({});
/** Traffic of remote models, by model. */
export const traffic = signal<Record<number, Traffic>>({});
/** Increases when a model is reloaded, so that views request their data again. */
export const reloads = signal(0);

/** Polling interval in milliseconds; shorter with remote models, whose server may stop answering. */
const INTERVAL = 2000;
const REMOTE_INTERVAL = 1000;

/** Polls as long as the page is open. */
export function startPolling(): void {
  const poll = async () => {
    // A background page does not poll.
    if (document.visibilityState === "visible") await update().catch(() => undefined);
  };
  const interval = () => (models.value?.models.some(({ remote }) => remote) ? REMOTE_INTERVAL : INTERVAL);
  const schedule = () => setTimeout(() => void poll().then(schedule), interval());
  schedule();
  document.addEventListener("visibilitychange", () => void poll());
}

/** Loads the list of models. */
export async function loadModels(): Promise<void> {
  models.value = await get<Models>("models");
}

async function update(): Promise<void> {
  // A restarted server may have other models.
  if (models.value === null || offline.value) await loadModels();
  for (const model of models.value?.models ?? []) {
    const state = await get<State>(`models/${model.id}/state`);
    if (state.changed !== model.id in changed.value) {
      const { [model.id]: _, ...others } = changed.value;
      changed.value = state.changed ? { ...others, [model.id]: state } : others;
    }
    if (model.remote) await updateTraffic(model.id);
  }
}

async function updateTraffic(id: number): Promise<void> {
  const now = await get<Traffic>(`models/${id}/traffic`);
  const before = traffic.value[id];
  if (JSON.stringify(before) === JSON.stringify(now)) return;
  traffic.value = { ...traffic.value, [id]: now };
}

/** Reopens the files of a model and refreshes all views. */
export async function reload(id: number): Promise<void> {
  await post<Model>(`models/${id}/reload`, {});
  const { [id]: _, ...others } = changed.value;
  changed.value = others;
  await loadModels();
  reloads.value += 1;
}

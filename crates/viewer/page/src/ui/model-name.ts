// Display names of models: unique, since copies of a model often have the same name and some models have none.
import { models } from "../api/status";
import type { Model } from "../api/types";

export function modelName(model: Model): string {
  const all = models.value?.models ?? [];
  const isUnique = all.every((other) => other.id === model.id || other.name !== model.name);
  if (model.name && isUnique) return model.name;
  const file = fileName(model.source);
  // Two paths with the same file name differ by their index.
  const isRepeated = all.some((other) => other.id !== model.id && fileName(other.source) === file);
  return isRepeated ? `${file} (${model.id})` : file;
}

/** Returns the last segment of a path or URL. */
export function fileName(path: string): string {
  return path.split(/[/\\]/).pop() || path;
}

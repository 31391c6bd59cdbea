// What a model is called where there are several: copies of one model often have the same name, and some have none.
import { models } from "../api/health";
import type { Model } from "../api/types";

export function modelName(model: Model): string {
  const all = models.value?.models ?? [];
  const alone = all.every((other) => other.id === model.id || other.name !== model.name);
  if (model.name && alone) return model.name;
  const file = fileName(model.source);
  // Of the same file, given twice, the number is all that is left.
  const again = all.some((other) => other.id !== model.id && fileName(other.source) === file);
  return again ? `${file} (${model.id})` : file;
}

/** A path or a location without what leads there. */
export function fileName(path: string): string {
  return path.split(/[/\\]/).pop() || path;
}

// What a model is called where there are several: copies of one model often have the same name.
import { models } from "../api/health";
import type { Model } from "../api/types";

export function modelName(model: Model): string {
  const same = (models.value?.models ?? []).filter((other) => other.name === model.name);
  if (same.length < 2) return model.name;
  const file = model.source.split(/[/\\]/).pop() ?? model.source;
  // Of the same file, given twice, the number is all that is left.
  const again = same.filter((other) => other.source.split(/[/\\]/).pop() === file).length > 1;
  return `${file}${again ? ` (${model.id})` : ""}`;
}

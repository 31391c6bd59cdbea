// Properties and URL parameters of views.
import type { Model } from "../api/types";
import { route } from "../route";

export interface ViewProps {
  model: Model;
}

/** Returns a URL parameter, or an empty string. */
export function param(name: string): string {
  return route.value.query.get(name) ?? "";
}

/** Returns a numeric URL parameter, or null. */
export function numberParam(name: string): number | null {
  const text = param(name);
  return /^\d+$/.test(text) ? Number(text) : null;
}

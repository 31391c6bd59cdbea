// What every view is given.
import type { Model } from "../api/types";
import { place } from "../route";

export interface ViewProps {
  model: Model;
}

/** A choice in the address. */
export function chosen(name: string): string {
  return place.value.query.get(name) ?? "";
}

/** A choice in the address that is a number. */
export function chosenNumber(name: string): number | null {
  const text = chosen(name);
  return /^\d+$/.test(text) ? Number(text) : null;
}

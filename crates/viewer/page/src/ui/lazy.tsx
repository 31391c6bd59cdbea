// Views whose code is loaded when they are first shown.
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { offline } from "../api/request";
import { Loading } from "./states";

/** A component that loads its code, and a function that loads it early. */
export interface Lazy<P> {
  Show: ComponentType<P>;
  preload: () => Promise<void>;
}

/** Returns a component that is shown once `load` has loaded it. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): Lazy<P> {
  const loaded = signal<{ Component: ComponentType<P> } | null>(null);
  const preload = async () => {
    try {
      loaded.value ??= { Component: await load() };
    } catch {
      // The server has stopped; a notice says so.
      offline.value = true;
    }
  };
  const Show = (props: P) => {
    useEffect(() => void preload(), []);
    const found = loaded.value;
    return found ? <found.Component {...props} /> : <Loading />;
  };
  return { Show, preload };
}

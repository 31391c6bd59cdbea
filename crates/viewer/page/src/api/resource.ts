// Hooks that load data for a view and cancel the request when it is no longer needed.
import { useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { reloads } from "./status";
import { ApiError, get } from "./request";

/** State of a request. `value` stays while a newer request is loading. */
export interface Resource<T> {
  value: T | null;
  failure: ApiError | null;
  loading: boolean;
}

/** Loads the document at `api/1/{path}`; null loads nothing. */
export function useDocument<T>(path: string | null): Resource<T> {
  return useRequest(path, (signal) => get<T>(path ?? "", signal));
}

/** Calls `load` whenever `key` changes; a null key loads nothing. */
export function useRequest<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>): Resource<T> {
  const state = useSignal<Resource<T> & { key: string | null }>({
    value: null,
    failure: null,
    loading: key !== null,
    key: null,
  });
  const edition = reloads.value;
  // Start the request before the browser paints the loading state.
  useLayoutEffect(() => {
    if (key === null) {
      state.value = { value: null, failure: null, loading: false, key };
      return;
    }
    const stop = new AbortController();
    state.value = { ...state.value, loading: true };
    load(stop.signal).then(
      (value) => {
        if (!stop.signal.aborted) state.value = { value, failure: null, loading: false, key };
      },
      (error: unknown) => {
        if (stop.signal.aborted) return;
        const failure = error instanceof ApiError ? error : new ApiError(0, "page", String(error), null);
        state.value = { value: null, failure, loading: false, key };
      },
    );
    return () => stop.abort();
  }, [key, edition]);
  return state.value;
}

// What a view shows of the server: asked for when the address changes, cancelled when nobody looks any more.
import { useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { opened } from "./health";
import { Failure, get } from "./request";

/** A document that is on its way, there, or not to be had. `value` stays while the next one is fetched. */
export interface Resource<T> {
  value: T | null;
  failure: Failure | null;
  loading: boolean;
}

/** The document at an address below `api/1/`; nothing for null. */
export function useDocument<T>(path: string | null): Resource<T> {
  return useAnswer(path, (signal) => get<T>(path ?? "", signal));
}

/** What `ask` gives, asked again whenever `question` is another; nothing for null. */
export function useAnswer<T>(question: string | null, ask: (signal: AbortSignal) => Promise<T>): Resource<T> {
  const state = useSignal<Resource<T> & { question: string | null }>({
    value: null,
    failure: null,
    loading: question !== null,
    question: null,
  });
  const edition = opened.value;
  // Asked before the browser draws what is waiting for the answer.
  useLayoutEffect(() => {
    if (question === null) {
      state.value = { value: null, failure: null, loading: false, question };
      return;
    }
    const stop = new AbortController();
    state.value = { ...state.value, loading: true };
    ask(stop.signal).then(
      (value) => {
        if (!stop.signal.aborted) state.value = { value, failure: null, loading: false, question };
      },
      (error: unknown) => {
        if (stop.signal.aborted) return;
        const failure = error instanceof Failure ? error : new Failure(0, "page", String(error), null);
        state.value = { value: null, failure, loading: false, question };
      },
    );
    return () => stop.abort();
  }, [question, edition]);
  return state.value;
}

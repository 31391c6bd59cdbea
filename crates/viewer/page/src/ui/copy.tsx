// A button that copies a text.
import { useSignal } from "@preact/signals";

export function Copy({ text, label = "Copy" }: { text: string | (() => Promise<string>); label?: string }) {
  const state = useSignal("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "string" ? text : await text());
      state.value = "Copied";
    } catch {
      // Only pages of this machine and of HTTPS may write to the clipboard.
      state.value = "Cannot copy";
    }
    setTimeout(() => (state.value = ""), 1500);
  };
  return (
    <button type="button" class="copy" onClick={() => void copy()}>
      <span aria-live="polite">{state.value || label}</span>
    </button>
  );
}

// Search field with debounced input.
import { useEffect, useRef } from "preact/hooks";

export function Search({ label, value, onSearch }: { label: string; value: string; onSearch: (text: string) => void }) {
  const field = useRef<HTMLInputElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  // Follow the URL, but do not overwrite a field that is being edited.
  useEffect(() => {
    if (field.current && document.activeElement !== field.current) field.current.value = value;
  }, [value]);
  return (
    <input
      ref={field}
      class="search"
      type="search"
      aria-label={label}
      placeholder={label}
      defaultValue={value}
      spellcheck={false}
      autocomplete="off"
      onInput={(event) => {
        const text = event.currentTarget.value;
        if (timer.current) clearTimeout(timer.current);
        timer.current = setTimeout(() => onSearch(text), 150);
      }}
    />
  );
}

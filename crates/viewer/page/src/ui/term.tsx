// A term of the field with a plain explanation as tooltip.
import { useId } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { TERMS } from "./terms";

export function Term({ name, text }: { name: keyof typeof TERMS; text?: string }) {
  const id = useId();
  const open = useSignal(false);
  const show = () => (open.value = true);
  const hide = () => (open.value = false);
  return (
    <span
      class="term"
      tabIndex={0}
      aria-describedby={open.value ? id : undefined}
      onMouseEnter={show}
      onMouseLeave={hide}
      onFocus={show}
      onBlur={hide}
      onKeyDown={(event) => {
        if (event.key === "Escape") hide();
      }}
    >
      {text ?? name}
      {open.value && (
        <span id={id} role="tooltip" class="tooltip">
          {TERMS[name]}
        </span>
      )}
    </span>
  );
}

// The text of a template with numbers of lines; the line at fault is marked.
import { useEffect, useRef } from "preact/hooks";

const LINE = 20;

export function Source({
  text,
  fault,
  onChange,
}: {
  text: string;
  fault: number | null;
  onChange: (text: string) => void;
}) {
  const field = useRef<HTMLTextAreaElement>(null);
  const lines = text.split("\n").length;
  useEffect(() => {
    if (fault !== null && field.current && document.activeElement !== field.current)
      field.current.scrollTop = (fault - 4) * LINE;
  }, [fault]);
  const shown = Math.min(28, Math.max(6, lines + 1));
  return (
    <div class="code">
      <div class="code-lines" aria-hidden="true" style={{ height: `${shown * LINE + 16}px` }}>
        <div class="code-numbers">
          {Array.from({ length: Math.min(lines, 2000) }, (_, i) => (
            <span key={i} class={fault === i + 1 ? "fault" : ""}>
              {i + 1}
            </span>
          ))}
        </div>
      </div>
      <textarea
        ref={field}
        class="code-text"
        aria-label="Source of the template"
        aria-invalid={fault !== null}
        wrap="off"
        spellcheck={false}
        style={{ height: `${shown * LINE + 16}px` }}
        value={text}
        onInput={(event) => onChange(event.currentTarget.value)}
        onScroll={(event) => {
          const numbers = event.currentTarget.parentElement?.querySelector(".code-lines");
          if (numbers) numbers.scrollTop = event.currentTarget.scrollTop;
        }}
      />
    </div>
  );
}

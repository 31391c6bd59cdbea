// Template editor with line numbers; the line of an error is highlighted.
import { useEffect, useRef } from "preact/hooks";

const LINE_HEIGHT = 20;

export function Source({
  text,
  errorLine,
  onChange,
}: {
  text: string;
  errorLine: number | null;
  onChange: (text: string) => void;
}) {
  const field = useRef<HTMLTextAreaElement>(null);
  const lines = text.split("\n").length;
  useEffect(() => {
    if (errorLine !== null && field.current && document.activeElement !== field.current)
      field.current.scrollTop = (errorLine - 4) * LINE_HEIGHT;
  }, [errorLine]);
  const shown = Math.min(28, Math.max(6, lines + 1));
  return (
    <div class="code">
      <div class="code-lines" aria-hidden="true" style={{ height: `${shown * LINE_HEIGHT + 16}px` }}>
        <div class="code-numbers">
          {Array.from({ length: Math.min(lines, 2000) }, (_, i) => (
            <span key={i} class={errorLine === i + 1 ? "fault" : ""}>
              {i + 1}
            </span>
          ))}
        </div>
      </div>
      <textarea
        ref={field}
        class="code-text"
        aria-label="Template source"
        aria-invalid={errorLine !== null}
        wrap="off"
        spellcheck={false}
        style={{ height: `${shown * LINE_HEIGHT + 16}px` }}
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

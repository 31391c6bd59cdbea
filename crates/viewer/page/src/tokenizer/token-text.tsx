// Text of a token with visible spaces and control characters.
import { visible } from "../format";

export function TokenText({ text }: { text: string }) {
  const parts = visible(text).split(/( +)/);
  return (
    <span class="piece">
      {parts.map((part, i) =>
        i % 2 ? (
          <span key={i} class="blank">
            {"·".repeat(part.length)}
          </span>
        ) : (
          part
        ),
      )}
    </span>
  );
}

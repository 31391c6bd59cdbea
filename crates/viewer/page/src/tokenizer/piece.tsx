// A piece of text in which spaces and controls can be seen.
import { visible } from "../format";

export function Piece({ text }: { text: string }) {
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

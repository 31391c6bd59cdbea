// A rendered text; what becomes control tokens is marked.
import { post } from "../api/request";
import { useAnswer } from "../api/resource";
import type { Tokenized } from "../api/token-types";
import type { Model } from "../api/types";
import { plural } from "../format";

export function Rendered({ model, text }: { model: Model; text: string }) {
  const tokens = useAnswer<Tokenized | null>(`${model.id} ${text}`, (stop) =>
    // A model whose tokenizer does not work still has a template.
    post<Tokenized>(`models/${model.id}/tokenize`, { text, add_special: false, parse_special: true }, stop).catch(
      (error: unknown) => {
        if (stop.aborted) throw error;
        return null;
      },
    ),
  );
  const steps = tokens.value?.steps ?? [];
  // Only while the pieces are those of this text.
  const fits = steps.map((step) => step.text).join("") === text;
  return (
    <>
      <pre class="rendered" tabIndex={0} aria-label="Rendered text">
        {fits
          ? steps.map((step, i) =>
              step.kind === "token" ? (
                <mark key={i} class="control">
                  {step.text}
                </mark>
              ) : (
                step.text
              ),
            )
          : text}
      </pre>
      <p class="faint">{tokens.value ? plural(tokens.value.ids.length, "token") : "\u00a0"}</p>
    </>
  );
}

// Rendered prompt with highlighted control tokens.
import { post } from "../api/request";
import { useRequest } from "../api/resource";
import type { Tokenized } from "../api/token-types";
import type { Model } from "../api/types";
import { plural } from "../format";

export function Rendered({ model, text }: { model: Model; text: string }) {
  const tokens = useRequest<Tokenized | null>(`${model.id} ${text}`, (stop) =>
    // The template works even if the tokenizer cannot be loaded.
    post<Tokenized>(`models/${model.id}/tokenize`, { text, add_special: false, parse_special: true }, stop).catch(
      (error: unknown) => {
        if (stop.aborted) throw error;
        return null;
      },
    ),
  );
  const steps = tokens.value?.steps ?? [];
  // The segments may belong to an earlier text while a request is in progress.
  const fits = steps.map((step) => step.text).join("") === text;
  return (
    <>
      <pre class="rendered" tabIndex={0} aria-label="Rendered prompt">
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

// Tokenizes a text with one model, or with two side by side.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { models } from "../api/status";
import type { Model } from "../api/types";
import { whole } from "../format";
import { setParams } from "../route";
import { modelName } from "../ui/model-name";
import { param, numberParam } from "../ui/view";
import { TokenizedText } from "./tokenized";

/** Longest text that the server tokenizes at once (docs/viewer-api.md). */
const MAX_BYTES = 65_536;

const SAMPLE = "The quick brown fox jumps over 13 lazy dogs.\nSchöne Grüße, 世界!";

export function TokenizeView({ model }: { model: Model }) {
  const text = useSignal(param("text") || SAMPLE);
  const submitted = useSignal(text.value);
  const addSpecial = useSignal(true);
  const parseSpecial = useSignal(true);
  const others = (models.value?.models ?? []).filter((entry) => entry.readable && entry.id !== model.id);
  // With two models, they stand side by side.
  const beside = param("beside") === "" && others.length === 1 ? others[0]?.id : numberParam("beside");
  const other = others.find((entry) => entry.id === beside);
  useEffect(() => {
    const timer = setTimeout(() => {
      submitted.value = text.value;
      // Only short texts go into the URL.
      if (text.value.length <= 500 && text.value !== SAMPLE) setParams({ text: text.value });
    }, 150);
    return () => clearTimeout(timer);
  }, [text.value]);
  const length = useMemo(() => new TextEncoder().encode(submitted.value).length, [submitted.value]);
  const request = { text: submitted.value, add_special: addSpecial.value, parse_special: parseSpecial.value };
  return (
    <>
      <label class="field">
        Text
        <textarea
          rows={4}
          spellcheck={false}
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
      </label>
      <div class="try-choices">
        <label class="check">
          <input
            type="checkbox"
            checked={addSpecial.value}
            onChange={(event) => (addSpecial.value = event.currentTarget.checked)}
          />{" "}
          Add BOS/EOS
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={parseSpecial.value}
            onChange={(event) => (parseSpecial.value = event.currentTarget.checked)}
          />{" "}
          Parse special tokens
        </label>
        {others.length > 0 && (
          <label class="check">
            Compare with
            <select value={other?.id ?? "none"} onChange={(event) => setParams({ beside: event.currentTarget.value })}>
              <option value="none">none</option>
              {others.map((entry) => (
                <option key={entry.id} value={entry.id}>
                  {modelName(entry)}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      {length > MAX_BYTES ? (
        <p class="problem" role="alert">
          The text has {whole(length)} bytes. Shorten it to {whole(MAX_BYTES)} bytes, or use{" "}
          <code>gguf tokenize MODEL --file FILE</code>.
        </p>
      ) : (
        <div class={other ? "beside" : ""}>
          <TokenizedText model={model} request={request} named={other !== undefined} />
          {other && <TokenizedText model={other} request={request} named />}
        </div>
      )}
    </>
  );
}

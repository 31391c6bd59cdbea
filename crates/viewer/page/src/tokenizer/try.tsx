// What a text becomes, in one model or in two beside each other.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { models } from "../api/health";
import type { Model } from "../api/types";
import { choose } from "../route";
import { modelName } from "../ui/model-name";
import { chosen, chosenNumber } from "../ui/view";
import { Encoded } from "./encoded";

const SAMPLE = "The quick brown fox jumps over 13 lazy dogs.\nSchöne Grüße, 世界!";

export function Try({ model }: { model: Model }) {
  const text = useSignal(chosen("text") || SAMPLE);
  const asked = useSignal(text.value);
  const ends = useSignal(true);
  const special = useSignal(true);
  const others = (models.value?.models ?? []).filter((entry) => entry.readable && entry.id !== model.id);
  const other = others.find((entry) => entry.id === chosenNumber("beside"));
  useEffect(() => {
    const timer = setTimeout(() => {
      asked.value = text.value;
      // A link with a whole book in it would be no link.
      if (text.value.length <= 500 && text.value !== SAMPLE) choose({ text: text.value });
    }, 150);
    return () => clearTimeout(timer);
  }, [text.value]);
  const request = { text: asked.value, add_special: ends.value, parse_special: special.value };
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
            checked={ends.value}
            onChange={(event) => (ends.value = event.currentTarget.checked)}
          />{" "}
          Add tokens at the ends
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={special.value}
            onChange={(event) => (special.value = event.currentTarget.checked)}
          />{" "}
          Texts of control tokens are control tokens
        </label>
        {others.length > 0 && (
          <label class="check">
            Beside it
            <select value={other?.id ?? ""} onChange={(event) => choose({ beside: event.currentTarget.value })}>
              <option value="">nothing</option>
              {others.map((entry) => (
                <option key={entry.id} value={entry.id}>
                  {modelName(entry)}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      <div class={other ? "beside" : ""}>
        <Encoded model={model} request={request} named={other !== undefined} />
        {other && <Encoded model={other} request={request} named />}
      </div>
    </>
  );
}

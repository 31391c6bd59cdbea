// Form to stage a new value, a new name, or the removal of a key.
import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import type { KeyValue } from "../api/types";
import { removeKey, renameKey, setKey } from "./edits";

export function EditKey({ value }: { value: KeyValue }) {
  const open = useSignal(false);
  const text = useSignal(typeof value.value === "string" ? value.value : value.count === null ? value.text : "");
  const name = useSignal(value.name);
  const field = useId();
  const isEditable = value.count === null && !(value.string && value.string.bytes > value.string.text.length);
  if (!open.value) {
    return (
      <button type="button" onClick={() => (open.value = true)}>
        Edit…
      </button>
    );
  }
  return (
    <form
      class="edit-key"
      onSubmit={(event) => {
        event.preventDefault();
        if (name.value !== value.name) renameKey(value.name, name.value);
        else setKey(value.name, null, text.value);
        open.value = false;
      }}
    >
      {isEditable && (
        <>
          <label for={`${field}-value`}>New value</label>
          <textarea
            id={`${field}-value`}
            rows={text.value.length > 80 ? 8 : 2}
            spellcheck={false}
            value={text.value}
            onInput={(event) => (text.value = event.currentTarget.value)}
          />
        </>
      )}
      <label for={`${field}-name`}>Name</label>
      <input
        id={`${field}-name`}
        value={name.value}
        spellcheck={false}
        onInput={(event) => (name.value = event.currentTarget.value)}
      />
      <div class="buttons">
        <button type="submit" class="primary">
          Stage
        </button>
        <button
          type="button"
          onClick={() => {
            removeKey(value.name);
            open.value = false;
          }}
        >
          Remove key
        </button>
        <button type="button" onClick={() => (open.value = false)}>
          Cancel
        </button>
      </div>
      <p class="faint">Nothing is written until you have reviewed all changes.</p>
    </form>
  );
}

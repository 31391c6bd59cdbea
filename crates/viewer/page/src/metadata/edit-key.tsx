// Forms to stage a new value, a new name, or the removal of a key, and a new key.
import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { ApiError } from "../api/request";
import type { KeyValue, Model } from "../api/types";
import { ErrorMessage } from "../ui/states";
import { type Edits, editsOf, NONE, preview, stage, withKey, withRemoved } from "./edits";

/** Stages edits after the server has accepted them; returns its error otherwise. */
async function stageValid(model: number, change: (edits: Edits) => Edits): Promise<ApiError | null> {
  try {
    // Other staged changes do not matter for whether this one is valid.
    await preview(model, change(NONE));
  } catch (error) {
    return error instanceof ApiError ? error : new ApiError(0, "page", String(error), null);
  }
  stage(model, change(editsOf(model)));
  return null;
}

export function EditKey({ model, value }: { model: Model; value: KeyValue }) {
  const open = useSignal(false);
  const initial = typeof value.value === "string" ? value.value : value.count === null ? value.text : "";
  const text = useSignal(initial);
  const name = useSignal(value.name);
  const failure = useSignal<ApiError | null>(null);
  const field = useId();
  const isLong = value.string ? value.string.bytes > new TextEncoder().encode(value.string.text).length : false;
  const isEditable = value.count === null && !isLong;
  /** Opens the form with what is staged already. */
  const edit = () => {
    const { rename, set } = editsOf(model.id);
    name.value = rename.find(([from]) => from === value.name)?.[1] ?? value.name;
    text.value = set.find(({ key }) => key === name.value)?.value ?? initial;
    open.value = true;
  };
  if (!open.value) {
    return (
      <button type="button" onClick={edit}>
        Edit…
      </button>
    );
  }
  const submit = async () => {
    const change = {
      name: name.value,
      ...(isEditable && text.value !== initial ? { value: text.value } : {}),
    };
    failure.value = await stageValid(model.id, (edits) => withKey(edits, value.name, change));
    if (failure.value === null) open.value = false;
  };
  return (
    <form
      class="edit-key"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {isEditable ? (
        <>
          <label for={`${field}-value`}>New value</label>
          <textarea
            id={`${field}-value`}
            rows={text.value.length > 80 ? 8 : 2}
            spellcheck={false}
            aria-invalid={failure.value !== null}
            value={text.value}
            onInput={(event) => (text.value = event.currentTarget.value)}
          />
        </>
      ) : (
        <p class="faint">
          {isLong ? "The text is too long to edit here" : "Elements of an array cannot be edited here"}; use{" "}
          <code>gguf edit --set-file</code>.
        </p>
      )}
      <label for={`${field}-name`}>Name</label>
      <input
        id={`${field}-name`}
        value={name.value}
        spellcheck={false}
        onInput={(event) => (name.value = event.currentTarget.value)}
      />
      {failure.value && <ErrorMessage failure={failure.value} />}
      <div class="buttons">
        <button type="submit" class="primary">
          Stage
        </button>
        <button
          type="button"
          onClick={() => {
            stage(model.id, withRemoved(editsOf(model.id), value.name));
            open.value = false;
          }}
        >
          Remove key
        </button>
        <button
          type="button"
          onClick={() => {
            failure.value = null;
            open.value = false;
          }}
        >
          Cancel
        </button>
      </div>
      <p class="faint">Nothing is written until you have reviewed all changes.</p>
    </form>
  );
}

const TYPES = [
  "str",
  "u32",
  "i32",
  "f32",
  "bool",
  "u64",
  "i64",
  "f64",
  "u16",
  "i16",
  "u8",
  "i8",
  "str[]",
  "u32[]",
  "i32[]",
  "f32[]",
];

/** Form for a key that the model does not have. */
export function AddKey({ model, onClose }: { model: Model; onClose: () => void }) {
  const key = useSignal("");
  const type = useSignal("str");
  const text = useSignal("");
  const failure = useSignal<ApiError | null>(null);
  const field = useId();
  const submit = async () => {
    const change = { value: text.value, type: type.value };
    failure.value = await stageValid(model.id, (edits) => withKey(edits, key.value.trim(), change));
    if (failure.value === null) onClose();
  };
  return (
    <form
      class="edit-key add-key"
      aria-label="Add a key"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <label for={`${field}-key`}>Key</label>
      <input
        id={`${field}-key`}
        value={key.value}
        placeholder="general.description"
        spellcheck={false}
        required
        onInput={(event) => (key.value = event.currentTarget.value)}
      />
      <label for={`${field}-type`}>Type</label>
      <select id={`${field}-type`} value={type.value} onChange={(event) => (type.value = event.currentTarget.value)}>
        {TYPES.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <label for={`${field}-text`}>Value</label>
      <textarea
        id={`${field}-text`}
        rows={2}
        spellcheck={false}
        aria-invalid={failure.value !== null}
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
      {failure.value && <ErrorMessage failure={failure.value} />}
      <div class="buttons">
        <button type="submit" class="primary">
          Stage
        </button>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </form>
  );
}

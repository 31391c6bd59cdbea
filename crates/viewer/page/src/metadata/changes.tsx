// Staged edits: a bar at the bottom of every view, which opens the preview and writes.
import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import { ApiError } from "../api/request";
import { useRequest } from "../api/resource";
import type { ChangedValue, EditResponse, Model } from "../api/types";
import { bytes, plural, visible, whole } from "../format";
import { List } from "../overview/findings";
import { fileName } from "../ui/model-name";
import { ErrorMessage, Loaded } from "../ui/states";
import {
  countOf,
  discardAll,
  type Edits,
  editsOf,
  preview,
  save,
  stage,
  tokenKey,
  without,
  withReserve,
} from "./edits";

const SAVED: Record<string, string> = {
  "in-place": "Metadata written in place.",
  rebuilt: "File rewritten.",
  unchanged: "No changes to write.",
};

export function Changes({ model }: { model: Model }) {
  const open = useSignal(false);
  const saved = useSignal("");
  const review = useRef<HTMLButtonElement>(null);
  const id = useId();
  const edits = editsOf(model.id);
  const count = countOf(edits);
  const before = useRef(count);
  // The form that has staged a change is gone: the bar takes the focus.
  useEffect(() => {
    if (count > before.current) {
      saved.value = "";
      review.current?.focus({ preventScroll: true });
    }
    if (count === 0) open.value = false;
    before.current = count;
  }, [count]);
  if (count === 0)
    return saved.value ? (
      <p class="saved fine" role="status">
        {saved.value}{" "}
        <button type="button" onClick={() => (saved.value = "")}>
          Dismiss
        </button>
      </p>
    ) : null;
  return (
    <section class="changes" aria-label="Staged changes">
      {open.value && (
        <div id={id} class="changes-panel">
          <Review model={model} edits={edits} onSaved={(text) => (saved.value = text)} />
        </div>
      )}
      <div class="changes-bar">
        <p role="status">
          <strong>{plural(count, "staged change")}</strong> <span class="faint">not written yet</span>
        </p>
        <div class="buttons">
          <button
            ref={review}
            type="button"
            class={open.value ? "" : "primary"}
            aria-expanded={open.value}
            aria-controls={id}
            onClick={() => (open.value = !open.value)}
          >
            {open.value ? "Close" : "Review"}
          </button>
          <button type="button" onClick={() => discardAll(model.id)}>
            Discard all
          </button>
        </div>
      </div>
    </section>
  );
}

function Review({ model, edits, onSaved }: { model: Model; edits: Edits; onSaved: (text: string) => void }) {
  const saving = useSignal(false);
  const accepted = useSignal(false);
  const file = fileName(model.files[0]?.name ?? model.source);
  const copy = useSignal(file.replace(/(\.gguf)?$/i, "-edited.gguf"));
  const failure = useSignal<ApiError | null>(null);
  const key = JSON.stringify(edits);
  const answer = useRequest<EditResponse>(`${model.id} ${withReserve.value} ${key}`, (stop) =>
    preview(model.id, edits, stop),
  );
  const problems = (answer.value?.findings ?? []).filter(({ severity }) => severity === "error").length;
  useEffect(() => {
    accepted.value = false;
  }, [key]);
  const write = async (to: string | null) => {
    saving.value = true;
    failure.value = null;
    try {
      const { saved = "" } = await save(model.id, to);
      onSaved(to === null ? (SAVED[saved] ?? saved) : `Saved as ${to}, beside the model.`);
    } catch (error) {
      failure.value = error instanceof ApiError ? error : new ApiError(0, "page", String(error), null);
    }
    saving.value = false;
  };
  const isBlocked = saving.value || !answer.value || answer.loading || (problems > 0 && !accepted.value);
  return (
    <>
      <h2>Changes to {file}</h2>
      {answer.failure ? (
        <>
          <ErrorMessage failure={answer.failure} />
          <StagedList model={model} edits={edits} />
        </>
      ) : (
        <Loaded resource={answer} render={(value) => <Preview answer={value} model={model} edits={edits} />} />
      )}
      {problems > 0 && (
        <label class="check problem-accepted">
          <input
            type="checkbox"
            checked={accepted.value}
            onChange={(event) => (accepted.value = event.currentTarget.checked)}
          />{" "}
          Write although programs may refuse the file ({plural(problems, "error")})
        </label>
      )}
      {failure.value && <ErrorMessage failure={failure.value} />}
      <div class="changes-write">
        <button
          type="button"
          class={problems > 0 ? "danger" : "primary"}
          disabled={isBlocked}
          onClick={() => void write(null)}
        >
          Write to {file}
        </button>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (!isBlocked) void write(copy.value.trim());
          }}
        >
          <button type="submit" disabled={isBlocked}>
            Save as copy
          </button>{" "}
          <input
            aria-label="Name of the copy"
            value={copy.value}
            spellcheck={false}
            onInput={(event) => (copy.value = event.currentTarget.value)}
          />
        </form>
      </div>
    </>
  );
}

/** The staged changes by themselves, when they have no preview. */
function StagedList({ model, edits }: { model: Model; edits: Edits }) {
  const renamed = new Set(edits.rename.map(([, to]) => to));
  const rows = [
    ...edits.remove.map((key) => ({ key, text: `remove ${key}` })),
    ...edits.rename.map(([key, to]) => ({ key, text: `rename ${key} to ${to}` })),
    ...edits.set
      .filter(({ key }) => !renamed.has(key))
      .map(({ key, value }) => ({ key, text: `set ${key} to ${value.slice(0, 200)}` })),
    ...edits.special_tokens.map(({ role, id }) => ({ key: tokenKey(role), text: `set ${role} to token ${id}` })),
  ];
  return (
    <ul class="staged">
      {rows.map(({ key, text }) => (
        <li key={text}>
          <span>{visible(text)}</span> <Undo model={model} edits={edits} name={key} />
        </li>
      ))}
    </ul>
  );
}

function Undo({ model, edits, name }: { model: Model; edits: Edits; name: string }) {
  return (
    <button type="button" aria-label={`Undo ${name}`} onClick={() => stage(model.id, without(edits, name))}>
      Undo
    </button>
  );
}

function Preview({ answer, model, edits }: { answer: EditResponse; model: Model; edits: Edits }) {
  const { write } = answer;
  const [before, after] = write?.reserve ?? [null, null];
  const zeros = (count: number | null) => (count === null ? "absent" : `${whole(count)} zero bytes`);
  return (
    <>
      {answer.keys.length === 0 ? (
        <p class="faint">The values are unchanged.</p>
      ) : (
        <table class="preview">
          <thead>
            <tr>
              <th scope="col">key</th>
              <th scope="col">current</th>
              <th scope="col">new</th>
              <th scope="col" class="preview-undo">
                <span class="for-readers">undo</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {answer.keys.map(({ key, a, b }) => (
              <tr key={key}>
                <th scope="row">{visible(key)}</th>
                <td class="before">{shown(a)}</td>
                <td class="after">{shown(b)}</td>
                <td>
                  <Undo model={model} edits={edits} name={key} />
                </td>
              </tr>
            ))}
            {write && write.outcome !== "unchanged" && before !== after && (
              <tr>
                <th scope="row">
                  gguf_kit.reserve <span class="faint">room for later edits, ignored by other programs</span>
                </th>
                <td class="before">{zeros(before)}</td>
                <td class="after">{zeros(after)}</td>
                <td />
              </tr>
            )}
          </tbody>
        </table>
      )}
      {write && write.outcome !== "unchanged" && (
        <p class="changes-effect">
          {write.outcome === "in-place" ? (
            <>The header is overwritten in place; the file keeps its {bytes(write.file_bytes[1])}.</>
          ) : (
            <>
              The file is rewritten, since the new header does not fit: {whole(write.file_bytes[0])} →{" "}
              {whole(write.file_bytes[1])} bytes.
            </>
          )}{" "}
          {(write.outcome === "rebuilt" || !withReserve.value) && (
            <label class="check">
              <input
                type="checkbox"
                checked={withReserve.value}
                onChange={(event) => (withReserve.value = event.currentTarget.checked)}
              />{" "}
              Reserve room, so that later edits need no rewriting
            </label>
          )}
        </p>
      )}
      {answer.findings.length > 0 && (
        <>
          <h3>New problems</h3>
          <List findings={answer.findings} model={model} />
        </>
      )}
    </>
  );
}

/** Formats a value with its label. */
export function shown(value: ChangedValue | null): string {
  if (value === null) return "absent";
  return visible(value.text) + (value.label ? ` (${visible(value.label)})` : "");
}

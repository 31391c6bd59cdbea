// Staged edits: preview and writing.
import { useSignal } from "@preact/signals";
import { ApiError } from "../api/request";
import { useRequest } from "../api/resource";
import type { EditResponse, Model } from "../api/types";
import { plural, visible } from "../format";
import { List } from "../overview/findings";
import { fileName } from "../ui/model-name";
import { ErrorMessage, Loaded } from "../ui/states";
import { discardAll, edits, preview, save, stagedCount } from "./edits";

const SAVED: Record<string, string> = {
  "in-place": "Metadata written in place.",
  rebuilt: "File rewritten.",
  unchanged: "No changes to write.",
};

export function Changes({ model }: { model: Model }) {
  const saving = useSignal(false);
  const saved = useSignal("");
  const failure = useSignal<ApiError | null>(null);
  const count = stagedCount();
  const answer = useRequest<EditResponse>(count > 0 ? `${model.id} ${JSON.stringify(edits.value)}` : null, (stop) =>
    preview(model.id, stop),
  );
  const write = async () => {
    saving.value = true;
    failure.value = null;
    try {
      const { saved: outcome = "" } = await save(model.id);
      saved.value = SAVED[outcome] ?? outcome;
    } catch (error) {
      failure.value = error instanceof ApiError ? error : new ApiError(0, "page", String(error), null);
    }
    saving.value = false;
  };
  if (count === 0)
    return saved.value ? (
      <p class="fine" role="status">
        {saved.value}
      </p>
    ) : null;
  return (
    <section class="changes" aria-label="Staged changes">
      <h2>{plural(count, "staged change")}</h2>
      <Loaded resource={answer} render={(value) => <Preview answer={value} model={model} />} />
      {failure.value && <ErrorMessage failure={failure.value} />}
      <div class="buttons">
        <button
          type="button"
          class="primary"
          disabled={saving.value || !answer.value || answer.loading}
          onClick={() => void write()}
        >
          Write to {fileName(model.files[0]?.name ?? model.source)}
        </button>
        <button type="button" onClick={discardAll}>
          Discard all
        </button>
      </div>
    </section>
  );
}

function Preview({ answer, model }: { answer: EditResponse; model: Model }) {
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
            </tr>
          </thead>
          <tbody>
            {answer.keys.map(({ key, a, b }) => (
              <tr key={key}>
                <th scope="row">{visible(key)}</th>
                <td class="before">{a === null ? "absent" : visible(a.text)}</td>
                <td class="after">{b === null ? "absent" : visible(b.text)}</td>
              </tr>
            ))}
          </tbody>
        </table>
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

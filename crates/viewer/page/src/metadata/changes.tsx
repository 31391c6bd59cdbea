// All changes that were noted: what they would do, and the way to write them.
import { useSignal } from "@preact/signals";
import { Failure } from "../api/request";
import { useAnswer } from "../api/resource";
import type { EditAnswer, Model } from "../api/types";
import { plural, visible } from "../format";
import { List } from "../overview/findings";
import { fileName } from "../ui/model-name";
import { Problem, Shown } from "../ui/notice";
import { edits, forget, preview, save, waiting } from "./edits";

const SAVED: Record<string, string> = {
  "in-place": "Written into the file; the tensor data stayed where they were.",
  rebuilt: "The file was written anew and took the place of the old one.",
  unchanged: "Nothing had to be written.",
};

export function Changes({ model }: { model: Model }) {
  const saving = useSignal(false);
  const saved = useSignal("");
  const failure = useSignal<Failure | null>(null);
  const count = waiting();
  const answer = useAnswer<EditAnswer>(count > 0 ? `${model.id} ${JSON.stringify(edits.value)}` : null, (stop) =>
    preview(model.id, stop),
  );
  const write = async () => {
    saving.value = true;
    failure.value = null;
    try {
      const { saved: how = "" } = await save(model.id);
      saved.value = SAVED[how] ?? how;
    } catch (error) {
      failure.value = error instanceof Failure ? error : new Failure(0, "page", String(error), null);
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
    <section class="changes" aria-label="Changes">
      <h2>{plural(count, "change")}, not yet written</h2>
      <Shown of={answer} show={(value) => <Preview answer={value} model={model} />} />
      {failure.value && <Problem failure={failure.value} />}
      <div class="buttons">
        <button
          type="button"
          class="primary"
          disabled={saving.value || !answer.value || answer.loading}
          onClick={() => void write()}
        >
          Write into {fileName(model.files[0]?.name ?? model.source)}
        </button>
        <button type="button" onClick={forget}>
          Forget all
        </button>
      </div>
    </section>
  );
}

function Preview({ answer, model }: { answer: EditAnswer; model: Model }) {
  return (
    <>
      {answer.keys.length === 0 ? (
        <p class="faint">These changes change nothing.</p>
      ) : (
        <table class="preview">
          <thead>
            <tr>
              <th scope="col">key</th>
              <th scope="col">now</th>
              <th scope="col">then</th>
            </tr>
          </thead>
          <tbody>
            {answer.keys.map(({ key, a, b }) => (
              <tr key={key}>
                <th scope="row">{visible(key)}</th>
                <td class="before">{a === null ? "absent" : visible(a)}</td>
                <td class="after">{b === null ? "absent" : visible(b)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {answer.findings.length > 0 && (
        <>
          <h3>What would then be wrong</h3>
          <List findings={answer.findings} model={model} />
        </>
      )}
    </>
  );
}

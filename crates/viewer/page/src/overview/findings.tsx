// Findings of `gguf check`, with links to their locations.
import { useSignal } from "@preact/signals";
import { useDocument } from "../api/resource";
import type { Finding, Model } from "../api/types";
import { hex, plural, visible } from "../format";
import { link } from "../route";
import { Section, Loaded } from "../ui/states";

export function Findings({ model }: { model: Model }) {
  const data = useSignal(false);
  const findings = useDocument<{ findings: Finding[] }>(`models/${model.id}/findings${data.value ? "?data=true" : ""}`);
  const isReading = data.value && findings.loading;
  const aside = model.readable && !model.truncated && (!data.value || isReading) && (
    <button type="button" disabled={isReading} onClick={() => (data.value = true)}>
      {isReading ? "Reading all tensor data…" : "Check tensor data"}
    </button>
  );
  const isDone = data.value && !findings.loading && findings.value !== null;
  const inData = findings.value?.findings.filter(({ code }) => DATA_CODES.test(code)) ?? [];
  return (
    <Section title="Findings" id="findings" aside={aside}>
      {isDone && (
        <p class="fine checked" role="status">
          All {plural(model.tensor_count ?? 0, "tensor")} read:{" "}
          {inData.length === 0 ? "no NaN, no infinity." : `${plural(inData.length, "finding")} about their values.`}
        </p>
      )}
      <Loaded
        resource={findings}
        render={({ findings }) => <List findings={findings} model={model} data={data.value} />}
      />
    </Section>
  );
}

/** Codes of findings about values of tensors. */
const DATA_CODES = /^(data|values?|tensor-(nan|inf|zero|values?))|nan|infinite|non-finite|zeros/;

const ORDER = { error: 0, warning: 1, note: 2 };
/** Number of findings listed at first. */
const INITIAL_COUNT = 50;

export function List({ findings, model, data = false }: { findings: Finding[]; model: Model; data?: boolean }) {
  const more = useSignal(false);
  if (findings.length === 0)
    return <p class="fine">No problems found in the header{data ? " and the tensor data" : ""}.</p>;
  const sorted = [...findings].sort((a, b) => ORDER[a.severity] - ORDER[b.severity]);
  const serious = sorted.filter(({ severity }) => severity !== "note");
  const notes = sorted.filter(({ severity }) => severity === "note");
  return (
    <>
      {serious.length === 0 && (
        <p class="fine">No errors or warnings in the header{data ? " and the tensor data" : ""}.</p>
      )}
      <Items findings={serious.slice(0, more.value ? undefined : INITIAL_COUNT)} model={model} />
      {!more.value && serious.length > INITIAL_COUNT && (
        <button type="button" onClick={() => (more.value = true)}>
          Show all {plural(serious.length, "finding")}
        </button>
      )}
      {notes.length > 0 && (
        <details class="notes">
          <summary>{plural(notes.length, "note")}</summary>
          <Items findings={notes.slice(0, INITIAL_COUNT)} model={model} />
        </details>
      )}
    </>
  );
}

function Items({ findings, model }: { findings: Finding[]; model: Model }) {
  if (findings.length === 0) return null;
  return (
    <ul class="findings">
      {findings.map((finding, index) => (
        <li key={index} class={`finding ${finding.severity}`}>
          <span class={`badge ${finding.severity}`}>{finding.severity}</span>
          <div>
            <p class="finding-what">
              {finding.key !== null && !finding.message.includes(finding.key) && (
                <code>{short(visible(finding.key))}: </code>
              )}
              {finding.message}
            </p>
            {finding.help && <p class="finding-help">{finding.help}</p>}
            <p class="finding-place faint">
              <code title={finding.meaning ?? undefined}>{finding.code}</code> <Links finding={finding} model={model} />
            </p>
          </div>
        </li>
      ))}
    </ul>
  );
}

/** Shortens a name that may have thousands of characters. */
function short(text: string): string {
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}

function Links({ finding, model }: { finding: Finding; model: Model }) {
  const { key, key_n, tensor, tensor_n, offset } = finding;
  return (
    <>
      {key !== null && key_n !== null && <a href={link([model.id, "metadata"], { key: key_n })}>{short(key)}</a>}
      {key !== null && key_n === null && <span>{short(key)}</span>}
      {tensor !== null && tensor_n !== null && <a href={link([model.id, "tensors", tensor_n])}>{short(tensor)}</a>}
      {tensor !== null && tensor_n === null && <span>{short(tensor)}</span>}
      {offset !== null && (
        <a href={link([model.id, "file"], { file: finding.file_n ?? 0, offset })}>byte {hex(offset)}</a>
      )}
    </>
  );
}

// Findings of `gguf check`, with links to their locations.
import { useSignal } from "@preact/signals";
import { useDocument } from "../api/resource";
import type { Finding, Model } from "../api/types";
import { hex, plural } from "../format";
import { link } from "../route";
import { Section, Loaded } from "../ui/states";

export function Findings({ model }: { model: Model }) {
  const data = useSignal(false);
  const findings = useDocument<{ findings: Finding[] }>(`models/${model.id}/findings${data.value ? "?data=true" : ""}`);
  const aside = !data.value && model.readable && (
    <button type="button" onClick={() => (data.value = true)}>
      Check tensor data
    </button>
  );
  return (
    <Section title="Findings" id="findings" aside={aside}>
      <Loaded
        resource={findings}
        render={({ findings }) => <List findings={findings} model={model} data={data.value} />}
      />
    </Section>
  );
}

const ORDER = { error: 0, warning: 1, note: 2 };
/** Number of findings listed at first. */
const INITIAL_COUNT = 50;

export function List({ findings, model, data = false }: { findings: Finding[]; model: Model; data?: boolean }) {
  const more = useSignal(false);
  if (findings.length === 0)
    return <p class="fine">No problems found in the header{data ? " and the tensor data" : ""}.</p>;
  const sorted = [...findings].sort((a, b) => ORDER[a.severity] - ORDER[b.severity]);
  return (
    <>
      <ul class="findings">
        {sorted.slice(0, more.value ? undefined : INITIAL_COUNT).map((finding, index) => (
          <li key={index} class={`finding ${finding.severity}`}>
            <span class={`badge ${finding.severity}`}>{finding.severity}</span>
            <div>
              <p class="finding-what">{finding.message}</p>
              {finding.help && <p class="finding-help">{finding.help}</p>}
              <p class="finding-place faint">
                <code title={finding.meaning ?? undefined}>{finding.code}</code>{" "}
                <Links finding={finding} model={model} />
              </p>
            </div>
          </li>
        ))}
      </ul>
      {!more.value && findings.length > INITIAL_COUNT && (
        <button type="button" onClick={() => (more.value = true)}>
          Show all {plural(findings.length, "finding")}
        </button>
      )}
    </>
  );
}

function Links({ finding, model }: { finding: Finding; model: Model }) {
  const { key, key_n, tensor, tensor_n, offset } = finding;
  return (
    <>
      {key !== null && key_n !== null && <a href={link([model.id, "metadata"], { key: key_n })}>{key}</a>}
      {key !== null && key_n === null && <span>{key}</span>}
      {tensor !== null && tensor_n !== null && <a href={link([model.id, "tensors", tensor_n])}>{tensor}</a>}
      {tensor !== null && tensor_n === null && <span>{tensor}</span>}
      {offset !== null && (
        <a href={link([model.id, "file"], { file: finding.file_n ?? 0, offset })}>byte {hex(offset)}</a>
      )}
    </>
  );
}

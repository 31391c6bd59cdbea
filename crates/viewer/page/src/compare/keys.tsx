// Differing metadata keys.
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { ComparedKeys, KeyDifference } from "../api/tensor-types";
import type { Model } from "../api/types";
import { plural, visible, whole } from "../format";
import { shown } from "../metadata/changes";
import { modelName } from "../ui/model-name";
import { Loaded } from "../ui/states";

export function ComparedKeyList({ a, b }: { a: Model; b: Model }) {
  const keys = useDocument<ComparedKeys>(address(["compare", a.id, b.id, "keys"]));
  return (
    <Loaded
      resource={keys}
      render={({ keys, same }) => (
        <>
          <p class="list-about">
            {keys.length === 0
              ? "No differences"
              : `${plural(keys.length, "key")} ${keys.length === 1 ? "differs" : "differ"}`}
            , <span class="faint">{same} identical</span>
          </p>
          {keys.length > 0 && (
            <div class="scroll" tabIndex={0} role="group" aria-label="Differing keys">
              <table class="preview">
                <thead>
                  <tr>
                    <th scope="col">key</th>
                    <th scope="col">{modelName(a)}</th>
                    <th scope="col">{modelName(b)}</th>
                  </tr>
                </thead>
                <tbody>
                  {keys.map((entry) => (
                    <tr key={entry.key}>
                      <th scope="row">
                        {visible(entry.key)}
                        {entry.detail && <Detail detail={entry.detail} />}
                      </th>
                      <td class="before" data-side={modelName(a)}>
                        {entry.detail?.line !== undefined ? visible(entry.detail.a ?? "absent") : shown(entry.a)}
                      </td>
                      <td class="after" data-side={modelName(b)}>
                        {entry.detail?.line !== undefined ? visible(entry.detail.b ?? "absent") : shown(entry.b)}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </>
      )}
    />
  );
}

/** Where two long values differ. */
function Detail({ detail }: { detail: KeyDifference }) {
  if (detail.line !== undefined) return <p class="faint difference-detail">first difference: line {detail.line}</p>;
  if (!detail.lengths) return null;
  const [a, b] = detail.lengths;
  return (
    <div class="faint difference-detail">
      <p>
        {a === b ? plural(a, "element") : `${whole(a)} → ${plural(b, "element")}`}, {whole(detail.differing ?? 0)}{" "}
        {detail.differing === 1 ? "differs" : "differ"}
      </p>
      <ul>
        {(detail.first ?? []).slice(0, 5).map(([index, a, b]) => (
          <li key={index}>
            <code>
              [{index}] {element(a)} → {element(b)}
            </code>
          </li>
        ))}
      </ul>
    </div>
  );
}

function element(value: unknown): string {
  return value === null || value === undefined ? "absent" : visible(JSON.stringify(value).slice(0, 80));
}

// Differing metadata keys.
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { ComparedKeys } from "../api/tensor-types";
import type { Model } from "../api/types";
import { plural, visible } from "../format";
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
                      <th scope="row">{visible(entry.key)}</th>
                      <td class="before">{entry.a === null ? "absent" : visible(entry.a.text)}</td>
                      <td class="after">{entry.b === null ? "absent" : visible(entry.b.text)}</td>
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

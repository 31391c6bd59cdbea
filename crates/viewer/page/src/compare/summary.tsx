// Both models at a glance: sizes, a verdict in words, and the errors of layers by kinds of tensors.
import type { ComparedTensor } from "../api/tensor-types";
import type { Model } from "../api/types";
import { bytes, fixed, plural } from "../format";
import { modelName } from "../ui/model-name";
import { Term } from "../ui/term";
import type { ErrorMetrics } from "./error-metrics";
import { errorColour, matrixOf } from "./matrix";

interface Props {
  a: Model;
  b: Model;
  tensors: ComparedTensor[];
  metrics: ErrorMetrics;
  chosen: string | null;
  onChoose: (tensor: string) => void;
}

export function CompareSummary({ a, b, tensors, metrics, chosen, onChoose }: Props) {
  metrics.edition.value;
  const comparable = tensors.filter(({ change }) => change === "data");
  const done = comparable.filter(({ name }) => metrics.get(name) !== null).length;
  const isComplete = metrics.done >= comparable.length;
  return (
    <section aria-label="Comparison at a glance" class="compare-summary">
      <dl class="cards">
        {[
          { name: "A", model: a },
          { name: "B", model: b },
        ].map(({ name, model }) => (
          <div class="card" key={name}>
            <dt>{name === "A" ? "A (reference)" : "B"}</dt>
            <dd>
              <span class="card-value">{bytes(model.bytes)}</span> <span class="card-about">{modelName(model)}</span>
            </dd>
          </div>
        ))}
        <div class="card">
          <dt>
            <Term name="relative RMSE" text="weighted relative RMSE" />
          </dt>
          <dd>
            <span class="card-value">
              {done > 0 ? `${isComplete ? "" : "≈ "}${weighted(comparable, metrics)}` : "…"}
            </span>{" "}
            <span class="card-about">
              {isComplete
                ? `of ${plural(done, "tensor")}`
                : `${done} of ${plural(comparable.length, "tensor")} compared`}
            </span>
          </dd>
        </div>
      </dl>
      {!isComplete && (
        <progress class="compare-progress" aria-label="Compared tensors" max={comparable.length} value={metrics.done} />
      )}
      <p class="verdict" role="status">
        {verdict(tensors, metrics, isComplete, a, b)}
      </p>
      <ErrorMatrix tensors={comparable} metrics={metrics} chosen={chosen} onChoose={onChoose} />
    </section>
  );
}

/** Returns the relative RMSE over all compared weights. */
function weighted(tensors: ComparedTensor[], metrics: ErrorMetrics): string {
  let [error, original] = [0, 0];
  for (const { name } of tensors) {
    const found = metrics.get(name);
    if (!found || found.rmse === null || found.relative === null) continue;
    error += found.elements * found.rmse ** 2;
    // The root mean square of the original is the RMSE divided by the relative RMSE.
    if (found.relative > 0) original += found.elements * (found.rmse / found.relative) ** 2;
  }
  return original > 0 ? `${fixed(100 * Math.sqrt(error / original), 2)}%` : "0%";
}

function verdict(tensors: ComparedTensor[], metrics: ErrorMetrics, isComplete: boolean, a: Model, b: Model): string {
  const count = (change: ComparedTensor["change"]) => tensors.filter((tensor) => tensor.change === change).length;
  const known = tensors.flatMap((tensor) => {
    const found = metrics.get(tensor.name);
    return found ? [{ tensor, found }] : [];
  });
  const changed = known.filter(({ found }) => !found.same);
  const parts: string[] = [];
  const ratio = b.bytes / Math.max(1, a.bytes);
  if (Math.abs(ratio - 1) > 0.01) parts.push(`B has ${fixed(100 * ratio, 0)}% of the size of A.`);
  const types = tensors.filter((tensor) => tensor.a && tensor.b && tensor.a.type !== tensor.b.type).length;
  if (types > 0) parts.push(`${plural(types, "tensor")} of another type.`);
  if (count("added") > 0) parts.push(`${plural(count("added"), "tensor")} only in B.`);
  if (count("removed") > 0) parts.push(`${plural(count("removed"), "tensor")} only in A.`);
  if (count("reshaped") > 0) parts.push(`${plural(count("reshaped"), "tensor")} of another shape.`);
  if (isComplete && changed.length === 0 && known.length > 0) parts.push("All weights are identical.");
  const worst = changed.reduce<(typeof changed)[number] | null>(
    (worst, entry) => ((entry.found.relative ?? 0) > (worst?.found.relative ?? -1) ? entry : worst),
    null,
  );
  if (worst)
    parts.push(
      `${isComplete ? "The largest error" : "The largest error so far"} is ${fixed(100 * (worst.found.relative ?? 0), 2)}% in ${worst.tensor.name}.`,
    );
  return parts.join(" ") || "Comparing…";
}

/** Heat matrix of errors: layers across, kinds of tensors down. */
function ErrorMatrix({
  tensors,
  metrics,
  chosen,
  onChoose,
}: Pick<Props, "tensors" | "metrics" | "chosen" | "onChoose">) {
  metrics.edition.value;
  const matrix = matrixOf(tensors);
  if (matrix.kinds.length === 0) return null;
  const errors = tensors.map(({ name }) => metrics.get(name)?.relative ?? 0);
  const max = Math.max(1e-9, ...errors);
  return (
    <figure class="error-matrix">
      <figcaption>
        Relative RMSE by layer and kind of tensor <span class="faint">0 to {fixed(100 * max, 2)}%; click to open</span>
      </figcaption>
      <div class="scroll" tabIndex={0} role="group" aria-label="Errors by layer and kind">
        <table>
          <thead>
            <tr>
              <th scope="col">kind</th>
              {matrix.layers.map((layer) => (
                <th key={layer} scope="col">
                  {layer}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {matrix.kinds.map((kind) => (
              <tr key={kind}>
                <th scope="row">{kind}</th>
                {matrix.layers.map((layer) => {
                  const name = matrix.names.get(`${layer}/${kind}`);
                  if (name === undefined) return <td key={layer} />;
                  const found = metrics.get(name);
                  const text = found
                    ? found.same
                      ? "identical"
                      : `${fixed(100 * (found.relative ?? Number.NaN), 3)}%`
                    : "not compared yet";
                  return (
                    <td key={layer}>
                      <button
                        type="button"
                        class={`error-cell${name === chosen ? " chosen" : ""}${found ? "" : " unknown"}`}
                        style={found ? { background: errorColour((found.relative ?? 0) / max) } : {}}
                        title={`${name}: ${text}`}
                        aria-label={`${name}: ${text}`}
                        onClick={() => onChoose(name)}
                      />
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  );
}

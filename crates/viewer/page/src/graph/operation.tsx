// Details of an operation, and the table of all operations of a segment.
import type { GraphDocument, Operation } from "../api/tensor-types";
import type { Model } from "../api/types";
import { bytes, count, share, visible } from "../format";
import { link } from "../route";
import type { Segment } from "./segments";

interface Totals {
  bytes: number;
  compute: number;
}

export function OperationDetail({
  graph,
  operation,
  total,
  model,
  numbers,
}: {
  graph: GraphDocument;
  operation: Operation;
  total: Totals;
  model: Model;
  numbers: Map<string, number>;
}) {
  const ops = (operation.program === "encoder" ? graph.graph.encoder?.ops : graph.graph.main.ops) ?? [];
  const { op: _, ...fields } = ops[operation.number] ?? {};
  return (
    <section class="operation-detail" aria-labelledby="operation">
      <h2 id="operation">
        {operation.number} {operation.op}
      </h2>
      <p class="detail-about">
        <span>{operation.shape}</span>
        <span>
          {bytes(operation.bytes_read)} read, {share(operation.bytes_read, total.bytes)}
        </span>
        <span>
          {count(operation.multiply_adds)} multiply-adds, {share(operation.multiply_adds, total.compute)}
        </span>
      </p>
      {operation.weights.length > 0 && (
        <p>
          {operation.weights.map((name) => {
            const n = numbers.get(name);
            return (
              <a key={name} class="weight-link" href={link([model.id, "tensors", n ?? name])}>
                {visible(name)}
              </a>
            );
          })}
        </p>
      )}
      <dl class="operation-fields">
        {Object.entries(fields).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{described(value)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** Formats a field of an operation: `layout neox, dimensions 256`. */
function described(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return value.map(described).join(", ");
  const entries = Object.entries(value);
  const nested = (part: unknown) =>
    typeof part === "object" && part !== null ? `(${described(part)})` : described(part);
  return entries.map(([name, part]) => `${name.replaceAll("_", " ")} ${nested(part)}`).join(", ");
}

export function OperationTable({
  segment,
  total,
  chosen,
  onChoose,
}: {
  segment: Segment;
  total: Totals;
  chosen: number | null;
  onChoose: (op: number) => void;
}) {
  return (
    <div class="scroll operations" tabIndex={0} role="group" aria-label={`Operations of ${segment.name}`}>
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">
              #
            </th>
            <th scope="col">operation</th>
            <th scope="col">output shape</th>
            <th scope="col">weights</th>
            <th scope="col" class="number">
              bytes
            </th>
            <th scope="col" class="number">
              share
            </th>
            <th scope="col" class="number">
              multiply-adds
            </th>
            <th scope="col" class="number">
              share
            </th>
          </tr>
        </thead>
        <tbody>
          {segment.operations.map((operation) => (
            <tr key={operation.number} class={operation.number === chosen ? "chosen" : ""}>
              <td class="number">{operation.number}</td>
              <th scope="row">
                <button
                  type="button"
                  class="link"
                  aria-pressed={operation.number === chosen}
                  onClick={() => onChoose(operation.number)}
                >
                  {operation.op}
                </button>
              </th>
              <td>{operation.shape}</td>
              <td class="operation-weights">{operation.weights.map(visible).join(", ")}</td>
              <td class="number">{operation.bytes_read > 0 ? bytes(operation.bytes_read) : ""}</td>
              <td class="number">{operation.bytes_read > 0 ? share(operation.bytes_read, total.bytes) : ""}</td>
              <td class="number">{operation.multiply_adds > 0 ? count(operation.multiply_adds) : ""}</td>
              <td class="number">{operation.multiply_adds > 0 ? share(operation.multiply_adds, total.compute) : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

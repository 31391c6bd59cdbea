// Decoded weights as a picture, and the numbers around the one that was clicked.
import { useMemo } from "preact/hooks";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { Rows, TensorFacts } from "../api/tensor-types";
import type { Model } from "../api/types";
import { significant, visible, whole } from "../format";
import { HeatMap } from "../heat/heat-map";
import { tensorSource } from "../heat/source";
import { choose, link } from "../route";
import { Shown } from "../ui/notice";
import { chosen, chosenNumber } from "../ui/view";
import { useRange } from "./range";

/** Weights beside each other in the table. */
const COLUMNS = 8;
const ROWS = 4;

export function Values({ model, tensor }: { model: Model; tensor: TensorFacts }) {
  const of = tensor.layout?.scales.includes(chosen("of")) ? chosen("of") : "";
  const source = useMemo(
    () => tensorSource(model.id, { ...tensor, block: tensor.block_weights }, of),
    [model.id, tensor.n, of],
  );
  const range = useRange(source);
  const row = chosenNumber("row");
  const column = chosenNumber("column");
  return (
    <>
      {tensor.layout && tensor.layout.scales.length > 0 && (
        <div class="segments" role="group" aria-label="What is shown">
          {["", ...tensor.layout.scales].map((name) => (
            <button key={name} type="button" aria-pressed={of === name} onClick={() => choose({ of: name, at: null })}>
              {name === "" ? "Weights" : `Scale ${name}`}
            </button>
          ))}
        </div>
      )}
      <HeatMap
        source={source}
        label={`${visible(tensor.name)}: ${whole(source.rows)} rows of ${whole(source.columns)}`}
        range={range}
        at={chosen("at") || null}
        onMove={(at) => choose({ at })}
        onPick={(row, column) => choose(of ? { row, column: column * tensor.block_weights } : { row, column })}
      />
      {row !== null && column !== null && row < tensor.rows && column < tensor.columns && (
        <Around model={model} tensor={tensor} row={row} column={column} />
      )}
    </>
  );
}

/** Exact numbers from the server, as `gguf inspect --values` has them. */
function Around({ model, tensor, row, column }: { model: Model; tensor: TensorFacts; row: number; column: number }) {
  const start = Math.max(0, Math.min(row, tensor.rows - ROWS));
  const first = Math.max(0, Math.min(column, tensor.columns - COLUMNS));
  const query = {
    n: tensor.n,
    start,
    count: Math.min(ROWS, tensor.rows),
    column: first,
    columns: Math.min(COLUMNS, tensor.columns),
  };
  const rows = useDocument<Rows>(address(["models", model.id, "tensor", "rows"], query));
  const block = row * tensor.blocks_per_row + Math.floor(column / Math.max(1, tensor.block_weights));
  return (
    <section aria-labelledby="around">
      <h3 id="around">
        Weights from row {whole(start)}, column {whole(first)}
      </h3>
      <Shown
        of={rows}
        show={(value) => (
          <div class="scroll" tabIndex={0} role="group" aria-label="Weights">
            <table class="numbers">
              <thead>
                <tr>
                  <th scope="col">row</th>
                  {value.rows[0]?.map((_, i) => (
                    <th key={i} scope="col" class="number">
                      {whole(value.column + i)}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {value.rows.map((numbers, r) => (
                  <tr key={r}>
                    <th scope="row">{whole(value.start + r)}</th>
                    {numbers.map((number, c) => (
                      <td
                        key={c}
                        class={`number${value.start + r === row && value.column + c === column ? " here" : ""}`}
                        title={String(number)}
                        data-value={String(number)}
                      >
                        {significant(number)}
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      />
      <p>
        <a href={link([model.id, "tensors", tensor.n], { tab: "block", index: block })}>
          Block {whole(block)}, bit by bit
        </a>
      </p>
    </section>
  );
}

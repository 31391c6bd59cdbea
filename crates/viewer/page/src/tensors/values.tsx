// Heat map of decoded weights, and exact values around the selected weight.
import { useMemo } from "preact/hooks";
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { Rows, TensorFacts } from "../api/tensor-types";
import type { Model } from "../api/types";
import { significant, visible, whole } from "../format";
import { Heatmap } from "../heatmap/heatmap";
import { tensorSource } from "../heatmap/source";
import { setParams, link } from "../route";
import { Loaded } from "../ui/states";
import { param, numberParam } from "../ui/view";
import { useAxes } from "./axes";
import { VectorPlot } from "./vector";

/** Longest vector that is drawn as a chart. */
const MAX_VECTOR = 65_536;

/** Size of the table of values. */
const COLUMNS = 8;
const ROWS = 4;

export function Values({ model, tensor }: { model: Model; tensor: TensorFacts }) {
  const of = tensor.layout?.scales.includes(param("of")) ? param("of") : "";
  const axes = useAxes(model, tensor);
  const source = useMemo(
    () => ({
      ...tensorSource(model.id, { ...tensor, block: tensor.block_weights }, of),
      remote: model.remote,
      rowGroups: axes.rows,
      columnGroups: of ? null : axes.columns,
    }),
    [model.id, tensor.n, of, axes.rows, axes.columns],
  );
  const row = numberParam("row");
  const column = numberParam("column");
  return (
    <>
      {tensor.layout && tensor.layout.scales.length > 0 && (
        <div class="segments" role="group" aria-label="Displayed data">
          {["", ...tensor.layout.scales].map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={of === name}
              onClick={() => setParams({ of: name, at: null })}
            >
              {name === "" ? "Weights" : `Scale ${name}`}
            </button>
          ))}
        </div>
      )}
      {tensor.rows === 1 && tensor.columns <= MAX_VECTOR && of === "" ? (
        <VectorPlot model={model} tensor={tensor} onPick={(column) => setParams({ row: 0, column })} />
      ) : (
        <Heatmap
          source={source}
          label={`${visible(tensor.name)}${of ? `, scale ${of}` : ""}: ${whole(source.rows)} rows × ${whole(source.columns)} columns`}
          at={param("at") || null}
          picked={
            row !== null && column !== null
              ? { row, column: of ? Math.floor(column / Math.max(1, tensor.block_weights)) : column }
              : null
          }
          describe={(row, column) => axes.describe(row, of ? column * tensor.block_weights : column)}
          partner={axes.partner}
          about={axes.about}
          names={axes.names}
          onMove={(at) => setParams({ at })}
          onPick={(row, column) => setParams(of ? { row, column: column * tensor.block_weights } : { row, column })}
        />
      )}
      {row !== null && column !== null && row < tensor.rows && column < tensor.columns && (
        <Neighborhood model={model} tensor={tensor} row={row} column={column} />
      )}
    </>
  );
}

/** Table of exact values around a weight, like `gguf inspect --values`. */
function Neighborhood({
  model,
  tensor,
  row,
  column,
}: {
  model: Model;
  tensor: TensorFacts;
  row: number;
  column: number;
}) {
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
    <section aria-labelledby="neighborhood">
      <h3 id="neighborhood">
        Weights from row {whole(start)}, column {whole(first)}
      </h3>
      <Loaded
        resource={rows}
        render={(value) => (
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
          Inspect quantization block {whole(block)}
        </a>
      </p>
    </section>
  );
}

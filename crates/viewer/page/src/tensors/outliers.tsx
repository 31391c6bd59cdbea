// Weights that are farthest from the mean, with the way to each.
import type { Outlier } from "../api/tensor-types";
import type { Model } from "../api/types";
import { fixed, significant, whole } from "../format";
import { link } from "../route";

export function Outliers({ model, n, of }: { model: Model; n: number; of: Outlier[] }) {
  if (of.length === 0) return null;
  return (
    <section>
      <h3 id="outliers">Farthest from the mean</h3>
      <div class="outliers" tabIndex={0} role="group" aria-labelledby="outliers">
        <table>
          <thead>
            <tr>
              <th scope="col" class="number">
                row
              </th>
              <th scope="col" class="number">
                column
              </th>
              <th scope="col" class="number">
                value
              </th>
              <th scope="col" class="number">
                deviations
              </th>
            </tr>
          </thead>
          <tbody>
            {of.map(({ row, column, value, deviations }) => (
              <tr key={`${row}/${column}`}>
                <td class="number">{whole(row)}</td>
                <td class="number">{whole(column)}</td>
                <td class="number">
                  <a href={link([model.id, "tensors", n], { row, column, at: `${column + 0.5},${row + 0.5},24` })}>
                    {significant(value)}
                  </a>
                </td>
                <td class="number">{deviations === null ? "" : fixed(deviations, 1)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

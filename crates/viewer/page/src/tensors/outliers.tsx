// Outliers: weights farthest from the mean, with links.
import type { Outlier } from "../api/tensor-types";
import type { Model } from "../api/types";
import { fixed, significant, whole } from "../format";
import { link } from "../route";

export function Outliers({ model, n, data }: { model: Model; n: number; data: Outlier[] }) {
  if (data.length === 0) return null;
  return (
    <section>
      <h3 id="outliers">Outliers</h3>
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
                σ from mean
              </th>
            </tr>
          </thead>
          <tbody>
            {data.map(({ row, column, value, deviations }) => (
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

// Statistics of a tensor in both models, side by side.
import { address } from "../api/request";
import { useDocument } from "../api/resource";
import type { Statistics } from "../api/tensor-types";
import { share, significant } from "../format";

export function BothStatistics({ a, b, name }: { a: number; b: number; name: string }) {
  const inA = useDocument<Statistics>(address(["models", a, "tensor", "statistics"], { name })).value;
  const inB = useDocument<Statistics>(address(["models", b, "tensor", "statistics"], { name })).value;
  if (!inA || !inB) return null;
  const rows: [string, (of: Statistics) => string][] = [
    ["mean", ({ mean }) => significant(mean)],
    ["std dev", ({ stddev }) => significant(stddev)],
    ["min", ({ min }) => significant(min)],
    ["max", ({ max }) => significant(max)],
    ["zeros", ({ zeros, read }) => share(zeros, read)],
  ];
  return (
    <table class="both-statistics">
      <caption>Weights of both models{inA.exact && inB.exact ? "" : ", from samples"}</caption>
      <thead>
        <tr>
          <th scope="col">statistic</th>
          <th scope="col" class="number">
            A
          </th>
          <th scope="col" class="number">
            B
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([title, value]) => (
          <tr key={title}>
            <th scope="row">{title}</th>
            <td class="number">{value(inA)}</td>
            <td class="number">{value(inB)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

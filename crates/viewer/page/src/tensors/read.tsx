// How much was read for figures, and the way to read all.
import { share, whole } from "../format";

export function Read({
  of,
  count,
  loading,
  onAll,
}: {
  of: { exact: boolean; read: number };
  count: number;
  loading: boolean;
  onAll: () => void;
}) {
  if (of.exact) return <p class="faint read">Of all {whole(count)} weights.</p>;
  return (
    <p class="read">
      <span class="faint">
        Of {whole(of.read)} weights, {share(of.read, count)} of all, evenly spread.{" "}
      </span>
      <button type="button" disabled={loading} onClick={onAll}>
        {loading ? "Reading all…" : "Read all"}
      </button>
    </p>
  );
}

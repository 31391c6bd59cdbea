// Shows whether the statistics cover all weights or a sample.
import { share, whole } from "../format";

export function SampleInfo({
  data,
  count,
  loading,
  onAll,
}: {
  data: { exact: boolean; read: number };
  count: number;
  loading: boolean;
  onAll: () => void;
}) {
  if (data.exact) return <p class="faint read">Computed from all {whole(count)} weights.</p>;
  return (
    <p class="read">
      <span class="faint">
        Computed from a uniform sample of {whole(data.read)} weights ({share(data.read, count)}).{" "}
      </span>
      <button type="button" disabled={loading} onClick={onAll}>
        {loading ? "Reading all weights…" : "Read all weights"}
      </button>
    </p>
  );
}

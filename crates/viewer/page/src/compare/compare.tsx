// Comparison of two models: differing keys, quantization error per tensor.
import type { Model } from "../api/types";
import { navigate, link, route } from "../route";
import { modelName } from "../ui/model-name";
import { Empty } from "../ui/states";
import { Tabs } from "../ui/tabs";
import { ComparedKeyList } from "./keys";
import { ComparedTensorList } from "./tensors";

export function Compare({ all }: { all: Model[] }) {
  const { path, query } = route.value;
  const readable = all.filter((model) => model.readable);
  const a = readable.find((model) => String(model.id) === path[1]) ?? readable[0];
  const b = readable.find((model) => String(model.id) === path[2]) ?? readable.find((model) => model.id !== a?.id);
  if (!a || !b) return <Empty>Pass two models to `gguf view` to compare them.</Empty>;
  const to = (a: number | string, b: number | string) => navigate(link(["compare", a, b], { tab: query.get("tab") }));
  const choice = (name: string, chosen: Model, change: (id: string) => void) => (
    <label class="compare-model">
      <span class="faint">{name}</span>
      <select value={chosen.id} onChange={(event) => change(event.currentTarget.value)}>
        {readable.map((model) => (
          <option key={model.id} value={model.id}>
            {modelName(model)}
          </option>
        ))}
      </select>
    </label>
  );
  const tabs = [
    { name: "tensors", title: "Tensors", show: () => <ComparedTensorList key={`${a.id} ${b.id}`} a={a} b={b} /> },
    { name: "keys", title: "Keys", show: () => <ComparedKeyList a={a} b={b} /> },
  ];
  return (
    <>
      <div class="view-head">
        <h1>Compare</h1>
      </div>
      <div class="compare-models">
        {choice("A (reference)", a, (id) => to(id, b.id))}
        <button type="button" aria-label="Swap" onClick={() => to(b.id, a.id)}>
          ⇄
        </button>
        {choice("B", b, (id) => to(a.id, id))}
      </div>
      {a.id === b.id ? (
        <Empty>Select two different models.</Empty>
      ) : (
        <Tabs
          label="Comparison"
          tabs={tabs}
          chosen={query.get("tab") ?? "tensors"}
          onChoose={(tab) => navigate(link(path, { tab }), true)}
        />
      )}
    </>
  );
}

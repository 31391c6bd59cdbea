// Two models beside each other: keys that differ, tensors with their errors, where they are apart.
import type { Model } from "../api/types";
import { go, link, place } from "../route";
import { modelName } from "../ui/model-name";
import { Nothing } from "../ui/notice";
import { Tabs } from "../ui/tabs";
import { ComparedKeyList } from "./keys";
import { ComparedTensorList } from "./tensors";

export function Compare({ all }: { all: Model[] }) {
  const { path, query } = place.value;
  const readable = all.filter((model) => model.readable);
  const a = readable.find((model) => String(model.id) === path[1]) ?? readable[0];
  const b = readable.find((model) => String(model.id) === path[2]) ?? readable.find((model) => model.id !== a?.id);
  if (!a || !b) return <Nothing>Give two models to `gguf view` to compare them.</Nothing>;
  const to = (a: number | string, b: number | string) => go(link(["compare", a, b], { tab: query.get("tab") }));
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
        {choice("original", a, (id) => to(id, b.id))}
        <button type="button" aria-label="Exchange both" onClick={() => to(b.id, a.id)}>
          ⇄
        </button>
        {choice("other", b, (id) => to(a.id, id))}
      </div>
      {a.id === b.id ? (
        <Nothing>Choose two models.</Nothing>
      ) : (
        <Tabs
          label="What is compared"
          tabs={tabs}
          chosen={query.get("tab") ?? "tensors"}
          onChoose={(tab) => go(link(path, { tab }), true)}
        />
      )}
    </>
  );
}

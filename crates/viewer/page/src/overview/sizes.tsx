// Size by tensor group, by tensor type and by layer.
import { useMemo } from "preact/hooks";
import { useDocument } from "../api/resource";
import type { Tensor } from "../api/tensor-types";
import type { Model } from "../api/types";
import { bytes, plural, share } from "../format";
import { link } from "../route";
import { Section, Loaded } from "../ui/states";
import { typeColour } from "../ui/type-colour";
import { type Group, groups, partOf, type TypeTotal, typeTotals } from "./groups";

export function Sizes({ model }: { model: Model }) {
  const tensors = useDocument<{ tensors: Tensor[] }>(`models/${model.id}/tensors`);
  return (
    <Section title="Size" id="size">
      <Loaded
        resource={tensors}
        render={({ tensors }) => <Charts tensors={tensors} model={model} />}
        fallback={<div class="sizes-room" />}
      />
    </Section>
  );
}

function Charts({ tensors, model }: { tensors: Tensor[]; model: Model }) {
  const { found, types, total } = useMemo(() => {
    const found = groups(tensors);
    const types = typeTotals(tensors);
    return { found, types, total: types.reduce((sum, part) => sum + part.bytes, 0) };
  }, [tensors]);
  const parts = useMemo(() => {
    const parts = new Map<string, Tensor[]>();
    for (const tensor of tensors) {
      if (tensor.block === null) continue;
      const part = partOf(tensor);
      const members = parts.get(part);
      if (members) members.push(tensor);
      else parts.set(part, [tensor]);
    }
    return [...parts].slice(0, 8);
  }, [tensors]);
  const max = Math.max(1, ...found.map((entry) => entry.bytes));
  return (
    <>
      <div class="sizes">
        <table class="size-table">
          <caption class="for-readers">Bytes by tensor group</caption>
          <thead>
            <tr>
              <th scope="col">group</th>
              <th scope="col" class="size-bars">
                <span class="for-readers">by type</span>
              </th>
              <th scope="col" class="number">
                size
              </th>
              <th scope="col" class="number">
                share
              </th>
            </tr>
          </thead>
          <tbody>
            {found.map((entry) => (
              <Row key={entry.name} entry={entry} max={max} total={total} model={model} />
            ))}
          </tbody>
        </table>
        <Types types={types} total={total} model={model} />
      </div>
      {parts.map(([part, members]) => (
        <Layers key={part} part={part} tensors={members} model={model} />
      ))}
    </>
  );
}

function Row({ entry, max, total, model }: { entry: Group; max: number; total: number; model: Model }) {
  return (
    <tr>
      <th scope="row">
        <a href={link([model.id, "tensors"], { search: entry.search })}>{entry.name}</a>
      </th>
      <td class="size-bars">
        <div class="bar" style={{ width: `${Math.max(0.4, (100 * entry.bytes) / max)}%` }}>
          {entry.parts.map((part) => (
            <span
              key={part.type}
              style={{ flexGrow: part.bytes, background: typeColour(part.bits) }}
              title={`${part.type}: ${bytes(part.bytes)} in ${plural(part.tensors, "tensor")}`}
            />
          ))}
        </div>
      </td>
      <td class="number">{bytes(entry.bytes)}</td>
      <td class="number">{share(entry.bytes, total)}</td>
    </tr>
  );
}

function Types({ types, total, model }: { types: TypeTotal[]; total: number; model: Model }) {
  return (
    <table class="size-types">
      <caption class="for-readers">Bytes by type</caption>
      <thead>
        <tr>
          <th scope="col">type</th>
          <th scope="col" class="number">
            tensors
          </th>
          <th scope="col" class="number">
            size
          </th>
          <th scope="col" class="number">
            share
          </th>
        </tr>
      </thead>
      <tbody>
        {types.map((part) => (
          <tr key={part.type}>
            <th scope="row">
              <span class="dot" style={{ background: typeColour(part.bits) }} aria-hidden="true" />
              <a href={link([model.id, "tensors"], { type: part.type })}>{part.type}</a>
            </th>
            <td class="number">{part.tensors}</td>
            <td class="number">{bytes(part.bytes)}</td>
            <td class="number">{share(part.bytes, total)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Stacked bar of types for each layer. */
function Layers({ part, tensors, model }: { part: string; tensors: Tensor[]; model: Model }) {
  const layers = useMemo(() => {
    const found = new Map<number, Tensor[]>();
    for (const tensor of tensors)
      if (tensor.block !== null) found.set(tensor.block, [...(found.get(tensor.block) ?? []), tensor]);
    const prefix = /^(.*?)blk\./.exec(tensors[0]?.name ?? "")?.[1] ?? "";
    const layer = ([number, members]: [number, Tensor[]]) => ({ number, prefix, parts: typeTotals(members) });
    return [...found].sort(([a], [b]) => a - b).map(layer);
  }, [tensors]);
  // Many files have no layers; malicious ones may have thousands.
  if (layers.length < 2 || layers.length > 512) return null;
  const sum = (list: TypeTotal[]) => list.reduce((total, part) => total + part.bytes, 0);
  const max = Math.max(1, ...layers.map((layer) => sum(layer.parts)));
  return (
    <figure class="blocks">
      <figcaption>{part === "" ? "Layers" : `Layers of the ${part}`}</figcaption>
      <ol class="blocks-row">
        {layers.map((layer) => (
          <li key={layer.number}>
            <a
              href={link([model.id, "tensors"], { search: `${layer.prefix}blk.${layer.number}.*` })}
              aria-label={`Layer ${layer.number}: ${bytes(sum(layer.parts))}, ${layer.parts.map((part) => `${part.type} ${bytes(part.bytes)}`).join(", ")}`}
              title={`layer ${layer.number}: ${bytes(sum(layer.parts))}`}
            >
              <span class="block-column" style={{ height: `${(100 * sum(layer.parts)) / max}%` }}>
                {layer.parts.map((part) => (
                  <span key={part.type} style={{ flexGrow: part.bytes, background: typeColour(part.bits) }} />
                ))}
              </span>
            </a>
          </li>
        ))}
      </ol>
      <p class="blocks-ends faint" aria-hidden="true">
        <span>{layers[0]?.number}</span>
        <span>{layers[layers.length - 1]?.number}</span>
      </p>
    </figure>
  );
}

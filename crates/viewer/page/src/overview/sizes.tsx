// Where the bytes go: groups of tensors by what they do, each by its types; and the same block by block.
import { useMemo } from "preact/hooks";
import { useDocument } from "../api/resource";
import type { Tensor } from "../api/tensor-types";
import type { Model } from "../api/types";
import { bytes, plural, share } from "../format";
import { link } from "../route";
import { Section, Shown } from "../ui/notice";
import { typeColour } from "../ui/type-colour";
import { type Group, groups, type Part, parts } from "./groups";

export function Sizes({ model }: { model: Model }) {
  const tensors = useDocument<{ tensors: Tensor[] }>(`models/${model.id}/tensors`);
  return (
    <Section title="Size" id="size">
      <Shown
        of={tensors}
        show={({ tensors }) => <Pictures tensors={tensors} model={model} />}
        waiting={<div class="sizes-room" />}
      />
    </Section>
  );
}

function Pictures({ tensors, model }: { tensors: Tensor[]; model: Model }) {
  const { found, types, total } = useMemo(() => {
    const found = groups(tensors);
    const types = parts(tensors);
    return { found, types, total: types.reduce((sum, part) => sum + part.bytes, 0) };
  }, [tensors]);
  const most = Math.max(1, ...found.map((entry) => entry.bytes));
  return (
    <>
      <div class="sizes">
        <table class="size-table">
          <caption class="for-readers">Bytes by group of tensors</caption>
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
              <Row key={entry.name} entry={entry} most={most} total={total} model={model} />
            ))}
          </tbody>
        </table>
        <Types types={types} total={total} model={model} />
      </div>
      <Blocks tensors={tensors} model={model} />
    </>
  );
}

function Row({ entry, most, total, model }: { entry: Group; most: number; total: number; model: Model }) {
  return (
    <tr>
      <th scope="row">
        <a href={link([model.id, "tensors"], { search: entry.search })}>{entry.name}</a>
      </th>
      <td class="size-bars">
        <div class="bar" style={{ width: `${Math.max(0.4, (100 * entry.bytes) / most)}%` }}>
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

function Types({ types, total, model }: { types: Part[]; total: number; model: Model }) {
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

/** A column for each block, with its types on top of each other. */
function Blocks({ tensors, model }: { tensors: Tensor[]; model: Model }) {
  const blocks = useMemo(() => {
    const found = new Map<number, Tensor[]>();
    for (const tensor of tensors)
      if (tensor.block !== null) found.set(tensor.block, [...(found.get(tensor.block) ?? []), tensor]);
    return [...found].sort(([a], [b]) => a - b).map(([number, members]) => ({ number, parts: parts(members) }));
  }, [tensors]);
  // Many files have no blocks, and hostile ones may have thousands.
  if (blocks.length < 2 || blocks.length > 512) return null;
  const sum = (list: Part[]) => list.reduce((total, part) => total + part.bytes, 0);
  const most = Math.max(1, ...blocks.map((block) => sum(block.parts)));
  return (
    <figure class="blocks">
      <figcaption>Blocks</figcaption>
      <ol class="blocks-row">
        {blocks.map((block) => (
          <li key={block.number}>
            <a
              href={link([model.id, "tensors"], { search: `blk.${block.number}.` })}
              aria-label={`Block ${block.number}: ${bytes(sum(block.parts))}, ${block.parts.map((part) => `${part.type} ${bytes(part.bytes)}`).join(", ")}`}
              title={`block ${block.number}: ${bytes(sum(block.parts))}`}
            >
              <span class="block-column" style={{ height: `${(100 * sum(block.parts)) / most}%` }}>
                {block.parts.map((part) => (
                  <span key={part.type} style={{ flexGrow: part.bytes, background: typeColour(part.bits) }} />
                ))}
              </span>
            </a>
          </li>
        ))}
      </ol>
      <p class="blocks-ends faint" aria-hidden="true">
        <span>{blocks[0]?.number}</span>
        <span>{blocks[blocks.length - 1]?.number}</span>
      </p>
    </figure>
  );
}

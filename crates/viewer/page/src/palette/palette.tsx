// One field that finds views, tensors, keys, tokens and offsets.
import { useSignal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";
import { address, get } from "../api/request";
import { useRequest } from "../api/resource";
import { models } from "../api/status";
import type { Tensor } from "../api/tensor-types";
import type { Tokens } from "../api/token-types";
import type { Keys, Model } from "../api/types";
import { shape, visible } from "../format";
import { link, navigate } from "../route";
import { matches } from "../tensors/names";
import { Dialog } from "../ui/dialog";
import { modelName } from "../ui/model-name";

interface Entry {
  kind: string;
  text: string;
  about: string;
  address: string;
}

/** Entries of each kind. */
const MAX = 8;

const VIEWS = ["overview", "metadata", "tensors", "map", "file", "tokenizer", "graph"];

export function Palette({ model, onClose }: { model: Model; onClose: () => void }) {
  const text = useSignal("");
  const wanted = useSignal("");
  const active = useSignal(0);
  const id = useId();
  // Ask when typing pauses.
  useEffect(() => {
    const timer = setTimeout(() => (wanted.value = text.value.trim()), 120);
    return () => clearTimeout(timer);
  }, [text.value]);
  const found = useRequest<Entry[]>(`${model.id} ${wanted.value}`, (stop) => search(model, wanted.value, stop));
  const entries = found.value ?? [];
  const at = Math.min(active.value, entries.length - 1);
  function go(entry: Entry | undefined): void {
    if (!entry) return;
    onClose();
    navigate(entry.address);
  }
  function key(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter") go(entries[at]);
    else if (step !== undefined && entries.length > 0) active.value = (at + step + entries.length) % entries.length;
    else return;
    event.preventDefault();
  }
  return (
    <Dialog label="Search everything" onClose={onClose}>
      <div class="palette">
        <input
          type="text"
          class="palette-field"
          role="combobox"
          aria-label="Search tensors, keys, tokens, views, 0xOFFSET"
          aria-expanded={entries.length > 0}
          aria-controls={`${id}-list`}
          aria-activedescendant={entries.length > 0 ? `${id}-${at}` : undefined}
          placeholder="Tensor, key, token, view, 0xOFFSET"
          autocomplete="off"
          spellcheck={false}
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
            active.value = 0;
          }}
          onKeyDown={key}
        />
        <ul id={`${id}-list`} role="listbox" aria-label="Results" class="palette-list">
          {entries.map((entry, i) => (
            <li
              key={`${entry.kind} ${entry.address}`}
              id={`${id}-${i}`}
              role="option"
              aria-selected={i === at}
              class={i === at ? "active" : ""}
              onPointerMove={() => (active.value = i)}
              onClick={() => go(entry)}
            >
              <span class="badge">{entry.kind}</span> <span class="palette-text">{entry.text}</span>{" "}
              <span class="faint palette-about">{entry.about}</span>
            </li>
          ))}
        </ul>
        {entries.length === 0 && !found.loading && <p class="palette-none faint">Nothing found.</p>}
      </div>
    </Dialog>
  );
}

async function search(model: Model, text: string, stop: AbortSignal): Promise<Entry[]> {
  const entries: Entry[] = [];
  const lower = text.toLowerCase();
  for (const name of VIEWS)
    if (name.startsWith(lower)) entries.push({ kind: "view", text: name, about: "", address: link([model.id, name]) });
  for (const other of models.value?.models ?? [])
    if (other.id !== model.id && modelName(other).toLowerCase().includes(lower))
      entries.push({
        kind: "model",
        text: visible(modelName(other)),
        about: "",
        address: link([other.id, "overview"]),
      });
  if (/^0x[0-9a-f]+$/i.test(text) || /^\d{3,}$/.test(text))
    entries.push({
      kind: "byte",
      text,
      about: "in the file",
      address: link([model.id, "file"], { offset: Number(text) }),
    });
  if (text === "" || !model.readable) return entries;
  const query = { search: text, limit: MAX };
  // A model without a vocabulary has no tokens.
  const [tensors, keys, tokens] = await Promise.all([
    get<{ tensors: Tensor[] }>(`models/${model.id}/tensors`, stop),
    get<Keys>(address(["models", model.id, "keys"], query), stop),
    get<Tokens>(address(["models", model.id, "tokens"], query), stop).catch(() => ({ tokens: [] })),
  ]);
  for (const tensor of tensors.tensors.filter(({ name }) => matches(name, text)).slice(0, MAX))
    entries.push({
      kind: "tensor",
      text: visible(tensor.name),
      about: `${tensor.type} ${shape(tensor.shape)}`,
      address: link([model.id, "tensors", tensor.n]),
    });
  for (const key of keys.keys)
    entries.push({
      kind: "key",
      text: visible(key.name),
      about: visible(key.text).slice(0, 80),
      address: link([model.id, "metadata"], { key: key.n }),
    });
  for (const token of tokens.tokens)
    entries.push({
      kind: "token",
      text: visible(token.stands_for ?? token.text),
      about: `id ${token.id}`,
      address: link([model.id, "tokenizer"], { search: `#${token.id}` }),
    });
  return entries;
}

// Metadata view: searchable list of keys, and details of the selected key.
import { useSignal } from "@preact/signals";
import { useCallback } from "preact/hooks";
import { address, get } from "../api/request";
import type { Key, Keys, Model } from "../api/types";
import { bytes, plural, visible, whole } from "../format";
import { setParams } from "../route";
import { ErrorMessage } from "../ui/states";
import { type PagedList, usePagedList } from "../ui/paged-list";
import { Search } from "../ui/search";
import { param, numberParam, type ViewProps } from "../ui/view";
import { VirtualList } from "../ui/virtual-list";
import { AddKey } from "./edit-key";
import { changes, editsOf } from "./edits";
import { KeyDetail } from "./key";

export function Metadata({ model }: ViewProps) {
  const adding = useSignal(false);
  const search = param("search");
  const key = numberParam("key");
  const load = useCallback(
    async (offset: number, limit: number, stop: AbortSignal) => {
      const { total, found, keys } = await get<Keys>(
        address(["models", model.id, "keys"], { search, offset, limit }),
        stop,
      );
      return { total, found, entries: keys };
    },
    [model.id, search],
  );
  const pages = usePagedList<Key>(`${model.id} ${search}`, load);
  return (
    <>
      <div class="view-head with-actions">
        <h1>Metadata</h1>
        {model.editable && !adding.value && (
          <button type="button" onClick={() => (adding.value = true)}>
            Add key
          </button>
        )}
      </div>
      {adding.value && <AddKey model={model} onClose={() => (adding.value = false)} />}
      <div class={`split${key !== null ? " has-detail" : ""}`}>
        <div class="split-list">
          <Search label="Search keys and values" value={search} onSearch={(search) => setParams({ search })} />
          <p class="list-about faint" role="status">
            {pages.known &&
              (search ? `${whole(pages.found)} of ${plural(pages.total, "key")}` : plural(pages.total, "key"))}
          </p>
          {pages.failure.value && <ErrorMessage failure={pages.failure.value} />}
          <List pages={pages} selected={key} model={model} />
        </div>
        <div class="split-detail">
          {key !== null ? (
            <>
              <button type="button" class="back" onClick={() => setParams({ key: null })}>
                All keys
              </button>
              <KeyDetail key={`${model.id}/${key}`} model={model} n={key} />
            </>
          ) : (
            <p class="nothing">Select a key to see its value, documentation and bytes.</p>
          )}
        </div>
      </div>
    </>
  );
}

function List({ pages, selected, model }: { pages: PagedList<Key>; selected: number | null; model: Model }) {
  const edits = editsOf(model.id);
  // Components that read signals render again only for changed properties and signals.
  pages.edition.value;
  const seen = useCallback((first: number, end: number) => pages.request(first, end), [pages]);
  // Without a search, the row of a key is its index.
  const place = selected !== null && pages.known ? rowOf(pages, selected) : null;
  return (
    <VirtualList
      class="keys"
      label="Keys"
      count={pages.found}
      height={50}
      selected={place}
      reveal={place}
      onSeen={seen}
      onChoose={(index) => {
        const key = pages.at(index);
        if (key) setParams({ key: key.n, offset: null, find: null }, false);
      }}
      render={(index) => {
        const key = pages.at(index);
        if (!key) return <span class="faint">…</span>;
        return (
          <>
            <span class="key-name">
              {visible(key.name)}
              {changes(edits, key.name) && <span class="badge edited">edited</span>}
              {key.damage !== null && (
                <span class="badge error" title={key.damage}>
                  damaged
                </span>
              )}
            </span>
            <span class="key-value">{brief(key)}</span>
          </>
        );
      }}
    />
  );
}

function rowOf(pages: PagedList<Key>, n: number): number | null {
  if (pages.at(n)?.n === n) return n;
  for (let index = 0; index < Math.min(pages.found, 1000); index += 1) if (pages.at(index)?.n === n) return index;
  return null;
}

/** Formats a value on one line. */
export function brief(key: Key): string {
  if (key.count !== null) {
    const type = key.element_type?.toLowerCase() ?? "element";
    return `array of ${type === "string" ? plural(key.count, type) : `${whole(key.count)} ${type}`}`;
  }
  const text = visible(key.text) + (key.label ? ` (${visible(key.label)})` : "");
  return key.text_bytes > 200 ? `${text.slice(0, 160)}… ${bytes(key.text_bytes)}` : text;
}

// Every key with its value: a list to search, and all about the one that was chosen.
import { useCallback } from "preact/hooks";
import { address, get } from "../api/request";
import type { Key, Keys } from "../api/types";
import { bytes, plural, visible, whole } from "../format";
import { choose } from "../route";
import { Problem } from "../ui/notice";
import { type Pages, usePages } from "../ui/pages";
import { Search } from "../ui/search";
import { chosen, chosenNumber, type ViewProps } from "../ui/view";
import { VirtualRows } from "../ui/virtual";
import { Changes } from "./changes";
import { KeyDetail } from "./key";

export function Metadata({ model }: ViewProps) {
  const search = chosen("search");
  const key = chosenNumber("key");
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
  const pages = usePages<Key>(`${model.id} ${search}`, load);
  return (
    <>
      <div class="view-head">
        <h1>Metadata</h1>
      </div>
      <Changes model={model} />
      <div class={`split${key !== null ? " has-detail" : ""}`}>
        <div class="split-list">
          <Search label="Search keys and values" value={search} onSearch={(search) => choose({ search })} />
          <p class="list-about faint" role="status">
            {pages.known &&
              (search ? `${whole(pages.found)} of ${plural(pages.total, "key")}` : plural(pages.total, "key"))}
          </p>
          {pages.failure.value && <Problem failure={pages.failure.value} />}
          <List pages={pages} selected={key} />
        </div>
        <div class="split-detail">
          {key !== null ? (
            <>
              <button type="button" class="back" onClick={() => choose({ key: null })}>
                All keys
              </button>
              <KeyDetail key={`${model.id}/${key}`} model={model} n={key} />
            </>
          ) : (
            <p class="nothing">Choose a key to see all of its value, what it means, and its bytes.</p>
          )}
        </div>
      </div>
    </>
  );
}

function List({ pages, selected }: { pages: Pages<Key>; selected: number | null }) {
  const seen = useCallback((first: number, end: number) => pages.want(first, end), [pages]);
  // The place in the list is the number of the key as long as nothing is searched for.
  const place = selected !== null && pages.known ? rowOf(pages, selected) : null;
  return (
    <VirtualRows
      class="keys"
      label="Keys"
      count={pages.found}
      height={50}
      selected={place}
      reveal={place}
      onSeen={seen}
      onChoose={(index) => {
        const key = pages.at(index);
        if (key) choose({ key: key.n, offset: null, find: null }, false);
      }}
      render={(index) => {
        const key = pages.at(index);
        if (!key) return <span class="faint">…</span>;
        return (
          <>
            <span class="key-name">{visible(key.name)}</span>
            <span class="key-value">{brief(key)}</span>
          </>
        );
      }}
    />
  );
}

function rowOf(pages: Pages<Key>, n: number): number | null {
  if (pages.at(n)?.n === n) return n;
  for (let index = 0; index < Math.min(pages.found, 1000); index += 1) if (pages.at(index)?.n === n) return index;
  return null;
}

/** A value on a line. */
export function brief(key: Key): string {
  if (key.count !== null)
    return `${plural(key.count, "element")} of ${key.element_type?.toLowerCase() ?? "mixed types"}`;
  const text = visible(key.text);
  return key.text_bytes > 200 ? `${text.slice(0, 160)}… ${bytes(key.text_bytes)}` : text;
}

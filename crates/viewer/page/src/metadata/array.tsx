// Elements of an array, loaded in pages.
import { useCallback } from "preact/hooks";
import { address, get } from "../api/request";
import type { Element, KeyValue, Model } from "../api/types";
import { visible, whole } from "../format";
import { setParams } from "../route";
import { ErrorMessage } from "../ui/states";
import { usePagedList } from "../ui/paged-list";
import { Search } from "../ui/search";
import { param } from "../ui/view";
import { VirtualList } from "../ui/virtual-list";

const HEIGHT = 28;

export function ArrayValue({ model, value }: { model: Model; value: KeyValue }) {
  const search = param("find");
  const load = useCallback(
    async (offset: number, limit: number, stop: AbortSignal) => {
      const { array } = await get<KeyValue>(
        address(["models", model.id, "key"], { n: value.n, search, offset, limit }),
        stop,
      );
      return { total: array?.total ?? 0, found: array?.found ?? 0, entries: array?.elements ?? [] };
    },
    [model.id, value.n, search],
  );
  const pages = usePagedList<Element>(`${model.id} ${value.n} ${search}`, load);
  const seen = useCallback((first: number, end: number) => pages.request(first, end), [pages]);
  return (
    <>
      <Search label="Search elements" value={search} onSearch={(find) => setParams({ find })} />
      <p class="list-about faint" role="status">
        {pages.known && (search ? `${whole(pages.found)} of ${whole(pages.total)}` : "\u00a0")}
      </p>
      {pages.failure.value && <ErrorMessage failure={pages.failure.value} />}
      <VirtualList
        class={`elements ${pages.found > 12 || !pages.known ? "" : "few"}`}
        label="Elements"
        role="grid"
        count={pages.found}
        height={HEIGHT}
        onSeen={seen}
        render={(index) => {
          const element = pages.at(index);
          return (
            <>
              <span class="element-i" role="gridcell">
                {element ? whole(element.i) : "…"}
              </span>
              <span class="element-value" role="gridcell">
                {element ? visible(element.text) : ""}
                {element && element.text_bytes > 1000 && <span class="faint"> … {whole(element.text_bytes)} B</span>}
              </span>
            </>
          );
        }}
      />
    </>
  );
}

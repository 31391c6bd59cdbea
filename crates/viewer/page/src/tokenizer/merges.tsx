// List of merges by rank.
import { useCallback } from "preact/hooks";
import { address, get } from "../api/request";
import type { Merge, Merges as MergesPage } from "../api/token-types";
import type { Model } from "../api/types";
import { whole } from "../format";
import { setParams } from "../route";
import { ErrorMessage } from "../ui/states";
import { usePagedList } from "../ui/paged-list";
import { Search } from "../ui/search";
import { param } from "../ui/view";
import { VirtualList } from "../ui/virtual-list";
import { TokenText } from "./token-text";

export function Merges({ model }: { model: Model }) {
  const search = param("search");
  const load = useCallback(
    async (offset: number, limit: number, stop: AbortSignal) => {
      const { total, found, merges } = await get<MergesPage>(
        address(["models", model.id, "merges"], { search, offset, limit }),
        stop,
      );
      return { total, found, entries: merges };
    },
    [model.id, search],
  );
  const pages = usePagedList<Merge>(`${model.id} merges ${search}`, load);
  const seen = useCallback((first: number, end: number) => pages.request(first, end), [pages]);
  return (
    <>
      <Search label="Search merges" value={search} onSearch={(search) => setParams({ search })} />
      <p class="list-about faint" role="status">
        {pages.known
          ? search
            ? `${whole(pages.found)} of ${whole(pages.total)} merges`
            : `${whole(pages.total)} merges`
          : "\u00a0"}
      </p>
      {pages.failure.value && <ErrorMessage failure={pages.failure.value} />}
      <VirtualList
        class="merge-rows"
        label="Merges"
        role="grid"
        count={pages.found}
        height={32}
        onSeen={seen}
        head={
          <div class="merge-head" aria-hidden="true">
            <span>rank</span>
            <span>pair</span>
            <span>token, id</span>
          </div>
        }
        render={(index) => {
          const merge = pages.at(index);
          if (!merge)
            return (
              <span role="gridcell" class="faint">
                …
              </span>
            );
          return (
            <>
              <span role="gridcell" class="token-id">
                {whole(merge.rank)}
              </span>
              <span role="gridcell" class="merge-pair">
                <TokenText text={merge.left} /> + <TokenText text={merge.right} />
              </span>
              <span role="gridcell" class="merge-result">
                <TokenText text={merge.result} />
                {merge.id !== null && <span class="faint"> {whole(merge.id)}</span>}
              </span>
            </>
          );
        }}
      />
    </>
  );
}

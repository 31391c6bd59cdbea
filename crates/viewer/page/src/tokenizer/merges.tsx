// The merges by rank.
import { useCallback } from "preact/hooks";
import { address, get } from "../api/request";
import type { Merge, Merges as MergesPage } from "../api/token-types";
import type { Model } from "../api/types";
import { whole } from "../format";
import { choose } from "../route";
import { Problem } from "../ui/notice";
import { usePages } from "../ui/pages";
import { Search } from "../ui/search";
import { chosen } from "../ui/view";
import { VirtualRows } from "../ui/virtual";
import { Piece } from "./piece";

export function Merges({ model }: { model: Model }) {
  const search = chosen("search");
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
  const pages = usePages<Merge>(`${model.id} merges ${search}`, load);
  const seen = useCallback((first: number, end: number) => pages.want(first, end), [pages]);
  return (
    <>
      <Search label="Search merges" value={search} onSearch={(search) => choose({ search })} />
      <p class="list-about faint" role="status">
        {pages.known
          ? search
            ? `${whole(pages.found)} of ${whole(pages.total)} merges`
            : `${whole(pages.total)} merges`
          : "\u00a0"}
      </p>
      {pages.failure.value && <Problem failure={pages.failure.value} />}
      <VirtualRows
        class="merge-rows"
        label="Merges"
        role="grid"
        count={pages.found}
        height={32}
        onSeen={seen}
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
                <Piece text={merge.left} /> + <Piece text={merge.right} />
              </span>
              <span role="gridcell" class="merge-result">
                <Piece text={merge.result} />
                {merge.id !== null && <span class="faint"> {whole(merge.id)}</span>}
              </span>
            </>
          );
        }}
      />
    </>
  );
}

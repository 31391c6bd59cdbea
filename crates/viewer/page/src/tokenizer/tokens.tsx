// Searchable list of tokens.
import { useCallback } from "preact/hooks";
import { address, get } from "../api/request";
import type { Token, TokenizerFacts, Tokens as TokensPage } from "../api/token-types";
import type { Model } from "../api/types";
import { significant, whole } from "../format";
import { link, navigate, setParams } from "../route";
import { ErrorMessage } from "../ui/states";
import { usePagedList } from "../ui/paged-list";
import { Search } from "../ui/search";
import { param } from "../ui/view";
import { VirtualList } from "../ui/virtual-list";
import { TokenText } from "./token-text";

const TYPES = ["normal", "unknown", "control", "user-defined", "unused", "byte"];

export function Tokens({ model, facts }: { model: Model; facts: TokenizerFacts }) {
  const search = param("search");
  const type = param("type");
  const load = useCallback(
    async (offset: number, limit: number, stop: AbortSignal) => {
      const { total, found, tokens } = await get<TokensPage>(
        address(["models", model.id, "tokens"], { search, type, offset, limit }),
        stop,
      );
      return { total, found, entries: tokens };
    },
    [model.id, search, type],
  );
  const pages = usePagedList<Token>(`${model.id} ${search} ${type}`, load);
  const seen = useCallback((first: number, end: number) => pages.request(first, end), [pages]);
  return (
    <>
      <div class="token-choices">
        <Search label="Search tokens, or #id" value={search} onSearch={(search) => setParams({ search })} />
        <select aria-label="Type" value={type} onChange={(event) => setParams({ type: event.currentTarget.value })}>
          <option value="">all types</option>
          {TYPES.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </div>
      <p class="list-about faint" role="status">
        {pages.known
          ? search || type
            ? `${whole(pages.found)} of ${whole(pages.total)} tokens`
            : `${whole(pages.total)} tokens`
          : "\u00a0"}
      </p>
      {pages.failure.value && <ErrorMessage failure={pages.failure.value} />}
      <VirtualList
        class={`token-rows${facts.has_scores ? " scored" : ""}`}
        label="Tokens"
        role="grid"
        count={pages.found}
        height={32}
        onSeen={seen}
        onChoose={(index) => {
          const token = pages.at(index);
          // The row of the token in the embedding.
          if (token)
            navigate(
              link([model.id, "tensors", "token_embd.weight"], {
                row: token.id,
                column: 0,
                at: `12,${token.id + 0.5},20`,
              }),
            );
        }}
        head={
          <div class="token-head" aria-hidden="true">
            <span>id</span>
            <span>token</span>
            <span>decodes to</span>
            <span>bytes</span>
            <span>type</span>
            {facts.has_scores && <span class="number">score</span>}
          </div>
        }
        render={(index) => <Row token={pages.at(index)} scores={facts.has_scores} />}
      />
    </>
  );
}

function Row({ token, scores }: { token: Token | undefined; scores: boolean }) {
  if (!token)
    return (
      <span role="gridcell" class="faint">
        …
      </span>
    );
  return (
    <>
      <span role="gridcell" class="token-id">
        {whole(token.id)}
      </span>
      <span role="gridcell" class="token-text">
        <TokenText text={token.text} />
        {token.text_bytes > 200 && <span class="faint"> … {whole(token.text_bytes)} B</span>}
      </span>
      <span role="gridcell" class="token-decoded">
        {token.stands_for !== null &&
          token.stands_for !== token.text &&
          (token.stands_for.includes("\ufffd") ? (
            <span class="token-part">part of a character</span>
          ) : (
            <TokenText text={token.stands_for} />
          ))}
      </span>
      <span role="gridcell" class="token-hex">
        {spaced(token.stands_for_hex ?? token.hex)}
      </span>
      <span role="gridcell" class="token-type">
        {token.type !== "normal" && <span class="chip">{token.type}</span>}
        {token.roles.map((role) => (
          <span key={role} class="chip role">
            {role}
          </span>
        ))}
      </span>
      {scores && (
        <span role="gridcell" class="number">
          {token.score === null ? "" : significant(token.score)}
        </span>
      )}
    </>
  );
}

/** Formats the first bytes in hexadecimal. */
export function spaced(hex: string): string {
  const shown = hex.slice(0, 48).replace(/(..)(?=.)/g, "$1 ");
  return hex.length > 48 ? `${shown} …` : shown;
}

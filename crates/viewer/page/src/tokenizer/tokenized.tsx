// Tokens of a text: pieces, ids, bytes, merges.
import { useSignal } from "@preact/signals";
import { useId, useMemo } from "preact/hooks";
import { post } from "../api/request";
import { useRequest } from "../api/resource";
import type { EncodedToken, Tokenized } from "../api/token-types";
import type { Model } from "../api/types";
import { plural, whole } from "../format";
import { modelName } from "../ui/model-name";
import { Copy } from "../ui/copy";
import { Loaded } from "../ui/states";
import { type Characters, charactersOf } from "./characters";
import { wordOf } from "./merge-forest";
import { MergeTree } from "./merge-tree";
import { TokenText } from "./token-text";
import { spaced } from "./tokens";

/** Number of tokens shown at first. */
const INITIAL_COUNT = 500;

interface Props {
  model: Model;
  request: { text: string; add_special: boolean; parse_special: boolean };
  named: boolean;
}

export function TokenizedText({ model, request, named }: Props) {
  const body = JSON.stringify(request);
  const answer = useRequest<Tokenized>(`${model.id} ${body}`, (stop) =>
    post<Tokenized>(`models/${model.id}/tokenize`, request, stop),
  );
  return (
    <section class="encoded" aria-label={`Tokens of ${modelName(model)}`}>
      {named && <h2>{modelName(model)}</h2>}
      <Loaded
        resource={answer}
        render={(value) => <Tokens value={value} request={request} />}
        fallback={<div class="pieces-room" />}
      />
    </section>
  );
}

function Tokens({ value, request }: { value: Tokenized; request: Props["request"] }) {
  const id = useId();
  const chosen = useSignal(0);
  const all = useSignal(false);
  const at = Math.min(chosen.value, value.tokens.length - 1);
  const token = value.tokens[at];
  const word = useMemo(() => wordOf(value, at), [value, at]);
  const shown = all.value ? value.tokens : value.tokens.slice(0, INITIAL_COUNT);
  const bytes = new TextEncoder().encode(request.text).length;
  function key(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -shown.length, End: shown.length }[
      event.key
    ];
    if (step === undefined) return;
    event.preventDefault();
    chosen.value = Math.max(0, Math.min(shown.length - 1, at + step));
  }
  const characters = useMemo(() => charactersOf(value.tokens), [value]);
  const box = (piece: EncodedToken, i: number) => (
    <span
      key={i}
      id={`${id}-${i}`}
      role="option"
      aria-selected={i === at}
      class={`piece-box tint-${i % 4}${piece.type === "control" ? " control" : ""}${i === at ? " chosen" : ""}`}
      onClick={() => (chosen.value = i)}
    >
      {piece.stands_for.includes("\ufffd") ? (
        // A part of a character has bytes, but no text.
        <code class="piece">{spaced(piece.hex).toUpperCase()}</code>
      ) : (
        <TokenText text={piece.stands_for === "" ? piece.text : piece.stands_for} />
      )}
      <span class="piece-id">{piece.id}</span>
    </span>
  );
  return (
    <>
      <p class="list-about" role="status">
        <strong>{plural(value.ids.length, "token")}</strong>{" "}
        <span class="faint">
          {plural(bytes, "byte")}
          {value.ids.length > 0 && `, ${(bytes / value.ids.length).toFixed(2)} bytes/token`}
        </span>
      </p>
      <div
        class="pieces"
        role="listbox"
        aria-label="Tokens"
        aria-orientation="horizontal"
        tabIndex={0}
        aria-activedescendant={token ? `${id}-${at}` : undefined}
        onKeyDown={key}
      >
        {grouped(shown, characters).map((part) => {
          const boxes = part.tokens.map((piece, k) => box(piece, part.start + k));
          if (part.text === null) return boxes;
          return (
            <span key={`group ${part.start}`} class="piece-group" role="group" aria-label={`Together: ${part.text}`}>
              <span class="piece-parts">{boxes}</span>
              <span class="piece-whole" aria-hidden="true">
                <TokenText text={part.text} />
              </span>
            </span>
          );
        })}
      </div>
      {!all.value && value.tokens.length > INITIAL_COUNT && (
        <button type="button" onClick={() => (all.value = true)}>
          Show all
        </button>
      )}
      {token && (
        <div class="piece-about">
          <p>
            <TokenText text={token.text} /> <span class="faint">id</span> {whole(token.id)}{" "}
            <span class="faint">bytes</span> <code>{spaced(token.hex)}</code>{" "}
            {token.type !== "normal" && <span class="chip">{token.type}</span>}
          </p>
          {word ? <MergeTree word={word} /> : <p class="faint">No merges.</p>}
        </div>
      )}
      <details class="ids">
        <summary>Token IDs</summary>
        <Copy text={JSON.stringify(value.ids)} label="Copy IDs" />
        <p class="ids-text">[{value.ids.join(", ")}]</p>
      </details>
    </>
  );
}

interface Part {
  start: number;
  tokens: EncodedToken[];
  /** Text of tokens that are parts of its characters; null for a single token. */
  text: string | null;
}

/** Returns the tokens in order, those that share a character together. */
function grouped(tokens: EncodedToken[], characters: Characters[]): Part[] {
  const parts: Part[] = [];
  let next = 0;
  for (const { start, end, text } of characters) {
    if (end > tokens.length) break;
    for (; next < start; next += 1) parts.push({ start: next, tokens: tokens.slice(next, next + 1), text: null });
    parts.push({ start, tokens: tokens.slice(start, end), text });
    next = end;
  }
  for (; next < tokens.length; next += 1) parts.push({ start: next, tokens: tokens.slice(next, next + 1), text: null });
  return parts;
}

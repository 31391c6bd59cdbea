// Merge trees of a word.
import type { Tokenized, Word } from "../api/token-types";

/** Returns the word of a token; null for special tokens and tokenizers without merges. */
export function wordOf(tokenized: Tokenized, token: number): Word | null {
  for (const step of tokenized.steps) {
    const [first, end] = step.tokens;
    if (token < first || token >= end) continue;
    // BOS and EOS are outside the range of the words.
    let at = first;
    for (const word of step.words ?? []) {
      if (token >= at && token < at + word.tokens) return word;
      at += word.tokens;
    }
  }
  return null;
}

/** A symbol, or the result of a merge. */
export interface Node {
  text: string;
  /** Horizontal center in units of symbols. */
  x: number;
  /** Height above the symbols. */
  height: number;
  parts: [Node, Node] | null;
  /** Number of the merge from 1; 0 for symbols. */
  step: number;
  rank: number | null;
  score: number | null;
}

/** Returns one merge tree for each token of a word. */
export function trees(word: Word): Node[] {
  const nodes: Node[] = word.symbols.map((text, x) => ({
    text,
    x,
    height: 0,
    parts: null,
    step: 0,
    rank: null,
    score: null,
  }));
  word.merges.forEach(({ at, rank, score }, i) => {
    const [left, right] = [nodes[at], nodes[at + 1]];
    if (!left || !right) return;
    const merged: Node = {
      text: left.text + right.text,
      x: (left.x + right.x) / 2,
      height: 1 + Math.max(left.height, right.height),
      parts: [left, right],
      step: i + 1,
      rank,
      score,
    };
    nodes.splice(at, 2, merged);
  });
  return nodes;
}

// How merges make tokens of the symbols of a word.
import type { Tokenized, Word } from "../api/token-types";

/** The word that a token is of; null for special tokens and kinds of tokenizers without merges. */
export function wordOf(of: Tokenized, token: number): Word | null {
  for (const step of of.steps) {
    const [first, end] = step.tokens;
    if (token < first || token >= end) continue;
    // Tokens that were added at the ends stand before and after those of the words.
    let at = first;
    for (const word of step.words ?? []) {
      if (token >= at && token < at + word.tokens) return word;
      at += word.tokens;
    }
  }
  return null;
}

/** A node of the drawing: a symbol, or what two others were joined to. */
export interface Node {
  text: string;
  /** Middle, in columns of symbols. */
  x: number;
  /** Steps above the symbols. */
  height: number;
  parts: [Node, Node] | null;
  /** When it was made, from 1; 0 for symbols. */
  step: number;
  rank: number | null;
  score: number | null;
}

/** The trees that a word's merges make: one for each of its tokens. */
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
    const joined: Node = {
      text: left.text + right.text,
      x: (left.x + right.x) / 2,
      height: 1 + Math.max(left.height, right.height),
      parts: [left, right],
      step: i + 1,
      rank,
      score,
    };
    nodes.splice(at, 2, joined);
  });
  return nodes;
}

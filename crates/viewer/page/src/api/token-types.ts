// Documents of docs/viewer-api.md about tokenizers and chat templates.

export interface TokenizerFacts {
  model: string | null;
  pre: string | null;
  tokens: number;
  merges: number | null;
  adds_first: boolean | null;
  has_scores: boolean;
  error: string | { message: string } | null;
}

export interface Token {
  id: number;
  text: string;
  text_bytes: number;
  hex: string;
  /** Null if the tokenizer cannot be loaded. */
  stands_for: string | null;
  stands_for_hex: string | null;
  type: string;
  score: number | null;
  roles: string[];
}

export interface Tokens {
  total: number;
  found: number;
  offset: number;
  tokens: Token[];
}

export interface Merge {
  rank: number;
  left: string;
  right: string;
  result: string;
  id: number | null;
}

export interface Merges {
  total: number;
  found: number;
  offset: number;
  merges: Merge[];
}

export interface Tokenized {
  ids: number[];
  tokens: EncodedToken[];
  steps: Segment[];
}

export interface EncodedToken {
  id: number;
  text: string;
  stands_for: string;
  hex: string;
  type: string;
}

export interface Segment {
  text: string;
  kind: "token" | "text";
  tokens: [number, number];
  words: Word[] | null;
}

export interface Word {
  symbols: string[];
  tokens: number;
  merges: { at: number; left: string; right: string; rank: number | null; score: number | null }[];
}

export interface Templates {
  templates: { name: string | null; key_n: number; text: string; text_bytes: number }[];
}

export interface Message {
  role: string;
  content: string;
}

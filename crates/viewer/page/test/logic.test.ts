// Logic of the views: tensor tree, merge trees, graph segments.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../src/api/request";
import type { GraphDocument, Operation, RopeProjection, Tensor } from "../src/api/tensor-types";
import type { Summary } from "../src/api/types";
import { folded, inputs, segments } from "../src/graph/segments";
import { groupLabel } from "../src/heatmap/tiles";
import { groups } from "../src/overview/groups";
import { groupsOf } from "../src/tensors/axes";
import { pairOf, partnerOf } from "../src/tensors/rope";
import { filtered, rows } from "../src/tensors/tree";
import { charactersOf } from "../src/tokenizer/characters";
import { trees, wordOf } from "../src/tokenizer/merge-forest";
import { wordsOf } from "../src/ui/error-words";

function tensor(n: number, name: string, bytes = 100, type = "F16"): Tensor {
  const block = /blk\.(\d+)\.(.*)/.exec(name);
  return {
    n,
    name,
    name_bytes: name.length,
    type,
    shape: [bytes / 2],
    parameters: bytes / 2,
    bytes,
    file: 0,
    offset: n * 100,
    missing_bytes: 0,
    damage: null,
    block: block ? Number(block[1]) : null,
    kind: block?.[2] ?? name,
  };
}
const tensors = [
  "token_embd.weight",
  "blk.10.attn_q.weight",
  "blk.2.attn_q.weight",
  "blk.2.ffn_up.weight",
  "output.weight",
].map((name, n) => tensor(n, name, 100 * (n + 1)));

test("the tree lists layers in numeric order", () => {
  const list = rows(tensors, "tree", new Set(["blk.2"]), false);
  assert.deepEqual(
    list.map(({ name, level }) => `${level} ${name}`),
    [
      "1 token_embd.weight",
      "1 output.weight",
      "1 blk.2",
      "2 attention",
      "3 attn_q.weight",
      "2 feed-forward",
      "3 ffn_up.weight",
      "1 blk.10",
    ],
  );
  assert.equal(list[2]?.bytes, 700);
});

test("filters match substrings, globs and types", () => {
  const names = (search: string, type = "") => filtered(tensors, search, type).map(({ n }) => n);
  assert.deepEqual(names("ATTN"), [1, 2]);
  assert.deepEqual(names("blk.? weight*"), []);
  assert.deepEqual(names("blk.?.*"), [2, 3]);
  assert.deepEqual(names("(("), []);
  assert.deepEqual(names("", "Q8_0"), []);
  assert.deepEqual(names("********************************x"), []);
});

test("sort orders", () => {
  const order = (by: Parameters<typeof rows>[1]) => rows(tensors, by, new Set(), false).map(({ tensor }) => tensor?.n);
  assert.deepEqual(order("size"), [4, 3, 2, 1, 0]);
  assert.deepEqual(order("name"), [2, 3, 1, 4, 0]);
  assert.deepEqual(order("file"), [0, 1, 2, 3, 4]);
});

test("groups are sorted by size", () => {
  assert.deepEqual(
    groups(tensors).map(({ name, bytes }) => [name, bytes]),
    [
      ["attention", 500],
      ["output", 500],
      ["feed-forward", 400],
      ["embedding", 100],
    ],
  );
});

test("merge trees of a word", () => {
  const word = {
    symbols: ["l", "o", "w", "er"],
    tokens: 2,
    merges: [
      { at: 1, left: "o", right: "w", rank: 5, score: null },
      { at: 0, left: "l", right: "ow", rank: 9, score: null },
    ],
  };
  const roots = trees(word);
  assert.deepEqual(
    roots.map(({ text }) => text),
    ["low", "er"],
  );
  assert.equal(roots[0]?.height, 2);
  assert.equal(roots[0]?.step, 2);
  assert.equal(roots[0]?.parts?.[1].text, "ow");
  const of = {
    ids: [1, 2, 3],
    tokens: [],
    steps: [{ text: "lower", kind: "text" as const, tokens: [1, 3] as [number, number], words: [word] }],
  };
  assert.equal(wordOf(of, 0), null);
  assert.equal(wordOf(of, 1), word);
  assert.equal(wordOf(of, 2), word);
});

test("a graph is split into layers", () => {
  const operation = (number: number, op: string, ...weights: string[]): Operation => ({
    program: "main",
    number,
    op,
    shape: "tokens x 1",
    weights,
    bytes_read: weights.length,
    multiply_adds: 1,
  });
  const list = [
    operation(0, "embed", "token_embd.weight"),
    operation(1, "scale"),
    operation(2, "norm", "blk.0.attn_norm.weight"),
    operation(3, "add"),
    operation(4, "norm", "blk.1.attn_norm.weight"),
    operation(5, "add"),
    operation(6, "norm", "output_norm.weight"),
    operation(7, "product", "output.weight"),
  ];
  const graph: GraphDocument = {
    architecture: "x",
    graph: { main: { ops: [], outputs: [] } },
    operations: list,
    bytes_read: 5,
    multiply_adds: 8,
  };
  assert.deepEqual(
    segments(graph).map(({ name, first, end, bytes }) => [name, first, end, bytes]),
    [
      ["input", 0, 2, 1],
      ["layer 0", 2, 4, 1],
      ["layer 1", 4, 6, 1],
      ["output", 6, 8, 2],
    ],
  );
  const folds = (from: GraphDocument) => folded(segments(from), from.graph).map(({ first, count }) => [first, count]);
  assert.deepEqual(folds(graph), [
    [0, 1],
    [1, 2],
    [3, 1],
  ]);
  // Layers with another mask are not folded.
  const ops = list.map((_, number) => (number === 5 ? { mask: { sliding_window: 8 } } : {}));
  assert.equal(folds({ ...graph, graph: { main: { ops, outputs: [] } } }).length, 4);
});

test("inputs of operations are those of docs/graph.md", () => {
  const values = (op: Record<string, unknown>) => inputs(op).map(({ value }) => value);
  assert.deepEqual(values({ op: "embedding", weight: 3 }), []);
  assert.deepEqual(values({ op: "matmul", x: 4, weight: 2 }), [4]);
  assert.deepEqual(values({ op: "add", a: 1, b: 2 }), [1, 2]);
  assert.deepEqual(values({ op: "selective_scan", x: 1, dt: 2, b: 3, c: 4, a: 9, d: 9 }), [1, 2, 3, 4]);
  assert.deepEqual(values({ op: "attention", query: 5, kv: { cached: { key: 6, value: 4, state: 0 } } }), [5, 6, 4]);
  assert.deepEqual(values({ op: "attention", query: 5, kv: { encoder: { state: 0 } } }), [5]);
  assert.deepEqual(
    values({
      op: "attention",
      query: 5,
      kv: { cached: { key: 6, value: 4, state: 0 } },
      selection: { indices: 7 },
      compressed: { key: 8, value: 9, state: 1 },
    }),
    [5, 6, 4, 7, 8, 9],
  );
  assert.deepEqual(
    values({ op: "linear_attention", query: 1, key: 2, value: 3, heads: 4, decay: { value: 5 }, state: 0 }),
    [1, 2, 3, 5],
  );
});

test("RoPE pairs of interleaved and NeoX heads", () => {
  const rope = (layout: RopeProjection["layout"], start = 0, dimensions = 8): RopeProjection => ({
    tensor: "blk.0.attn_q.weight",
    first_row: 0,
    rows: 32,
    heads: 2,
    layout,
    start,
    dimensions,
    freq_base: 10_000,
  });
  const pairs = (of: RopeProjection) => [0, 1, 2, 5, 9].map((dimension) => pairOf(of, dimension));
  assert.deepEqual(pairs(rope("interleaved")), ["pair 0a", "pair 0b", "pair 1a", "pair 2b", "not rotated"]);
  assert.deepEqual(pairs(rope("neox")), ["pair 0a", "pair 1a", "pair 2a", "pair 1b", "not rotated"]);
  // Rows of the second head of 16 dimensions, of which 4 to 11 are rotated.
  const partners = (of: RopeProjection) => [16, 20, 21, 24, 27, 28].map((row) => partnerOf(of, row, 16));
  assert.deepEqual(partners(rope("interleaved", 4)), [null, 21, 20, 25, 26, null]);
  assert.deepEqual(partners(rope("neox", 4)), [null, 24, 25, 20, 23, null]);
});

test("heads of fused projections are named", () => {
  const summary = { head_count: 8, head_count_kv: 2 } as Summary;
  const fused = { kind: "attn_qkv.weight", shape: [64, 192], rows: 192, columns: 64 };
  const { rows } = groupsOf(fused, summary);
  assert.equal(rows?.size, 16);
  assert.deepEqual(rows && [0, 7, 8, 9, 10, 11].map((head) => groupLabel(rows, head)), [
    "Q head 0",
    "Q head 7",
    "K head 0",
    "K head 1",
    "V head 0",
    "V head 1",
  ]);
  assert.equal(groupsOf({ ...fused, rows: 190 }, summary).rows, null);
});

test("tokens that are parts of a character are grouped", () => {
  const groups = (...hex: string[]) => charactersOf(hex.map((hex) => ({ hex })));
  // SmolLM2: "a" and the characters of U+4E16 U+754C.
  assert.deepEqual(groups("61", "e4b8", "96", "e7", "95", "8c", "21"), [
    { start: 1, end: 3, text: "世" },
    { start: 3, end: 6, text: "界" },
  ]);
  // A token with the end of one character and the start of the next.
  assert.deepEqual(groups("e4", "b896e7", "958c"), [{ start: 0, end: 3, text: "世界" }]);
  // Whole characters, a lone byte, and a character that is never completed.
  assert.deepEqual(groups("e4b896", "96", "e4", "61", "f09f"), []);
  assert.deepEqual(groups("", "20f0", "9f", "9880"), [{ start: 1, end: 4, text: " 😀" }]);
});

test("errors have words for people", () => {
  const words = (code: string, message: string, help: string | null) => wordsOf(new ApiError(400, code, message, help));
  assert.deepEqual(words("request-invalid", "`x` is missing", "Read `docs/viewer-api.md`."), {
    message: "`x` is missing",
    help: null,
  });
  assert.deepEqual(words("name-not-found", "no such key", "List the tensors with `gguf inspect --tensors`."), {
    message: "No such key",
    help: "It may have been renamed or removed. Choose another one from the list.",
  });
  assert.match(words("template-syntax", "line 3: x", "Set the template with `gguf edit`").help ?? "", /marked line/);
  // Help about the file itself is kept, commands of the terminal are not.
  assert.equal(words("graph-limit", "x", "Do not use the file.").help, "Do not use the file.");
  assert.equal(words("graph-invalid", "x", "Store it again with `gguf graph --store`.").help, null);
});

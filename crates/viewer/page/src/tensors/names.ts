// Search in tensor names, also by the names of Hugging Face checkpoints.

/** Parts of names in checkpoints and in GGUF. Longer parts come first. */
const ALIASES: [RegExp, string][] = [
  [/^(?:model|transformer|language_model|encoder|decoder)\./, ""],
  [/\b(?:layers|h|blocks|block|layer)\.(\d+)\.?/, "blk.$1."],
  [/embed_tokens|word_embeddings|\bwte\b/, "token_embd"],
  [/embed_positions|\bwpe\b/, "position_embd"],
  [/lm_head|embed_out/, "output"],
  [/\bself_attn\.|\battention\.self\.|\battention\./, "attn_"],
  [/\bmlp\.|\bfeed_forward\./, "ffn_"],
  [/post_attention_layernorm/, "ffn_norm"],
  [/input_layernorm|\bln_1\b/, "attn_norm"],
  [/\bln_2\b/, "ffn_norm"],
  [/\bfinal_layernorm|^norm(?=\.weight$)|\bln_f\b/, "output_norm"],
  [/(?:attn_)?qkv_proj|(?:attn_)?c_attn/, "attn_qkv"],
  [/(?:attn_)?\bq_proj|attn_q_proj/, "attn_q"],
  [/(?:attn_)?\bk_proj|attn_k_proj/, "attn_k"],
  [/(?:attn_)?\bv_proj|attn_v_proj/, "attn_v"],
  [/(?:attn_)?\bo_proj|attn_o_proj/, "attn_output"],
  [/(?:ffn_)?\bgate_proj|ffn_gate_proj/, "ffn_gate"],
  [/(?:ffn_)?\bup_proj|ffn_up_proj/, "ffn_up"],
  [/(?:ffn_)?\bdown_proj|ffn_down_proj/, "ffn_down"],
  [/attn_q_norm|\bq_norm/, "attn_q_norm"],
  [/attn_k_norm|\bk_norm/, "attn_k_norm"],
];

/** Returns the GGUF form of a name or a part of one in a checkpoint: `layers.5.self_attn.q_proj` is `blk.5.attn_q`. */
export function fromCheckpoint(word: string): string {
  return ALIASES.reduce((name, [pattern, to]) => name.replace(pattern, to), word);
}

/** Whether a name contains all words of a search, or their GGUF forms. Words with `*` or `?` are globs of the whole name. */
export function matches(name: string, search: string): boolean {
  const lower = name.toLowerCase();
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return words.every((word) => matchesWord(lower, word) || matchesWord(lower, fromCheckpoint(word)));
}

function matchesWord(name: string, word: string): boolean {
  if (!/[*?]/.test(word)) return name.includes(word);
  // Collapse runs of `*` to avoid catastrophic backtracking.
  const pattern = word
    .replace(/\*+/g, "*")
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", ".*")
    .replaceAll("?", ".");
  return new RegExp(`^${pattern}$`, "s").test(name);
}

// Explanations of terms in plain words.

export const TERMS = {
  parameters: "All trained numbers of the model, also called weights.",
  "adapter parameters": "All trained numbers of the adapter. It changes a base model and does not run alone.",
  size: "Size of the file. Bits per weight are its tensor data divided by the number of weights.",
  context: "Number of tokens that the model was trained to take into account at once.",
  vocabulary: "The pieces of text, called tokens, that the model reads and writes.",
  architecture: "The kind of model: which computations its weights belong to.",
  attention:
    "Heads compare each token with earlier ones. With fewer KV heads than heads (grouped-query attention), several heads share keys and values, which makes the KV cache smaller.",
  "sliding window": "Layers with a sliding window attend to this many last tokens only.",
  experts: "Mixture of experts: a router chooses a few feed-forward networks for each token; the others rest.",
  RoPE: "Rotary position embedding: queries and keys are rotated by their position. θ is the base of the frequencies; a larger one suits longer contexts.",
  "special tokens": "Tokens with a role, such as the begin (BOS) or the end (EOS) of a text.",
  "chat template": "A program that turns a conversation into the prompt that the model was trained on.",
  "KV cache":
    "Keys and values of all tokens so far, kept so that they are not computed again. It grows with the context.",
  "offloaded layers":
    "Layers whose weights and KV cache are on the device (--n-gpu-layers in llama.cpp). The output counts as one more.",
  "memory bandwidth":
    "Each token reads all active weights and the KV cache once, so bandwidth divided by those bytes bounds the speed.",
  rank: "Inner dimension of the two matrices of a LoRA adapter. Its change is scaled by alpha divided by the rank.",
  RMSE: "Root mean square of the differences between the weights of both models.",
  "relative RMSE": "RMSE divided by the root mean square of the original weights.",
  "cosine similarity": "Cosine of the angle between both tensors as vectors; 1 means the same direction.",
  "std dev": "Standard deviation: typical distance of a weight from the mean.",
  "pre-tokenizer": "Rules that split a text into words before merges are applied.",
  norms: "Scales (and biases) that normalize the values between other operations.",
  embedding: "A vector for each token of the vocabulary, or for each position.",
  output: "Output projection (LM head): turns the last hidden state into a score for each token.",
  "feed-forward": "The feed-forward network (FFN) of each layer, which transforms each token by itself.",
  "state space": "Weights of state-space or linear-attention layers, which keep a state instead of a KV cache.",
  convolution: "Weights that combine neighbouring frames or tokens.",
} as const;

/** Whether a term has an explanation. */
export function isTerm(name: string): name is keyof typeof TERMS {
  return Object.hasOwn(TERMS, name);
}

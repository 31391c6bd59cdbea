"""Models that neither llama.cpp nor `transformers` computes as their authors do, written down in numpy.

Used by graph_logits.py. Each reads its own keys and tensors from the file, in F64. Sources: Grok's `model.py` and its second
generation in SGLang, the code beside the checkpoints of GroveMoE, Spark and SmallThinker, Nvidia's DeciLM, MiniMax M3 in `transformers`.
"""

import math

import numpy as np


class File:
    def __init__(self, path):
        import gguf

        reader = gguf.GGUFReader(path)
        self.keys = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
        self.arch = self.keys["general.architecture"]
        self.tensors = {t.name: t.data.reshape([int(n) for n in reversed(t.shape)]).astype(np.float64) for t in reader.tensors}
        self.layers = self.key("block_count")
        self.heads = self.key("attention.head_count")
        self.kv = self.key("attention.head_count_kv")
        self.epsilon = self.key("attention.layer_norm_rms_epsilon")

    def key(self, name, absent=None):
        return self.keys.get(f"{self.arch}.{name}", absent)

    def of(self, layer, name):
        return self.tensors.get(f"blk.{layer}.{name}")

    def norm(self, x, weight=1.0):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon) * weight

    def logits(self, x):
        output = self.tensors.get("output.weight", self.tensors["token_embd.weight"])
        return self.norm(x, self.tensors["output_norm.weight"]) @ output.T


def rotated(x, base, count=None, neighbours=False, frequencies=None):
    """x: [tokens, heads, length]."""
    count = count or x.shape[-1]
    half = count // 2
    angles = np.arange(len(x))[:, None] * (base ** (-2.0 * np.arange(half) / count) if frequencies is None else frequencies)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    first, second = (slice(0, count, 2), slice(1, count, 2)) if neighbours else (slice(0, half), slice(half, count))
    out = x.copy()
    out[..., first] = x[..., first] * cos - x[..., second] * sin
    out[..., second] = x[..., first] * sin + x[..., second] * cos
    return out


def attention(q, k, v, scale, mask, cap=None):
    """q: [tokens, heads, length]; mask: [tokens, tokens] or one for each head of keys."""
    group = q.shape[1] // k.shape[1]
    out = []
    for head in range(q.shape[1]):
        scores = scale * q[:, head] @ k[:, head // group].T
        if cap:
            scores = cap * np.tanh(scores / cap)
        seen = mask if mask.ndim == 2 else mask[head // group]
        scores = np.where(seen, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        out.append(weights / weights.sum(-1, keepdims=True) @ v[:, head // group])
    return np.stack(out, 1).reshape(len(q), -1)


def causal(count, window=None):
    i, j = np.arange(count)[:, None], np.arange(count)
    return (j <= i) & (i - j < (window or count))


def silu(x):
    return x / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def plain(function):
    return lambda gate, up: function(gate) * up


def clamped(gate, up):
    gate, up = np.minimum(gate, 7.0), np.clip(up, -7.0, 7.0)
    return gate * sigmoid(1.702 * gate) * (up + 1)


def fed(file, layer, x, function, end=""):
    gate, up, down = (file.of(layer, f"ffn_{part}{end}.weight") for part in ("gate", "up", "down"))
    return function(x @ gate.T, x @ up.T) @ down.T


def routed(file, layer, x, weights, chosen, function, end="_exps", share=1):
    """weights and chosen experts: [tokens, used]."""
    gate, up, down = (file.of(layer, f"ffn_{part}{end}.weight") for part in ("gate", "up", "down"))
    out = np.zeros_like(x)
    for row in range(len(x)):
        for weight, expert in zip(weights[row], chosen[row] // share):
            out[row] += weight * (function(gate[expert] @ x[row], up[expert] @ x[row]) @ down[expert].T)
    return out


def best(scores, used):
    return np.argsort(-scores, -1, kind="stable")[:, :used]


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def queries_keys_values(file, layer, x, heads=None, kv=None):
    heads, kv = heads or file.heads, kv or file.kv
    parts = zip("qkv", (heads, kv, kv))
    fused = file.of(layer, "attn_qkv.weight")
    if fused is not None:
        length = len(fused) // (heads + 2 * kv)
        made = (x @ fused.T).reshape(len(x), -1, length)
        return np.split(made, [heads, heads + kv], axis=1)
    return [(x @ file.of(layer, f"attn_{part}.weight").T).reshape(len(x), count, -1) for part, count in parts]


def deci(file, x):
    base = file.key("rope.freq_base")
    counts = lambda name: [name] * file.layers if np.isscalar(name) else list(name)  # noqa: E731
    heads, kv, widths = counts(file.heads), counts(file.kv), counts(file.key("feed_forward_length"))
    for layer in range(file.layers):
        if heads[layer]:
            y = file.norm(x, file.of(layer, "attn_norm.weight"))
            if kv[layer]:
                q, k, v = queries_keys_values(file, layer, y, heads[layer], kv[layer])
                q, k = (rotated(part, base, neighbours=True) for part in (q, k))
                y = attention(q, k, v, q.shape[-1] ** -0.5, causal(len(x)))
            x = x + y @ file.of(layer, "attn_output.weight").T
        if widths[layer]:
            x = x + fed(file, layer, file.norm(x, file.of(layer, "ffn_norm.weight")), plain(silu))
    return file.logits(x)


def stretched(file, base, count):
    """Frequencies under YaRN, and what rotated numbers are multiplied with."""
    factor, original = file.key("rope.scaling.factor"), file.key("rope.scaling.original_context_length")
    bounds = [file.key(f"rope.scaling.yarn_beta_{name}") for name in ("fast", "slow")]
    at = [count * math.log(original / (2 * math.pi * bound)) / (2 * math.log(base)) for bound in bounds]
    low, high = max(math.floor(at[0]), 0), min(math.ceil(at[1]), count - 1)
    pairs = np.arange(count // 2)
    kept = 1 - np.clip((pairs - low) / max(high - low, 0.001), 0, 1)
    return base ** (-2.0 * pairs / count) * (kept + (1 - kept) / factor), 0.1 * math.log(factor) + 1


def grok(file, x):
    x = x * file.key("embedding_scale", 78.38367176906169)
    scale, cap = file.key("attention.output_scale", 0.08838834764831845), file.key("attn_logit_softcapping", 30.0)
    router_cap, base = file.key("router_logit_softcapping"), file.key("rope.freq_base", 1e4)
    frequencies, magnitude = None, 1.0
    if file.key("rope.scaling.type") == "yarn":
        frequencies, magnitude = stretched(file, base, file.key("attention.key_length"))
    for layer in range(file.layers):
        y = file.norm(x, file.of(layer, "attn_norm.weight"))
        q, k, v = queries_keys_values(file, layer, y)
        q, k = (magnitude * rotated(part, base, frequencies=frequencies) for part in (q, k))
        y = attention(q, k, v, scale, causal(len(x)), cap) @ file.of(layer, "attn_output.weight").T
        x = x + file.norm(y, file.of(layer, "attn_output_norm.weight"))
        y = file.norm(x, file.of(layer, "ffn_norm.weight"))
        scores = y @ file.of(layer, "ffn_gate_inp.weight").T
        scores = softmax(router_cap * np.tanh(scores / router_cap) if router_cap else scores)
        chosen = best(scores, file.key("expert_used_count"))
        z = routed(file, layer, y, np.take_along_axis(scores, chosen, -1), chosen, plain(gelu))
        if file.of(layer, "ffn_up.weight") is not None:
            z = (z + fed(file, layer, y, plain(gelu))) / math.sqrt(2)
        behind = file.of(layer, "layer_output_norm.weight")
        x = x + file.norm(z, file.of(layer, "post_ffw_norm.weight") if behind is None else behind)
    logits = file.logits(x) * file.key("logit_scale", 0.5773502691896257)
    last = file.key("final_logit_softcapping")
    return last * np.tanh(logits / last) if last else logits


def grove(file, x):
    for layer in range(file.layers):
        y = file.norm(x, file.of(layer, "attn_norm.weight"))
        q, k, v = queries_keys_values(file, layer, y)
        q, k = (file.norm(part, file.of(layer, f"attn_{name}_norm.weight")) for part, name in ((q, "q"), (k, "k")))
        q, k = (rotated(part, file.key("rope.freq_base")) for part in (q, k))
        y = attention(q, k, v, q.shape[-1] ** -0.5, causal(len(x)))
        x = x + y @ file.of(layer, "attn_output.weight").T
        y = file.norm(x, file.of(layer, "ffn_norm.weight"))
        scores = softmax(y @ file.of(layer, "ffn_gate_inp.weight").T)
        chosen = best(scores, file.key("expert_used_count"))
        weights = np.take_along_axis(scores, chosen, -1)
        weights /= weights.sum(-1, keepdims=True)
        small = routed(file, layer, y, weights, chosen, plain(silu), "_chexps", file.key("experts_per_group"))
        x = x + routed(file, layer, y, weights, chosen, plain(silu)) + file.key("expert_group_scale") * small
    return file.logits(x)


def spark(file, x):
    window, pattern = file.key("attention.sliding_window"), file.key("attention.sliding_window_pattern")
    for layer in range(file.layers):
        is_windowed = bool(pattern[layer])
        end = "_swa" if is_windowed else ""
        base = file.key(f"rope.freq_base{end}", file.key("rope.freq_base"))
        count = file.key(f"rope.dimension_count{end}", file.key("rope.dimension_count"))
        y = file.norm(x, file.of(layer, "attn_norm.weight"))
        q, k, v = queries_keys_values(file, layer, y)
        q, k = (rotated(part, base, count) for part in (q, k))
        z = attention(q, k, v, q.shape[-1] ** -0.5, causal(len(x), window if is_windowed else None))
        gate = sigmoid(y @ file.of(layer, "attn_gate.weight").T)
        z = (z.reshape(len(x), file.heads, -1) * gate[:, :, None]).reshape(len(x), -1)
        x = x + z @ file.of(layer, "attn_output.weight").T
        x = x + fed(file, layer, file.norm(x, file.of(layer, "ffn_norm.weight")), plain(gelu))
    return file.logits(x)


def smallthinker(file, x):
    window, base = file.key("attention.sliding_window"), file.key("rope.freq_base")
    for layer in range(file.layers):
        y = file.norm(x, file.of(layer, "attn_norm.weight"))
        q, k, v = queries_keys_values(file, layer, y)
        if layer % 4:
            q, k = (rotated(part, base) for part in (q, k))
        y = attention(q, k, v, q.shape[-1] ** -0.5, causal(len(x), window if layer % 4 else None))
        scores = x @ file.of(layer, "ffn_gate_inp.weight").T
        scores = sigmoid(scores) if file.key("expert_gating_func") == 2 else softmax(scores)
        chosen = best(scores, file.key("expert_used_count"))
        weights = np.take_along_axis(scores, chosen, -1)
        x = x + y @ file.of(layer, "attn_output.weight").T
        y = file.norm(x, file.of(layer, "ffn_norm.weight"))
        x = x + routed(file, layer, y, weights / weights.sum(-1, keepdims=True), chosen, plain(lambda z: np.maximum(z, 0)))
    return file.logits(x)


def chosen_blocks(file, layer, y, base, count):
    """Which tokens each one sees, for each head of keys."""
    heads, block = file.key("attention.indexer.head_count"), file.key("attention.indexer.block_size")
    most, local = file.key("attention.indexer.top_k"), file.key("attention.indexer.local_blocks")
    q, k = (
        rotated(file.norm((y @ file.of(layer, f"indexer.{part}_proj.weight").T).reshape(len(y), number, -1),
                          file.of(layer, f"indexer.{part}_norm.weight")), base, count)
        for part, number in (("q", heads), ("k", 1))
    )  # fmt: skip
    seen = np.zeros((heads, len(y), len(y)), bool)
    for head in range(heads):
        scores = np.where(causal(len(y)), q[:, head] @ k[:, 0].T, -np.inf)
        for row in range(len(y)):
            own = row // block
            of_blocks = np.array([scores[row, b * block : (b + 1) * block].max() for b in range(own + 1)])
            of_blocks[max(0, own + 1 - local) :] = np.inf
            for number in np.argsort(-of_blocks, kind="stable")[:most]:
                seen[head, row, number * block : (number + 1) * block] = True
    return seen & causal(len(y))


def minimax(file, x):
    base, count = file.key("rope.freq_base"), file.key("rope.dimension_count")
    for layer in range(file.layers):
        y = file.norm(x, file.of(layer, "attn_norm.weight"))
        q, k, v = queries_keys_values(file, layer, y)
        q, k = (file.norm(part, file.of(layer, f"attn_{name}_norm.weight")) for part, name in ((q, "q"), (k, "k")))
        q, k = (rotated(part, base, count) for part in (q, k))
        is_sparse = file.of(layer, "indexer.q_proj.weight") is not None
        seen = chosen_blocks(file, layer, y, base, count) if is_sparse else causal(len(x))
        x = x + attention(q, k, v, q.shape[-1] ** -0.5, seen) @ file.of(layer, "attn_output.weight").T
        y = file.norm(x, file.of(layer, "ffn_norm.weight"))
        if not is_sparse:
            x = x + fed(file, layer, y, clamped)
            continue
        scores = sigmoid(y @ file.of(layer, "ffn_gate_inp.weight").T)
        chosen = best(scores + file.of(layer, "exp_probs_b.bias"), file.key("expert_used_count"))
        weights = np.take_along_axis(scores, chosen, -1)
        weights *= file.key("expert_weights_scale", 1.0) / weights.sum(-1, keepdims=True)
        x = x + routed(file, layer, y, weights, chosen, clamped) + fed(file, layer, y, clamped, "_shexp")
    return file.logits(x)


MODELS = {"deci": deci, "grok": grok, "grovemoe": grove, "spark2_5": spark, "minimax-m3": minimax, "smallthinker": smallthinker}


def run(arch, path, tokens):
    """Logits of the tokens; None of an architecture that is not written down."""
    import graph_state_references

    models = MODELS | graph_state_references.MODELS
    if arch not in models:
        return None
    file = File(path)
    return models[arch](file, file.tensors["token_embd.weight"][tokens])

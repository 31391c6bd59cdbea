"""Reference implementations in NumPy of models that neither llama.cpp nor `transformers` computes as their authors do.

Used by `classes.py`. Each implementation reads keys and tensors of a GGUF, and computes in F64. Sources: Grok's `model.py` and
Grok 2 in SGLang, the code of the checkpoints of GroveMoE, Spark, SmallThinker, ARWKV 7 and PLaMo 2, Nvidia's DeciLM, MiniMax M3 in
`transformers`, `rwkv_v7_demo.py` of RWKV 7's authors. llama.cpp reads past the end of RWKV 7 heads whose size is not a multiple of
its vector length, and does not return from PLaMo 2.
"""

import math

import numpy as np


class File:
    """Keys and tensors of a GGUF."""

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

    def key(self, name, default=None):
        return self.keys.get(f"{self.arch}.{name}", default)

    def tensor(self, layer, name):
        return self.tensors.get(f"blk.{layer}.{name}")

    def norm(self, x, weight=1.0):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon) * weight

    def logits(self, x):
        output = self.tensors.get("output.weight", self.tensors["token_embd.weight"])
        return self.norm(x, self.tensors["output_norm.weight"]) @ output.T


def rope(x, base, count=None, interleaved=False, frequencies=None):
    """RoPE of x: [tokens, heads, head size]."""
    count = count or x.shape[-1]
    half = count // 2
    angles = np.arange(len(x))[:, None] * (base ** (-2.0 * np.arange(half) / count) if frequencies is None else frequencies)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    first, second = (slice(0, count, 2), slice(1, count, 2)) if interleaved else (slice(0, half), slice(half, count))
    out = x.copy()
    out[..., first] = x[..., first] * cos - x[..., second] * sin
    out[..., second] = x[..., first] * sin + x[..., second] * cos
    return out


def attention(q, k, v, scale, mask, cap=None):
    """Attention of q: [tokens, heads, head size]; mask: [tokens, tokens], or one for each KV head."""
    group = q.shape[1] // k.shape[1]
    out = []
    for head in range(q.shape[1]):
        scores = scale * q[:, head] @ k[:, head // group].T
        if cap:
            scores = cap * np.tanh(scores / cap)
        visible = mask if mask.ndim == 2 else mask[head // group]
        scores = np.where(visible, scores, -np.inf)
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


def activation(function):
    """Returns a gated activation."""
    return lambda gate, up: function(gate) * up


def clamped_swiglu(gate, up):
    gate, up = np.minimum(gate, 7.0), np.clip(up, -7.0, 7.0)
    return gate * sigmoid(1.702 * gate) * (up + 1)


def ffn(file, layer, x, function, end=""):
    gate, up, down = (file.tensor(layer, f"ffn_{part}{end}.weight") for part in ("gate", "up", "down"))
    return function(x @ gate.T, x @ up.T) @ down.T


def moe(file, layer, x, weights, selected, function, end="_exps", share=1):
    """Weights and selected experts: [tokens, experts used]."""
    gate, up, down = (file.tensor(layer, f"ffn_{part}{end}.weight") for part in ("gate", "up", "down"))
    out = np.zeros_like(x)
    for row in range(len(x)):
        for weight, expert in zip(weights[row], selected[row] // share):
            out[row] += weight * (function(gate[expert] @ x[row], up[expert] @ x[row]) @ down[expert].T)
    return out


def top_k(scores, used):
    return np.argsort(-scores, -1, kind="stable")[:, :used]


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def qkv(file, layer, x, heads=None, kv=None):
    heads, kv = heads or file.heads, kv or file.kv
    parts = zip("qkv", (heads, kv, kv))
    fused = file.tensor(layer, "attn_qkv.weight")
    if fused is not None:
        length = len(fused) // (heads + 2 * kv)
        outputs = (x @ fused.T).reshape(len(x), -1, length)
        return np.split(outputs, [heads, heads + kv], axis=1)
    return [(x @ file.tensor(layer, f"attn_{part}.weight").T).reshape(len(x), count, -1) for part, count in parts]


def deci(file, x):
    base = file.key("rope.freq_base")
    counts = lambda name: [name] * file.layers if np.isscalar(name) else list(name)  # noqa: E731
    heads, kv, widths = counts(file.heads), counts(file.kv), counts(file.key("feed_forward_length"))
    for layer in range(file.layers):
        if heads[layer]:
            y = file.norm(x, file.tensor(layer, "attn_norm.weight"))
            if kv[layer]:
                q, k, v = qkv(file, layer, y, heads[layer], kv[layer])
                q, k = (rope(part, base, interleaved=True) for part in (q, k))
                y = attention(q, k, v, q.shape[-1] ** -0.5, causal(len(x)))
            x = x + y @ file.tensor(layer, "attn_output.weight").T
        if widths[layer]:
            x = x + ffn(file, layer, file.norm(x, file.tensor(layer, "ffn_norm.weight")), activation(silu))
    return file.logits(x)


def yarn(file, base, count):
    """Frequencies and attention factor of YaRN."""
    factor, original = file.key("rope.scaling.factor"), file.key("rope.scaling.original_context_length")
    bounds = [file.key(f"rope.scaling.yarn_beta_{name}") for name in ("fast", "slow")]
    at = [count * math.log(original / (2 * math.pi * bound)) / (2 * math.log(base)) for bound in bounds]
    low, high = max(math.floor(at[0]), 0), min(math.ceil(at[1]), count - 1)
    pairs = np.arange(count // 2)
    extrapolated = 1 - np.clip((pairs - low) / max(high - low, 0.001), 0, 1)
    return base ** (-2.0 * pairs / count) * (extrapolated + (1 - extrapolated) / factor), 0.1 * math.log(factor) + 1


def grok(file, x):
    x = x * file.key("embedding_scale", 78.38367176906169)
    scale, cap = file.key("attention.output_scale", 0.08838834764831845), file.key("attn_logit_softcapping", 30.0)
    router_cap, base = file.key("router_logit_softcapping"), file.key("rope.freq_base", 1e4)
    frequencies, magnitude = None, 1.0
    if file.key("rope.scaling.type") == "yarn":
        frequencies, magnitude = yarn(file, base, file.key("attention.key_length"))
    for layer in range(file.layers):
        y = file.norm(x, file.tensor(layer, "attn_norm.weight"))
        q, k, v = qkv(file, layer, y)
        q, k = (magnitude * rope(part, base, frequencies=frequencies) for part in (q, k))
        y = attention(q, k, v, scale, causal(len(x)), cap) @ file.tensor(layer, "attn_output.weight").T
        x = x + file.norm(y, file.tensor(layer, "attn_output_norm.weight"))
        y = file.norm(x, file.tensor(layer, "ffn_norm.weight"))
        scores = y @ file.tensor(layer, "ffn_gate_inp.weight").T
        scores = softmax(router_cap * np.tanh(scores / router_cap) if router_cap else scores)
        selected = top_k(scores, file.key("expert_used_count"))
        z = moe(file, layer, y, np.take_along_axis(scores, selected, -1), selected, activation(gelu))
        if file.tensor(layer, "ffn_up.weight") is not None:
            z = (z + ffn(file, layer, y, activation(gelu))) / math.sqrt(2)
        behind = file.tensor(layer, "layer_output_norm.weight")
        x = x + file.norm(z, file.tensor(layer, "post_ffw_norm.weight") if behind is None else behind)
    logits = file.logits(x) * file.key("logit_scale", 0.5773502691896257)
    last = file.key("final_logit_softcapping")
    return last * np.tanh(logits / last) if last else logits


def grove(file, x):
    for layer in range(file.layers):
        y = file.norm(x, file.tensor(layer, "attn_norm.weight"))
        q, k, v = qkv(file, layer, y)
        q, k = (file.norm(part, file.tensor(layer, f"attn_{name}_norm.weight")) for part, name in ((q, "q"), (k, "k")))
        q, k = (rope(part, file.key("rope.freq_base")) for part in (q, k))
        y = attention(q, k, v, q.shape[-1] ** -0.5, causal(len(x)))
        x = x + y @ file.tensor(layer, "attn_output.weight").T
        y = file.norm(x, file.tensor(layer, "ffn_norm.weight"))
        scores = softmax(y @ file.tensor(layer, "ffn_gate_inp.weight").T)
        selected = top_k(scores, file.key("expert_used_count"))
        weights = np.take_along_axis(scores, selected, -1)
        weights /= weights.sum(-1, keepdims=True)
        small = moe(file, layer, y, weights, selected, activation(silu), "_chexps", file.key("experts_per_group"))
        x = x + moe(file, layer, y, weights, selected, activation(silu)) + file.key("expert_group_scale") * small
    return file.logits(x)


def spark(file, x):
    window, pattern = file.key("attention.sliding_window"), file.key("attention.sliding_window_pattern")
    for layer in range(file.layers):
        has_window = bool(pattern[layer])
        end = "_swa" if has_window else ""
        base = file.key(f"rope.freq_base{end}", file.key("rope.freq_base"))
        count = file.key(f"rope.dimension_count{end}", file.key("rope.dimension_count"))
        y = file.norm(x, file.tensor(layer, "attn_norm.weight"))
        q, k, v = qkv(file, layer, y)
        q, k = (rope(part, base, count) for part in (q, k))
        z = attention(q, k, v, q.shape[-1] ** -0.5, causal(len(x), window if has_window else None))
        gate = sigmoid(y @ file.tensor(layer, "attn_gate.weight").T)
        z = (z.reshape(len(x), file.heads, -1) * gate[:, :, None]).reshape(len(x), -1)
        x = x + z @ file.tensor(layer, "attn_output.weight").T
        x = x + ffn(file, layer, file.norm(x, file.tensor(layer, "ffn_norm.weight")), activation(gelu))
    return file.logits(x)


def smallthinker(file, x):
    window, base = file.key("attention.sliding_window"), file.key("rope.freq_base")
    for layer in range(file.layers):
        y = file.norm(x, file.tensor(layer, "attn_norm.weight"))
        q, k, v = qkv(file, layer, y)
        if layer % 4:
            q, k = (rope(part, base) for part in (q, k))
        y = attention(q, k, v, q.shape[-1] ** -0.5, causal(len(x), window if layer % 4 else None))
        scores = x @ file.tensor(layer, "ffn_gate_inp.weight").T
        scores = sigmoid(scores) if file.key("expert_gating_func") == 2 else softmax(scores)
        selected = top_k(scores, file.key("expert_used_count"))
        weights = np.take_along_axis(scores, selected, -1)
        x = x + y @ file.tensor(layer, "attn_output.weight").T
        y = file.norm(x, file.tensor(layer, "ffn_norm.weight"))
        x = x + moe(file, layer, y, weights / weights.sum(-1, keepdims=True), selected, activation(lambda z: np.maximum(z, 0)))
    return file.logits(x)


def block_sparse_mask(file, layer, y, base, count):
    """The attention mask of the blocks that the indexer selects, for each KV head."""
    heads, block = file.key("attention.indexer.head_count"), file.key("attention.indexer.block_size")
    most, local = file.key("attention.indexer.top_k"), file.key("attention.indexer.local_blocks")
    q, k = (
        rope(file.norm((y @ file.tensor(layer, f"indexer.{part}_proj.weight").T).reshape(len(y), number, -1),
                          file.tensor(layer, f"indexer.{part}_norm.weight")), base, count)
        for part, number in (("q", heads), ("k", 1))
    )  # fmt: skip
    visible = np.zeros((heads, len(y), len(y)), bool)
    for head in range(heads):
        scores = np.where(causal(len(y)), q[:, head] @ k[:, 0].T, -np.inf)
        for row in range(len(y)):
            own = row // block
            of_blocks = np.array([scores[row, b * block : (b + 1) * block].max() for b in range(own + 1)])
            of_blocks[max(0, own + 1 - local) :] = np.inf
            for number in np.argsort(-of_blocks, kind="stable")[:most]:
                visible[head, row, number * block : (number + 1) * block] = True
    return visible & causal(len(y))


def minimax(file, x):
    base, count = file.key("rope.freq_base"), file.key("rope.dimension_count")
    for layer in range(file.layers):
        y = file.norm(x, file.tensor(layer, "attn_norm.weight"))
        q, k, v = qkv(file, layer, y)
        q, k = (file.norm(part, file.tensor(layer, f"attn_{name}_norm.weight")) for part, name in ((q, "q"), (k, "k")))
        q, k = (rope(part, base, count) for part in (q, k))
        is_sparse = file.tensor(layer, "indexer.q_proj.weight") is not None
        visible = block_sparse_mask(file, layer, y, base, count) if is_sparse else causal(len(x))
        x = x + attention(q, k, v, q.shape[-1] ** -0.5, visible) @ file.tensor(layer, "attn_output.weight").T
        y = file.norm(x, file.tensor(layer, "ffn_norm.weight"))
        if not is_sparse:
            x = x + ffn(file, layer, y, clamped_swiglu)
            continue
        scores = sigmoid(y @ file.tensor(layer, "ffn_gate_inp.weight").T)
        selected = top_k(scores + file.tensor(layer, "exp_probs_b.bias"), file.key("expert_used_count"))
        weights = np.take_along_axis(scores, selected, -1)
        weights *= file.key("expert_weights_scale", 1.0) / weights.sum(-1, keepdims=True)
        x = x + moe(file, layer, y, weights, selected, clamped_swiglu) + ffn(file, layer, y, clamped_swiglu, "_shexp")
    return file.logits(x)


# Epsilon of the group norm over heads.
HEAD_EPSILON = 64e-5


def layer_norm(x, weight, bias, epsilon):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight + bias


def shifted(x):
    """Token shift: the previous row, 0 before the first."""
    return np.concatenate([np.zeros_like(x[:1]), x[:-1]])


def time_mix(file, layer, x, first):
    """Time mix of RWKV 7; `first` holds the values of the first layer, which it appends."""
    part = lambda name: file.tensor(layer, f"time_mix_{name}.weight")  # noqa: E731
    lerp = part("lerp_fused").reshape(-1, x.shape[1])
    r, w, k, v, a, *g = (x + (shifted(x) - x) * share for share in lerp)
    project = lambda x, name: x @ part(name).T + (0 if (b := file.tensor(layer, f"time_mix_{name}.bias")) is None else b)  # noqa: E731
    r, k, mixed, v = project(r, "receptance"), project(k, "key"), v, project(v, "value")
    w = np.exp(-0.606531 * sigmoid(part("w0") + np.tanh(w @ part("w1").T) @ part("w2").T))
    if first:
        v = v + (first[0] - v) * sigmoid(part("v0") + mixed @ part("v1").T @ part("v2").T)
    else:
        first.append(v)
    a = sigmoid(part("a0") + a @ part("a1").T @ part("a2").T)
    length = file.key("wkv.head_size")
    heads = lambda x: x.reshape(len(x), -1, length)  # noqa: E731
    kk = heads(k * part("k_k"))
    kk = kk / np.maximum(np.sqrt((kk**2).sum(-1, keepdims=True)), 1e-12)
    k = k + (a - 1) * k * part("k_a")
    r, w, k, v, a = map(heads, (r, w, k, v, a))
    state, outputs = np.zeros((r.shape[1], length, length)), []
    for t in range(len(x)):
        correction = np.einsum("hij,hj->hi", state, -kk[t])
        state = state * w[t][:, None] + v[t][:, :, None] * k[t][:, None] + correction[:, :, None] * (kk[t] * a[t])[:, None]
        outputs.append(np.einsum("hij,hj->hi", state, r[t]))
    outputs = np.array(outputs)
    if part("ln") is not None:
        weight, bias = part("ln").reshape(-1, length), file.tensor(layer, "time_mix_ln.bias").reshape(-1, length)
        outputs = layer_norm(outputs, weight, bias, HEAD_EPSILON)
    outputs = outputs + (r * k * part("r_k").reshape(-1, length)).sum(-1, keepdims=True) * v
    outputs = outputs.reshape(len(x), -1)
    if g and part("g1") is not None:
        outputs = outputs * (sigmoid(g[0] @ part("g1").T) @ part("g2").T)
    return outputs @ part("output").T


def rwkv7(file, x):
    epsilon = file.key("attention.layer_norm_epsilon", file.epsilon or 1e-5)
    norm = lambda x, name: layer_norm(x, file.tensors[f"{name}.weight"], file.tensors[f"{name}.bias"], epsilon)  # noqa: E731
    x, first = norm(x, "token_embd_norm"), []
    for layer in range(file.layers):
        x = x + time_mix(file, layer, norm(x, f"blk.{layer}.attn_norm"), first)
        y = norm(x, f"blk.{layer}.attn_norm_2")
        y = y + (shifted(y) - y) * file.tensor(layer, "channel_mix_lerp_k.weight").reshape(-1)
        k = np.maximum(y @ file.tensor(layer, "channel_mix_key.weight").T, 0) ** 2
        x = x + k @ file.tensor(layer, "channel_mix_value.weight").T
    return norm(x, "output_norm") @ file.tensors["output.weight"].T


def arwkv7(file, x):
    first = []
    for layer in range(file.layers):
        x = x + time_mix(file, layer, file.norm(x, file.tensor(layer, "attn_norm.weight")), first)
        x = x + ffn(file, layer, file.norm(x, file.tensor(layer, "ffn_norm.weight")), activation(silu))
    return file.logits(x)


def selective_scan(file, layer, x):
    """Selective scan of PLaMo 2."""
    part = lambda name: file.tensor(layer, f"ssm_{name}")  # noqa: E731
    heads, count = file.key("ssm.time_step_rank"), file.key("ssm.state_size")
    both = (x @ part("in.weight").T).reshape(len(x), heads, -1)
    gate, x = np.split(both, 2, -1)
    x = x.reshape(len(x), -1)
    kernel = part("conv1d.weight")
    padded = np.concatenate([np.zeros((kernel.shape[1] - 1, x.shape[1])), x])
    x = silu(sum(padded[i : i + len(x)] * kernel[:, i] for i in range(kernel.shape[1])))
    b, c, step = np.split(x @ part("x.weight").T, [count, 2 * count], -1)
    b, c, step = file.norm(b, part("b_norm")), file.norm(c, part("c_norm")), file.norm(step, part("dt_norm"))
    step = np.log1p(np.exp(step @ part("dt.weight").T + part("dt.bias")))
    x = x.reshape(len(x), heads, -1)
    state, outputs = np.zeros((heads, x.shape[2], count)), []
    for t in range(len(x)):
        decay = np.exp(step[t] * part("a"))
        state = state * decay[:, None, None] + (step[t][:, None] * x[t])[:, :, None] * b[t]
        outputs.append(state @ c[t] + part("d")[:, None] * x[t])
    return (np.array(outputs) * silu(gate)).reshape(len(x), -1) @ part("out.weight").T


def plamo2(file, x):
    length, base = file.key("attention.key_length"), file.key("rope.freq_base", 1e4)
    for layer in range(file.layers):
        y = file.norm(x, file.tensor(layer, "attn_norm.weight"))
        if file.kv[layer]:
            heads, kv = file.heads[layer], file.kv[layer]
            q, k, v = np.split(y @ file.tensor(layer, "attn_qkv.weight").T, [heads * length, (heads + kv) * length], -1)
            q, k, v = (part.reshape(len(x), -1, length) for part in (q, k, v))
            q = rope(file.norm(q, file.tensor(layer, "attn_q_norm.weight")), base)
            k = rope(file.norm(k, file.tensor(layer, "attn_k_norm.weight")), base)
            y = attention(q, k, v, length**-0.5, causal(len(x))) @ file.tensor(layer, "attn_output.weight").T
        else:
            y = selective_scan(file, layer, y)
        x = x + file.norm(y, file.tensor(layer, "post_attention_norm"))
        gate, up = np.split(file.norm(x, file.tensor(layer, "ffn_norm.weight")) @ file.tensor(layer, "ffn_up.weight").T, 2, -1)
        x = x + file.norm((silu(gate) * up) @ file.tensor(layer, "ffn_down.weight").T, file.tensor(layer, "post_ffw_norm"))
    return file.logits(x)


MODELS = {
    "arwkv7": arwkv7, "deci": deci, "grok": grok, "grovemoe": grove, "minimax-m3": minimax, "plamo2": plamo2, "rwkv7": rwkv7,
    "smallthinker": smallthinker, "spark2_5": spark,
}  # fmt: skip


def logits(arch, path, tokens):
    """Returns the logits of the tokens; `None` if there is no implementation of the architecture."""
    if arch not in MODELS:
        return None
    file = File(path)
    return MODELS[arch](file, file.tensors["token_embd.weight"][tokens])

"""Models that keep a state, written down in numpy as graph_references.py has others.

llama.cpp computes heads of RWKV 7 that are no multiple of its vectors with numbers beyond them, and does not come back from
PLaMo 2. Sources: the authors' `rwkv_v7_demo.py`, the code beside the checkpoints of ARWKV 7 and of PLaMo 2.
"""

import numpy as np
from graph_references import attention, causal, fed, plain, rotated, sigmoid, silu

# Of the norm of heads: the same in all models.
HEAD_EPSILON = 64e-5


def layer_norm(x, weight, bias, epsilon):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight + bias


def before(x):
    """The row before each, 0 before the first."""
    return np.concatenate([np.zeros_like(x[:1]), x[:-1]])


def time_mix(file, layer, x, first):
    """Version 7 of RWKV: `first` has the values of the first layer, or takes them."""
    part = lambda name: file.of(layer, f"time_mix_{name}.weight")  # noqa: E731
    lerp = part("lerp_fused").reshape(-1, x.shape[1])
    r, w, k, v, a, *g = (x + (before(x) - x) * share for share in lerp)
    times = lambda x, name: x @ part(name).T + (0 if (b := file.of(layer, f"time_mix_{name}.bias")) is None else b)  # noqa: E731
    r, k, mixed, v = times(r, "receptance"), times(k, "key"), v, times(v, "value")
    w = np.exp(-0.606531 * sigmoid(part("w0") + np.tanh(w @ part("w1").T) @ part("w2").T))
    if first:
        v = v + (first[0] - v) * sigmoid(part("v0") + mixed @ part("v1").T @ part("v2").T)
    else:
        first.append(v)
    a = sigmoid(part("a0") + a @ part("a1").T @ part("a2").T)
    length = file.key("wkv.head_size")
    heads = lambda x: x.reshape(len(x), -1, length)  # noqa: E731
    removed = heads(k * part("k_k"))
    removed = removed / np.maximum(np.sqrt((removed**2).sum(-1, keepdims=True)), 1e-12)
    k = k + (a - 1) * k * part("k_a")
    r, w, k, v, a = map(heads, (r, w, k, v, a))
    state, made = np.zeros((r.shape[1], length, length)), []
    for t in range(len(x)):
        taken = np.einsum("hij,hj->hi", state, -removed[t])
        state = state * w[t][:, None] + v[t][:, :, None] * k[t][:, None] + taken[:, :, None] * (removed[t] * a[t])[:, None]
        made.append(np.einsum("hij,hj->hi", state, r[t]))
    made = np.array(made)
    if part("ln") is not None:
        weight, bias = part("ln").reshape(-1, length), file.of(layer, "time_mix_ln.bias").reshape(-1, length)
        made = layer_norm(made, weight, bias, HEAD_EPSILON)
    made = made + (r * k * part("r_k").reshape(-1, length)).sum(-1, keepdims=True) * v
    made = made.reshape(len(x), -1)
    if g and part("g1") is not None:
        made = made * (sigmoid(g[0] @ part("g1").T) @ part("g2").T)
    return made @ part("output").T


def rwkv7(file, x):
    epsilon = file.key("attention.layer_norm_epsilon", file.epsilon or 1e-5)
    norm = lambda x, name: layer_norm(x, file.tensors[f"{name}.weight"], file.tensors[f"{name}.bias"], epsilon)  # noqa: E731
    x, first = norm(x, "token_embd_norm"), []
    for layer in range(file.layers):
        x = x + time_mix(file, layer, norm(x, f"blk.{layer}.attn_norm"), first)
        y = norm(x, f"blk.{layer}.attn_norm_2")
        y = y + (before(y) - y) * file.of(layer, "channel_mix_lerp_k.weight").reshape(-1)
        k = np.maximum(y @ file.of(layer, "channel_mix_key.weight").T, 0) ** 2
        x = x + k @ file.of(layer, "channel_mix_value.weight").T
    return norm(x, "output_norm") @ file.tensors["output.weight"].T


def arwkv7(file, x):
    first = []
    for layer in range(file.layers):
        x = x + time_mix(file, layer, file.norm(x, file.of(layer, "attn_norm.weight")), first)
        x = x + fed(file, layer, file.norm(x, file.of(layer, "ffn_norm.weight")), plain(silu))
    return file.logits(x)


def scanned(file, layer, x):
    """A state space of PLaMo 2."""
    part = lambda name: file.of(layer, f"ssm_{name}")  # noqa: E731
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
    state, made = np.zeros((heads, x.shape[2], count)), []
    for t in range(len(x)):
        decay = np.exp(step[t] * part("a"))
        state = state * decay[:, None, None] + (step[t][:, None] * x[t])[:, :, None] * b[t]
        made.append(state @ c[t] + part("d")[:, None] * x[t])
    return (np.array(made) * silu(gate)).reshape(len(x), -1) @ part("out.weight").T


def plamo2(file, x):
    length, base = file.key("attention.key_length"), file.key("rope.freq_base", 1e4)
    for layer in range(file.layers):
        y = file.norm(x, file.of(layer, "attn_norm.weight"))
        if file.kv[layer]:
            heads, kv = file.heads[layer], file.kv[layer]
            q, k, v = np.split(y @ file.of(layer, "attn_qkv.weight").T, [heads * length, (heads + kv) * length], -1)
            q, k, v = (part.reshape(len(x), -1, length) for part in (q, k, v))
            q = rotated(file.norm(q, file.of(layer, "attn_q_norm.weight")), base)
            k = rotated(file.norm(k, file.of(layer, "attn_k_norm.weight")), base)
            y = attention(q, k, v, length**-0.5, causal(len(x))) @ file.of(layer, "attn_output.weight").T
        else:
            y = scanned(file, layer, y)
        x = x + file.norm(y, file.of(layer, "post_attention_norm"))
        gate, up = np.split(file.norm(x, file.of(layer, "ffn_norm.weight")) @ file.of(layer, "ffn_up.weight").T, 2, -1)
        x = x + file.norm((silu(gate) * up) @ file.of(layer, "ffn_down.weight").T, file.of(layer, "post_ffw_norm"))
    return file.logits(x)


MODELS = {"rwkv7": rwkv7, "arwkv7": arwkv7, "plamo2": plamo2}

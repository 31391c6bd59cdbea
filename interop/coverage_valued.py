"""Tiny checkpoints for coverage.py, as coverage_cases.py, where conversion depends on what tensors hold."""

import json

import numpy as np
from converter import EXPERTS, FF, HEAD, HEADS, KV, LAYERS, VOCAB, WIDTH
from converter import attention, block, case, config, linear, model, norm
from converter_older import blocks


@case
def jais():
    made = {"architectures": ["JAISLMHeadModel"], "model_type": "jais_remote", "n_embd": WIDTH, "n_head": 6}
    made |= {"n_layer": LAYERS, "n_positions": 256, "n_inner": FF, "vocab_size": VOCAB, "layer_norm_epsilon": 1e-5}
    made |= {"activation_function": "swiglu", "position_embedding_type": "alibi", "embeddings_scale": 14.6}
    made |= {"width_scale": 0.22}

    def layer(p):
        tensors = norm(f"{p}.ln_1", bias=True) | norm(f"{p}.ln_2", bias=True)
        for part, inside, out in (
            ("attn.c_attn", WIDTH, 3 * WIDTH), ("attn.c_proj", WIDTH, WIDTH),
            ("mlp.c_fc", WIDTH, FF), ("mlp.c_fc2", WIDTH, FF), ("mlp.c_proj", FF, WIDTH),
        ):  # fmt: skip
            tensors |= {f"{p}.{part}.weight": (inside, out), f"{p}.{part}.bias": (out,)}
        return tensors

    tensors = {"transformer.wte.weight": (VOCAB, WIDTH), "lm_head.weight": (VOCAB, WIDTH)}
    tensors["transformer.relative_pe.slopes"] = 2.0 ** -np.arange(2.0, 14.0, 2.0)
    return made, tensors | blocks(layer, "transformer.h") | norm("transformer.ln_f", bias=True), "gpt2", "jais"


@case
def jais_scaled_otherwise():
    made, tensors, *rest = jais()
    del made["embeddings_scale"], made["width_scale"], tensors["transformer.relative_pe.slopes"]
    return made | {"mup_embeddings_scale": 9.1, "mup_output_alpha": 2.2, "mup_width_scale": 0.125}, tensors, *rest


@case
def talkie():
    made = config("TalkieForCausalLM", "talkie_remote", head_dim=HEAD, rope_theta=1e6)
    made["num_key_value_heads"] = HEADS

    def layer(p):
        tensors = {f"{p}.attn.head_gain.head_g": (HEADS,)}
        tensors |= {f"{p}.{part}.a_g": (1,) for part in ("attn_gain", "mlp_gain", "embed_skip")}
        for part in ("query", "key", "value", "resid"):
            tensors |= linear(f"{p}.attn.attn_{part}", WIDTH, WIDTH)
        tensors |= linear(f"{p}.mlp.mlp_gate", FF, WIDTH) | linear(f"{p}.mlp.mlp_linear", FF, WIDTH)
        return tensors | linear(f"{p}.mlp.mlp_resid", WIDTH, FF)

    tensors = linear("model.embed", VOCAB, WIDTH) | {"lm_head": (VOCAB, WIDTH), "lm_head_gain.w_g": (1,)}
    return made, tensors | blocks(layer, "model.blocks"), "qwen2", "talkie"


# More than zeros behind the tokens of that folder of the zoo.
FILLED = 700


def minimax(name):
    made = config(name, "minimax_remote", head_dim=HEAD, rms_norm_eps=1e-5, rope_theta=1e7, rotary_dim=HEAD // 2)
    made |= {"num_hidden_layers": 8, "attn_type_list": [0] * 7 + [1], "vocab_size": FILLED}
    made |= {"num_local_experts": EXPERTS, "num_experts_per_tok": 2}
    for part in ("full_attention", "linear_attention", "mlp"):
        made |= {f"layernorm_{part}_alpha": 3.5565588200778455, f"layernorm_{part}_beta": 1.0}

    def layer(p):
        q, inner = f"{p}.self_attn", HEADS * HEAD
        tensors = norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm")
        if p.endswith(".7"):
            tensors |= attention(q)
        else:
            tensors |= linear(f"{q}.qkv_proj", 3 * inner, WIDTH) | linear(f"{q}.output_gate", inner, WIDTH)
            tensors |= linear(f"{q}.out_proj", WIDTH, inner) | norm(f"{q}.norm", inner)
        tensors |= linear(f"{p}.block_sparse_moe.gate", EXPERTS, WIDTH)
        for e in range(EXPERTS):
            q = f"{p}.block_sparse_moe.experts.{e}"
            tensors |= linear(f"{q}.w1", FF, WIDTH) | linear(f"{q}.w3", FF, WIDTH) | linear(f"{q}.w2", WIDTH, FF)
        return tensors

    tensors = model(layer, vocab=FILLED, layers=8)
    embedding = np.random.default_rng(3).normal(0, 0.1, (FILLED, WIDTH))
    embedding[660:690] = 0
    tensors["model.embed_tokens.weight"] = embedding
    index = {"weight_map": dict.fromkeys(tensors, "model.safetensors")}
    made["files"] = {"model.safetensors.index.json": json.dumps(index), "chat_template.jinja": "{{ messages }}"}
    return made, tensors, "qwen2", "gpt-4o"


@case
def minimax_text():
    return minimax("MiniMaxText01ForCausalLM")


@case
def minimax_m1():
    return minimax("MiniMaxM1ForCausalLM")


@case
def bitnet():
    """Sums of these elements are exact in any order."""
    made = config("BitNetForCausalLM", "llama", rms_norm_eps=1e-5, rope_theta=10000.0, hidden_act="silu")
    made["tie_word_embeddings"] = True
    norms = lambda p: norm(f"{p}.self_attn.inner_attn_ln") | norm(f"{p}.mlp.ffn_layernorm", FF)  # noqa: E731
    tensors = model(lambda p: block(p) | norms(p), head=False)
    random = np.random.default_rng(5)
    for name, shape in tensors.items():
        if "_proj" in name:
            tensors[name] = random.integers(-16, 17, shape) / 256
    return made, tensors, "phi3", None

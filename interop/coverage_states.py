"""Tiny checkpoints of classes with states, and of those whose tokenizers are code beside a file; as converter.py's
cases."""

import base64
import json

from converter import EXPERT_FF, EXPERTS, FF, HEAD, HEADS, KV, LAYERS, LLAMA, VOCAB, WIDTH
from converter import attention, case, config, gated, linear, model, norm
from converter_older import blocks
from coverage_mixed import PHI3_VOCAB, RMS, one_by_one, two_norms


def square(p, *names, bias=False):
    return {k: v for name in names for k, v in linear(f"{p}.{name}", WIDTH, WIDTH, bias).items()}


# ---- RWKV


def world(folder):
    """All bytes, then words, as Python literals; and a template, which the other converter else takes from a file."""
    tokens = [chr(i) if i < 128 else bytes([i]) for i in range(256)]
    tokens += [f"{'e' * (i % 5)}w{i}" for i in range(256, 600)]
    lines = [f"{i} {token!r} {len(token)}" for i, token in enumerate(tokens, 1)]
    (folder / "rwkv_vocab_v20230424.txt").write_text("\n".join(lines) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))


def rwkv_config(name, kind, **fields):
    made = {"architectures": [name], "model_type": kind, "hidden_size": WIDTH, "num_hidden_layers": LAYERS}
    return made | {"vocab_size": VOCAB, "bos_token_id": 0, "eos_token_id": 0, **fields}


@case
def rwkv6():
    made = rwkv_config("Rwkv6ForCausalLM", "rwkv6", head_size=HEAD, layer_norm_epsilon=1e-5, rescale_every=1)
    made["intermediate_size"] = None
    inner = int(WIDTH * 3.5 // 32 * 32)

    def layer(p):
        a, f = f"{p}.attention", f"{p}.feed_forward"
        tensors = norm(f"{p}.ln1", bias=True) | norm(f"{p}.ln2", bias=True) | norm(f"{a}.ln_x", bias=True)
        tensors |= square(a, "receptance", "key", "value", "gate", "output") | square(f, "receptance")
        tensors |= {f"{a}.time_maa_{part}": (1, 1, WIDTH) for part in "xwkvrg"}
        tensors |= {f"{f}.time_maa_{part}": (1, 1, WIDTH) for part in "kr"}
        tensors |= {f"{a}.time_decay": (1, 1, WIDTH), f"{a}.time_faaaa": (WIDTH // HEAD, HEAD)}
        tensors |= {f"{a}.time_maa_w1": (WIDTH, 160), f"{a}.time_maa_w2": (5, 32, WIDTH)}
        tensors |= {f"{a}.time_decay_w1": (WIDTH, 64), f"{a}.time_decay_w2": (64, WIDTH)}
        return tensors | linear(f"{f}.key", inner, WIDTH) | linear(f"{f}.value", WIDTH, inner)

    tensors = {"rwkv.embeddings.weight": (VOCAB, WIDTH), "head.weight": (VOCAB, WIDTH)}
    tensors |= norm("rwkv.ln_out", bias=True) | norm("rwkv.blocks.0.pre_ln", bias=True)
    return made, tensors | blocks(layer, "rwkv.blocks"), world, None


def qwen_around(name, kind, mix, **fields):
    made = config(name, kind, **RMS, **fields)
    layer = lambda p: two_norms(p) | gated(f"{p}.mlp") | mix(f"{p}.self_attn", p)  # noqa: E731
    return made, model(layer), "qwen2", "qwen2"


@case
def rwkv6_qwen():
    def mix(a, _):
        tensors = linear(f"{a}.q_proj", WIDTH, WIDTH, True) | square(a, "o_proj", "gate")
        tensors |= linear(f"{a}.k_proj", KV * HEAD, WIDTH, True) | linear(f"{a}.v_proj", KV * HEAD, WIDTH, True)
        tensors |= {f"{a}.time_maa_{part}": (1, 1, WIDTH) for part in "xrkvwg"}
        tensors |= {f"{a}.time_maa_w1": (WIDTH, 40), f"{a}.time_maa_w2": (5, 8, WIDTH)}
        tensors |= {f"{a}.time_decay_w1": (WIDTH, 64), f"{a}.time_decay_w2": (64, WIDTH)}
        return tensors | {f"{a}.time_decay": (1, 1, WIDTH)}

    return qwen_around("RWKV6Qwen2ForCausalLM", "rwkv6qwen2", mix, lora_rank_tokenshift=8)


RANKS = {"w": 64, "a": 64, "v": 32, "g": 128}


def time_mix(a, parts, ranks, first):
    """Of version 7, as everyone but `fla` stores it."""
    tensors = {f"{a}.x_{part}": (1, 1, WIDTH) for part in parts}
    for part, rank in ranks.items():
        if part == "v" and first:
            continue
        tensors |= {f"{a}.{part}1": (WIDTH, rank), f"{a}.{part}2": (rank, WIDTH)}
        tensors |= {} if part == "g" else {f"{a}.{part}0": (1, 1, WIDTH)}
    tensors |= {f"{a}.k_k": (1, 1, WIDTH), f"{a}.k_a": (1, 1, WIDTH), f"{a}.r_k": (WIDTH // HEAD, HEAD)}
    return tensors | square(a, "receptance", "key", "value", "output")


def rwkv7_of_fla(name):
    made = rwkv_config(name, "rwkv7_fla", head_dim=HEAD, norm_eps=1e-5, intermediate_size=None)
    made |= {"decay_low_rank_dim": 16, "a_low_rank_dim": 24, "v_low_rank_dim": None, "gate_low_rank_dim": 40}
    ranks = {"w": 16, "a": 24, "v": 32, "g": 40}

    def layer(p):
        a, f = f"{p}.attn", f"{p}.ffn"
        tensors = norm(f"{p}.attn_norm", bias=True) | norm(f"{p}.ffn_norm", bias=True) | norm(f"{a}.g_norm", bias=True)
        tensors |= {f"{a}.x_{part}": (1, 1, WIDTH) for part in "rwkvag"} | {f"{f}.x_k": (WIDTH,)}
        for part, rank in ranks.items():
            if part == "v" and p.endswith(".0"):
                continue
            q = f"{a}.{part}_lora.lora"
            tensors |= linear(f"{q}.0", rank, WIDTH) | linear(f"{q}.2", WIDTH, rank, part != "g")
        tensors |= {f"{a}.k_k": (WIDTH,), f"{a}.k_a": (WIDTH,), f"{a}.r_k": (WIDTH // HEAD, HEAD)}
        tensors |= square(a, "r_proj", "k_proj", "v_proj", "o_proj")
        return tensors | linear(f"{f}.key", 4 * WIDTH, WIDTH) | linear(f"{f}.value", WIDTH, 4 * WIDTH)

    tensors = {"model.embeddings.weight": (VOCAB, WIDTH), "lm_head.weight": (VOCAB, WIDTH)}
    tensors |= norm("model.norm", bias=True) | norm("model.layers.0.pre_norm", bias=True)
    return made, tensors | blocks(layer, "model.layers"), world, None


@case
def rwkv7_fla():
    return rwkv7_of_fla("RWKV7ForCausalLM")


@case
def rwkv7():
    made = rwkv_config("Rwkv7ForCausalLM", "rwkv7_remote", head_size=HEAD, layer_norm_epsilon=1e-5)
    made |= {"intermediate_size": 96, "lora_rank_decay": 64, "lora_rank_iclr": 64}
    made |= {"lora_rank_value_residual_mix": 32, "lora_rank_gate": 128}

    def layer(p):
        a, f = f"{p}.attention", f"{p}.feed_forward"
        tensors = norm(f"{p}.ln1", bias=True) | norm(f"{p}.ln2", bias=True) | norm(f"{a}.ln_x", bias=True)
        tensors |= time_mix(a, "rwkvag", RANKS, False) | {f"{f}.x_k": (1, 1, WIDTH)}
        return tensors | linear(f"{f}.key", 96, WIDTH) | linear(f"{f}.value", WIDTH, 96)

    tensors = {"model.embeddings.weight": (VOCAB, WIDTH), "head.weight": (VOCAB, WIDTH)}
    tensors |= norm("model.ln_out", bias=True) | norm("model.pre_ln", bias=True)
    return made, tensors | blocks(layer, "model.blocks"), world, None


def arwkv(gate):
    def mix(a, p):
        ranks = RANKS if gate else {k: v for k, v in RANKS.items() if k != "g"}
        tensors = time_mix(f"{a}.time_mixer", "rwkvag" if gate else "rwkva", ranks, p.endswith(".0"))
        return tensors | (norm(f"{a}.time_mixer.ln_x", bias=True) if gate else {})

    return qwen_around(
        "RwkvHybridForCausalLM", "rwkv_hybrid", mix, head_size=HEAD, wkv_version=7, wkv_has_gate=gate
    )


@case
def arwkv_gated():
    return arwkv(True)


@case
def arwkv_plain():
    return arwkv(False)


# ---- PLaMo


def plamo_tokens(folder):
    roles = ["unk", "bos", "eos", "pad", "op"]
    kinds = ["UNKNOWN", "CONTROL", "CONTROL", "CONTROL", "NORMAL"]
    lines = [[f"<|plamo:{role}|>", 0.0, kind, None] for role, kind in zip(roles, kinds)]
    lines += [[f"<0x{i:02X}>", 0.0, "BYTE"] for i in range(256)]
    lines += [[f"w{'é' * (i % 3)}{i}", -0.125 * i, "NORMAL", None, 1] for i in range(261, 600)]
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    (folder / "tokenizer.jsonl").write_text(text + "\n", encoding="utf-8")
    named = {f"{role}_token": f"<|plamo:{role}|>" for role in roles[:4]} | {"chat_template": "{{ messages }}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(named))


@case
def plamo():
    """The other converter takes none but the published size."""
    width, head = 5120, 128
    made = config("PlamoForCausalLM", "plamo_remote", rms_norm_eps=1e-6, n_shared_head=8)
    made |= {"hidden_size": width, "num_attention_heads": 40, "num_key_value_heads": 40, "num_hidden_layers": 1}

    def layer(p):
        a, m = f"{p}.self_attn", f"{p}.mlp"
        tensors = norm(f"{p}.norm", width) | linear(f"{a}.q_proj", width, width) | linear(f"{a}.o_proj", width, width)
        tensors |= linear(f"{a}.k_proj", 5 * head, width) | linear(f"{a}.v_proj", 5 * head, width)
        tensors |= linear(f"{m}.gate_proj", FF, width) | linear(f"{m}.up_proj", FF, width)
        return tensors | linear(f"{m}.down_proj", width, FF)

    tensors = {"model.embed_tokens.weight": (VOCAB, width), "lm_head.weight": (VOCAB, width)}
    return made, tensors | norm("model.norm", width) | layer("model.layers.layers.0"), "phi3", None


def plamo_block(p, mix):
    norms = [f"{p}.{name}" for name in ("pre_mixer_norm", "post_mixer_norm", "pre_mlp_norm", "post_mlp_norm")]
    tensors = {k: v for name in norms for k, v in norm(name).items()}
    return tensors | linear(f"{p}.mlp.gate_up_proj", 2 * FF, WIDTH) | linear(f"{p}.mlp.down_proj", WIDTH, FF) | mix


def plamo_attention(m):
    return linear(f"{m}.qkv_proj", (HEADS + 2 * KV) * HEAD, WIDTH) | linear(f"{m}.o_proj", WIDTH, HEADS * HEAD)


@case
def plamo2():
    made = config("Plamo2ForCausalLM", "plamo2_remote", hidden_size_per_head=HEAD, mamba_d_state=8, mamba_num_heads=6)
    made |= {"mamba_step": 2, "mamba_d_conv": 4, "rms_norm_eps": 1e-6}
    inner, rates = 6 * HEAD, 64

    def layer(p):
        m = f"{p}.mixer"
        if p.endswith(".1"):
            norms = {f"{m}.q_weight": (HEADS, HEAD), f"{m}.k_weight": (KV, HEAD)}
            return plamo_block(p, plamo_attention(m) | norms)
        mix = linear(f"{m}.in_proj", 2 * inner, WIDTH) | linear(f"{m}.bcdt_proj", rates + 16, inner)
        mix |= linear(f"{m}.dt_proj", 6, rates) | linear(f"{m}.out_proj", WIDTH, inner)
        mix |= {f"{m}.{name}": (6,) for name in ("A_log", "D", "dt_bias")} | {f"{m}.dt_norm_weight": (rates,)}
        mix |= {f"{m}.{part}_norm_weight": (8,) for part in "BC"} | {f"{m}.conv1d.weight": (inner, 1, 4)}
        return plamo_block(p, mix)

    tensors = {"model.embed_tokens.weight": (VOCAB, WIDTH)} | norm("model.norm")
    return made, tensors | blocks(layer, "model.layers.layers"), plamo_tokens, None


def plamo_third(**fields):
    made = config("Plamo3ForCausalLM", "plamo3_remote", head_dim=HEAD, rms_norm_eps=1e-6, rope_theta=1e6, **fields)
    made |= {"window_size": 32, "sliding_window_pattern": 8, "rope_local_theta": 1e4}
    norms = lambda m: norm(f"{m}.q_norm", HEAD) | norm(f"{m}.k_norm", HEAD)  # noqa: E731
    layer = lambda p: plamo_block(p, plamo_attention(f"{p}.mixer") | norms(f"{p}.mixer"))  # noqa: E731
    tensors = {"model.embed_tokens.weight": (VOCAB, WIDTH)} | norm("model.norm")
    return made, tensors | blocks(layer, "model.layers.layers"), plamo_tokens, None


@case
def plamo3():
    return plamo_third()


@case
def plamo3_stretched():
    return plamo_third(rope_scaling_factor=4, initial_context_length=64)


# ---- files of ranked tokens, whose special tokens are code


def ranked(name, count):
    """All bytes, then pairs of them, then those with one more."""

    def write(folder):
        tokens = [bytes([i]) for i in range(256)]
        tokens += [bytes([i // 256, i % 256]) for i in range(min(count - 256, 65536))]
        tokens += [bytes([i // 65536, i // 256 % 256, i % 256]) for i in range(count - len(tokens))]
        lines = [f"{base64.b64encode(token).decode()} {rank}" for rank, token in enumerate(tokens)]
        (folder / name).write_text("\n".join(lines) + "\n")

    return write


@case
def qwen_first():
    made = config("QWenLMHeadModel", "qwen", layer_norm_epsilon=1e-6, rotary_emb_base=10000, no_bias=True)
    made = {k: v for k, v in made.items() if k not in ("bos_token_id", "eos_token_id", "num_key_value_heads")}
    made["intermediate_size"] = 2 * FF

    def layer(p):
        tensors = norm(f"{p}.ln_1") | norm(f"{p}.ln_2") | linear(f"{p}.attn.c_attn", 3 * WIDTH, WIDTH, True)
        tensors |= square(f"{p}.attn", "c_proj") | linear(f"{p}.mlp.w1", FF, WIDTH) | linear(f"{p}.mlp.w2", FF, WIDTH)
        return tensors | linear(f"{p}.mlp.c_proj", WIDTH, FF)

    tensors = {"transformer.wte.weight": (VOCAB, WIDTH), "lm_head.weight": (VOCAB, WIDTH)} | norm("transformer.ln_f")
    return made, tensors | blocks(layer, "transformer.h"), ranked("qwen.tiktoken", 400), "qwen2"


@case
def hunyuan_experts():
    width, vocab = 128, 128167
    made = config("HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe_remote", rms_norm_eps=1e-5, rope_theta=10000.0)
    made |= {"hidden_size": width, "num_attention_heads": 1, "num_key_value_heads": 1, "vocab_size": vocab}
    made |= {"num_experts": EXPERTS, "moe_topk": [2, 2], "num_shared_expert": [1, 1], "eos_token_id": 127960}
    made |= {"moe_intermediate_size": [FF, FF], "max_position_embeddings": 32768, "tie_word_embeddings": True}
    made["rope_scaling"] = {"type": "dynamic", "alpha": 1000.0, "factor": 1.0, "beta_fast": 32, "beta_slow": 1}

    def network(p):
        tensors = linear(f"{p}.gate_proj", FF, width) | linear(f"{p}.up_proj", FF, width)
        return tensors | linear(f"{p}.down_proj", width, FF)

    def layer(p):
        a, m = f"{p}.self_attn", f"{p}.mlp"
        tensors = norm(f"{p}.input_layernorm", width) | norm(f"{p}.post_attention_layernorm", width)
        tensors |= norm(f"{a}.query_layernorm", width) | norm(f"{a}.key_layernorm", width)
        for part in "qkvo":
            tensors |= linear(f"{a}.{part}_proj", width, width)
        tensors |= linear(f"{m}.gate.wg", EXPERTS, width) | network(f"{m}.shared_mlp")
        return tensors | {k: v for e in range(EXPERTS) for k, v in network(f"{m}.experts.{e}").items()}

    tensors = {"model.embed_tokens.weight": (vocab, width)} | norm("model.norm", width)
    return made, tensors | blocks(layer, "model.layers"), ranked("hy.tiktoken", 127957), "hunyuan"


# ---- others


@case
def rugpt():
    made = config("RuGPT3XLForCausalLM", "rugpt3xl", layer_norm_eps=1e-5)
    del made["num_key_value_heads"]

    def layer(p):
        tensors = norm(f"{p}.input_layernorm", bias=True) | norm(f"{p}.post_attention_layernorm", bias=True)
        tensors |= square(f"{p}.self_attn", "q_proj", "k_proj", "v_proj", "o_proj", bias=True)
        return tensors | linear(f"{p}.mlp.up_proj", FF, WIDTH, True) | linear(f"{p}.mlp.down_proj", WIDTH, FF, True)

    return made, model(layer, norm_bias=True) | {"model.embed_positions.weight": (256, WIDTH)}, "gpt2", "gpt-2"


@case
def xverse():
    made = config("XverseForCausalLM", "xverse", **LLAMA)
    made |= {"vocab_size": PHI3_VOCAB, "num_key_value_heads": HEADS}

    def layer(p):
        return two_norms(p) | gated(f"{p}.mlp") | square(f"{p}.self_attn", "q_proj", "k_proj", "v_proj", "o_proj")

    return made, model(layer, vocab=PHI3_VOCAB), "phi3", None


@case
def arctic():
    made = config("ArcticForCausalLM", "arctic_remote", num_local_experts=EXPERTS, num_experts_per_tok=2, **RMS)
    made["intermediate_size"] = EXPERT_FF

    def layer(p):
        tensors = two_norms(p) | norm(f"{p}.residual_layernorm") | attention(f"{p}.self_attn")
        tensors |= square(f"{p}.residual_mlp", "w1", "w2", "w3")
        tensors |= linear(f"{p}.block_sparse_moe.gate", EXPERTS, WIDTH)
        return tensors | one_by_one(f"{p}.block_sparse_moe.experts")

    return made, model(layer), "phi3", None

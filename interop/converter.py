"""Conversion beside llama.cpp's converter, for many classes of models.

Usage: python converter.py GGUF_BINARY LLAMA_CPP_DIR ZOO_DIR [CASE ...]

For every case a tiny checkpoint with random weights is made: the configuration and tensor names of
its class, the tokenizer of a folder of the zoo. Both converters turn it into f32 and f16; keys,
values, their order, tensors and the whole file must be equal, except for the known mistakes of the
llama.cpp's converter, which must show. Needs torch (any version), transformers, sentencepiece, numpy.
"""

import base64
import functools
import json
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

VOCAB = 640
WIDTH, HEADS, KV, HEAD, FF, LAYERS = 64, 4, 2, 16, 96, 2
EXPERTS, EXPERT_FF = 4, 48

CASES = {}

# Keys and tensors that must differ, because llama.cpp's converter is mistaken.
MISTAKES = {
    "glm": {
        "chatglm.context_length",
        "chatglm.attention.layer_norm_rms_epsilon",
        "chatglm.rope.freq_base",
    },
    # Sums in another order, and an exponential of the machine.
    "qwen3_tts_silu": {"token_embd.weight"},
    # It leaves out that attention is sharpened on long texts.
    "mistral4": {f"mistral4.attention.temperature_{part}" for part in ("scale", "length")},
    # It knows layers with an indexer by a name that newer versions of `transformers` give another.
    **dict.fromkeys(
        ("Qwen4ExpForCausalLM", "Qwen4ExpForConditionalGeneration"), {"qwen4exp.attention.compress_ratios"}
    ),
    "stablelm_code": {"stablelm.rope.freq_base"},
    "gemma_half": {f"blk.{i}.{x}_norm.weight" for i in range(LAYERS) for x in ("attn", "ffn")}
    | {"output_norm.weight"},
}
# Everything else is stored in BF16.
STORED_AS_F16 = {"gemma_half"}


def case(function):
    CASES[function.__name__] = function
    return function


# ---- tensors: name to shape, slowest dimension first, or to values where those matter


def linear(name, out, inside, bias=False):
    tensors = {f"{name}.weight": (out, inside)}
    if bias:
        tensors[f"{name}.bias"] = (out,)
    return tensors


def norm(name, width=WIDTH, bias=False):
    return {f"{name}.{part}": (width,) for part in (["weight", "bias"] if bias else ["weight"])}


def attention(p, bias=False, out="o_proj", head=HEAD, out_bias=False):
    return {
        **linear(f"{p}.q_proj", HEADS * head, WIDTH, bias),
        **linear(f"{p}.k_proj", KV * head, WIDTH, bias),
        **linear(f"{p}.v_proj", KV * head, WIDTH, bias),
        **linear(f"{p}.{out}", WIDTH, HEADS * head, out_bias),
    }


def gated(p, width=FF):
    return {
        **linear(f"{p}.gate_proj", width, WIDTH),
        **linear(f"{p}.up_proj", width, WIDTH),
        **linear(f"{p}.down_proj", WIDTH, width),
    }


def experts(p, fused, width=EXPERT_FF):
    if fused:
        return {
            f"{p}.experts.gate_up_proj": (EXPERTS, 2 * width, WIDTH),
            f"{p}.experts.down_proj": (EXPERTS, WIDTH, width),
        }
    return {k: v for e in range(EXPERTS) for k, v in gated(f"{p}.experts.{e}", width).items()}


def model(layer, head=True, vocab=VOCAB, layers=LAYERS, norms=True, norm_bias=False):
    """Embedding, blocks, norm and output matrix; `layer` gives the tensors of a block."""
    tensors = {"model.embed_tokens.weight": (vocab, WIDTH)}
    for i in range(layers):
        tensors |= layer(f"model.layers.{i}")
    if norms:
        tensors |= norm("model.norm", bias=norm_bias)
    if head:
        tensors["lm_head.weight"] = (vocab, WIDTH)
    return tensors


def block(p, **options):
    return {
        **norm(f"{p}.input_layernorm"),
        **attention(f"{p}.self_attn", **options),
        **norm(f"{p}.post_attention_layernorm"),
        **gated(f"{p}.mlp"),
    }


def config(name, kind, **fields):
    return {
        "architectures": [name],
        "model_type": kind,
        "hidden_size": WIDTH,
        "intermediate_size": FF,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV,
        "max_position_embeddings": 256,
        "vocab_size": VOCAB,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **fields,
    }


# ---- cases: configuration, tensors, folder of the zoo whose tokenizer is taken, its pre-tokenizer

LLAMA = {"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False}


def llama_with(scaling, **fields):
    made = config("LlamaForCausalLM", "llama", rope_scaling=scaling, **{**LLAMA, **fields})
    return made, model(block), "phi3", None


@case
def llama_linear():
    return llama_with({"type": "linear", "factor": 4.0})


@case
def llama_yarn():
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
    return llama_with({**yarn, "beta_fast": 32.0, "beta_slow": 1.0, "attention_factor": 1.25})


@case
def llama_llama3():
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0}
    llama3 |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    return llama_with(llama3, rope_theta=500000.0)


@case
def llama_llama3_wide():
    """Heads as wide as those of real models: more frequencies, and how their factors are rounded."""
    llama3 = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0}
    llama3 |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    made, _, *rest = llama_with(llama3, rope_theta=10000.0, head_dim=128)
    return made, model(lambda p: block(p, head=128)), *rest


@case
def llama_buffers():
    made, tensors, *rest = llama_with(None)
    tensors |= {f"model.layers.{i}.self_attn.rotary_emb.inv_freq": (HEAD // 2,) for i in range(LAYERS)}
    return made, tensors, *rest


def gemma_block(p, four=True, head_norms=False, head=HEAD):
    tensors = block(p, head=head)
    if four:
        tensors |= norm(f"{p}.pre_feedforward_layernorm") | norm(f"{p}.post_feedforward_layernorm")
    if head_norms:
        tensors |= norm(f"{p}.self_attn.q_norm", head) | norm(f"{p}.self_attn.k_norm", head)
    return tensors


GEMMA = {"head_dim": HEAD, "rms_norm_eps": 1e-6, "bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}


@case
def gemma():
    made = config("GemmaForCausalLM", "gemma", rope_theta=10000.0, **GEMMA)
    return made, model(lambda p: gemma_block(p, four=False)), "gemma2", None


@case
def gemma_half():
    return gemma()


@case
def gemma2_defaults():
    made = config("Gemma2ForCausalLM", "gemma2", **GEMMA)
    return made, model(gemma_block, head=False), "gemma2", None


@case
def gemma3_multimodal():
    text = config("", "gemma3_text", head_dim=HEAD, sliding_window=16)
    text = {k: v for k, v in text.items() if k not in ("architectures", "max_position_embeddings")}
    text["rope_scaling"] = {"rope_type": "linear", "factor": 8.0}
    vision = {"model_type": "siglip_vision_model", "hidden_size": 32, "num_hidden_layers": 1}
    made = {
        "architectures": ["Gemma3ForConditionalGeneration"],
        "model_type": "gemma3",
        "text_config": text,
        "vision_config": vision,
        "eos_token_id": [1, 106],
    }
    tensors = model(lambda p: gemma_block(p, head_norms=True), head=False)
    tensors = {f"language_model.{name}": shape for name, shape in tensors.items()}
    tensors |= linear("vision_tower.vision_model.encoder.layers.0.self_attn.q_proj", 32, 32)
    tensors |= {"multi_modal_projector.mm_input_projection_weight": (32, WIDTH)}
    return made, tensors, "gemma3", None


@case
def gemma3_new_layout():
    rope = {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    }
    made = config("Gemma3ForCausalLM", "gemma3_text", **GEMMA, sliding_window=16, rope_parameters=rope)
    return made, model(lambda p: gemma_block(p, head_norms=True), head=False), "gemma3", None


def phi2_block(p):
    return {
        **norm(f"{p}.input_layernorm", bias=True),
        **linear(f"{p}.self_attn.q_proj", WIDTH, WIDTH, True),
        **linear(f"{p}.self_attn.k_proj", WIDTH, WIDTH, True),
        **linear(f"{p}.self_attn.v_proj", WIDTH, WIDTH, True),
        **linear(f"{p}.self_attn.dense", WIDTH, WIDTH, True),
        **linear(f"{p}.mlp.fc1", 4 * WIDTH, WIDTH, True),
        **linear(f"{p}.mlp.fc2", WIDTH, 4 * WIDTH, True),
    }


@case
def phi2():
    made = config("PhiForCausalLM", "phi", layer_norm_eps=1e-5, partial_rotary_factor=0.4)
    made |= {"num_key_value_heads": HEADS, "intermediate_size": 4 * WIDTH}
    tensors = model(phi2_block, norms=False) | norm("model.final_layernorm", bias=True)
    return made, tensors | {"lm_head.bias": (VOCAB,)}, "gpt2", "phi-2"


def phi3_block(p):
    return {
        **norm(f"{p}.input_layernorm"),
        **linear(f"{p}.self_attn.qkv_proj", (HEADS + 2 * KV) * HEAD, WIDTH),
        **linear(f"{p}.self_attn.o_proj", WIDTH, WIDTH),
        **norm(f"{p}.post_attention_layernorm"),
        **linear(f"{p}.mlp.gate_up_proj", 2 * FF, WIDTH),
        **linear(f"{p}.mlp.down_proj", WIDTH, FF),
    }


@case
def phi3_longrope():
    factors = {"short_factor": [1.0 + 0.05 * i for i in range(HEAD // 2)]}
    factors |= {"long_factor": [1.5 + 1.3 * i for i in range(HEAD // 2)], "type": "longrope"}
    made = config("Phi3ForCausalLM", "phi3", rope_scaling=factors, sliding_window=200, **LLAMA)
    made |= {"max_position_embeddings": 2048, "original_max_position_embeddings": 128}
    return made, model(phi3_block), "phi3", None


@case
def phi4():
    made = config("Phi3ForCausalLM", "phi3", sliding_window=None, rope_scaling=None, **LLAMA)
    made |= {"original_max_position_embeddings": 256, "partial_rotary_factor": 0.75}
    return made, model(phi3_block, head=False), "olmo2", "dbrx"


@case
def stablelm():
    made = config("StableLmForCausalLM", "stablelm", layer_norm_eps=1e-5, partial_rotary_factor=0.25)
    layer = lambda p: block(p) | norm(f"{p}.input_layernorm", bias=True)  # noqa: E731
    layer2 = lambda p: layer(p) | norm(f"{p}.post_attention_layernorm", bias=True)  # noqa: E731
    return made, model(layer2, norm_bias=True), "stablelm", "stablelm2"


@case
def stablelm_head_norms():
    made = config("StableLmForCausalLM", "stablelm", layer_norm_eps=1e-5, qk_layernorm=True)
    made |= {"use_parallel_residual": True, "partial_rotary_factor": 0.25}

    def layer(p):
        tensors = attention(f"{p}.self_attn") | gated(f"{p}.mlp")
        tensors |= norm(f"{p}.input_layernorm", bias=True)
        for x, count in (("q", HEADS), ("k", KV)):
            for head in range(count):
                tensors |= norm(f"{p}.self_attn.{x}_layernorm.norms.{head}", HEAD)
        return tensors

    return made, model(layer, norm_bias=True), "stablelm", "stablelm2"


@case
def stablelm_code():
    made, *rest = stablelm()
    return {**made, "rope_theta": 1e6}, *rest


@case
def olmo():
    made = config("OlmoForCausalLM", "olmo", clip_qkv=8.0)
    layer = lambda p: attention(f"{p}.self_attn") | gated(f"{p}.mlp")  # noqa: E731
    return made, model(layer, norms=False), "olmo2", "olmo"


def olmo2_block(p):
    tensors = attention(f"{p}.self_attn") | gated(f"{p}.mlp")
    tensors |= norm(f"{p}.self_attn.q_norm") | norm(f"{p}.self_attn.k_norm", KV * HEAD)
    return tensors | norm(f"{p}.post_attention_layernorm") | norm(f"{p}.post_feedforward_layernorm")


@case
def olmo3():
    made = config("Olmo3ForCausalLM", "olmo3", rms_norm_eps=1e-6, sliding_window=32)
    yarn = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64}
    made |= {"rope_theta": 500000.0, "rope_scaling": {**yarn, "beta_fast": 32, "beta_slow": 1}}
    made["rope_scaling"]["attention_factor"] = 1.2
    return made, model(olmo2_block), "olmo2", "dbrx"


def qwen_block(p, fused, shared):
    tensors = attention(f"{p}.self_attn", bias=shared)
    tensors |= norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm")
    if not shared:
        tensors |= norm(f"{p}.self_attn.q_norm", HEAD) | norm(f"{p}.self_attn.k_norm", HEAD)
    tensors |= linear(f"{p}.mlp.gate", EXPERTS, WIDTH) | experts(f"{p}.mlp", fused)
    if shared:
        tensors |= gated(f"{p}.mlp.shared_expert", FF)
        tensors |= linear(f"{p}.mlp.shared_expert_gate", 1, WIDTH)
    return tensors


QWEN = {"rms_norm_eps": 1e-6, "rope_theta": 1e6, "moe_intermediate_size": EXPERT_FF}
QWEN |= {"num_experts": EXPERTS, "num_experts_per_tok": 2}


def qwen2moe(fused):
    made = config("Qwen2MoeForCausalLM", "qwen2_moe", shared_expert_intermediate_size=FF, **QWEN)
    return made, model(lambda p: qwen_block(p, fused, True)), "qwen2", "qwen2"


@case
def qwen2moe_one_by_one():
    return qwen2moe(False)


@case
def qwen2moe_fused():
    return qwen2moe(True)


@case
def qwen3moe_fused():
    made = config("Qwen3MoeForCausalLM", "qwen3_moe", head_dim=HEAD, **QWEN)
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
    made["rope_scaling"] = yarn
    return made, model(lambda p: qwen_block(p, True, False)), "qwen2", "qwen2"


def cohere_block(p):
    return norm(f"{p}.input_layernorm") | attention(f"{p}.self_attn") | gated(f"{p}.mlp")


COHERE = {"layer_norm_eps": 1e-5, "logit_scale": 0.25, "rope_theta": 8e6}


@case
def cohere():
    made = config("CohereForCausalLM", "cohere", model_max_length=1024, **COHERE)
    return made, model(cohere_block, head=False), "qwen2", "command-r"


@case
def cohere_head_norms():
    made = config("CohereForCausalLM", "cohere", use_qk_norm=True, **COHERE)

    def layer(p):
        norms = {f"{p}.self_attn.q_norm.weight": (HEADS, HEAD)}
        return cohere_block(p) | norms | {f"{p}.self_attn.k_norm.weight": (KV, HEAD)}

    return made, model(layer, head=False), "qwen2", "command-r"


@case
def cohere2():
    made = config("Cohere2ForCausalLM", "cohere2", sliding_window=64, rotary_pct=1.0, **COHERE)
    return made, model(cohere_block, head=False), "qwen2", "command-r"


GRANITE = {"embedding_multiplier": 12.0, "residual_multiplier": 0.22, "logits_scaling": 8.0}
GRANITE |= {"attention_multiplier": 0.015625, **LLAMA}


@case
def granite():
    return config("GraniteForCausalLM", "granite", **GRANITE), model(block), "qwen2", "dbrx"


def granite_block(p, shared):
    tensors = attention(f"{p}.self_attn")
    tensors |= norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm")
    tensors |= linear(f"{p}.block_sparse_moe.router.layer", EXPERTS, WIDTH)
    tensors |= {
        f"{p}.block_sparse_moe.input_linear.weight": (EXPERTS, 2 * FF, WIDTH),
        f"{p}.block_sparse_moe.output_linear.weight": (EXPERTS, WIDTH, FF),
    }
    if shared:
        tensors |= linear(f"{p}.shared_mlp.input_linear", 2 * EXPERT_FF, WIDTH)
        tensors |= linear(f"{p}.shared_mlp.output_linear", WIDTH, EXPERT_FF)
    return tensors


GRANITE_MOE = {"num_local_experts": EXPERTS, "num_experts_per_tok": 2, **GRANITE}


@case
def granitemoe():
    made = config("GraniteMoeForCausalLM", "granitemoe", **GRANITE_MOE)
    return made, model(lambda p: granite_block(p, False)), "qwen2", "dbrx"


@case
def granitemoe_shared():
    made = config("GraniteMoeSharedForCausalLM", "granitemoeshared", **GRANITE_MOE)
    made["shared_intermediate_size"] = EXPERT_FF
    return made, model(lambda p: granite_block(p, True)), "qwen2", "dbrx"


@case
def smollm3():
    made = config("SmolLM3ForCausalLM", "smollm3", **{**LLAMA, "rope_theta": 5e6})
    return made, model(block, head=False), "qwen2", "smaug-bpe"


@case
def internlm2():
    made = config("InternLM2ForCausalLM", "internlm2", rope_scaling={"type": "dynamic", "factor": 2.0}, **LLAMA)
    made["auto_map"] = {"AutoConfig": "configuration_internlm2.InternLM2Config"}
    made["vocab_size"] = rows = 768
    tensors = {"model.tok_embeddings.weight": (rows, WIDTH), "output.weight": (rows, WIDTH)}
    tensors |= norm("model.norm")
    for i in range(LAYERS):
        p = f"model.layers.{i}"
        tensors |= linear(f"{p}.attention.wqkv", (HEADS + 2 * KV) * HEAD, WIDTH)
        tensors |= linear(f"{p}.attention.wo", WIDTH, WIDTH)
        tensors |= norm(f"{p}.attention_norm") | norm(f"{p}.ffn_norm")
        tensors |= linear(f"{p}.feed_forward.w1", FF, WIDTH) | linear(f"{p}.feed_forward.w3", FF, WIDTH)
        tensors |= linear(f"{p}.feed_forward.w2", WIDTH, FF)
    return made, tensors, "llama", None


MINICPM = {"scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 32, "rms_norm_eps": 1e-5}


@case
def minicpm():
    made = config("MiniCPMForCausalLM", "minicpm_remote", **MINICPM)
    return made, model(block, head=False), "phi3", None


@case
def minicpm_longrope():
    factors = {"short_factor": [1.0 + 0.05 * i for i in range(HEAD // 2)]}
    factors |= {"long_factor": [1.5 + 1.3 * i for i in range(HEAD // 2)], "rope_type": "longrope"}
    made = config("MiniCPMForCausalLM", "minicpm_remote", rope_scaling=factors, **MINICPM)
    made["rope_scaling"]["original_max_position_embeddings"] = 128
    return made, model(block), "phi3", None


@case
def baichuan():
    made = config("BaichuanForCausalLM", "baichuan", rms_norm_eps=1e-6)
    del made["num_key_value_heads"]

    def layer(p):
        tensors = norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm")
        tensors |= linear(f"{p}.self_attn.W_pack", 3 * WIDTH, WIDTH)
        tensors |= linear(f"{p}.self_attn.o_proj", WIDTH, WIDTH)
        return tensors | gated(f"{p}.mlp")

    return made, model(layer), "phi3", None


RANK, NOPE, ROTATED, VALUE = 32, 12, 8, 20


def deepseek_block(p, dense, compressed_queries, bias):
    tensors = norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm")
    a = f"{p}.self_attn"
    if compressed_queries:
        tensors |= linear(f"{a}.q_a_proj", 24, WIDTH) | norm(f"{a}.q_a_layernorm", 24)
        tensors |= linear(f"{a}.q_b_proj", HEADS * (NOPE + ROTATED), 24)
    else:
        tensors |= linear(f"{a}.q_proj", HEADS * (NOPE + ROTATED), WIDTH)
    tensors |= linear(f"{a}.kv_a_proj_with_mqa", RANK + ROTATED, WIDTH)
    tensors |= norm(f"{a}.kv_a_layernorm", RANK)
    tensors |= linear(f"{a}.kv_b_proj", HEADS * (NOPE + VALUE), RANK)
    tensors |= linear(f"{a}.o_proj", WIDTH, HEADS * VALUE)
    if dense:
        return tensors | gated(f"{p}.mlp")
    tensors |= linear(f"{p}.mlp.gate", EXPERTS, WIDTH) | experts(f"{p}.mlp", False)
    if bias:
        tensors[f"{p}.mlp.gate.e_score_correction_bias"] = (EXPERTS,)
    return tensors | gated(f"{p}.mlp.shared_experts", 2 * EXPERT_FF)


DEEPSEEK = {"kv_lora_rank": RANK, "qk_nope_head_dim": NOPE, "qk_rope_head_dim": ROTATED}
DEEPSEEK |= {"v_head_dim": VALUE, "n_routed_experts": EXPERTS, "n_shared_experts": 2}
DEEPSEEK |= {"num_experts_per_tok": 2, "moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 1}
DEEPSEEK |= {"num_key_value_heads": HEADS, "rms_norm_eps": 1e-6, "rope_theta": 10000}
YARN = {"type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1, "mscale": 0.707}
YARN |= {"mscale_all_dim": 0.707, "original_max_position_embeddings": 64}


def deepseek(name, kind, compressed, bias, extra_layer, **fields):
    made = config(name, kind)
    made |= {**DEEPSEEK, "rope_scaling": dict(YARN), **fields}
    layer = lambda p: deepseek_block(p, p.endswith(".0"), compressed, bias)  # noqa: E731
    tensors = model(layer)
    if extra_layer:
        tensors |= layer(f"model.layers.{LAYERS}") | norm(f"model.layers.{LAYERS}.enorm")
    return made, tensors, "qwen2", "deepseek-llm"


@case
def deepseek2_lite():
    fields = {"q_lora_rank": None, "scoring_func": "softmax", "norm_topk_prob": False}
    fields |= {"routed_scaling_factor": 1.0, "n_group": 1, "topk_group": 1}
    return deepseek("DeepseekV2ForCausalLM", "deepseek_v2", False, False, False, **fields)


@case
def deepseek3():
    fields = {"q_lora_rank": 24, "scoring_func": "sigmoid", "norm_topk_prob": True}
    fields |= {"routed_scaling_factor": 2.5, "n_group": 2, "topk_group": 1}
    fields |= {"num_nextn_predict_layers": 1, "tie_word_embeddings": False}
    return deepseek("DeepseekV3ForCausalLM", "deepseek_v3", True, True, True, **fields)


@case
def glm4():
    made = config("Glm4ForCausalLM", "glm4", head_dim=HEAD, rms_norm_eps=1e-5, partial_rotary_factor=0.5)
    del made["bos_token_id"]
    made |= {"eos_token_id": [597, 598], "pad_token_id": 597}

    def layer(p):
        tensors = attention(f"{p}.self_attn", bias=True) | linear(f"{p}.mlp.gate_up_proj", 2 * FF, WIDTH)
        tensors |= linear(f"{p}.mlp.down_proj", WIDTH, FF)
        for name in ("input", "post_self_attn", "post_attention", "post_mlp"):
            tensors |= norm(f"{p}.{name}_layernorm")
        return tensors

    return made, model(layer), "qwen2", "glm4"


@case
def chatglm():
    made = config("ChatGLMModel", "chatglm_remote", seq_length=256, rope_ratio=50, padded_vocab_size=VOCAB)
    for field in ("num_hidden_layers", "num_key_value_heads", "intermediate_size", "bos_token_id"):
        del made[field]
    made |= {"num_layers": LAYERS, "multi_query_group_num": KV, "ffn_hidden_size": FF}
    made |= {"layernorm_epsilon": 1.5625e-07, "eos_token_id": [597, 598], "pad_token_id": 597}
    tensors = {"transformer.embedding.word_embeddings.weight": (VOCAB, WIDTH)}
    tensors |= {"transformer.output_layer.weight": (VOCAB, WIDTH)}
    tensors |= norm("transformer.encoder.final_layernorm")
    tensors |= {"transformer.rotary_pos_emb.inv_freq": (HEAD // 4,)}
    for i in range(LAYERS):
        p = f"transformer.encoder.layers.{i}"
        tensors |= norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm")
        tensors |= linear(f"{p}.self_attention.query_key_value", (HEADS + 2 * KV) * HEAD, WIDTH, True)
        tensors |= linear(f"{p}.self_attention.dense", WIDTH, WIDTH)
        tensors |= linear(f"{p}.mlp.dense_h_to_4h", 2 * FF, WIDTH)
        tensors |= linear(f"{p}.mlp.dense_4h_to_h", WIDTH, FF)
    return made, tensors, "qwen2", "chatglm-bpe"


@case
def glm():
    made, tensors, *rest = glm4()
    made |= {"architectures": ["GlmForCausalLM"], "model_type": "glm", "rope_theta": 500000.0}
    made["rms_norm_eps"] = 1.5625e-07
    tensors = {n: s for n, s in tensors.items() if "post_self" not in n and "post_mlp" not in n}
    return made, tensors, *rest


@case
def llama4():
    made = config("Llama4ForCausalLM", "llama4_text", head_dim=HEAD, rms_norm_eps=1e-5)
    made |= {"intermediate_size": EXPERT_FF, "intermediate_size_mlp": FF, "rope_theta": 500000.0}
    made |= {"num_local_experts": EXPERTS, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2}
    made["rope_scaling"] = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0}
    made["rope_scaling"] |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 64}

    def layer(p):
        tensors = norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm")
        tensors |= attention(f"{p}.self_attn")
        f = f"{p}.feed_forward"
        if p.endswith(".0"):
            return tensors | gated(f)
        tensors |= linear(f"{f}.router", EXPERTS, WIDTH) | gated(f"{f}.shared_expert", EXPERT_FF)
        tensors[f"{f}.experts.gate_up_proj"] = (EXPERTS, WIDTH, 2 * EXPERT_FF)
        return tensors | {f"{f}.experts.down_proj": (EXPERTS, EXPERT_FF, WIDTH)}

    return made, model(layer), "qwen2", "llama4"


@case
def gpt_oss():
    made = config("GptOssForCausalLM", "gpt_oss", head_dim=HEAD, sliding_window=32)
    made |= {"num_local_experts": EXPERTS, "num_experts_per_tok": 2, "rms_norm_eps": 1e-5}
    made |= {"rope_theta": 150000, "rope_scaling": {"rope_type": "yarn", "factor": 32.0}}
    made["rope_scaling"] |= {"beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}
    made["rope_scaling"]["original_max_position_embeddings"] = 64

    def layer(p):
        tensors = norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm")
        tensors |= attention(f"{p}.self_attn", bias=True, out_bias=True)
        tensors[f"{p}.self_attn.sinks"] = (HEADS,)
        tensors |= linear(f"{p}.mlp.router", EXPERTS, WIDTH, True)
        e = f"{p}.mlp.experts"
        tensors |= {f"{e}.gate_up_proj": (EXPERTS, WIDTH, 2 * FF), f"{e}.down_proj": (EXPERTS, FF, WIDTH)}
        tensors |= {f"{e}.gate_up_proj_bias": (EXPERTS, 2 * FF), f"{e}.down_proj_bias": (EXPERTS, WIDTH)}
        return tensors

    return made, model(layer), "qwen2", "gpt-4o"


# ---- running both


def write_checkpoint(folder, made, tensors, tokenizer, half):
    """config.json, the tokenizer's files (of a folder, or made by a function) and weights; norms around
    one, the rest around zero. `half` is whether these are F16, not BF16, or "F32"."""
    folder.mkdir()
    if not made.get("has_no_file"):
        (folder / "config.json").write_text(json.dumps(made))
    if callable(tokenizer):
        tokenizer(folder)
    for file in [] if callable(tokenizer) else tokenizer.iterdir():
        if file.name.startswith(("tokenizer", "special_tokens", "vocab", "merges", "added")):
            if file.name != "tokenizer_cases.json":
                shutil.copyfile(file, folder / file.name)
    if made["model_type"] in ("glm", "glm4", "chatglm_remote"):
        replace_text(folder, "<|im_start|>", "<|user|>")
    random = np.random.default_rng(7)
    header, data = {}, bytearray()
    for name, shape in sorted(tensors.items(), key=lambda entry: entry[0]):
        if isinstance(shape, tuple) and shape and isinstance(shape[0], str):
            # As it is stored: its type, and numbers of that size.
            dtype, values = shape
            start = len(data)
            data += values.tobytes()
            header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [start, len(data)]}
            continue
        values = shape if isinstance(shape, np.ndarray) else random.normal(0, 0.1, shape) + ("norm" in name)
        shape = values.shape
        if values.dtype == np.int64:
            start = len(data)
            data += values.astype("<i8").tobytes()
            header[name] = {"dtype": "I64", "shape": list(shape), "data_offsets": [start, len(data)]}
            continue
        if half == "F32":
            words = values.astype("<f4")
        elif half:
            words = values.astype("<f2")
        else:
            words = (values.astype(np.float32).view(np.uint32) >> 16).astype("<u2")
        start = len(data)
        data += words.tobytes()
        dtype = half if half == "F32" else "F16" if half else "BF16"
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, len(data)]}
    head = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head + data)


def replace_text(folder, old, new):
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        path = folder / name
        if path.is_file():
            path.write_text(path.read_text().replace(old, new))


def mend_baichuan():
    """llama.cpp's class calls itself without end for every tensor but the fused one."""
    from conversion.baichuan import BaichuanModel

    fused = BaichuanModel.modify_tensors

    def modify(self, data, name, bid):
        if "W_pack" in name:
            yield from fused(self, data, name, bid)
        else:
            yield self.map_tensor_name(name), data

    BaichuanModel.modify_tensors = modify


def mend_deepseek():
    """That of DeepSeek 3.2 insists on a tokenizer's attribute, which those of newer versions of `transformers` lack."""
    from conversion import deepseek

    deepseek.DeepseekV32Model.set_vocab = lambda self: self._set_vocab_gpt2()


def mend_gemma3n():
    """That of what hears in Gemma 3n has no place for the norms behind convolutions, and stops."""
    from conversion.gemma import Gemma3nVisionAudioModel

    others = Gemma3nVisionAudioModel.modify_tensors

    def modify(self, data, name, bid):
        if found := re.fullmatch(r"model\.audio_tower\.subsample_conv_projection\.conv_(\d)\.norm\.weight", name):
            return [(f"a.conv1d.{found[1]}.norm.weight", data)]
        return others(self, data, name, bid)

    Gemma3nVisionAudioModel.modify_tensors = modify


def mend_jais():
    """That of Jais 1 looks at a slope before tensors are read, and stops."""
    from conversion.base import LazyTorchTensor
    from conversion.jais import JaisModel

    others = JaisModel.modify_tensors

    def modify(self, data, name, bid):
        yield from others(self, LazyTorchTensor.to_eager(data) if name.endswith("slopes") else data, name, bid)

    JaisModel.modify_tensors = modify


def mend_minicpm():
    """That of MiniCPM-V 4.6 leaves out layers that guess further tokens, and stops where there are none."""
    from conversion.minicpm import MiniCPMV4_6TextModel

    MiniCPMV4_6TextModel.no_mtp = True


# Files of ranked tokens whose special tokens are code beside them, which follow the others.
RANKED = {
    "qwen.tiktoken": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    "hy.tiktoken": ["<|endoftext|>", "<|startoftext|>", "<|bos|>", "<|eos|>", "<|pad|>"],
}


class Ranked:
    """What llama.cpp's converter asks of a tokenizer that is code."""

    def __init__(self, path):
        lines = [line.split() for line in path.read_text().splitlines()]
        self.mergeable_ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
        special = RANKED[path.name] + [f"<|extra_{i}|>" for i in range(205)]
        self.special_tokens = {text: len(lines) + i for i, text in enumerate(special)}
        self.vocab_size = len(lines) + len(special)

    def get_vocab(self):
        return self.mergeable_ranks | self.special_tokens


def mend_tiktoken():
    """The code of these tokenizers is not at hand; and for every token anew a table is made, which takes minutes."""
    from transformers import AutoTokenizer, convert_slow_tokenizer

    convert_slow_tokenizer.bytes_to_unicode = functools.cache(convert_slow_tokenizer.bytes_to_unicode)

    others = AutoTokenizer.from_pretrained

    def load(folder, *arguments, **options):
        files = [Path(folder) / name for name in RANKED]
        found = [Ranked(file) for file in files if file.is_file()]
        return found[0] if found else others(folder, *arguments, **options)

    AutoTokenizer.from_pretrained = load


def mend_rwkv():
    """These keep parts of tensors from one model to the next."""
    from conversion.rwkv import Rwkv6Model, Rwkv7Model

    for made in (Rwkv6Model, Rwkv7Model):

        def fresh(self, *arguments, others=made.__init__, **options):
            self.lerp_weights = {}
            others(self, *arguments, **options)

        made.__init__ = fresh


def mend_stablelm():
    """llama.cpp's class loses the norms of heads, notices, and stops."""
    from conversion.stablelm import StableLMModel

    others = StableLMModel.modify_tensors

    def modify(self, data, name, bid):
        for x, heads in (("q", "num_attention_heads"), ("k", "num_key_value_heads")):
            if f"{x}_layernorm.norms" in name:
                norms = self.__dict__.setdefault("found_norms", {}).setdefault((bid, x), {})
                norms[name] = data
                if len(norms) == (count := self.hparams[heads]):
                    yield from self._stack_qk_norm(bid, count, norms, f"{x}_layernorm")
                return
        yield from others(self, data, name, bid)

    StableLMModel.modify_tensors = modify


def official(llama_cpp, folder, out, outtype, pre, flags=()):
    """Runs llama.cpp's converter in this process; `pre` in place of its table of hashes."""
    from conversion import base

    recognise = base.TextModel.get_vocab_base_pre
    if pre is not None:
        base.TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
    sys.argv = ["convert", str(folder), "--outfile", str(out), "--outtype", outtype, *flags]
    try:
        runpy.run_path(str(llama_cpp / "convert_hf_to_gguf.py"), run_name="__main__")
    finally:
        base.TextModel.get_vocab_base_pre = recognise


def contents(path):
    from gguf import GGUFReader

    reader = GGUFReader(path)
    keys = {k: f.contents() for k, f in reader.fields.items() if not k.startswith("GGUF.")}
    tensors = {t.name: (t.tensor_type.name, list(map(int, t.shape)), t.data.tobytes()) for t in reader.tensors}
    return keys, tensors


def short(value):
    return repr(value)[:80]


def differences(theirs, ours, mistakes):
    """What differs, one line each, apart from mistakes; and a line for each mistake that does not."""
    left = set(mistakes)
    (their_keys, their_tensors), (our_keys, our_tensors) = contents(theirs), contents(ours)
    for what, a, b in (("key", their_keys, our_keys), ("tensor", their_tensors, our_tensors)):
        for name in a.keys() | b.keys():
            if name in left and a.get(name) != b.get(name):
                left.remove(name)
            elif name not in b:
                yield f"{what} {name} is missing: {short(a[name])}"
            elif name not in a:
                yield f"{what} {name} is too many: {short(b[name])}"
            elif a[name] != b[name]:
                yield f"{what} {name} is {short(b[name])}, not {short(a[name])}"
        if a.keys() == b.keys() and list(a) != list(b):
            place = next(i for i, (x, y) in enumerate(zip(a, b)) if x != y)
            yield f"{what} order: place {place} is {list(b)[place]}, not {list(a)[place]}"
    for name in left:
        yield f"{name} is equal, though llama.cpp's converter was known to be mistaken"


def run(binary, llama_cpp, zoo, name, work):
    made, tensors, tokenizer, pre = CASES[name]()
    folder = work / name
    tokenizer = tokenizer if callable(tokenizer) else zoo / tokenizer
    write_checkpoint(folder, made, tensors, tokenizer, name in STORED_AS_F16)
    mistakes = MISTAKES.get(name, set())
    for outtype in ("f32", "f16"):
        theirs, ours = work / f"{name}.theirs.gguf", work / f"{name}.ours.gguf"
        official(llama_cpp, folder, theirs, outtype, pre)
        command = [binary, "convert", "--force", str(folder), "-o", str(ours), "--outtype", outtype]
        done = subprocess.run(command + (["--pre", pre] if pre else []), capture_output=True, text=True)
        if done.returncode != 0:
            return [done.stderr.strip()]
        found = list(differences(theirs, ours, mistakes))
        if not found and not mistakes and theirs.read_bytes() != ours.read_bytes():
            found = ["the layout differs"]
        if found:
            return [f"{outtype}: {line}" for line in found]
    return []


def main():
    binary, llama_cpp, zoo = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    names = sys.argv[4:] or list(CASES)
    sys.path.insert(0, str(llama_cpp))
    sys.path.insert(1, str(llama_cpp / "gguf-py"))
    import torch

    # The converter mentions types that old versions lack; no case has tensors of them.
    for missing in ("float8_e4m3fn", "float8_e5m2"):
        if not hasattr(torch, missing):
            setattr(torch, missing, object())
    mend_baichuan()
    mend_stablelm()
    wrong = 0
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            try:
                found = run(binary, llama_cpp, zoo, name, Path(work))
            except Exception as fault:  # llama.cpp's converter has many ways to fail
                found = [f"llama.cpp's converter: {fault!r}"]
            verdict = "DIFFERS" if found else "as known" if name in MISTAKES else "equal"
            print(f"{name}: {verdict}", flush=True)
            for line in found:
                print(f"  {line}")
            wrong += bool(found)
    print(f"{len(names) - wrong} of {len(names)} as they should be")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()

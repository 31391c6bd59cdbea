"""Compares logits with `transformers`, for dense and MoE text models.

Usage: python interop/runtime/text_models.py GGUF_BINARY ZOO_DIR [--write DATA] [CASE ...]

For each case `transformers` builds a tiny model with random weights, gguf-kit converts it to F32 and runs it, and the greatest
difference of the logits, in standard deviations of the reference, must be below a thousandth. Cases vary heads, sliding windows
(shorter than the text), RoPE scaling, biases and experts. The tokenizer is that of a folder of ZOO_DIR. Classes that `transformers`
does not have (InternLM2, MiniCPM, Baichuan, ChatGLM) are other classes with renamed tensors; layouts that the converter does not
write (fused or split matrices, legacy keys) are rewritten from converted files.

`--write docs/models.json` records the differences and regenerates docs/models.md. Needs torch, transformers,
gguf, numpy, safetensors.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from interop import models_page
from interop.fixtures import checkpoint

VOCAB, LAYERS, WIDTH, HEADS, KV, HEAD, FF = 640, 4, 64, 8, 2, 8, 96
TOKENS = 60
TOLERANCE = 1e-3

CASES = {}


class Case:
    """A model and the changes before it runs.

    name: class in transformers, without `ForCausalLM`; fields: fields of its configuration; tokenizer: folder of the zoo; pre: its
    pre-tokenizer; rename: function that changes weights and configuration before they are written; keys: keys to set in the file
    after conversion; rewrite: function that changes its tensors; arguments: function that returns arguments of the model.
    """

    def __init__(self, name, fields, tokenizer="qwen2", pre="qwen2", note="", rename=None, keys=(), rewrite=None,
                 arguments=None, like=None):
        self.name, self.fields, self.tokenizer, self.pre, self.note = name, fields, tokenizer, pre, note
        self.rename, self.keys, self.rewrite, self.arguments, self.like = rename, keys, rewrite, arguments, like


def case(label, *arguments, **named):
    CASES[label] = Case(*arguments, **named)


def sizes(**fields):
    return {
        "vocab_size": VOCAB, "hidden_size": WIDTH, "intermediate_size": FF, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "num_key_value_heads": KV, "max_position_embeddings": 256,
        "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, **fields,
    }  # fmt: skip


def yarn(factor=8.0, original=16, **fields):
    return {"rope_type": "yarn", "rope_theta": 1e4, "factor": factor, "original_max_position_embeddings": original,
            "beta_fast": 8.0, "beta_slow": 1.0, **fields}  # fmt: skip


LINEAR = {"rope_type": "linear", "rope_theta": 1e4, "factor": 3.0}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}  # fmt: skip


def longrope(context, original, pairs=HEAD // 2):
    return {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0 + 0.1 * i for i in range(pairs)],
            "long_factor": [1.5 + 1.3 * i for i in range(pairs)], "factor": context / original,
            "original_max_position_embeddings": original}  # fmt: skip


# ---- Llama and models with its tensors

LLAMA = {"tokenizer": "phi3", "pre": None}

case("llama", "Llama", sizes(attention_bias=True, mlp_bias=True), note="biases in all matrices", **LLAMA)
case("llama, linear", "Llama", sizes(rope_parameters=LINEAR, tie_word_embeddings=True), note="tied embeddings", **LLAMA)
case("llama, yarn", "Llama", sizes(rope_parameters=yarn()), **LLAMA)
case("llama, yarn, attention factor", "Llama", sizes(rope_parameters=yarn(attention_factor=1.25)), **LLAMA)
case("llama, llama3", "Llama", sizes(rope_parameters=LLAMA3, head_dim=16), note="heads wider than embedding / heads", **LLAMA)
case("mixtral", "Mixtral", sizes(num_local_experts=6, num_experts_per_tok=3, sliding_window=None), **LLAMA)
case("qwen2", "Qwen2", sizes(rope_parameters=yarn(4.0, 32)))
case("qwen3", "Qwen3", sizes(head_dim=16, rope_parameters=LINEAR))
case("qwen3moe", "Qwen3Moe", sizes(head_dim=16, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=40,
                                   norm_topk_prob=True, mlp_only_layers=[], rope_parameters=yarn()))  # fmt: skip
case("qwen2moe", "Qwen2Moe", sizes(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=40,
                                   shared_expert_intermediate_size=72, norm_topk_prob=False, qkv_bias=True,
                                   mlp_only_layers=[], decoder_sparse_step=1))  # fmt: skip
GRANITE = {"embedding_multiplier": 9.0, "residual_multiplier": 0.3, "logits_scaling": 6.0, "attention_multiplier": 0.2}
case("granite", "Granite", sizes(**GRANITE, rope_parameters=LLAMA3), pre="dbrx")
MOE = {"num_local_experts": 6, "num_experts_per_tok": 2}
case("granitemoe", "GraniteMoe", sizes(**GRANITE, **MOE), pre="dbrx")
case("granitemoe, shared", "GraniteMoeShared", sizes(**GRANITE, **MOE, shared_intermediate_size=40), pre="dbrx")
case("smollm3", "SmolLM3", sizes(num_hidden_layers=5, no_rope_layer_interval=4, use_sliding_window=False),
     pre="smaug-bpe")  # fmt: skip


# ---- layer norm

GPT = {"n_embd": WIDTH, "n_head": HEADS, "n_layer": LAYERS, "n_positions": 128, "vocab_size": VOCAB}
case("gpt2", "GPT2LMHeadModel", GPT, "gpt2", "gpt-2")
case("gptj", "GPTJ", {**GPT, "rotary_dim": 4}, "gpt2", "gpt-2")
NEOX = {"hidden_act": "gelu", "rotary_pct": 0.5, "num_key_value_heads": HEADS}
case("gptneox", "GPTNeoX", sizes(**NEOX, use_parallel_residual=True), "gpt2", "gpt-2")
case("gptneox, sequential residual", "GPTNeoX", sizes(**NEOX, use_parallel_residual=False), "gpt2", "gpt-2")
case("bloom", "Bloom", {"hidden_size": 72, "n_head": 6, "n_layer": LAYERS, "vocab_size": VOCAB, "seq_length": 128},
     "bloom", "bloom", note="6 heads: ALiBi slopes that are not a power of 2")  # fmt: skip
case("mpt", "Mpt", {"d_model": 72, "n_heads": 6, "n_layers": LAYERS, "vocab_size": VOCAB, "max_seq_len": 128,
                    "attn_config": {"clip_qkv": 0.5}}, "mpt", "mpt", note="clamped Q/K/V")  # fmt: skip
FALCON = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "vocab_size": VOCAB,
          "alibi": False, "bias": False, "parallel_attn": True, "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip
case("falcon, 7B", "Falcon", {**FALCON, "multi_query": True, "new_decoder_architecture": False}, "falcon", "falcon")
case("falcon, 40B", "Falcon", {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2}, "falcon", "falcon",
     note="two norms")  # fmt: skip
case("falcon, 11B", "Falcon", {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2,
     "num_ln_in_parallel_attn": 1}, "falcon", "falcon", note="one norm")  # fmt: skip
case("starcoder", "GPTBigCode", {**GPT, "multi_query": True}, "gpt2", "starcoder")
case("starcoder, multi-head", "GPTBigCode", {**GPT, "multi_query": False}, "gpt2", "starcoder")
case("starcoder2", "Starcoder2", sizes(use_bias=True, tie_word_embeddings=True), "gpt2", "starcoder")
case("phi2", "Phi", sizes(partial_rotary_factor=0.5, num_key_value_heads=4), "gpt2", "phi-2")
case("stablelm", "StableLm", sizes(hidden_size=128, use_qkv_bias=True, partial_rotary_factor=0.25), "stablelm", "stablelm2")
case("stablelm, 12B", "StableLm", sizes(hidden_size=128, qk_layernorm=True, use_parallel_residual=True,
     partial_rotary_factor=0.25), "stablelm", "stablelm2", note="parallel residual, per-head Q/K norms")  # fmt: skip
case("olmo", "Olmo", sizes(clip_qkv=0.5), "olmo2", "olmo", note="clamped Q/K/V, norms without weights")
case("command-r", "Cohere", sizes(logit_scale=0.3), pre="command-r")
case("command-r, Q/K norms", "Cohere", sizes(logit_scale=0.3, use_qk_norm=True), pre="command-r")
case("cohere2", "Cohere2", sizes(logit_scale=0.3, num_hidden_layers=6, sliding_window=16), pre="command-r")


# ---- sliding windows

case("gemma", "Gemma", sizes(head_dim=16), "gemma2", None)
SOFT = {"head_dim": 16, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0, "query_pre_attn_scalar": 16}
case("gemma2", "Gemma2", sizes(**SOFT, sliding_window=11), "gemma2", None)
LOCAL = {"full_attention": {**LINEAR, "rope_theta": 1e5}, "sliding_attention": {"rope_type": "default", "rope_theta": 1e3}}
case("gemma3", "Gemma3", sizes(head_dim=16, num_hidden_layers=8, sliding_window=9, query_pre_attn_scalar=16,
     rope_parameters=LOCAL), "gemma3", None)  # fmt: skip
case("gemma3, 62 layers", "Gemma3", sizes(head_dim=16, num_hidden_layers=62, hidden_size=32, num_attention_heads=4,
     num_key_value_heads=1, sliding_window=9, query_pre_attn_scalar=8, rope_parameters=LOCAL), "gemma3", None,
     note="another attention scale")  # fmt: skip
case("mistral", "Mistral", sizes(sliding_window=11), note="sliding window", **LLAMA)
case("mixtral, sliding window", "Mixtral", sizes(num_local_experts=6, num_experts_per_tok=3, sliding_window=11), **LLAMA)
WINDOW = {"use_sliding_window": True, "sliding_window": 11, "max_window_layers": 2}
case("qwen2, sliding window", "Qwen2", sizes(**WINDOW), note="in the last layers")
case("qwen3, sliding window", "Qwen3", sizes(head_dim=16, **WINDOW), note="in the last layers")
SPARSE = {"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 40, "mlp_only_layers": []}
case("qwen3moe, norm_topk_prob false", "Qwen3Moe", sizes(head_dim=16, norm_topk_prob=False, **SPARSE, **WINDOW),
     note="expert weights are not normalized; sliding window")  # fmt: skip
case("qwen2moe, norm_topk_prob true", "Qwen2Moe", sizes(shared_expert_intermediate_size=72, norm_topk_prob=True, **SPARSE, **WINDOW),
     note="expert weights are normalized; sliding window in some layers")  # fmt: skip
case("starcoder2, sliding window", "Starcoder2", sizes(use_bias=True, tie_word_embeddings=True, sliding_window=11), "gpt2",
     "starcoder")  # fmt: skip
case("smollm3, sliding window", "SmolLM3", sizes(num_hidden_layers=5, no_rope_layer_interval=4, use_sliding_window=True,
     sliding_window=11), pre="smaug-bpe")  # fmt: skip
KINDS = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
case("gemma2, other layer_types", "Gemma2", sizes(**SOFT, sliding_window=11, layer_types=KINDS), "gemma2", None)
case("gemma3, other layer_types", "Gemma3", sizes(head_dim=16, sliding_window=9, query_pre_attn_scalar=16,
     rope_parameters=LOCAL, layer_types=KINDS), "gemma3", None)  # fmt: skip
case("cohere2, other layer_types", "Cohere2", sizes(logit_scale=0.3, sliding_window=16, layer_types=KINDS),
     pre="command-r")  # fmt: skip
case("gpt-oss, other layer_types", "GptOss", sizes(head_dim=16, sliding_window=13, num_local_experts=6,
     num_experts_per_tok=3, layer_types=KINDS), pre="gpt-4o")  # fmt: skip
case("phi3", "Phi3", sizes(sliding_window=20, partial_rotary_factor=1.0), "phi3", None)
PHI = {"max_position_embeddings": 64, "original_max_position_embeddings": 32, "sliding_window": None}
case("phi3, LongRoPE, long text", "Phi3", sizes(**PHI, rope_parameters=longrope(64, 32)), "phi3", None)
PHI = {"max_position_embeddings": 256, "original_max_position_embeddings": 64, "sliding_window": None}
case("phi3, LongRoPE, short text", "Phi3", sizes(**PHI, rope_parameters=longrope(256, 64)), "phi3", None)
case("phi4", "Phi3", sizes(head_dim=16, hidden_size=128, sliding_window=None, partial_rotary_factor=0.75,
     tie_word_embeddings=True, original_max_position_embeddings=256), "olmo2", "dbrx")  # fmt: skip
case("olmo2", "Olmo2", sizes(), "olmo2", "dbrx")
OLMO = {"full_attention": yarn(8.0, 16, attention_factor=1.2), "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}
case("olmo3", "Olmo3", sizes(num_hidden_layers=6, sliding_window=13, rope_parameters=OLMO), "olmo2", "dbrx")
case("gpt-oss", "GptOss", sizes(head_dim=16, sliding_window=13, num_local_experts=6, num_experts_per_tok=3,
     rope_parameters=yarn(32.0, 64, truncate=False)), pre="gpt-4o")  # fmt: skip
LLAMA4 = sizes(head_dim=16, intermediate_size=40, intermediate_size_mlp=FF, num_local_experts=6, num_experts_per_tok=2,
               interleave_moe_layer_step=2, num_hidden_layers=8, rope_parameters=LLAMA3)  # fmt: skip
case("llama4", "Llama4", LLAMA4, pre="llama4")
case("llama4, attention chunks of 16", "Llama4", {**LLAMA4, "attention_chunk_size": 16, "floor_scale": 8}, pre="llama4",
     keys=["llama4.attention.sliding_window:u32=16", "llama4.attention.temperature_length:u32=8"],
     note="attention temperature from position 8 on")  # fmt: skip
case("llama4, full attention", "Llama4", {**LLAMA4, "no_rope_layers": [1] * 8, "layer_types": ["full_attention"] * 8},
     pre="llama4", note="RoPE in all layers")  # fmt: skip


# ---- GLM and DeepSeek

GLM = {"head_dim": 16, "partial_rotary_factor": 0.5, "attention_bias": True}
case("glm4", "Glm4", sizes(**GLM), pre="glm4")
case("chatglm (GlmForCausalLM)", "Glm", sizes(hidden_size=128, **GLM), pre="glm4")
LATENT = {"kv_lora_rank": 24, "qk_rope_head_dim": 8, "qk_nope_head_dim": 12, "v_head_dim": 20, "q_lora_rank": 40,
          "n_shared_experts": 2, "num_experts_per_tok": 3, "moe_intermediate_size": 40, "first_k_dense_replace": 1,
          "num_key_value_heads": HEADS}  # fmt: skip
V2 = {**LATENT, "n_routed_experts": 12, "routed_scaling_factor": 1.7}
V3 = {**LATENT, "n_routed_experts": 12, "routed_scaling_factor": 2.5, "norm_topk_prob": True, "n_group": 4, "topk_group": 2}
MSCALE = {"mscale": 0.707, "mscale_all_dim": 0.707}
case("deepseek2, lite", "DeepseekV2", sizes(**{**V2, "q_lora_rank": None, "topk_method": "greedy"},
     rope_parameters=yarn(40.0, 32, **MSCALE)), pre="deepseek-llm", note="no query compression")  # fmt: skip
case("deepseek2", "DeepseekV2", sizes(**V2, topk_method="group_limited_greedy", n_group=4, topk_group=2,
     rope_parameters=yarn(40.0, 32, mscale=1.0, mscale_all_dim=1.0)), pre="deepseek-llm", note="expert groups")  # fmt: skip
case("deepseek3", "DeepseekV3", sizes(**V3, rope_parameters=yarn(40.0, 32, mscale=1.0, mscale_all_dim=1.0)),
     pre="deepseek-llm", note="expert groups, router bias")  # fmt: skip
case("deepseek3, no mscale", "DeepseekV3", sizes(**V3, rope_parameters=yarn(40.0, 32)), pre="deepseek-llm")


# ---- RoPE scaling in classes that are published without it


def with_rope_scaling(of, kind, rope):
    old = CASES[of]
    share = old.fields.get("partial_rotary_factor", old.fields.get("rotary_pct", 1.0))
    fields = {**old.fields, "rope_parameters": {**rope, "partial_rotary_factor": share}}
    CASES[f"{of}, {kind}"] = Case(old.name, fields, old.tokenizer, old.pre)


for label in ("gptneox", "falcon, 7B", "starcoder2", "phi2", "stablelm", "olmo", "olmo2", "command-r", "cohere2",
              "gemma", "gemma2", "smollm3", "glm4", "chatglm (GlmForCausalLM)", "qwen2moe", "granitemoe"):  # fmt: skip
    with_rope_scaling(label, "linear", LINEAR)
    with_rope_scaling(label, "yarn", yarn())


# ---- classes that transformers does not have


def internlm2(weights, config):
    made = {}
    names = {"self_attn.o_proj": "attention.wo", "input_layernorm": "attention_norm", "mlp.gate_proj": "feed_forward.w1",
             "post_attention_layernorm": "ffn_norm", "mlp.down_proj": "feed_forward.w2",
             "mlp.up_proj": "feed_forward.w3", "embed_tokens": "tok_embeddings", "lm_head": "output"}  # fmt: skip
    for name, tensor in weights.items():
        for theirs, ours in names.items():
            name = name.replace(theirs, ours)
        if "_proj" not in name:
            made[name] = tensor
    for i in range(LAYERS):
        q, k, v = (weights[f"model.layers.{i}.self_attn.{x}_proj.weight"] for x in "qkv")
        groups = [x.reshape(KV, -1, WIDTH) for x in (q, k, v)]
        made[f"model.layers.{i}.attention.wqkv.weight"] = torch.cat(groups, 1).reshape(-1, WIDTH)
    config |= {"architectures": ["InternLM2ForCausalLM"], "model_type": "internlm2"}
    return made, config


def baichuan(weights, config):
    made = {name: tensor for name, tensor in weights.items() if "_proj" not in name or "o_proj" in name or "mlp" in name}
    for i in range(config["num_hidden_layers"]):
        parts = [weights[f"model.layers.{i}.self_attn.{x}_proj.weight"] for x in "qkv"]
        made[f"model.layers.{i}.self_attn.W_pack.weight"] = torch.cat(parts)
    del config["num_key_value_heads"]
    config |= {"architectures": ["BaichuanForCausalLM"], "model_type": "baichuan"}
    return made, config


def minicpm(weights, config):
    depth = config["residual_multiplier"] * math.sqrt(LAYERS)
    config |= {"scale_emb": config["embedding_multiplier"], "scale_depth": depth, "architectures": ["MiniCPMForCausalLM"],
               "dim_model_base": WIDTH / config["logits_scaling"], "model_type": "minicpm_remote"}  # fmt: skip
    return weights, config


def chatglm(weights, config):
    made = {}
    names = {"model.layers": "transformer.encoder.layers", "model.embed_tokens": "transformer.embedding.word_embeddings",
             "lm_head": "transformer.output_layer", "model.norm": "transformer.encoder.final_layernorm",
             "self_attn.o_proj": "self_attention.dense", "mlp.gate_up_proj": "mlp.dense_h_to_4h",
             "mlp.down_proj": "mlp.dense_4h_to_h"}  # fmt: skip
    for name, tensor in weights.items():
        for theirs, ours in names.items():
            name = name.replace(theirs, ours)
        if "_proj" not in name:
            made[name] = tensor
    for i in range(LAYERS):
        for kind in ("weight", "bias"):
            parts = [weights[f"model.layers.{i}.self_attn.{x}_proj.{kind}"] for x in "qkv"]
            made[f"transformer.encoder.layers.{i}.self_attention.query_key_value.{kind}"] = torch.cat(parts)
    own = {"architectures": ["ChatGLMModel"], "model_type": "chatglm_remote", "num_layers": LAYERS, "rope_ratio": 1.0,
           "multi_query_group_num": KV, "ffn_hidden_size": FF, "seq_length": 256, "padded_vocab_size": VOCAB,
           "layernorm_epsilon": config["rms_norm_eps"], "hidden_size": config["hidden_size"],
           "num_attention_heads": HEADS, "vocab_size": VOCAB}  # fmt: skip
    return made, own


def slopes(heads):
    """ALiBi as its authors define it."""
    power = 2 ** math.floor(math.log2(heads))
    first = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    return first + [2 ** (-4 * (2 * i + 1) / power) for i in range(heads - power)]


def with_slopes(ids):
    """Attention without RoPE, with an ALiBi bias."""
    n = ids.shape[1]
    distance = torch.arange(n)[None, :] - torch.arange(n)[:, None]
    bias = torch.tensor(slopes(6))[:, None, None] * distance
    mask = bias.masked_fill(distance > 0, float("-inf"))
    return {"attention_mask": mask[None].float(), "position_ids": torch.zeros_like(ids)}


case("internlm2", "Llama", sizes(), rename=internlm2, note="reference: `LlamaForCausalLM`", tokenizer="llama", pre=None)
PACKED = {"num_key_value_heads": HEADS}
case("baichuan, 7B", "Llama", sizes(**PACKED), rename=baichuan, note="reference: `LlamaForCausalLM`", **LLAMA)
case("baichuan, 13B", "Llama", sizes(num_key_value_heads=6, num_attention_heads=6, hidden_size=48, num_hidden_layers=40),
     rename=baichuan, arguments=with_slopes, note="reference: `LlamaForCausalLM` with ALiBi; 40 layers", **LLAMA)  # fmt: skip
GRANITE = {**GRANITE, "attention_multiplier": HEAD**-0.5, "logits_scaling": 4.0}
case("minicpm", "Granite", sizes(**GRANITE), rename=minicpm, note="reference: `GraniteForCausalLM`", **LLAMA)
case("minicpm, LongRoPE", "Granite", sizes(**GRANITE, rope_parameters={**longrope(512, 256), "attention_factor": 1.0}),
     rename=minicpm, note="reference: `GraniteForCausalLM`", **LLAMA)  # fmt: skip
FIRST = {**GRANITE, "embedding_multiplier": 12.0, "residual_multiplier": 1.4 / math.sqrt(LAYERS), "logits_scaling": WIDTH / 256}
case("minicpm, scale keys removed", "Granite", sizes(**FIRST), rename=minicpm, note="reference: `GraniteForCausalLM`",
     rewrite="without_scales", **LLAMA)  # fmt: skip
case("chatglm", "Glm", sizes(hidden_size=128, **{**GLM, "partial_rotary_factor": 0.5}), rename=chatglm, pre="chatglm-bpe",
     note="reference: `GlmForCausalLM`; original tensor names")  # fmt: skip


# ---- files that the converter does not write


class File:
    """Keys and tensors of a GGUF, to be changed and written."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.architecture = reader.fields["general.architecture"].contents()
        self.keys = {k: (f.types, f.contents()) for k, f in reader.fields.items() if not k.startswith("GGUF.")}
        self.tensors = {t.name: t.data.reshape([int(n) for n in reversed(t.shape)]).copy() for t in reader.tensors}

    def get(self, key):
        return self.keys[f"{self.architecture}.{key}"][1]

    def pop(self, key):
        return self.keys.pop(f"{self.architecture}.{key}", (None, None))[1]

    def set(self, key, kind, value):
        types = [gguf.GGUFValueType.ARRAY, kind] if isinstance(value, list) else [kind]
        self.keys[f"{self.architecture}.{key}"] = (types, value)

    def write(self, path):
        writer = gguf.GGUFWriter(path, self.architecture)
        for key, (types, value) in self.keys.items():
            if key != "general.architecture":
                writer.add_key_value(key, value, types[0], types[-1] if types[0] == gguf.GGUFValueType.ARRAY else None)
        for name, data in self.tensors.items():
            writer.add_tensor(name, data)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def layers(self):
        return range(self.get("block_count"))


U32, F32 = gguf.GGUFValueType.UINT32, gguf.GGUFValueType.FLOAT32


def without_scales(file):
    for key in ("embedding_scale", "residual_scale", "logit_scale"):
        assert file.pop(key) is not None


def fused_queries(file):
    for i in file.layers():
        for kind in ("weight", "bias"):
            if f"blk.{i}.attn_q.{kind}" in file.tensors:
                parts = [file.tensors.pop(f"blk.{i}.attn_{x}.{kind}") for x in "qkv"]
                file.tensors[f"blk.{i}.attn_qkv.{kind}"] = np.concatenate(parts)


def split_queries(file):
    heads, kv = file.get("attention.head_count"), file.get("attention.head_count_kv")
    for i in file.layers():
        fused = file.tensors.pop(f"blk.{i}.attn_qkv.weight")
        part = len(fused) // (heads + 2 * kv)
        for x, rows in zip("qkv", np.split(fused, [heads * part, (heads + kv) * part])):
            file.tensors[f"blk.{i}.attn_{x}.weight"] = np.ascontiguousarray(rows)


def kv_heads_per_layer(file):
    """Every other layer has as many KV heads as query heads: the existing ones, repeated."""
    heads, kv = file.get("attention.head_count"), file.get("attention.head_count_kv")
    counts = [heads if i % 2 else kv for i in file.layers()]
    file.set("attention.head_count_kv", U32, counts)
    file.set("attention.head_count", U32, [heads] * len(counts))
    for i in file.layers():
        for name in (f"blk.{i}.attn_k.weight", f"blk.{i}.attn_v.weight"):
            rows = file.tensors[name]
            groups = rows.reshape(kv, -1, rows.shape[1])
            file.tensors[name] = groups.repeat(counts[i] // kv, 0).reshape(-1, rows.shape[1])


def legacy_linear(file):
    file.pop("rope.scaling.type")
    file.set("rope.scale_linear", F32, file.pop("rope.scaling.factor"))


def specification_mpt(file):
    file.set("attention.clip_kqv", F32, file.pop("attention.clamp_kqv"))
    file.set("attention.alibi_bias_max", F32, file.pop("attention.max_alibi_bias"))


def fused_kv_b(file):
    """The layout of files from before 2025."""
    rotated = file.get("rope.dimension_count")
    key, value = file.pop("attention.key_length_mla"), file.pop("attention.value_length_mla")
    file.set("attention.key_length", U32, key)
    file.set("attention.value_length", U32, value)
    file.set("attention.head_count_kv", U32, file.get("attention.head_count"))
    for i in file.layers():
        keys = file.tensors.pop(f"blk.{i}.attn_k_b.weight").transpose(0, 2, 1)
        values = file.tensors.pop(f"blk.{i}.attn_v_b.weight")
        assert keys.shape[1:] == (key - rotated, values.shape[2])
        both = np.concatenate([keys, values], 1)
        file.tensors[f"blk.{i}.attn_kv_b.weight"] = np.ascontiguousarray(both.reshape(-1, both.shape[2]))


def fused_experts(file):
    for i in file.layers():
        parts = [file.tensors.pop(f"blk.{i}.ffn_{x}_exps.weight", None) for x in ("gate", "up")]
        if parts[0] is not None:
            file.tensors[f"blk.{i}.ffn_gate_up_exps.weight"] = np.concatenate(parts, 1)


def mtp_layer(file):
    last = file.get("block_count")
    copied = {name: data for name, data in file.tensors.items() if name.startswith(f"blk.{last - 1}.")}
    file.tensors |= {name.replace(f"blk.{last - 1}.", f"blk.{last}."): data for name, data in copied.items()}
    file.set("block_count", U32, last + 1)
    file.set("nextn_predict_layers", U32, 1)


def sections(file):
    """M-RoPE sections for time, height and width: the RoPE layout is then NeoX, not interleaved."""
    rotated, heads = file.get("rope.dimension_count"), {"q": HEADS, "k": KV}
    file.set("rope.dimension_sections", gguf.GGUFValueType.INT32, [2, 1, 1, 0])
    for i in file.layers():
        for x, kind in (("q", "weight"), ("q", "bias"), ("k", "weight"), ("k", "bias")):
            name = f"blk.{i}.attn_{x}.{kind}"
            old = file.tensors[name].reshape(heads[x], GLM["head_dim"], -1)
            new = np.concatenate([old[:, :rotated:2], old[:, 1:rotated:2], old[:, rotated:]], 1)
            file.tensors[name] = np.ascontiguousarray(new.reshape(file.tensors[name].shape))


def rewritten(label, of, rewrite, note):
    old = CASES[of]
    CASES[label] = Case(old.name, old.fields, old.tokenizer, old.pre, note, rewrite=rewrite)


rewritten("llama, fused QKV", "llama", "fused_queries", "file not written by this converter")
rewritten("llama, per-layer KV heads", "llama, yarn", "kv_heads_per_layer", "file not written by this converter")
rewritten("llama, legacy key", "llama, linear", "legacy_linear", "`rope.scale_linear`; file not written by this converter")
rewritten("phi3, split QKV", "phi3", "split_queries", "file not written by this converter")
rewritten("mpt, specification keys", "mpt", "specification_mpt", "file not written by this converter")
rewritten("deepseek2, attn_kv_b", "deepseek2", "fused_kv_b", "layout before 2025; file not written by this converter")
rewritten("deepseek2, lite, attn_kv_b", "deepseek2, lite", "fused_kv_b", "layout before 2025; file not written by this converter")
rewritten("deepseek3, fused experts", "deepseek3", "fused_experts", "`ffn_gate_up_exps`; file not written by this converter")
rewritten("glm4, M-RoPE", "glm4", "sections", "file not written by this converter")
rewritten("glm4, MTP layer", "glm4", "mtp_layer", "the MTP layer is ignored; file not written by this converter")


# ---- more architectures

BESIDE = {"moe_intermediate_size": 40, "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 1,
          "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 1.5}  # fmt: skip
PERIODS = ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]
SPARSE_LAYERS = ["dense", "sparse", "sparse", "sparse"]
case("ministral3", "Ministral3", sizes(head_dim=16, sliding_window=None, rope_parameters={
    **yarn(), "llama_4_scaling_beta": 0.1, "mscale": 1.0, "mscale_all_dim": 1.0}),
     note="attention temperature")  # fmt: skip
case("ernie4_5", "Ernie4_5", sizes(head_dim=16), **LLAMA)
case("ernie4_5-moe", "Ernie4_5_Moe", sizes(moe_num_experts=6, moe_k=2, moe_num_shared_experts=1, moe_layer_start_index=1,
                                           moe_intermediate_size=40), **LLAMA)  # fmt: skip
case("arcee", "Arcee", sizes(head_dim=16))
case("jais2", "Jais2", sizes(head_dim=8))
case("nemotron", "Nemotron", sizes(head_dim=8, partial_rotary_factor=0.5), **LLAMA)
case("hunyuan-dense", "HunYuanDenseV1", sizes(head_dim=16))
case("seed_oss", "SeedOss", sizes(head_dim=16, attention_bias=True))
case("olmoe", "Olmoe", sizes(num_experts=8, num_experts_per_tok=3, norm_topk_prob=False, rms_norm_eps=1e-5))
case("dots1", "Dots1", sizes(head_dim=16, sliding_window=None, **BESIDE))
case("minimax-m2", "MiniMaxM2", sizes(head_dim=16, rotary_dim=8, num_local_experts=8, num_experts_per_tok=3))
case("exaone4", "Exaone4", sizes(head_dim=16, sliding_window=11, layer_types=PERIODS))
case("exaone4, full attention", "Exaone4", sizes(head_dim=16, sliding_window=None, layer_types=["full_attention"] * LAYERS))
case("exaone-moe", "ExaoneMoe", sizes(head_dim=16, sliding_window=11, layer_types=PERIODS, num_experts=8,
                                      num_experts_per_tok=3, moe_intermediate_size=40, num_shared_experts=1,
                                      first_k_dense_replace=1, num_nextn_predict_layers=0,
                                      mlp_layer_types=SPARSE_LAYERS))  # fmt: skip
case("glm4moe", "Glm4Moe", sizes(head_dim=16, partial_rotary_factor=0.5, use_qk_norm=True, attention_bias=True, **BESIDE))
case("dbrx", "Dbrx", {"d_model": WIDTH, "n_heads": HEADS, "n_layers": LAYERS, "vocab_size": VOCAB, "max_seq_len": 256,
                      "attn_config": {"kv_n_heads": KV, "clip_qkv": 0.5, "rope_theta": 1e4},
                      "ffn_config": {"ffn_hidden_size": 40, "moe_num_experts": 6, "moe_top_k": 2}},
     pre="dbrx")  # fmt: skip
SHORT = {"conv_L_cache": 3, "layer_types": ["conv", "full_attention", "conv", "full_attention"]}
case("lfm2", "Lfm2", sizes(**SHORT, block_auto_adjust_ff_dim=False))
case("lfm2moe", "Lfm2Moe", sizes(**SHORT, num_dense_layers=1, num_experts=8, num_experts_per_tok=3,
                                 moe_intermediate_size=40))  # fmt: skip


# ---- building, converting, running


def random_model(case):
    named = [case.name + "ForCausalLM", case.name]
    cls = next(getattr(transformers, name) for name in named if hasattr(transformers, name))
    config = cls.config_class(**case.fields)
    config._attn_implementation = "eager"
    torch.manual_seed(7)
    model = cls(config).float().eval()
    tensors = [*model.named_parameters(), *((n, b) for n, b in model.named_buffers() if "e_score" in n)]
    for name, tensor in tensors:
        is_norm = ("norm" in name or ".ln_" in name) and name.endswith("weight")
        is_table = "embed" in name or "wte" in name or "wpe" in name
        noise = torch.randn(tensor.shape) * (0.5 if is_table else 0.15)
        # Gemma stores norms minus 1.
        mean = 1.0 if is_norm and not case.name.startswith("Gemma") else 0.0
        tensor.data.copy_(noise + mean)
    return model


def ids():
    return np.random.default_rng(11).integers(3, 590, TOKENS)


def write_checkpoint(case, model, zoo, folder):
    if case.rename is None:
        model.save_pretrained(folder)
    else:
        folder.mkdir()
        weights, config = case.rename(model.state_dict(), model.config.to_dict())
        config["torch_dtype"] = "float32"
        for field in ("dtype", "_attn_implementation"):
            config.pop(field, None)
        (folder / "config.json").write_text(json.dumps(config))
        save_file({name: tensor.contiguous().clone() for name, tensor in weights.items()}, folder / "model.safetensors")
    checkpoint.copy_tokenizer(zoo / case.tokenizer, folder)
    if "Glm" in case.name:
        checkpoint.replace_token(folder, "<|im_start|>", "<|user|>")


def run_command(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())


def run(binary, zoo, case, work):
    """Returns the architecture, and the greatest difference in standard deviations."""
    model = random_model(case)
    text = ids()
    input_ids = torch.tensor(text)[None]
    with torch.no_grad():
        more = case.arguments(input_ids) if case.arguments else {}
        expected = model(input_ids, use_cache=False, **more).logits[0].float().numpy()
    folder, path, out = work / "checkpoint", work / "model.gguf", work / "logits.npy"
    write_checkpoint(case, model, zoo, folder)
    run_command(binary, "convert", folder, "-o", path, "--outtype", "f32", *(["--pre", case.pre] if case.pre else []))
    if case.keys:
        run_command(binary, "edit", path, *(x for key in case.keys for x in ("--set", key)))
    if case.rewrite:
        file = File(path)
        globals()[case.rewrite](file)
        path.unlink()
        file.write(path)
    listed = " ".join(map(str, text))
    run_command(binary, "logits", path, "--ids", listed, "-o", out, "--precision", "exact", "--cache-type", "f32")
    found = np.load(out)
    architecture = gguf.GGUFReader(path).fields["general.architecture"].contents()
    assert found.shape == expected.shape, f"{found.shape}; expected {expected.shape}"
    return architecture, float(np.abs(found - expected).max() / expected.std())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gguf")
    parser.add_argument("zoo", type=Path)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    data = models_page.load(options.write) if options.write else {}
    failed = 0
    for label in options.cases or CASES:
        case = CASES[label]
        with tempfile.TemporaryDirectory() as work:
            try:
                architecture, difference = run(options.gguf, options.zoo, case, Path(work))
            except Exception as error:
                architecture, difference = repr(error)[:600], math.nan
        is_right = difference < TOLERANCE
        failed += not is_right
        print(f"{label}: {architecture} {difference:.1e}{'' if is_right else ' WRONG'}", flush=True)
        if is_right:
            models_page.record_logits(data, architecture, label, {"transformers": difference}, case.note)
    if options.write:
        models_page.save(data, options.write)
        models_page.main([])
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

"""Tiny checkpoints of drafts, for coverage.py; as converter.py's cases. `target_model` in a configuration is that
of the model which the draft is for."""

import numpy as np
from converter import HEAD, HEADS, KV, LAYERS, LLAMA, VOCAB, WIDTH
from converter import attention, block, case, config, gated, linear, norm
from converter_older import blocks

DRAFT_TOKENS = 40


def target(**fields):
    return config("Qwen3ForCausalLM", "qwen3", head_dim=HEAD, rms_norm_eps=1e-6, rope_theta=1e6, **fields)


def eagle_layer(p):
    tensors = {name: (shape[0], 2 * WIDTH) for name, shape in attention(f"{p}.self_attn").items()}
    tensors |= linear(f"{p}.self_attn.o_proj", WIDTH, HEADS * HEAD) | gated(f"{p}.mlp")
    for part in ("input_layernorm", "hidden_norm", "post_attention_layernorm"):
        tensors |= norm(f"{p}.{part}")
    return tensors


def eagle(name, layer, kind="llama", **fields):
    made = config(name, kind, **{**LLAMA, **fields})
    made |= {"num_hidden_layers": 1, "draft_vocab_size": DRAFT_TOKENS, "target_model": target()}
    tensors = eagle_layer(layer) | linear("fc", WIDTH, 3 * WIDTH) | norm("norm")
    return made, tensors | {"lm_head.weight": (DRAFT_TOKENS, WIDTH)}, "qwen2", "qwen2"


# Which tokens of the target those of the draft are, as differences from their own numbers, and the way back.
LISTS = {"d2t": np.arange(DRAFT_TOKENS) * 3 + 5, "t2d": np.zeros(VOCAB, dtype=np.int64)}


@case
def eagle3():
    made, tensors, *rest = eagle("LlamaForCausalLMEagle3", "midlayer")
    return made, tensors | LISTS, *rest


@case
def eagle3_by_fields():
    """Of the class that targets have, too."""
    made, tensors, *rest = eagle("LlamaForCausalLM", "midlayer", rope_scaling=None, eagle_aux_hidden_state_layer_ids=[])
    return made, tensors | LISTS, *rest


@case
def eagle3_with_norms():
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0}
    llama3 |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    fields = {"norm_before_fc": True, "eagle_aux_hidden_state_layer_ids": [1, 2, 4], "rope_scaling": llama3}
    made, tensors, *rest = eagle("Eagle3LlamaForCausalLM", "midlayer", "eagle3_remote", **fields)
    tensors |= norm("input_norm", 3 * WIDTH) | {"embed_tokens.weight": (VOCAB, WIDTH)}
    return made, tensors | LISTS, *rest


@case
def eagle3_speculator():
    made, tensors, *rest = eagle("Eagle3Speculator", "layers.0", head_dim=HEAD)
    apart = ("architectures", "draft_vocab_size", "target_model")
    layers = {field: value for field, value in made.items() if field not in apart}
    made = {field: made[field] for field in apart}
    made |= {"model_type": "speculator_remote", "transformer_layer_config": layers, "norm_before_residual": True}
    return made | {"target_hidden_size": WIDTH}, tensors | LISTS, *rest


@case
def eagle3_draft():
    """Without lists: it guesses among all tokens."""
    made, tensors, *rest = eagle("Eagle3DraftModel", "midlayer", "eagle3_remote")
    made["draft_vocab_size"] = VOCAB
    tensors["lm_head.weight"] = (VOCAB, WIDTH)
    return made, tensors, *rest


def flash_layer(p):
    tensors = block(p) | norm(f"{p}.self_attn.q_norm", HEAD)
    return tensors | norm(f"{p}.self_attn.k_norm", HEAD)


def flash(name, kind="qwen3", layer=flash_layer, prefix="", **fields):
    made = config(name, kind, head_dim=HEAD, rms_norm_eps=1e-6, rope_theta=1e6, **fields)
    made["target_model"] = target()
    tensors = blocks(layer, "layers") | linear("fc", WIDTH, 2 * WIDTH) | norm("hidden_norm") | norm("norm")
    return made, {prefix + name: shape for name, shape in tensors.items()}, "qwen2", "qwen2"


@case
def dflash():
    own = {"mask_token_id": 7, "target_layer_ids": [1, 3], "block_size": 8}
    return flash("DFlashDraftModel", dflash_config=own, is_causal=False)


@case
def dflash_windowed():
    own = {"mask_token_id": 7, "target_layer_ids": [0, 2], "use_swa": True, "swa_window_size": 32}
    own |= {"output_multiplier": 0.5, "input_embedding_scale": 8.0, "final_logit_softcapping": 30.0}
    own |= {"attention_value_scale": 0.7, "causal": True}
    made, tensors, *rest = flash("DFlashDraftModel", "dflash_remote", dflash_config=own, partial_rotary_factor=0.5)
    made |= {"rope_is_neox_style": False, "has_embed_tokens": False}
    rope = {"rope_type": "default", "mrope_section": [2, 3, 3]}
    made["target_model"] = {**target(rope_scaling=rope), "rope_scaling": rope, "model_type": "remote"}
    tensors |= {"embed_tokens.weight": (VOCAB, WIDTH)}
    tensors |= {f"layers.{i}.self_attn.attention_sink_bias": (HEADS,) for i in range(LAYERS)}
    return made, tensors, *rest


@case
def dflash2():
    kernel, group, rank = 3, 16, 8
    own = {"mask_token_id": 7, "target_layer_ids": [1, 3], "conv_kernel_size": kernel, "conv_group_size": group}
    own |= {"selector_rank": rank, "selector_top_k": 4}
    made, tensors, *rest = flash("DFlash2DraftModel", "dflash_remote", prefix="model.", dflash_config=own)
    for i in range(LAYERS):
        for part in ("attention_conv", "mlp_conv"):
            tensors[f"model.layers.{i}.{part}.base_kernel"] = (2, kernel, WIDTH)
            tensors |= linear(f"model.layers.{i}.{part}.kernel_projection", 2 * kernel * WIDTH // group, WIDTH)
    tensors |= {f"model.candidate_selector.{part}_codebook": (VOCAB, rank) for part in ("predecessor", "successor")}
    return made, tensors | linear("model.candidate_selector.hidden_projection", rank, WIDTH), *rest


def spark(name, tokens=VOCAB, **fields):
    rank = 8
    made, tensors, *rest = flash(name, "dspark_remote", **fields)
    tensors |= linear("markov_head.markov_w1", VOCAB, rank) | linear("markov_head.markov_w2", tokens, rank)
    tensors |= {"embed_tokens.weight": (VOCAB, WIDTH), "lm_head.weight": (tokens, WIDTH)}
    return made, tensors, *rest


@case
def dspark_qwen3():
    made, tensors, *rest = spark("Qwen3DSparkModel", block_size=4, target_layer_ids=[1, 3], mask_token_id=7)
    return made, tensors | linear("confidence_head.proj", 1, WIDTH + 8, True), *rest


@case
def dspark_draft():
    return spark("DSparkDraftModel", dflash_config={"mask_token_id": 7, "target_layer_ids": [1, 3]})


@case
def dspark_speculator():
    """Of fewer tokens, with fields of the layers apart."""
    own = {"draft_vocab_size": DRAFT_TOKENS, "aux_hidden_state_layer_ids": [2, 4], "mask_token_id": 7}
    made, tensors, *rest = spark("DSparkSpeculator", DRAFT_TOKENS, block_size=4, **own)
    apart = ("architectures", "target_model", "block_size", *own)
    layers = {field: value for field, value in made.items() if field not in apart}
    made = {field: made[field] for field in apart}
    made |= {"model_type": "speculator_remote", "transformer_layer_config": layers}
    return made, tensors | LISTS, *rest


@case
def dspark_lfm2():
    return spark("Lfm2DSparkDraftModel", target_layer_ids=[1, 3], mask_token_id=7)


@case
def dspark_ling():
    return spark("LingDSparkModel", target_layer_ids=[1, 3], mask_token_id=7, sample_from_anchor=False)

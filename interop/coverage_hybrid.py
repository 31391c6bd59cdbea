"""More tiny checkpoints for coverage.py, as coverage_cases.py: the newest models whose layers are of several kinds."""

from converter import EXPERT_FF, EXPERTS, FF, HEAD, HEADS, KV, LAYERS, VOCAB, WIDTH
from converter import case, config, experts, gated, linear, model, norm
from coverage_cases import routed_block
from coverage_drafts import flash

RANK, FIXED, ROTATED, VALUE = 32, 12, 8, 20
INNER = HEADS * HEAD
COMPRESSED = {"kv_lora_rank": RANK, "qk_nope_head_dim": FIXED, "qk_rope_head_dim": ROTATED, "v_head_dim": VALUE}


def compressed(q, queries=RANK, gate=None):
    tensors = linear(f"{q}.kv_a_proj_with_mqa", RANK + ROTATED, WIDTH) | norm(f"{q}.kv_a_layernorm", RANK)
    tensors |= linear(f"{q}.kv_b_proj", HEADS * (FIXED + VALUE), RANK)
    if queries:
        tensors |= linear(f"{q}.q_a_proj", queries, WIDTH) | norm(f"{q}.q_a_layernorm", queries)
        tensors |= linear(f"{q}.q_b_proj", HEADS * (FIXED + ROTATED), queries)
    else:
        tensors |= linear(f"{q}.q_proj", HEADS * (FIXED + ROTATED), WIDTH)
    return tensors | (linear(f"{q}.g_proj", gate, WIDTH) if gate else {})


def delta(q):
    tensors = norm(f"{q}.o_norm", HEAD) | linear(f"{q}.b_proj", HEADS, WIDTH) | {f"{q}.dt_bias": (INNER,)}
    for part in "qkv":
        tensors |= linear(f"{q}.{part}_proj", INNER, WIDTH) | {f"{q}.{part}_conv1d.weight": (INNER, 1, 4)}
    return tensors


def ling(name, **fields):
    made = config(name, "bailing_v3_remote", head_dim=HEAD, rms_norm_eps=1e-6, rope_theta=6e6, **COMPRESSED)
    made |= {"num_hidden_layers": 4, "layer_group_size": 2, "q_lora_rank": None, "short_conv_kernel_size": 4}
    made |= {"no_kda_lora": True, "kda_safe_gate": True, "kda_lower_bound": -5.0, "num_shared_experts": 1}
    made |= {"gated_attention_proj_granularity_type": "head_wise", "moe_intermediate_size": EXPERT_FF}
    made |= {"moe_shared_expert_intermediate_size": EXPERT_FF, "num_experts": EXPERTS, "num_experts_per_tok": 2}
    made |= {"first_k_dense_replace": 1, "routed_scaling_factor": 2.5, "norm_topk_prob": True, "n_group": 2}
    made |= {"topk_group": 1, "score_function": "sigmoid", "num_nextn_predict_layers": 1, **fields}
    made["expert_swiglu_limit_list"] = [None, 7.0, 7.0, None]

    def layer(p):
        q, number = f"{p}.attention", int(p.rsplit(".", 1)[1])
        tensors = routed_block(p, number == 0, "expert_bias")
        if number % 2 == 1 or number == 4:
            tensors |= compressed(q, made["q_lora_rank"], HEADS) | linear(f"{q}.dense", WIDTH, HEADS * VALUE)
        else:
            tensors |= delta(q) | {f"{q}.A_log": (HEADS,)} | linear(f"{q}.o_proj", WIDTH, INNER)
            tensors |= linear(f"{q}.f_proj", INNER, WIDTH) | linear(f"{q}.g_proj", INNER, WIDTH)
        if number == 4:
            tensors |= linear(f"{p}.eh_proj", WIDTH, 2 * WIDTH)
            tensors |= norm(f"{p}.enorm") | norm(f"{p}.hnorm") | norm(f"{p}.final_layernorm")
        return tensors

    tensors = model(layer, layers=5)
    tensors["model.word_embeddings.weight"] = tensors.pop("model.embed_tokens.weight")
    return made, tensors, "qwen2", "bailingmoe2"


@case
def ling_third():
    return ling("BailingMoeV3ForCausalLM")


@case
def ling_third_that_sees():
    made, tensors, *rest = ling("BailingMoeV3VLForConditionalGeneration", q_lora_rank=RANK, mrope_section=[2, 1, 1])
    kept = ("architectures", "model_type")
    made = {k: made[k] for k in kept} | {"text_config": {k: v for k, v in made.items() if k not in kept}}
    tensors |= linear("linear_proj.0", WIDTH, 32, True) | linear("model.visual.blocks.0.attn.qkv", 96, 32)
    return made, tensors, *rest


@case
def sarvam():
    fields = {"num_experts": EXPERTS, "num_shared_experts": 1, "num_experts_per_tok": 2, "norm_topk_prob": True}
    made = config("SarvamMoEForCausalLM", "sarvam_remote", head_dim=HEAD, rms_norm_eps=1e-6, rope_theta=8e6, **fields)
    made |= {"moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 1, "routed_scaling_factor": 2.5}
    made |= {"score_function": "sigmoid", "n_group": 1, "topk_group": 1}

    def layer(p):
        tensors = routed_block(p, p.endswith(".0"), "expert_bias")
        tensors |= linear(f"{p}.attention.query_key_value", (HEADS + 2 * KV) * HEAD, WIDTH)
        tensors |= linear(f"{p}.attention.dense", WIDTH, INNER)
        return tensors | norm(f"{p}.attention.query_layernorm", HEAD) | norm(f"{p}.attention.key_layernorm", HEAD)

    tensors = model(layer)
    tensors["model.word_embeddings.weight"] = tensors.pop("model.embed_tokens.weight")
    return made, tensors, "qwen2", "sarvam-moe"


@case
def nemotron_puzzle():
    heads, dim, state, groups, latent, shared = 8, 16, 16, 2, 40, 56
    made = config("NemotronHPuzzleForCausalLM", "nemotron_puzzle_remote", head_dim=HEAD, rms_norm_eps=1e-5)
    made |= {"layer_norm_epsilon": 1e-5, "ssm_state_size": state, "conv_kernel": 4, "n_groups": groups}
    made |= {"mamba_num_heads": heads, "mamba_head_dim": dim, "n_routed_experts": EXPERTS, "n_shared_experts": 1}
    made |= {"moe_shared_expert_intermediate_size": shared, "norm_topk_prob": True, "routed_scaling_factor": 2.5}
    made |= {"n_group": 1, "topk_group": 1, "moe_latent_size": latent, "num_nextn_predict_layers": 1}
    made["block_configs"] = [
        {"block_type": "mamba"},
        {"block_type": "moe", "moe_intermediate_size": EXPERT_FF, "num_experts_per_tok": 2},
        {"block_type": "attention"},
        {"block_type": "moe", "moe_intermediate_size": 2 * EXPERT_FF, "num_experts_per_tok": 1},
    ]
    inner = heads * dim
    channels = inner + 2 * groups * state
    tensors = linear("model.embeddings", VOCAB, WIDTH) | linear("lm_head", VOCAB, WIDTH) | norm("model.norm_f")
    tensors |= linear("mtp.layers.0.eh_proj", WIDTH, 2 * WIDTH)
    for i, of_layer in enumerate(made["block_configs"]):
        p = f"model.layers.{i}.mixer"
        tensors |= norm(f"model.layers.{i}.norm")
        if of_layer["block_type"] == "mamba":
            tensors |= linear(f"{p}.in_proj", inner + channels + heads, WIDTH) | linear(f"{p}.out_proj", WIDTH, inner)
            tensors |= {f"{p}.conv1d.weight": (channels, 1, 4), f"{p}.conv1d.bias": (channels,)} | norm(f"{p}.norm", inner)
            tensors |= {f"{p}.{part}": (heads,) for part in ("A_log", "D", "dt_bias")}
        elif of_layer["block_type"] == "attention":
            tensors |= linear(f"{p}.q_proj", INNER, WIDTH) | linear(f"{p}.k_proj", KV * HEAD, WIDTH)
            tensors |= linear(f"{p}.v_proj", KV * HEAD, WIDTH) | linear(f"{p}.o_proj", WIDTH, INNER)
        else:
            width = of_layer["moe_intermediate_size"]
            tensors |= linear(f"{p}.gate", EXPERTS, WIDTH) | {f"{p}.gate.e_score_correction_bias": (EXPERTS,)}
            tensors |= linear(f"{p}.fc1_latent_proj", latent, WIDTH) | linear(f"{p}.fc2_latent_proj", WIDTH, latent)
            tensors |= linear(f"{p}.shared_experts.up_proj", shared, WIDTH)
            tensors |= linear(f"{p}.shared_experts.down_proj", WIDTH, shared)
            for e in range(EXPERTS):
                tensors |= linear(f"{p}.experts.{e}.up_proj", width, latent)
                tensors |= linear(f"{p}.experts.{e}.down_proj", latent, width)
    return made, tensors, "qwen2", "qwen2"


@case
def dspark_gemma4():
    fields = {"layer_types": ["full_attention"] * LAYERS, "attention_k_eq_v": True, "global_head_dim": 2 * HEAD}
    fields |= {"num_global_key_value_heads": 1, "target_layer_ids": [1, 3], "mask_token_id": 7, "block_size": 4}

    def layer(p):
        wide = 2 * HEAD
        tensors = gated(f"{p}.mlp") | norm(f"{p}.self_attn.q_norm", wide) | norm(f"{p}.self_attn.k_norm", wide)
        tensors |= linear(f"{p}.self_attn.q_proj", HEADS * wide, WIDTH) | linear(f"{p}.self_attn.k_proj", wide, WIDTH)
        tensors |= linear(f"{p}.self_attn.o_proj", WIDTH, HEADS * wide) | {f"{p}.layer_scalar": (1,)}
        for part in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            tensors |= norm(f"{p}.{part}_layernorm")
        return tensors

    made, tensors, *rest = flash("Gemma4DSparkModel", "gemma4_dspark_remote", layer, **fields)
    tensors |= linear("markov_head.markov_w1", VOCAB, 8) | linear("markov_head.markov_w2", VOCAB, 8)
    tensors |= linear("confidence_proj", 1, WIDTH + 8, True) | linear("lm_head", VOCAB, WIDTH)
    return made, tensors, *rest


@case
def muse_glimmer_assistant():
    fields = {"layer_types": ["sliding_attention"] * LAYERS, "sliding_window": 32, "mask_token_id": 7, "block_size": 4}
    fields |= {"target_layer_ids": [1, 3]}
    made, *rest = flash("MuseGlimmerAssistantModel", "muse_remote", prefix="model.", **fields)
    made["target_model"] |= {"architectures": ["MuseGlimmerForConditionalGeneration"], "model_type": "muse_remote"}
    return made, *rest


# Enough heads that hardly ever none fits, when all tokens would be as good; as long as programs want them.
INDEX_HEADS, INDEX = 16, 64


@case
def hy_v4():
    streams = 2
    made = config("HYV4ForCausalLM", "hy_v4_remote", head_dim=ROTATED, rms_norm_eps=1e-5, rope_theta=1e4, **COMPRESSED)
    made |= {"q_lora_rank": RANK, "num_key_value_heads": KV, "n_routed_experts": EXPERTS, "n_shared_experts": 1}
    made |= {"num_experts_per_tok": 2, "moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 1, "n_group": 1}
    made |= {"topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.8, "swiglu_limit": 10.0}
    made |= {"index_n_heads": INDEX_HEADS, "index_head_dim": INDEX, "index_topk": 8, "indexer_types": ["full", "shared"]}
    made |= {"hc_mult": streams, "hc_eps": 1e-6, "hc_magnitude": 2.0, "enable_lm_head_fp32": True}
    made |= {"mlp_layer_types": ["dense", "sparse"], "num_nextn_predict_layers": 1}

    def layer(p):
        q = f"{p}.self_attn"
        tensors = compressed(q) | linear(f"{q}.o_proj", WIDTH, HEADS * VALUE) | {f"{q}.learnable_sink_param": (HEADS,)}
        tensors |= linear(f"{q}.gate_proj", HEADS * VALUE, WIDTH)
        tensors |= norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm")
        for part in ("attn", "mlp"):
            mix = f"{p}.hc_{part}_layer.hc_pre.hc"
            tensors |= {f"{mix}_fn": (2 * streams, streams * WIDTH), f"{mix}_base": (2 * streams,), f"{mix}_scale": (2,)}
        if p.endswith(".0"):
            tensors |= linear(f"{q}.indexer.wq_b", INDEX_HEADS * INDEX, RANK) | linear(f"{q}.indexer.wk", INDEX, WIDTH)
            tensors |= norm(f"{q}.indexer.k_norm", INDEX, bias=True) | linear(f"{q}.indexer.weights_proj", INDEX_HEADS, WIDTH)
            return tensors | gated(f"{p}.mlp")
        tensors |= linear(f"{p}.mlp.gate", EXPERTS, WIDTH) | {f"{p}.mlp.gate.e_score_correction_bias": (EXPERTS,)}
        return tensors | experts(f"{p}.mlp", True) | gated(f"{p}.mlp.shared_experts", EXPERT_FF)

    tensors = model(layer) | linear("model.mtp_layers.0.eh_proj", WIDTH, 2 * WIDTH)
    mix = "model.hc_head.hc_head"
    tensors |= {f"{mix}_fn": (streams, streams * WIDTH), f"{mix}_base": (streams,), f"{mix}_scale": (1,)}
    return made, tensors, "qwen2", "hy_v4"


@case
def gemma4_assistant():
    wide, of_target = 24, 96
    made = config("Gemma4AssistantForCausalLM", "gemma4_assistant_remote", rms_norm_eps=1e-6, head_dim=HEAD)
    made |= {"layer_types": ["sliding_attention", "full_attention"], "global_head_dim": wide, "sliding_window": 32}
    made |= {"num_kv_shared_layers": LAYERS, "backbone_hidden_size": of_target, "num_global_key_value_heads": 1}
    made |= {"moe_intermediate_size": None, "pad_token_id": 0}
    made["rope_parameters"] = {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    }
    tensors = linear("pre_projection", WIDTH, 2 * of_target) | linear("post_projection", of_target, WIDTH)
    tensors |= linear("masked_embedding.centroids", 4, WIDTH)

    def layer(p):
        width = wide if p.endswith(".1") else HEAD
        tensors = gated(f"{p}.mlp") | norm(f"{p}.self_attn.q_norm", width) | {f"{p}.layer_scalar": (1,)}
        tensors |= linear(f"{p}.self_attn.q_proj", HEADS * width, WIDTH)
        tensors |= linear(f"{p}.self_attn.o_proj", WIDTH, HEADS * width)
        for part in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            tensors |= norm(f"{p}.{part}_layernorm")
        return tensors

    return made, tensors | model(layer, head=False), "gemma3", None


@case
def glm5_next():
    streams, kpool = 2, 4
    made = config("Glm5NextForConditionalGeneration", "glm5_next_remote", rms_norm_eps=1e-5, rope_theta=1e6)
    made |= {**COMPRESSED, "qk_rope_head_dim": 0, "q_lora_rank": RANK, "mla_use_nope": True, "head_dim": HEAD}
    made |= {"n_routed_experts": EXPERTS, "n_shared_experts": 1, "num_experts_per_tok": 2, "norm_topk_prob": True}
    made |= {"moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 1, "routed_scaling_factor": 2.5}
    made |= {"n_group": 1, "topk_group": 1, "scoring_func": "sigmoid", "swiglu_limit": 10.0, "index_kpool": kpool}
    made |= {"index_n_heads": INDEX_HEADS, "index_head_dim": INDEX, "index_topk": 8, "indexer_types": ["full", "full"]}
    made |= {"hc_mult": streams, "hc_eps": 1e-6, "hc_sinkhorn_iters": 20, "num_nextn_predict_layers": 1}
    made["layer_types"] = ["linear_attention", "indexed_attention"]
    made["linear_attn_config"] = {
        "num_heads": HEADS, "head_dim": HEAD, "short_conv_kernel_size": 4, "gate_lower_bound": -5.0,
    }  # fmt: skip

    def layer(p):
        q, number = f"{p}.self_attn", int(p.rsplit(".", 1)[1])
        tensors = routed_block(p, number == 0, "e_score_correction_bias")
        if number == 0:
            tensors |= delta(q) | {f"{q}.A_log": (1, 1, HEADS, 1)} | linear(f"{q}.o_proj", WIDTH, INNER)
            for part in "fg":
                tensors |= linear(f"{q}.{part}_a_proj", HEAD, WIDTH) | linear(f"{q}.{part}_b_proj", INNER, HEAD)
        else:
            tensors |= compressed(q) | linear(f"{q}.o_proj", WIDTH, HEADS * VALUE)
            tensors |= linear(f"{q}.q_b_proj", HEADS * FIXED, RANK) | linear(f"{q}.kv_a_proj_with_mqa", RANK, WIDTH)
            tensors |= linear(f"{q}.indexer.wq_b", INDEX_HEADS * INDEX, RANK) | linear(f"{q}.indexer.wk", INDEX, WIDTH)
            tensors |= norm(f"{q}.indexer.k_norm", INDEX, bias=True) | linear(f"{q}.indexer.weights_proj", INDEX_HEADS, WIDTH)
            pool = f"{q}.indexer.index_kpool_compress"
            tensors |= {f"{pool}_ape": (kpool, INDEX), f"{pool}_gate": (INDEX, WIDTH)}
        if number == 2:
            tensors |= linear(f"{p}.eh_proj", WIDTH, 2 * WIDTH) | norm(f"{p}.shared_head.norm")
            return tensors | norm(f"{p}.enorm") | norm(f"{p}.hnorm")
        for part in ("attn", "ffn"):
            count = (2 + streams) * streams
            mix = f"{p}.hc_{part}"
            tensors |= {f"{mix}_fn": (count, streams * WIDTH), f"{mix}_base": (count,), f"{mix}_scale": (3,)}
        return tensors

    return made, model(layer, layers=3), "qwen2", "glm4"


@case
def dots3_note():
    heads, rank, fixed, value = 2, 24, 16, 28
    made = config("Dots3NoteTextForCausalLM", "dots3_note_remote", rms_norm_eps=1e-5, rope_theta=8e6, **COMPRESSED)
    made |= {"swa_num_attention_heads": heads, "swa_kv_lora_rank": rank, "swa_qk_nope_head_dim": fixed}
    made |= {"swa_qk_rope_head_dim": ROTATED, "swa_v_head_dim": value, "swa_head_dim": fixed + ROTATED}
    made |= {"q_lora_rank": RANK, "swa_q_lora_rank": RANK, "swa_rope_theta": 1e4, "sliding_window_size": 32}
    made |= {"layer_types": ["sliding_attention", "full_attention"], "apply_mla_qkv_lora_rescale": True}
    made |= {"n_routed_experts": EXPERTS, "n_shared_experts": 1, "num_experts_per_tok": 2, "norm_topk_prob": True}
    made |= {"moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 1, "routed_scaling_factor": 2.5}
    made |= {"scoring_func": "sigmoid", "index_n_heads": INDEX_HEADS, "index_head_dim": INDEX, "index_topk": 8}
    made["num_key_value_heads"] = HEADS

    def layer(p):
        q, number = f"{p}.self_attn", int(p.rsplit(".", 1)[1])
        tensors = routed_block(p, number != 1, "e_score_correction_bias") | norm(f"{q}.k_rope_only_layernorm", ROTATED)
        if number == 1:
            tensors |= compressed(q) | linear(f"{q}.o_proj", WIDTH, HEADS * VALUE) | linear(f"{q}.linear_gate", HEADS, WIDTH)
            tensors |= linear(f"{q}.indexer.wq_b", INDEX_HEADS * INDEX, RANK) | linear(f"{q}.indexer.wk", INDEX, WIDTH)
            return tensors | norm(f"{q}.indexer.k_norm", INDEX, bias=True) | linear(f"{q}.indexer.weights_proj", INDEX_HEADS, WIDTH)
        tensors |= linear(f"{q}.q_a_proj", RANK, WIDTH) | norm(f"{q}.q_a_layernorm", RANK)
        tensors |= linear(f"{q}.q_b_proj", heads * (fixed + ROTATED), RANK) | linear(f"{q}.linear_gate", heads, WIDTH)
        tensors |= linear(f"{q}.kv_a_proj_with_mqa", rank + ROTATED, WIDTH) | norm(f"{q}.kv_a_layernorm", rank)
        tensors |= linear(f"{q}.kv_b_proj", heads * (fixed + value), rank) | linear(f"{q}.o_proj", WIDTH, heads * value)
        if number == 2:
            tensors |= linear(f"{p}.eh_proj", WIDTH, 2 * WIDTH) | norm(f"{p}.shared_head.norm")
            tensors |= norm(f"{p}.enorm") | norm(f"{p}.hnorm")
        return tensors

    tensors = model(layer, layers=3) | {"model.mtp.embed_tokens.weight": (VOCAB, WIDTH)}
    return made, tensors | linear("vision_encoder.blocks.0.attn", 32, 32), "qwen2", "qwen2"


@case
def kimi_k3():
    latent = 40
    made = config("KimiK3ForConditionalGeneration", "kimi_k3_remote", rms_norm_eps=1e-5, rope_theta=1e4, **COMPRESSED)
    made |= {"num_key_value_heads": HEADS, "q_lora_rank": RANK, "mla_use_nope": True, "num_experts": EXPERTS}
    made |= {"num_experts_per_token": 2, "num_shared_experts": 1, "moe_intermediate_size": EXPERT_FF}
    made |= {"first_k_dense_replace": 1, "routed_scaling_factor": 2.4, "moe_renormalize": True, "hidden_act": "situ"}
    made |= {"moe_router_activation_func": "sigmoid", "routed_expert_hidden_size": latent, "attn_res_block_size": 4}
    made |= {"activation_situ_beta": 1.5, "activation_situ_linear_beta": 0.5, "eos_token_id": 9}
    made["linear_attn_config"] = {
        "full_attn_layers": [2], "kda_layers": [1], "head_dim": HEAD, "num_heads": HEADS, "short_conv_kernel_size": 4,
        "gate_lower_bound": -5.0,
    }  # fmt: skip

    def layer(p):
        q = f"{p}.self_attn"
        tensors = norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm")
        for part in ("self_attention_res", "mlp_res"):
            tensors |= norm(f"{p}.{part}_norm") | linear(f"{p}.{part}_proj", 1, WIDTH)
        if p.endswith(".0"):
            tensors |= delta(q) | {f"{q}.A_log": (HEADS,)} | linear(f"{q}.o_proj", WIDTH, INNER) | gated(f"{p}.mlp")
            tensors |= linear(f"{q}.f_a_proj", HEAD, WIDTH) | linear(f"{q}.f_b_proj", INNER, HEAD)
            return tensors | linear(f"{q}.g_proj", INNER, WIDTH)
        tensors |= compressed(q, gate=HEADS * VALUE) | linear(f"{q}.o_proj", WIDTH, HEADS * VALUE)
        moe = f"{p}.block_sparse_moe"
        tensors |= linear(f"{moe}.gate", EXPERTS, WIDTH) | {f"{moe}.gate.e_score_correction_bias": (EXPERTS,)}
        tensors |= gated(f"{moe}.shared_experts", EXPERT_FF) | norm(f"{moe}.routed_expert_norm", latent)
        tensors |= linear(f"{moe}.routed_expert_down_proj", latent, WIDTH)
        tensors |= linear(f"{moe}.routed_expert_up_proj", WIDTH, latent)
        for e in range(EXPERTS):
            for part, shape in (("w1", (EXPERT_FF, latent)), ("w2", (latent, EXPERT_FF)), ("w3", (EXPERT_FF, latent))):
                tensors[f"{moe}.experts.{e}.{part}.weight"] = shape
        return tensors

    tensors = model(layer) | norm("model.output_attn_res_norm") | linear("model.output_attn_res_proj", 1, WIDTH)
    tensors = {f"language_model.{name}": shape for name, shape in tensors.items()}
    return made, tensors | linear("vision_tower.blocks.0.attn", 32, 32), "qwen2", "kimi-k2"


@case
def mistral4():
    """Of a class whose other models `transformers` makes."""
    made = config("Mistral3ForConditionalGeneration", "mistral3")
    text = config("Mistral4ForCausalLM", "mistral4", **COMPRESSED) | {"num_key_value_heads": HEADS, "q_lora_rank": RANK}
    text |= {"n_routed_experts": EXPERTS, "n_shared_experts": 1, "num_experts_per_tok": 2, "norm_topk_prob": True}
    text |= {"moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 1, "routed_scaling_factor": 1.0}
    text |= {"n_group": 1, "topk_group": 1, "rms_norm_eps": 1e-6}
    text["rope_parameters"] = {
        "rope_type": "yarn", "type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 64, "llama_4_scaling_beta": 0.1,
    }  # fmt: skip
    del text["architectures"]
    made["text_config"] = text

    def layer(p):
        q = f"{p}.self_attn"
        tensors = norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm")
        tensors |= compressed(q) | linear(f"{q}.o_proj", WIDTH, HEADS * VALUE)
        if p.endswith(".0"):
            return tensors | gated(f"{p}.mlp")
        tensors |= linear(f"{p}.mlp.gate", EXPERTS, WIDTH) | experts(f"{p}.mlp", True, EXPERT_FF)
        return tensors | gated(f"{p}.mlp.shared_experts", EXPERT_FF)

    tensors = {f"language_model.{name}": shape for name, shape in model(layer).items()}
    return made, tensors | linear("vision_tower.transformer.layers.0.attention.q_proj", 32, 32), "qwen2", "qwen2"


@case
def granite_switch():
    adapters, rank = 3, 8
    made = config("GraniteSwitchForCausalLM", "granite_switch_remote", rms_norm_eps=1e-5, rope_theta=1e7)
    made |= {"num_hidden_layers": LAYERS + 1, "num_adapters": adapters, "max_lora_rank": rank, "num_local_experts": 0}
    made |= {"num_experts_per_tok": 2, "shared_intermediate_size": FF, "tie_word_embeddings": True}
    made |= {"adapter_token_ids": [300, 301, 302], "adapter_substitute_token_ids": [5, 6, 7], "control_token_gain": 12.5}
    made |= {"attention_multiplier": 0.0625, "embedding_multiplier": 12.0, "residual_multiplier": 0.22}
    made["logits_scaling"] = 8.0
    keys = KV * HEAD

    def adapted(stem, inside, outs):
        tensors = linear(f"{stem}.base_layer", sum(outs), inside)
        for i, out in enumerate(outs):
            slice = f"_slices.{i}" if len(outs) > 1 else ""
            tensors |= {f"{stem}.lora_A{slice}": (adapters, 1, rank, inside), f"{stem}.lora_B{slice}": (adapters, 1, out, rank)}
        return tensors

    def layer(p):
        tensors = norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm")
        tensors |= adapted(f"{p}.self_attn.qkv_proj", WIDTH, [INNER, keys, keys])
        tensors |= adapted(f"{p}.self_attn.o_proj", INNER, [WIDTH])
        tensors |= adapted(f"{p}.shared_mlp.input_linear", WIDTH, [FF, FF])
        return tensors | adapted(f"{p}.shared_mlp.output_linear", FF, [WIDTH])

    tensors = model(layer, head=False)
    tensors |= {"model.switch.adapter_token_ids": (adapters,), "model.control_to_substitute_lut": (VOCAB,)}
    return made, tensors, "qwen2", "qwen2"

"""More tiny checkpoints for coverage.py, as coverage_cases.py: layers of several kinds, and models that see."""

from converter import EXPERT_FF, EXPERTS, FF, HEAD, HEADS, KV, LLAMA, MISTAKES, VOCAB, WIDTH
from converter import attention, block, case, config, experts, gated, linear, model, norm
from converter_older import blocks
from coverage_cases import head_norms, routed_block

# Tokens of that folder of the zoo, where nothing pads them.
PHI3_VOCAB = 628
RMS = {"rms_norm_eps": 1e-5, "rope_theta": 10000.0}


def two_norms(p):
    return norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm")


def one_by_one(p, names=("w1", "w2", "w3"), width=EXPERT_FF):
    tensors = {}
    for e in range(EXPERTS):
        gate, down, up = names
        tensors |= linear(f"{p}.{e}.{gate}", width, WIDTH) | linear(f"{p}.{e}.{up}", width, WIDTH)
        tensors |= linear(f"{p}.{e}.{down}", WIDTH, width)
    return tensors


def inside(made):
    """A configuration with that of the text model inside."""
    kept = ("architectures", "model_type")
    return {k: made[k] for k in kept} | {"text_config": {k: v for k, v in made.items() if k not in kept}}


@case
def sarashina():
    made = config("Sarashina2VisionForCausalLM", "sarashina2_vision", **LLAMA)
    tensors = {f"llm.{name}": shape for name, shape in model(block).items()}
    tensors |= norm("norm", bias=True) | linear("visual.blocks.0.attn.qkv", 96, 32)
    return made, tensors, "phi3", None


@case
def deepseek_ocr():
    fields = {"first_k_dense_replace": 1, "moe_intermediate_size": EXPERT_FF, "n_routed_experts": EXPERTS}
    fields |= {"n_shared_experts": 1, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "kv_lora_rank": None}
    fields |= {"q_lora_rank": None, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "v_head_dim": 0, "use_mla": False}
    made = config("DeepseekOCRForCausalLM", "deepseek_vl_v2_remote", **fields, num_key_value_heads=HEADS)
    made["language_config"] = {k: v for k, v in made.items() if k not in ("architectures", "model_type")}

    def layer(p):
        tensors = attention(f"{p}.self_attn") | routed_block(p, p.endswith(".0"))
        return tensors | linear(f"{p}.self_attn.k_proj", WIDTH, WIDTH) | linear(f"{p}.self_attn.v_proj", WIDTH, WIDTH)

    tensors = model(layer) | {"model.sam_model.neck.0.weight": (8, 8), "model.image_newline": (WIDTH,)}
    return made, tensors | linear("model.projector.layers", WIDTH, 32), "qwen2", "deepseek-v3"


@case
def unlimited_ocr():
    made, *rest = deepseek_ocr()
    made["architectures"] = ["UnlimitedOCRForCausalLM"]
    made["language_config"]["sliding_window_size"] = 128
    return made, *rest


@case
def grove_moe():
    made = config("GroveMoeForCausalLM", "grove_moe", head_dim=HEAD, num_experts=EXPERTS, num_experts_per_tok=2)
    made |= {"moe_intermediate_size": EXPERT_FF, **RMS}

    def layer(p):
        tensors = two_norms(p) | attention(f"{p}.self_attn") | head_norms(p) | linear(f"{p}.mlp.gate", EXPERTS, WIDTH)
        for group in range(EXPERTS // 2):
            tensors |= gated(f"{p}.mlp.chunk_experts.{group}", HEAD)
        return tensors | experts(f"{p}.mlp", False) | {f"{p}.mlp.expert_bias": (EXPERTS,)}

    return made, model(layer), "qwen2", "qwen2"


GROK = {"num_local_experts": EXPERTS, "num_experts_per_tok": 2, "embedding_multiplier_scale": 78.38, **RMS}
GROK |= {"output_multiplier_scale": 0.577, "attn_output_multiplier": 0.0884}


@case
def grok_first():
    made = config("Grok1ForCausalLM", "grok-1", **GROK)

    def layer(p):
        q = f"{p}.multi_head_attention"
        tensors = linear(f"{q}.query", HEADS * HEAD, WIDTH) | linear(f"{q}.key", KV * HEAD, WIDTH)
        tensors |= linear(f"{q}.value", KV * HEAD, WIDTH) | linear(f"{q}.linear", WIDTH, HEADS * HEAD)
        for name in ("rms_norm", "rms_norm_1", "rms_norm_2", "rms_norm_3"):
            tensors |= norm(f"{p}.{name}")
        return tensors | linear(f"{p}.router", EXPERTS, WIDTH) | one_by_one(f"{p}.moe", ("linear", "linear_1", "linear_v"), FF)

    tensors = {"transformer.in_out_embed.weight": (VOCAB, WIDTH)} | norm("transformer.rms_norm")
    return made, tensors | blocks(layer, "transformer.decoder_layer"), "phi3", None


@case
def grok_second():
    made = config("GrokForCausalLM", "grok-2", head_dim=HEAD, moe_intermediate_size=EXPERT_FF, **GROK)
    made |= {"rope_type": "original", "scaling_factor": 16.0, "original_max_position_embeddings": 64}
    made |= {"extrapolation_factor": 1.0, "attn_factor": 1.0, "beta_fast": 8.0, "beta_slow": 1.0}
    made |= {"final_logit_softcapping": 50, "attn_temperature_len": 64}

    def layer(p):
        tensors = attention(f"{p}.self_attn") | gated(f"{p}.mlp") | linear(f"{p}.block_sparse_moe.gate", EXPERTS, WIDTH)
        for name in ("pre_attn_norm", "post_attn_norm", "pre_moe_norm", "post_moe_norm"):
            tensors |= norm(f"{p}.{name}")
        return tensors | one_by_one(f"{p}.block_sparse_moe.experts")

    return made, model(layer), "phi3", None


@case
def deci_kinds():
    kinds = [(2, False, 2.0), (None, True, 2.0), (None, False, 3.1), (None, False, None)]
    made = config("DeciLMForCausalLM", "nemotron-nas", num_hidden_layers=4, **RMS)
    made["block_configs"] = [
        {"attention": {"n_heads_in_group": group, "replace_with_linear": is_linear}, "ffn": {"ffn_mult": share}}
        for group, is_linear, share in kinds
    ]
    del made["num_key_value_heads"]
    made["vocab_size"] = PHI3_VOCAB

    def layer(p):
        i = int(p[-1])
        tensors = norm(f"{p}.input_layernorm") if i < 2 else {}
        tensors |= attention(f"{p}.self_attn") if i == 0 else {}
        tensors |= linear(f"{p}.self_attn.linear_attn", WIDTH, WIDTH) if i == 1 else {}
        return tensors | (gated(f"{p}.mlp", 256) | norm(f"{p}.post_attention_layernorm") if i < 3 else {})

    return made, model(layer, layers=4, vocab=PHI3_VOCAB), "phi3", None


@case
def deci_listed():
    made = config("DeciLMForCausalLM", "deci", num_key_value_heads_per_layer=[KV, KV], **RMS)
    made["vocab_size"] = PHI3_VOCAB
    return made, model(block, vocab=PHI3_VOCAB), "phi3", None


@case
def llada():
    made = {"architectures": ["LLaDAModelLM"], "model_type": "llada", "d_model": WIDTH, "n_heads": HEADS}
    made |= {"n_kv_heads": HEADS, "n_layers": 2, "mlp_hidden_size": FF, "max_sequence_length": 256, "vocab_size": VOCAB}
    made |= {"bos_token_id": 1, "eos_token_id": 2, "mask_token_id": 5, **RMS}

    def layer(p):
        tensors = norm(f"{p}.attn_norm") | norm(f"{p}.ff_norm")
        for part in ("q_proj", "k_proj", "v_proj", "attn_out"):
            tensors |= linear(f"{p}.{part}", WIDTH, WIDTH)
        return tensors | linear(f"{p}.ff_proj", FF, WIDTH) | linear(f"{p}.up_proj", FF, WIDTH) | linear(f"{p}.ff_out", WIDTH, FF)

    tensors = {"model.transformer.wte.weight": (VOCAB, WIDTH), "model.transformer.ff_out.weight": (VOCAB, WIDTH)}
    return made, tensors | norm("model.transformer.ln_f") | blocks(layer, "model.transformer.blocks"), "qwen2", "llama-bpe"


@case
def cogvlm():
    made = config("CogVLMForCausalLM", "cogvlm", **{**LLAMA, "num_key_value_heads": HEADS})

    def layer(p):
        tensors = two_norms(p)
        for expert in ("language", "vision"):
            tensors |= linear(f"{p}.self_attn.{expert}_expert_query_key_value", 3 * WIDTH, WIDTH)
            tensors |= linear(f"{p}.self_attn.{expert}_expert_dense", WIDTH, WIDTH) | gated(f"{p}.mlp.{expert}_mlp")
        return tensors

    return made, model(layer) | linear("model.vision.linear_proj.gate_proj", 32, 32), "phi3", None


# Whatever has `vision_` in its name is left out, also the matrices for images.
MISTAKES["cogvlm"] = {"general.size_label"} | {
    f"blk.{i}.vis_{part}.weight" for i in range(2) for part in ("attn_qkv", "attn_output", "gate", "up", "down")
}


def neo_bert_class(name, head, prefix=""):
    made = {"architectures": [name], "model_type": "neobert", "hidden_size": WIDTH, "num_hidden_layers": 2}
    made |= {"num_attention_heads": HEADS, "intermediate_size": FF, "max_length": 256, "norm_eps": 1e-6, "vocab_size": 768}

    def layer(p):
        tensors = norm(f"{p}.attention_norm") | norm(f"{p}.ffn_norm") | linear(f"{p}.qkv", 3 * WIDTH, WIDTH)
        return tensors | linear(f"{p}.wo", WIDTH, WIDTH) | linear(f"{p}.ffn.w12", 2 * 64, WIDTH) | linear(f"{p}.ffn.w3", WIDTH, 64)

    tensors = {"encoder.weight": (768, WIDTH)} | norm("layer_norm") | blocks(layer, "transformer_encoder")
    return made, {prefix + name: shape for name, shape in tensors.items()} | head, "bert", "bert-bge"


@case
def neo_bert():
    return neo_bert_class("NeoBERT", {})


@case
def neo_bert_masked():
    return neo_bert_class("NeoBERTLMHead", linear("decoder", 768, WIDTH, True), "model.")


@case
def neo_bert_classifier():
    head = linear("dense", WIDTH, WIDTH, True) | linear("classifier", 3, WIDTH, True)
    made, *rest = neo_bert_class("NeoBERTForSequenceClassification", head, "model.")
    made["id2label"] = {str(i): f"kind {i}" for i in range(3)}
    made["label2id"] = {f"kind {i}": i for i in range(3)}
    return made, *rest


@case
def jina_bert():
    made = {"architectures": ["JinaBertModel"], "model_type": "bert_remote", "hidden_size": WIDTH, "vocab_size": 768}
    made |= {"num_hidden_layers": 2, "num_attention_heads": HEADS, "intermediate_size": FF, "layer_norm_eps": 1e-12}
    made |= {"max_position_embeddings": 256, "type_vocab_size": 2, "position_embedding_type": "alibi"}

    def layer(p):
        tensors = norm(f"{p}.attention.output.LayerNorm", bias=True) | norm(f"{p}.mlp.layernorm", bias=True)
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            tensors |= linear(f"{p}.attention.{part}", WIDTH, WIDTH, True)
        return tensors | linear(f"{p}.mlp.gated_layers", 2 * FF, WIDTH) | linear(f"{p}.mlp.wo", WIDTH, FF, True)

    tensors = {"embeddings.word_embeddings.weight": (768, WIDTH), "embeddings.token_type_embeddings.weight": (2, WIDTH)}
    tensors |= norm("embeddings.LayerNorm", bias=True) | linear("pooler.dense", WIDTH, WIDTH, True)
    return made, tensors | blocks(layer, "encoder.layer"), "bert", "jina-v2-en"


@case
def hrm_trained():
    made = config("HrmTextForCausalLM", "hrm_text_remote", head_dim=HEAD, H_cycles=2, L_cycles=3, **RMS)
    made |= {"embedding_scale": 50.0, "prefix_lm": True}
    del made["num_key_value_heads"]
    tensors = {"model.embed_tokens.weight": (VOCAB, WIDTH), "lm_head.weight": (VOCAB, WIDTH), "model.z_L_init": (WIDTH,)}
    for stack in "LH":
        for i in range(2):
            p = f"model.{stack}_module.layers.{i}"
            tensors |= linear(f"{p}.attn.gqkv_proj", 4 * HEADS * HEAD, WIDTH) | linear(f"{p}.attn.o_proj", WIDTH, HEADS * HEAD)
            tensors |= linear(f"{p}.mlp.gate_up_proj", 2 * FF, WIDTH) | linear(f"{p}.mlp.down_proj", WIDTH, FF)
    return made, tensors, "qwen2", "qwen2"


def step_class(name, kind):
    made = config(name, kind, num_hidden_layers=3, num_attention_groups=KV, head_dim=HEAD, sliding_window=16)
    del made["num_key_value_heads"]
    made |= {"layer_types": ["full_attention", "sliding_attention", "full_attention"]}
    made |= {"partial_rotary_factors": [0.5, 1.0, 0.5], "rope_theta": [5e6, 1e4, 5e6, 1e4], "rms_norm_eps": 1e-5}
    made |= {"attention_other_setting": {"num_attention_heads": 6, "num_attention_groups": 1}, "moe_top_k": 2}
    made |= {"moe_num_experts": EXPERTS, "moe_intermediate_size": EXPERT_FF, "share_expert_dim": EXPERT_FF}
    made |= {"moe_router_scaling_factor": 3.0, "norm_expert_weight": True, "moe_layers_enum": "1,2"}
    made |= {"swiglu_limits": [0.0, None, 7.0], "num_nextn_predict_layers": 1}

    def layer(p):
        i = int(p[-1])
        heads, kv = (6, 1) if i == 1 else (HEADS, KV)
        q = f"{p}.self_attn"
        tensors = two_norms(p) | norm(f"{q}.q_norm", HEAD) | norm(f"{q}.k_norm", HEAD) | linear(f"{q}.g_proj", heads, WIDTH)
        tensors |= linear(f"{q}.q_proj", heads * HEAD, WIDTH) | linear(f"{q}.o_proj", WIDTH, heads * HEAD)
        tensors |= linear(f"{q}.k_proj", kv * HEAD, WIDTH) | linear(f"{q}.v_proj", kv * HEAD, WIDTH)
        if i in (0, 3):
            return tensors | gated(f"{p}.mlp")
        tensors |= linear(f"{p}.moe.gate", EXPERTS, WIDTH) | {f"{p}.moe.router_bias": (EXPERTS,)}
        tensors |= {f"{p}.moe.{part}_proj.weight": (EXPERTS, EXPERT_FF, WIDTH) for part in ("gate", "up")}
        return tensors | {f"{p}.moe.down_proj.weight": (EXPERTS, WIDTH, EXPERT_FF)} | gated(f"{p}.share_expert", EXPERT_FF)

    tensors = model(layer, layers=4)
    p = "model.layers.3"
    tensors |= linear(f"{p}.eh_proj", WIDTH, 2 * WIDTH) | norm(f"{p}.enorm") | norm(f"{p}.hnorm")
    tensors |= norm(f"{p}.transformer.shared_head.norm") | linear(f"{p}.transformer.shared_head.output", VOCAB, WIDTH)
    return made, tensors, "qwen2", "deepseek-v3"


@case
def step_first():
    return step_class("Step3p5ForCausalLM", "step3p5_remote")


@case
def step_seeing():
    made, tensors, *rest = step_class("Step3p7ForConditionalGeneration", "step3p7_remote")
    made["rope_scaling"] = {
        "rope_type": "llama3", "factor": 2.0, "low_freq_factor": 1.0, "high_freq_factor": 32.0,
        "original_max_position_embeddings": 131072,
    }
    return inside(made), tensors | linear("vision_model.conv1", 32, 32), *rest


def mimo_class(name, kind, fused):
    made = config(name, kind, head_dim=HEAD, v_head_dim=8, layernorm_epsilon=1e-5, rope_theta=5e6, sliding_window=16)
    made |= {"swa_head_dim": HEAD, "swa_v_head_dim": 8, "swa_num_attention_heads": HEADS, "swa_num_key_value_heads": 4}
    made |= {"hybrid_layer_pattern": [0, 1], "swa_rope_theta": 1e4, "partial_rotary_factor": 0.5, "topk_method": "noaux_tc"}
    made |= {"n_routed_experts": EXPERTS, "num_experts_per_tok": 2, "moe_intermediate_size": EXPERT_FF, "n_group": 1}
    made |= {"topk_group": 1, "scoring_func": "sigmoid", "attention_value_scale": 0.612}

    def layer(p, kv, further=False):
        q = f"{p}.self_attn"
        widths = HEADS * HEAD, kv * HEAD, kv * 8
        tensors = two_norms(p) | linear(f"{q}.o_proj", WIDTH, HEADS * 8)
        if fused:
            tensors |= linear(f"{q}.qkv_proj", sum(widths), WIDTH)
        else:
            for part, width in zip("qkv", widths):
                tensors |= linear(f"{q}.{part}_proj", width, WIDTH)
        tensors |= {f"{q}.attention_sink_bias": (HEADS,)} if kv == 4 else {}
        if further:
            tensors |= linear(f"{p}.eh_proj", WIDTH, 2 * WIDTH) | norm(f"{p}.enorm") | norm(f"{p}.hnorm")
            return tensors | norm(f"{p}.final_layernorm") | gated(f"{p}.mlp")
        if p.endswith(".0"):
            return tensors | gated(f"{p}.mlp")
        bias = {f"{p}.mlp.gate.e_score_correction_bias": (EXPERTS,)}
        return tensors | linear(f"{p}.mlp.gate", EXPERTS, WIDTH) | experts(f"{p}.mlp", False) | bias

    tensors = model(lambda p: layer(p, KV if p.endswith(".0") else 4))
    for i in range(3):
        tensors |= layer(f"model.mtp.layers.{i}", 4, True)
    return made, tensors, "qwen2", "qwen2"


@case
def mimo_flash():
    return mimo_class("MiMoV2FlashForCausalLM", "mimo_v2_remote", False)


@case
def mimo_fused():
    return mimo_class("MiMoV2ForCausalLM", "mimo_v2_remote", True)


def minimax_sparse(name):
    made = config(name, "minimax_m3_remote", head_dim=HEAD, rotary_dim=8, num_local_experts=EXPERTS, **RMS)
    made |= {"num_experts_per_tok": 2, "intermediate_size": EXPERT_FF, "dense_intermediate_size": FF, "n_shared_experts": 1}
    made |= {"routed_scaling_factor": 2.0, "moe_layer_freq": [0, 1], "scoring_func": "sigmoid"}
    made["sparse_attention_config"] = {
        "sparse_num_index_heads": 2, "sparse_index_dim": HEAD, "sparse_topk_blocks": 4, "sparse_block_size": 16,
        "sparse_local_block": 1,
    }

    def layer(p):
        tensors = two_norms(p) | attention(f"{p}.self_attn") | head_norms(p)
        if p.endswith(".0"):
            return tensors | gated(f"{p}.mlp")
        moe = f"{p}.block_sparse_moe"
        tensors |= linear(f"{moe}.gate", EXPERTS, WIDTH) | one_by_one(f"{moe}.experts")
        tensors |= {f"{moe}.e_score_correction_bias": (EXPERTS,)} | gated(f"{moe}.shared_experts", EXPERT_FF)
        tensors |= linear(f"{p}.self_attn.index_q_proj", 2 * HEAD, WIDTH) | linear(f"{p}.self_attn.index_k_proj", HEAD, WIDTH)
        return tensors | norm(f"{p}.self_attn.index_q_norm", HEAD) | norm(f"{p}.self_attn.index_k_norm", HEAD)

    return made, model(layer), "qwen2", "minimax-m2"


@case
def minimax_sparse_text():
    return minimax_sparse("MiniMaxM3SparseForCausalLM")


@case
def minimax_sparse_seeing():
    made, tensors, *rest = minimax_sparse("MiniMaxM3SparseForConditionalGeneration")
    tensors = {f"language_model.{name}": shape for name, shape in tensors.items()}
    return inside(made), tensors | linear("vision_tower.vision_model.layers.0.mlp.fc1", 32, 32), *rest


@case
def hunyuan_seeing():
    made = config("HunYuanVLForConditionalGeneration", "hunyuan_vl", head_dim=HEAD, **RMS)
    made |= {"pad_token_id": 597, "eod_token_id": 598, "num_experts": 1, "tie_word_embeddings": True}
    made["rope_scaling"] = {"type": "xdrope", "alpha": 1000.0, "factor": 1.0, "xdrope_section": [2, 2, 2, 2]}
    norms = lambda p: norm(f"{p}.query_layernorm", HEAD) | norm(f"{p}.key_layernorm", HEAD)  # noqa: E731
    tensors = model(lambda p: block(p) | norms(f"{p}.self_attn"), head=False)
    return made, tensors | linear("vit.layers.0.mlp.fc1", 32, 32), "qwen2", "hunyuan-dense"


@case
def chameleon():
    made = config("ChameleonForConditionalGeneration", "chameleon_remote", swin_norm=True, **RMS)
    made["num_key_value_heads"] = HEADS

    def layer(p):
        tensors = two_norms(p) | gated(f"{p}.mlp")
        for part in ("q_proj", "k_proj", "v_proj", "o_proj"):
            tensors |= linear(f"{p}.self_attn.{part}", WIDTH, WIDTH)
        for part in "qk":
            tensors |= {f"{p}.self_attn.{part}_norm.{end}": (HEADS, HEAD) for end in ("weight", "bias")}
        return tensors

    tensors = model(layer) | {"model.vqmodel.quantize.embedding.weight": (8, 8)}
    return made, tensors, "qwen2", "chameleon"


# Norms of heads other than the first are taken for the same.
MISTAKES["chameleon"] = {
    f"blk.{i}.attn_{part}_norm.{end}" for i in range(2) for part in "qk" for end in ("weight", "bias")
}


@case
def qwen_omni_experts():
    text = config("", "qwen3_omni_moe_text", head_dim=HEAD, num_experts=EXPERTS, num_experts_per_tok=2, **RMS)
    del text["architectures"]
    text |= {"moe_intermediate_size": EXPERT_FF, "norm_topk_prob": True}
    text["rope_scaling"] = {"type": "default", "rope_type": "default", "mrope_section": [4, 2, 2]}
    made = {"architectures": ["Qwen3OmniMoeForConditionalGeneration"], "model_type": "qwen3_omni_remote"}
    made["thinker_config"] = {"text_config": text, "vision_config": {"deepstack_visual_indexes": [0, 1]}}

    def layer(p):
        tensors = two_norms(p) | attention(f"{p}.self_attn") | head_norms(p)
        return tensors | linear(f"{p}.mlp.gate", EXPERTS, WIDTH) | experts(f"{p}.mlp", False)

    tensors = {f"thinker.{name}": shape for name, shape in model(layer).items()}
    tensors |= linear("thinker.visual.blocks.0.attn.qkv", 96, 32) | linear("thinker.audio_tower.layers.0.fc1", 32, 32)
    return made, tensors | linear("talker.model.layers.0.mlp.up_proj", 32, 32), "qwen2", "qwen2"

"""Tiny checkpoints of classes that `transformers` does not have, for coverage.py; as converter.py's cases."""

from converter import EXPERT_FF, EXPERTS, FF, HEAD, HEADS, KV, LLAMA, QWEN, VOCAB, WIDTH
from converter import attention, block, case, config, experts, gated, linear, model, norm, qwen_block
from converter_older import blocks, gpt_block, gpt_config


def llama_class(name, **fields):
    made = config(name, "remote", **{**LLAMA, **fields})
    return made, model(block), "phi3", None


@case
def iquest_coder():
    return llama_class("IQuestCoderForCausalLM", head_dim=HEAD)


@case
def smol_vlm():
    made, tensors, *rest = llama_class("VLlama3ForCausalLM")
    tensors = {name.replace("model.", "model.text_model.", 1): shape for name, shape in tensors.items()}
    return made, tensors | linear("model.vision_model.encoder.layers.0.mlp.fc1", 32, 32), *rest


@case
def llama_embed():
    made, tensors, *rest = llama_class("LlamaBidirectionalModel")
    del tensors["lm_head.weight"]
    return made, {name.removeprefix("model."): shape for name, shape in tensors.items()}, *rest


@case
def kormo():
    made = config("KORMoForCausalLM", "kormo", rms_norm_eps=1e-6, rope_theta=500000.0)
    tensors = {}
    for name, shape in model(block).items():
        name = name.replace("input_layernorm", "pre_attention_layernorm")
        tensors[name.replace("post_attention_layernorm", "pre_mlp_layernorm")] = shape
    return made, tensors, "qwen2", "qwen2"


@case
def dots_ocr():
    made = config("DotsOCRForCausalLM", "dots_ocr", rms_norm_eps=1e-6, rope_theta=1e6)
    made["vision_config"] = {"embed_dim": 32, "num_hidden_layers": 1}
    tensors = model(lambda p: block(p, bias=True)) | linear("vision_tower.blocks.0.attn.qkv", 96, 32)
    return made, tensors, "qwen2", "qwen2"


@case
def maincoder():
    made = config("MaincoderForCausalLM", "maincoder", head_dim=HEAD, rms_norm_eps=1e-5, rope_theta=1e6)
    norms = lambda p: norm(f"{p}.self_attn.q_norm", HEAD) | norm(f"{p}.self_attn.k_norm", HEAD)  # noqa: E731
    return made, model(lambda p: block(p) | norms(p)), "qwen2", "qwen2"


@case
def dream():
    made = config("DreamModel", "Dream", rms_norm_eps=1e-6, rope_theta=1e6, mask_token_id=5)
    return made, model(lambda p: block(p, bias=True)), "qwen2", "qwen2"


@case
def rnd1():
    made = config("RND1", "rnd1", head_dim=HEAD, mask_token_id=5, **QWEN)
    return made, model(lambda p: qwen_block(p, False, False)), "qwen2", "qwen2"


def hunyuan(**fields):
    made = config("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", head_dim=HEAD, rms_norm_eps=1e-5, **fields)
    made |= {"eod_token_id": 598, "pad_token_id": 597}
    norms = lambda p: norm(f"{p}.query_layernorm", HEAD) | norm(f"{p}.key_layernorm", HEAD)  # noqa: E731
    return made, model(lambda p: block(p) | norms(f"{p}.self_attn")), "qwen2", "hunyuan-dense"


@case
def hunyuan_dense():
    return hunyuan(rope_theta=10000.0)


@case
def hunyuan_dense_stretched():
    scaling = {"type": "dynamic", "alpha": 1000.0, "factor": 1.0, "beta_fast": 32, "beta_slow": 1}
    return hunyuan(rope_theta=10000.0, rope_scaling=scaling, max_position_embeddings=32768)


def routed_block(p, dense=False, bias=None):
    tensors = norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm")
    if dense:
        return tensors | gated(f"{p}.mlp")
    tensors |= linear(f"{p}.mlp.gate", EXPERTS, WIDTH) | experts(f"{p}.mlp", False)
    if bias:
        tensors[f"{p}.mlp.gate.{bias}"] = (EXPERTS,)
    return tensors | gated(f"{p}.mlp.shared_experts", EXPERT_FF)


ROUTED = {"num_experts_per_tok": 2, "moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 1}
ROUTED |= {"rms_norm_eps": 1e-6, "rope_theta": 10000, "norm_topk_prob": False}


@case
def deepseek_first():
    made = config("DeepseekForCausalLM", "deepseek", n_routed_experts=EXPERTS, n_shared_experts=1, **ROUTED)
    made["scoring_func"] = "softmax"
    layer = lambda p: attention(f"{p}.self_attn") | routed_block(p, p.endswith(".0"))  # noqa: E731
    return made, model(layer), "qwen2", "deepseek-llm"


BAILING = {**ROUTED, "head_dim": HEAD, "num_experts": EXPERTS, "num_shared_experts": 1}


def bailing(name, kind, dense, bias, norms, further=(), **fields):
    made = config(name, kind, **{**BAILING, **fields})

    def layer(p):
        tensors = routed_block(p, dense and p.endswith(".0"), bias)
        tensors |= linear(f"{p}.attention.query_key_value", (HEADS + 2 * KV) * HEAD, WIDTH)
        tensors |= linear(f"{p}.attention.dense", WIDTH, HEADS * HEAD)
        for part in norms:
            tensors |= norm(f"{p}.attention.{part}", HEAD)
        return tensors

    tensors = model(layer, layers=3 if further else 2)
    tensors["model.word_embeddings.weight"] = tensors.pop("model.embed_tokens.weight")
    for part, shape in further:
        tensors[f"model.layers.2.{part}.weight"] = shape
    return made, tensors, "qwen2", "bailingmoe"


@case
def bailing_first():
    return bailing("BailingMoeForCausalLM", "bailing_moe", False, None, [], first_k_dense_replace=0, norm_head=False)


@case
def bailing_second():
    further = [("eh_proj", (WIDTH, 2 * WIDTH)), ("enorm", (WIDTH,)), ("hnorm", (WIDTH,)), ("final_layernorm", (WIDTH,))]
    fields = {"num_nextn_predict_layers": 1, "score_function": "sigmoid", "routed_scaling_factor": 2.5}
    fields |= {"n_group": 2, "topk_group": 1, "partial_rotary_factor": 0.5}
    norms = ["query_layernorm", "key_layernorm"]
    return bailing("BailingMoeV2ForCausalLM", "bailing_moe_v2", True, "expert_bias", norms, further, **fields)


@case
def llada_moe():
    fields = {k: v for k, v in QWEN.items() if k != "moe_intermediate_size"}
    made = config("LLaDAMoEModelLM", "llada", head_dim=HEAD, expert_intermediate_size=EXPERT_FF, **fields)
    return made, model(lambda p: qwen_block(p, False, False)), "qwen2", "qwen2"


@case
def orion():
    made = config("OrionForCausalLM", "orion", rms_norm_eps=1e-5)
    biases = lambda p: norm(f"{p}.input_layernorm", bias=True) | norm(f"{p}.post_attention_layernorm", bias=True)  # noqa: E731
    return made, model(lambda p: block(p) | biases(p), norm_bias=True), "phi3", None


@case
def codeshell():
    made = gpt_config("CodeShellForCausalLM", "codeshell", num_query_groups=KV)

    def layer(p):
        tensors = gpt_block(p) | linear(f"{p}.attn.c_attn", (HEADS + 2 * KV) * HEAD, WIDTH, True)
        tensors |= linear(f"{p}.mlp.c_fc", 4 * WIDTH, WIDTH, True)
        return tensors | linear(f"{p}.mlp.c_proj", WIDTH, 4 * WIDTH, True)

    tensors = {"transformer.wte.weight": (VOCAB, WIDTH), "lm_head.weight": (VOCAB, WIDTH)}
    tensors |= norm("transformer.ln_f", bias=True)
    return made, tensors | blocks(layer, "transformer.h"), "gpt2", "gpt-2"


@case
def phimoe():
    made = config("PhiMoEForCausalLM", "phimoe_remote", num_local_experts=EXPERTS, num_experts_per_tok=2)
    factors = {"short_factor": [1.0 + 0.05 * i for i in range(HEAD // 2)], "type": "longrope"}
    factors |= {"long_factor": [1.5 + 1.3 * i for i in range(HEAD // 2)]}
    made |= {"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": factors, "sliding_window": 200}
    made |= {"max_position_embeddings": 2048, "original_max_position_embeddings": 128}

    def layer(p):
        tensors = norm(f"{p}.input_layernorm", bias=True) | norm(f"{p}.post_attention_layernorm", bias=True)
        tensors |= attention(f"{p}.self_attn", bias=True, out_bias=True)
        tensors |= linear(f"{p}.block_sparse_moe.gate", EXPERTS, WIDTH)
        for e in range(EXPERTS):
            q = f"{p}.block_sparse_moe.experts.{e}"
            tensors |= linear(f"{q}.w1", FF, WIDTH) | linear(f"{q}.w3", FF, WIDTH) | linear(f"{q}.w2", WIDTH, FF)
        return tensors

    return made, model(layer, norm_bias=True) | {"lm_head.bias": (VOCAB,)}, "phi3", None


@case
def qwen_omni():
    text = config("", "qwen2_5_omni_text", rms_norm_eps=1e-6, rope_theta=1e6)
    del text["architectures"]
    text["rope_scaling"] = {"type": "default", "rope_type": "default", "mrope_section": [4, 2, 2]}
    made = {"architectures": ["Qwen2_5OmniModel"], "model_type": "qwen2_5_omni_remote"}
    made["thinker_config"] = {"text_config": text, "vision_config": {}}
    tensors = {f"thinker.{name}": shape for name, shape in model(lambda p: block(p, bias=True)).items()}
    tensors |= linear("thinker.visual.blocks.0.attn.qkv", 96, 32)
    return made, tensors | linear("talker.model.layers.0.mlp.up_proj", 32, 32), "qwen2", "qwen2"


@case
def exaone():
    made = config("ExaoneForCausalLM", "exaone_remote", layer_norm_epsilon=1e-5, rope_theta=1e6, head_dim=HEAD)
    made["activation_function"] = "silu"
    made["num_layers"] = made.pop("num_hidden_layers")

    def layer(p):
        tensors = norm(f"{p}.ln_1") | norm(f"{p}.ln_2") | attention(f"{p}.attn.attention", out="out_proj")
        tensors |= linear(f"{p}.mlp.c_fc_0", FF, WIDTH) | linear(f"{p}.mlp.c_fc_1", FF, WIDTH)
        return tensors | linear(f"{p}.mlp.c_proj", WIDTH, FF)

    tensors = {"transformer.wte.weight": (VOCAB, WIDTH), "lm_head.weight": (VOCAB, WIDTH)} | norm("transformer.ln_f")
    return made, tensors | blocks(layer, "transformer.h"), "qwen2", "exaone"


@case
def nanbeige():
    return llama_class("NanbeigeForCausalLM", num_loops=2, skip_loop_final_norm=True)


@case
def pangu():
    made, *_ = llama_class("PanguEmbeddedForCausalLM")
    return made, model(lambda p: block(p, bias=True, out_bias=True)), "phi3", None


def head_norms(p):
    return norm(f"{p}.self_attn.q_norm", HEAD) | norm(f"{p}.self_attn.k_norm", HEAD)


@case
def maple():
    fields = {k: v for k, v in QWEN.items() if k != "norm_topk_prob"}
    made = config("MapleForCausalLM", "maple", head_dim=HEAD, **fields)
    made |= {"hidden_act": "silu", "nope_on_global_attention": True, "sliding_window": 32}
    made |= {"layer_types": ["sliding_attention", "full_attention"], "partial_rotary_factor": 0.5}
    return made, model(lambda p: qwen_block(p, False, False)), "qwen2", "qwen2"


@case
def smallthinker():
    made = config("SmallThinkerForCausalLM", "smallthinker", head_dim=HEAD, rms_norm_eps=1e-6, rope_theta=1.5e6)
    del made["intermediate_size"]
    made |= {"moe_num_primary_experts": EXPERTS, "moe_num_active_primary_experts": 2, "moe_ffn_hidden_size": EXPERT_FF}
    made |= {"moe_primary_router_apply_softmax": False, "sliding_window_layout": [0, 1], "sliding_window_size": 64}

    def layer(p):
        tensors = norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm") | attention(f"{p}.self_attn")
        tensors |= linear(f"{p}.block_sparse_moe.primary_router", EXPERTS, WIDTH)
        for e in range(EXPERTS):
            q = f"{p}.block_sparse_moe.experts.{e}"
            tensors |= linear(f"{q}.gate", EXPERT_FF, WIDTH) | linear(f"{q}.up", EXPERT_FF, WIDTH)
            tensors |= linear(f"{q}.down", WIDTH, EXPERT_FF)
        return tensors

    return made, model(layer), "qwen2", "qwen2"


@case
def spark():
    made = config("Spark2_5ForCausalLM", "spark2_5", head_dim=HEAD, rms_norm_eps=1e-6, hidden_act="gelu")
    made |= {"gate_attn_act_mode": "sigmoid", "headwise_attn_output_gate": True, "sliding_window": 32}
    made["layer_types"] = ["sliding_attention", "full_attention"]
    made["rope_parameters"] = {
        "full_attention": {"rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.5},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 1.0},
    }

    def layer(p):
        tensors = norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm") | gated(f"{p}.mlp")
        tensors |= linear(f"{p}.self_attn.q_k_v_proj", (HEADS + 2 * KV) * HEAD, WIDTH)
        tensors |= linear(f"{p}.self_attn.g_proj", HEADS, WIDTH)
        return tensors | linear(f"{p}.self_attn.o_proj", WIDTH, HEADS * HEAD)

    return made, model(layer), "qwen2", "spark2_5"


@case
def refact():
    made = {"architectures": ["GPTRefactForCausalLM"], "model_type": "gpt_refact", "n_embd": WIDTH, "n_head": HEADS}
    made |= {"n_layer": 2, "n_positions": 256, "vocab_size": VOCAB, "layer_norm_epsilon": 1e-5, "multi_query": True}

    def layer(p):
        tensors = norm(f"{p}.ln_1") | norm(f"{p}.ln_2") | linear(f"{p}.attn.q", WIDTH, WIDTH)
        tensors |= linear(f"{p}.attn.kv", 2 * HEAD, WIDTH) | linear(f"{p}.attn.c_proj", WIDTH, WIDTH)
        return tensors | linear(f"{p}.mlp.gate_up_proj", 512, WIDTH) | linear(f"{p}.mlp.c_proj", WIDTH, 256)

    tensors = {"transformer.wte.weight": (VOCAB, WIDTH), "lm_head.weight": (VOCAB, WIDTH)} | norm("transformer.ln_f")
    return made, tensors | blocks(layer, "transformer.h"), "qwen2", "refact"


@case
def dbrx():
    made = {"architectures": ["DbrxForCausalLM"], "model_type": "dbrx_remote", "d_model": WIDTH, "n_heads": HEADS}
    made |= {"n_layers": 2, "max_seq_len": 256, "vocab_size": VOCAB}
    made["attn_config"] = {"clip_qkv": 8, "kv_n_heads": KV, "rope_theta": 500000}
    made["ffn_config"] = {"ffn_hidden_size": FF, "moe_num_experts": EXPERTS, "moe_top_k": 2}

    def layer(p):
        q = f"{p}.norm_attn_norm"
        tensors = norm(f"{q}.norm_1") | norm(f"{q}.norm_2") | linear(f"{q}.attn.Wqkv", (HEADS + 2 * KV) * HEAD, WIDTH)
        tensors |= linear(f"{q}.attn.out_proj", WIDTH, WIDTH) | linear(f"{p}.ffn.router.layer", EXPERTS, WIDTH)
        return tensors | {f"{p}.ffn.experts.mlp.{w}": (EXPERTS * FF, WIDTH) for w in ("w1", "v1", "w2")}

    tensors = {"transformer.wte.weight": (VOCAB, WIDTH), "lm_head.weight": (VOCAB, WIDTH)} | norm("transformer.norm_f")
    return made, tensors | blocks(layer, "transformer.blocks"), "qwen2", "dbrx"


@case
def openelm():
    made = {"architectures": ["OpenELMForCausalLM"], "model_type": "openelm", "model_dim": WIDTH, "head_dim": HEAD}
    made |= {"num_transformer_layers": 2, "max_context_length": 256, "vocab_size": VOCAB, "ffn_dim_divisor": 32}
    made |= {"num_query_heads": [2, 4], "num_kv_heads": [1, 2], "ffn_multipliers": [0.5, 1.7]}
    made |= {"rope_freq_constant": 10000, "share_input_output_layers": True, "normalize_qk_projections": True}
    tensors = {"transformer.token_embeddings.weight": (VOCAB, WIDTH)} | norm("transformer.norm")
    for i, (heads, kv, width) in enumerate([(2, 1, 32), (4, 2, 96 + 32)]):
        p = f"transformer.layers.{i}"
        tensors |= norm(f"{p}.attn_norm") | norm(f"{p}.ffn_norm")
        tensors |= norm(f"{p}.attn.q_norm", HEAD) | norm(f"{p}.attn.k_norm", HEAD)
        tensors |= linear(f"{p}.attn.qkv_proj", (heads + 2 * kv) * HEAD, WIDTH)
        tensors |= linear(f"{p}.attn.out_proj", WIDTH, heads * HEAD)
        tensors |= linear(f"{p}.ffn.proj_1", 2 * width, WIDTH) | linear(f"{p}.ffn.proj_2", WIDTH, width)
    return made, tensors, "phi3", None


@case
def plm():
    made = config("PLMForCausalLM", "plm", rms_norm_eps=1e-6, rope_theta=100000.0, hidden_act="relu2")
    made |= {"kv_lora_rank": 32, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 20}

    def layer(p):
        tensors = norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm")
        tensors |= linear(f"{p}.mlp.up_proj", FF, WIDTH) | linear(f"{p}.mlp.down_proj", WIDTH, FF)
        q = f"{p}.self_attn"
        tensors |= linear(f"{q}.q_proj", HEADS * 20, WIDTH) | linear(f"{q}.kv_a_proj_with_mqa", 40, WIDTH)
        tensors |= norm(f"{q}.kv_a_layernorm", 32) | linear(f"{q}.kv_b_proj", HEADS * 32, 32)
        return tensors | linear(f"{q}.o_proj", WIDTH, HEADS * 20)

    return made, model(layer, head=False), "qwen2", "qwen2"


@case
def internlm3():
    return llama_class("InternLM3ForCausalLM", head_dim=HEAD, bias=False, qkv_bias=False)


@case
def kimi_linear():
    made = config("KimiLinearForCausalLM", "kimi_linear_remote", rms_norm_eps=1e-5, rope_theta=10000.0)
    made |= {"kv_lora_rank": 32, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 20, "q_lora_rank": None}
    made |= {"num_key_value_heads": HEADS, "num_experts": EXPERTS, "num_experts_per_token": 2, "topk_group": 1}
    made |= {"num_shared_experts": 1, "moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 1}
    made |= {"routed_scaling_factor": 2.446, "moe_router_activation_func": "sigmoid", "moe_renormalize": True}
    made["linear_attn_config"] = {
        "full_attn_layers": [2], "kda_layers": [1], "head_dim": HEAD, "num_heads": HEADS, "short_conv_kernel_size": 4,
    }

    def layer(p):
        q, inner = f"{p}.self_attn", HEADS * HEAD
        tensors = norm(f"{p}.input_layernorm") | norm(f"{p}.post_attention_layernorm")
        if p.endswith(".0"):
            tensors |= gated(f"{p}.mlp") | norm(f"{q}.o_norm", HEAD) | linear(f"{q}.b_proj", HEADS, WIDTH)
            for part in "qkv":
                tensors |= linear(f"{q}.{part}_proj", inner, WIDTH)
                tensors[f"{q}.{part}_conv1d.weight"] = (inner, 1, 4)
            for part in "fg":
                tensors |= linear(f"{q}.{part}_a_proj", HEAD, WIDTH) | linear(f"{q}.{part}_b_proj", inner, HEAD)
            tensors |= {f"{q}.A_log": (1, 1, HEADS, 1), f"{q}.dt_bias": (inner,)}
            return tensors | linear(f"{q}.o_proj", WIDTH, inner)
        tensors |= linear(f"{q}.q_proj", HEADS * 20, WIDTH) | linear(f"{q}.kv_a_proj_with_mqa", 40, WIDTH)
        tensors |= norm(f"{q}.kv_a_layernorm", 32) | linear(f"{q}.kv_b_proj", HEADS * 32, 32)
        tensors |= linear(f"{q}.o_proj", WIDTH, HEADS * 20)
        moe = f"{p}.block_sparse_moe"
        tensors |= linear(f"{moe}.gate", EXPERTS, WIDTH) | gated(f"{moe}.shared_experts", EXPERT_FF)
        tensors[f"{moe}.gate.e_score_correction_bias"] = (EXPERTS,)
        for e in range(EXPERTS):
            for part, shape in (("w1", (EXPERT_FF, WIDTH)), ("w2", (WIDTH, EXPERT_FF)), ("w3", (EXPERT_FF, WIDTH))):
                tensors[f"{moe}.experts.{e}.{part}.weight"] = shape
        return tensors

    return made, model(layer), "qwen2", "kimi-k2"

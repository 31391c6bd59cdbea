"""More tiny checkpoints for coverage.py, as coverage_cases.py: models whose tensors are stored in several types, and
embeddings of n-grams."""

import numpy as np
from converter import EXPERT_FF, EXPERTS, HEAD, HEADS, KV, VOCAB, WIDTH
from converter import case, config, experts, gated, linear, model, norm
from coverage_drafts import target

random = np.random.default_rng(11)


def floats(*shape):
    return "F32", random.normal(0, 0.1, shape).astype("<f4")


def eight_bits(name, out, inside):
    """Floats of eight bits, of which no one is NaN, under powers of two for blocks of 128 rows and columns."""
    numbers = random.integers(0, 0x7F, (out, inside)) | random.integers(0, 2, (out, inside)) << 7
    scales = random.integers(115, 122, (-(-out // 128), -(-inside // 128)))
    return {f"{name}.weight": ("F8_E4M3", numbers.astype("u1")), f"{name}.scale": ("F8_E8M0", scales.astype("u1"))}


def four_bits(name, out, inside):
    """Pairs of numbers in a byte, under powers of two for 32 columns."""
    numbers, scales = random.integers(-128, 128, (out, inside // 2)), random.integers(118, 126, (out, inside // 32))
    return {f"{name}.weight": ("I8", numbers.astype("i1")), f"{name}.scale": ("F8_E8M0", scales.astype("u1"))}


# ---- DeepSeek 4

# llama.cpp computes four streams and no other number.
QUERIES, GROUPS, OUTPUT, STREAMS, INNER = 160, 2, 96, 4, 64
# Enough heads that hardly ever none fits a block, when all blocks would be as good; of a length that llama.cpp can turn.
INDEX_HEADS, INDEX = 16, 64
USED = 2
LAYERS_OF_DEEPSEEK = 4


def deepseek4_layer(p, ratio=0, hashed=False):
    q, network, count = f"{p}.attn", f"{p}.ffn", (2 + STREAMS) * STREAMS
    tensors = norm(f"{p}.attn_norm") | norm(f"{p}.ffn_norm") | norm(f"{q}.q_norm", QUERIES) | norm(f"{q}.kv_norm", HEAD)
    tensors |= eight_bits(f"{q}.wq_a", QUERIES, WIDTH) | eight_bits(f"{q}.wq_b", HEADS * HEAD, QUERIES)
    tensors |= eight_bits(f"{q}.wkv", HEAD, WIDTH) | eight_bits(f"{q}.wo_a", GROUPS * OUTPUT, HEADS * HEAD // GROUPS)
    tensors |= eight_bits(f"{q}.wo_b", WIDTH, GROUPS * OUTPUT) | {f"{q}.attn_sink": floats(HEADS)}
    for part in ("attn", "ffn"):
        mix = f"{p}.hc_{part}"
        tensors |= {f"{mix}_fn": floats(count, STREAMS * WIDTH), f"{mix}_base": floats(count), f"{mix}_scale": floats(3)}
    if ratio:
        tensors |= compressor(f"{q}.compressor", ratio, HEAD)
    if ratio == 4:
        tensors |= eight_bits(f"{q}.indexer.wq_b", INDEX_HEADS * INDEX, QUERIES)
        tensors |= linear(f"{q}.indexer.weights_proj", INDEX_HEADS, WIDTH)
        tensors |= compressor(f"{q}.indexer.compressor", ratio, INDEX)
    tensors |= linear(f"{network}.gate", EXPERTS, WIDTH) | {f"{network}.gate.bias": floats(EXPERTS)}
    if hashed:
        tensors[f"{network}.gate.tid2eid"] = random.integers(0, EXPERTS, (VOCAB, USED))
    for e in range(EXPERTS):
        tensors |= four_bits(f"{network}.experts.{e}.w1", INNER, WIDTH) | four_bits(f"{network}.experts.{e}.w3", INNER, WIDTH)
        tensors |= four_bits(f"{network}.experts.{e}.w2", WIDTH, INNER)
    shared = f"{network}.shared_experts"
    tensors |= eight_bits(f"{shared}.w1", INNER, WIDTH) | eight_bits(f"{shared}.w3", INNER, WIDTH)
    return tensors | eight_bits(f"{shared}.w2", WIDTH, INNER)


def compressor(p, ratio, width):
    width *= 2 if ratio == 4 else 1
    tensors = {f"{p}.ape": floats(ratio, width), f"{p}.wkv.weight": floats(width, WIDTH)}
    return tensors | linear(f"{p}.wgate", width, WIDTH) | {f"{p}.norm.weight": floats(width // (2 if ratio == 4 else 1))}


def streams_of_output(p=""):
    mix = f"{p}hc_head"
    return {f"{mix}_fn": floats(STREAMS, STREAMS * WIDTH), f"{mix}_base": floats(STREAMS), f"{mix}_scale": floats(1)}


def deepseek4_config(name, ratios, **fields):
    made = config(name, "deepseek_v4", head_dim=HEAD, rms_norm_eps=1e-6, rope_theta=10000.0, num_key_value_heads=1)
    del made["intermediate_size"]
    made |= {"num_hidden_layers": LAYERS_OF_DEEPSEEK, "q_lora_rank": QUERIES, "qk_rope_head_dim": 8, "o_groups": GROUPS}
    made |= {"o_lora_rank": OUTPUT, "moe_intermediate_size": INNER, "n_routed_experts": EXPERTS, "n_shared_experts": 1}
    made |= {"num_experts_per_tok": USED, "scoring_func": "sqrtsoftplus", "norm_topk_prob": True, "swiglu_limit": 7.0}
    made |= {"routed_scaling_factor": 2.5, "sliding_window": 32, "index_n_heads": INDEX_HEADS, "index_head_dim": INDEX}
    made |= {"index_topk": 8, "compress_ratios": ratios, "compress_rope_theta": 160000.0, "hc_mult": STREAMS}
    made |= {"hc_sinkhorn_iters": 20, "hc_eps": 1e-6, "num_hash_layers": 1, "num_nextn_predict_layers": 1}
    made["quantization_config"] = {
        "activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "scale_fmt": "ue8m0",
        "weight_block_size": [128, 128],
    }  # fmt: skip
    made["rope_scaling"] = {
        "type": "yarn", "factor": 16.0, "original_max_position_embeddings": 64, "beta_fast": 32, "beta_slow": 1,
    }  # fmt: skip
    return made | fields


def deepseek4_model(name, ratios, **fields):
    made = deepseek4_config(name, ratios, **fields)
    tensors = {"embed.weight": (VOCAB, WIDTH), "head.weight": (VOCAB, WIDTH)} | norm("norm") | streams_of_output()
    for i in range(LAYERS_OF_DEEPSEEK):
        tensors |= deepseek4_layer(f"layers.{i}", ratios[i], i < made["num_hash_layers"])
    tensors |= deepseek4_layer("mtp.0") | eight_bits("mtp.0.e_proj", WIDTH, WIDTH) | norm("mtp.0.enorm")
    return made, tensors, "qwen2", "deepseek-v3"


@case
def deepseek4():
    made, tensors, *rest = deepseek4_model("DeepseekV4ForCausalLM", [0, 4, 128, 4, 0])
    # Of the one that sees.
    tensors |= {"layers.1.ffn.gate.bias_vl": floats(EXPERTS), "image_newline": floats(WIDTH)}
    return made, tensors | linear("aligner.0", WIDTH, 32), *rest


@case
def deepseek4_without_hash():
    return deepseek4_model("DeepseekV4ForCausalLM", [128, 128, 4, 0], num_hash_layers=0, rope_scaling=None)


@case
def deepseek4_dspark():
    rank = 32
    made = deepseek4_config("DeepseekV4DSparkModel", [0, 4, 128, 4, 0, 0], dspark_block_size=4, dspark_noise_token_id=7)
    made |= {"dspark_target_layer_ids": [1, 3], "target_model": target()}
    tensors = {"embed.weight": (VOCAB, WIDTH), "layers.0.attn.wq_a.weight": (QUERIES, WIDTH)}
    for i in range(2):
        tensors |= deepseek4_layer(f"mtp.{i}")
    tensors |= {"mtp.0.ffn.gate.bias_vl": floats(EXPERTS)}
    tensors |= eight_bits("mtp.0.main_proj", WIDTH, 2 * WIDTH) | norm("mtp.0.main_norm") | norm("mtp.1.norm")
    tensors |= streams_of_output("mtp.1.") | linear("mtp.1.markov_head.markov_w1", VOCAB, rank)
    tensors |= linear("mtp.1.markov_head.markov_w2", VOCAB, rank) | linear("mtp.1.confidence_head.proj", 1, WIDTH + rank)
    return made, tensors, "qwen2", "qwen2"


# ---- Qwen 3.8 Flash

KEY_HEADS, VALUE_HEADS, LINEAR = 2, 4, 8
RANK, NGRAM, OF_EACH, PARTS = 24, 3, 2, 3
NGRAM_HEADS = (NGRAM - 1) * OF_EACH
ROW = WIDTH // NGRAM_HEADS


def hyper_connection(p, inject=True):
    every = QWEN_STREAMS * WIDTH
    tensors = norm(f"{p}.hc_norm", every) | linear(f"{p}.input_mix_weight_down", RANK, every)
    tensors |= linear(f"{p}.input_mix_weight_up", every, RANK)
    return tensors | (linear(f"{p}.block_inject_weight", QWEN_STREAMS, every) if inject else {})


QWEN_STREAMS = 4
# So many that hardly ever none fits, when all blocks would be as good.
INDEX_HEADS_OF_QWEN = 16


def qwen4(name, **fields):
    made = config(name, "qwen4_exp_remote", head_dim=HEAD, rms_norm_eps=1e-6, **fields)
    del made["intermediate_size"]
    made["rope_parameters"] = {
        "rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1],
    }  # fmt: skip
    made |= {"layer_types": ["linear_attention", "full_attention"], "linear_conv_kernel_dim": 4}
    made |= {"linear_num_key_heads": KEY_HEADS, "linear_num_value_heads": VALUE_HEADS, "output_gate_type": "sigmoid"}
    made |= {"linear_key_head_dim": LINEAR, "linear_value_head_dim": LINEAR, "num_experts": EXPERTS}
    made |= {"num_experts_per_tok": 2, "moe_intermediate_size": EXPERT_FF, "shared_expert_intermediate_size": 40}
    made |= {"hc_count": QWEN_STREAMS, "hc_lowrank": RANK, "indexer_n_heads": INDEX_HEADS_OF_QWEN, "indexer_kv_heads": 1}
    made |= {"indexer_head_dim": HEAD, "indexer_budget": 8, "indexer_compress_ratio": 4, "ple_layer_ids": [1]}
    made |= {"ngram_size": NGRAM, "heads_per_ngram": OF_EACH, "ple_conv_kernel_size": 4, "split_ngram_parts": PARTS}
    made |= {"ngram_vocab_size_base": 11, "make_ngram_vocab_size_divisible_by": 64, "image_token_id": 9}

    def layer(p):
        q, network = f"{p}.self_attn", f"{p}.mlp"
        tensors = hyper_connection(f"{p}.attn_hyper_connection") | hyper_connection(f"{p}.mlp_hyper_connection")
        if p.endswith(".0"):
            tensors |= linear_attention(f"{p}.linear_attn") | ngrams(f"{p}.ple")
        else:
            tensors |= linear(f"{q}.q_proj", 2 * HEADS * HEAD, WIDTH) | linear(f"{q}.k_proj", KV * HEAD, WIDTH)
            tensors |= linear(f"{q}.v_proj", KV * HEAD, WIDTH) | linear(f"{q}.o_proj", WIDTH, HEADS * HEAD)
            tensors |= norm(f"{q}.q_norm", HEAD) | norm(f"{q}.k_norm", HEAD)
            tensors |= linear(f"{q}.indexer.index_qk_proj", (INDEX_HEADS_OF_QWEN + 1) * HEAD, WIDTH)
            tensors |= norm(f"{q}.indexer.q_layernorm", HEAD) | norm(f"{q}.indexer.k_layernorm", HEAD)
        tensors |= linear(f"{network}.gate", EXPERTS, WIDTH) | experts(network, True)
        return tensors | gated(f"{network}.shared_expert", 40) | linear(f"{network}.shared_expert_gate", 1, WIDTH)

    tensors = model(layer, norms=False) | hyper_connection("model.hyper_connection_mixer", False)
    tensors |= linear("mtp.fc", WIDTH, 2 * WIDTH) | norm("mtp.layers.0.self_attn.q_norm", HEAD)
    return made, tensors, "qwen2", "qwen2"


def linear_attention(p):
    keys, values = KEY_HEADS * LINEAR, VALUE_HEADS * LINEAR
    tensors = linear(f"{p}.in_proj_qkv", 2 * keys + values, WIDTH) | linear(f"{p}.in_proj_z", values, WIDTH)
    tensors |= linear(f"{p}.in_proj_a", VALUE_HEADS, WIDTH) | linear(f"{p}.in_proj_b", VALUE_HEADS, WIDTH)
    tensors |= {f"{p}.conv1d.weight": (2 * keys + values, 1, 4), f"{p}.A_log": (VALUE_HEADS,), f"{p}.dt_bias": (VALUE_HEADS,)}
    return tensors | norm(f"{p}.norm", LINEAR) | linear(f"{p}.out_proj", WIDTH, values)


def ngrams(p):
    every, sizes = QWEN_STREAMS * WIDTH, np.array([11, 13, 17, 19])
    tensors = linear(f"{p}.key_proj", every, WIDTH) | linear(f"{p}.value_proj", WIDTH, WIDTH)
    tensors |= {f"{p}.conv1d.weight": (every, 1, 4)}
    for part in ("key", "query", "conv"):
        tensors |= norm(f"{p}.norm_{part}", every)
    embedding = f"{p}.ple_embedding"
    tensors[f"{embedding}.layer_multipliers"] = np.array([23_456_789_012_345, 12_345_678_901_235, 3])
    tensors[f"{embedding}.ngram_heads_vocab_sizes"] = sizes
    tensors[f"{embedding}.ngram_heads_offsets"] = np.cumsum(sizes) - sizes
    # Parts of different lengths.
    for i, rows in enumerate((24, 24, 16)):
        tensors[f"{embedding}.ngram_embedding.shard_{i}.weight"] = (rows, ROW)
    return tensors


@case
def qwen4_exp():
    return qwen4("Qwen4ExpForCausalLM")


@case
def qwen4_exp_without_ngrams():
    made, tensors, *rest = qwen4("Qwen4ExpForCausalLM")
    made["ple_layer_ids"] = []
    return made, {name: shape for name, shape in tensors.items() if ".ple." not in name}, *rest


@case
def qwen4_exp_that_sees():
    made, tensors, *rest = qwen4("Qwen4ExpForConditionalGeneration")
    kept = ("architectures", "model_type", "image_token_id")
    made = {k: made[k] for k in kept} | {"text_config": {k: v for k, v in made.items() if k not in kept}}
    tensors = {name.replace("model.", "model.language_model.", 1): shape for name, shape in tensors.items()}
    return made, tensors | linear("model.visual.blocks.0.attn.qkv", 96, 32), *rest

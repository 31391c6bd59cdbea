"""Tiny checkpoints with random weights, of classes that `transformers` has.

Used by coverage.py. A class gets the configuration that `transformers` gives it, with the sizes made
small, and weights as `save_pretrained` writes them. `FIELDS` has what a class needs besides, and
`FOLDERS` whose tokenizer it gets, if not Qwen's.
"""

import json
import shutil

VOCAB, HEADS = 640, 4

SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "sliding_window": 32,
    "moe_intermediate_size": 48,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 2,
    "topk_group": 1,
    "q_lora_rank": 24,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 8,
    "v_head_dim": 20,
    "index_n_heads": 2,
    "index_head_dim": 16,
    "index_topk": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "shared_expert_intermediate_size": 40,
}

# Of a vision or audio encoder, which is not converted with the text.
ENCODER = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "d_model": 32,
    "depth": 1,
    "embed_dim": 32,
    "num_heads": 2,
    "encoder_layers": 1,
    "encoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "out_hidden_size": 64,
    "image_size": 28,
}

SMALL_STATES = {
    "mamba_d_state": 16, "mamba_expand": 2, "mamba_n_heads": 8, "mamba_d_head": 16, "time_step_limit": [0.0, 1000.0],
}
COMPRESSED = {"num_key_value_heads": HEADS}
DISTILLED = {"n_layers": 2, "n_heads": HEADS, "dim": 64, "hidden_dim": 96, "vocab_size": 768}
GEMMA4 = {
    "layer_types": ["sliding_attention", "full_attention"], "global_head_dim": 24, "num_global_key_value_heads": 1,
    "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": VOCAB, "attention_k_eq_v": True,
}
GEMMA3N = {
    "num_hidden_layers": 4, "num_kv_shared_layers": 2, "activation_sparsity_pattern": [0.95, 0.95, 0.0, 0.0],
    "layer_types": ["sliding_attention", "full_attention"] * 2, "hidden_size_per_layer_input": 8, "laurel_rank": 8,
    "vocab_size_per_layer_input": VOCAB - 16,
}
GEMMA4_EXPERTS = {"enable_moe_block": True, "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 48}
LINEAR = {"layer_types": ["linear_attention", "full_attention"]}
MROPE = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1]}
STREAMS_AND_NGRAMS = {
    **LINEAR, "rope_parameters": MROPE, "hc_lowrank": 24, "output_gate_type": "sigmoid", "indexer_n_heads": 2,
    "indexer_kv_heads": 1, "indexer_head_dim": 128, "indexer_budget": 8, "indexer_compress_ratio": 4, "ple_layer_ids": [1],
    "heads_per_ngram": 2, "ngram_vocab_size_base": 100, "make_ngram_vocab_size_divisible_by": 8, "split_ngram_parts": 4,
    "eos_token_id": 2,
}
# What a class needs besides, or otherwise.
FIELDS = {
    "BambaForCausalLM": {"attn_layer_indices": [1], **SMALL_STATES},
    "DeepseekV32ForCausalLM": {**COMPRESSED, "first_k_dense_replace": 1, "mlp_layer_types": ["dense", "sparse"]},
    "DistilBertForMaskedLM": DISTILLED,
    "DistilBertForSequenceClassification": {**DISTILLED, "num_labels": 3},
    "DistilBertModel": DISTILLED,
    "EuroBertModel": {"classifier_pooling": "mean"},
    "ExaoneMoeForCausalLM": {"num_nextn_predict_layers": 0, "first_k_dense_replace": 1, "mlp_layer_types": ["dense", "sparse"]},
    "Gemma3nForCausalLM": GEMMA3N,
    "Gemma4ForCausalLM": GEMMA4,
    "Gemma4ForConditionalGeneration": {"text_config": {**GEMMA4, **GEMMA4_EXPERTS}},
    "Gemma4UnifiedForConditionalGeneration": {
        "text_config": {
            **{field: value for field, value in GEMMA4.items() if "per_layer" not in field}, "moe_intermediate_size": 48,
        },
    },
    "Glm4MoeLiteForCausalLM": {**COMPRESSED, "n_shared_experts": 1, "first_k_dense_replace": 1},
    "Glm4vForConditionalGeneration": {"text_config": {"rope_parameters": MROPE}},
    "GlmMoeDsaForCausalLM": {
        **COMPRESSED, "head_dim": 8, "first_k_dense_replace": 1, "mlp_layer_types": ["dense", "sparse"],
    },
    "FalconH1ForCausalLM": {
        "mamba_d_ssm": 128, "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 16, "mamba_n_groups": 2,
        "mlp_multipliers": [0.88, 0.11], "key_multiplier": 0.39, "attention_in_multiplier": 1.5,
        "attention_out_multiplier": 0.94, "ssm_multipliers": [0.35, 0.25, 0.18, 0.5, 0.35], "ssm_in_multiplier": 1.25,
        "ssm_out_multiplier": 0.24, "lm_head_multiplier": 0.02, "embedding_multiplier": 5.66, "mamba_rms_norm": True,
        "mamba_norm_before_gate": False, "time_step_limit": [0.0, 1000.0],
    },
    "GraniteMoeHybridForCausalLM": {"layer_types": ["mamba", "attention"], **SMALL_STATES},
    "JambaForCausalLM": {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 8, "use_mamba_kernels": False},
    "ModernBertForSequenceClassification": {"num_labels": 3},
    "MiniCPM3ForCausalLM": {**COMPRESSED, "v_head_dim": 16},
    "NemotronForCausalLM": {"head_dim": 16, "num_key_value_heads": 2},
    "NemotronHForCausalLM": {
        "layers_block_type": ["mamba", "attention", "moe"], "ssm_state_size": 16, "mamba_num_heads": 8,
        "mamba_head_dim": 16, "n_groups": 2, "moe_shared_expert_intermediate_size": 40, "use_mamba_kernels": False,
        "time_step_limit": [0.0, 1000.0], "num_hidden_layers": 3, "rms_norm_eps": 1e-5,
    },
    "Cohere2MoeForCausalLM": {
        "num_shared_experts": 1, "layer_types": ["sliding_attention", "full_attention"],
        "mlp_layer_types": ["dense", "sparse"], "prefix_dense_intermediate_size": 128,
    },
    "GraniteMoeSWAForCausalLM": {"shared_intermediate_size": 40, "num_key_value_heads": 2},
    "GraniteSWAForCausalLM": {"num_key_value_heads": 2},
    "MiniCPMV4_6ForConditionalGeneration": {"text_config": LINEAR},
    "Qwen3NextForCausalLM": LINEAR,
    "Qwen3_5ForCausalLM": LINEAR,
    "Qwen3_5ForConditionalGeneration": {"text_config": LINEAR},
    "Qwen3_5MoeForCausalLM": LINEAR,
    "Qwen3_5MoeForConditionalGeneration": {"text_config": LINEAR},
    "Qwen4ExpForCausalLM": STREAMS_AND_NGRAMS,
    "Qwen4ExpForConditionalGeneration": {"text_config": STREAMS_AND_NGRAMS},
    "YoutuForCausalLM": COMPRESSED,
    "AfmoeForCausalLM": {"mup_enabled": True, "num_dense_layers": 1, "num_shared_experts": 1},
    "Ernie4_5_MoeForCausalLM": {
        "moe_num_experts": 4, "moe_k": 2, "moe_num_shared_experts": 1, "moe_layer_start_index": 1,
    },
    "Dots1ForCausalLM": {"n_routed_experts": 4, "n_shared_experts": 1, "first_k_dense_replace": 1},
    "Qwen3MoeForCausalLM": {"norm_topk_prob": True},
    "Gemma3TextModel": {"use_bidirectional_attention": True},
    "Glm4MoeForCausalLM": {"n_shared_experts": 1, "first_k_dense_replace": 1},
    "Lfm2Model": {"layer_types": ["conv", "full_attention"]},
    "Lfm2ForCausalLM": {"layer_types": ["conv", "full_attention"]},
    "Lfm2MoeForCausalLM": {"layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    "MambaForCausalLM": {"intermediate_size": 128},
    "GlmOcrForConditionalGeneration": {"text_config": {"num_nextn_predict_layers": 0}},
    "MiniMaxM2ForCausalLM": {"rotary_dim": 8},
    "MistralForCausalLM": {"sliding_window": None},
    "Mistral3ForConditionalGeneration": {"text_config": {"sliding_window": None}},
    "OlmoeForCausalLM": {"rms_norm_eps": 1e-5},
}
# Whose tokenizer, if not Qwen's, and the name that both converters are told for it.
FOLDERS = {
    "BertModel": "bert",
    "DistilBertForMaskedLM": "bert",
    "DistilBertForSequenceClassification": "bert",
    "DistilBertModel": "bert",
    "Gemma3nForCausalLM": "gemma3",
    "Gemma4ForCausalLM": "gemma3",
    "Gemma4ForConditionalGeneration": "gemma3",
    "Gemma4UnifiedForConditionalGeneration": "gemma3",
    "InternLM3ForCausalLM": "phi3",
    "PaddleOCRVLForConditionalGeneration": "phi3",
    "JambaForCausalLM": "phi3",
    "MiniCPM3ForCausalLM": "phi3",
    "NemotronForCausalLM": "phi3",
    "Ernie4_5ForCausalLM": "phi3",
    "Ernie4_5_MoeForCausalLM": "phi3",
    "Gemma3TextModel": "gemma3",
}
# Tokens that the converter of a class looks for.
GLM_TOKENS = ["[gMASK]", "<|user|>", "<|observation|>"]
TOKENS = {
    "Glm4MoeForCausalLM": GLM_TOKENS,
    "Glm4MoeLiteForCausalLM": GLM_TOKENS,
    "Glm4vForConditionalGeneration": GLM_TOKENS,
    "Glm5NextForConditionalGeneration": GLM_TOKENS,
    **dict.fromkeys(
        ("Dots3NoteForCausalLM", "Dots3NoteForConditionalGeneration", "Dots3NoteTextForCausalLM"),
        ["<|endofassistant|>"],
    ),
    "Glm4vMoeForConditionalGeneration": GLM_TOKENS,
    "GlmMoeDsaForCausalLM": GLM_TOKENS,
    "GlmOcrForConditionalGeneration": GLM_TOKENS,
    "SolarOpenForCausalLM": ["<unk>", "<|startoftext|>"],
}
# What the converter of a class wants tokenizers to say.
TOKENIZER_FIELDS = {
    "Gemma4ForCausalLM": {"mask_token": "<mask>"},
    "Gemma4ForConditionalGeneration": {"mask_token": "<mask>"},
    "Gemma4UnifiedForConditionalGeneration": {"mask_token": "<mask>"},
    "Gemma4AssistantForCausalLM": {"mask_token": "<mask>"},
    "Gemma4UnifiedAssistantForCausalLM": {"mask_token": "<mask>"},
}
# Fields as published configurations have them, which `transformers` writes otherwise.
PUBLISHED = {
    "FalconH1ForCausalLM": {"head_dim": 16},
    "GraniteMoeHybridForCausalLM": {"layer_types": ["mamba", "attention"]},
}
# Classes of which published checkpoints have a layer that guesses further tokens, which `transformers` leaves out.
FURTHER = ("Qwen3Next", "Qwen3_5")
# Tensors whose last two dimensions `transformers` exchanges when it reads what is published.
EXCHANGED = {"Qwen3VLMoeForConditionalGeneration": ("experts.gate_up_proj", "experts.down_proj")}
PRE_TOKENIZERS = {"bert": "bert-bge", "qwen2": "qwen2", "gpt2": "gpt-2"}


def known(config_class, wanted):
    """The fields that the class has at all."""
    default = config_class().to_dict()
    return {name: value for name, value in wanted.items() if default.get(name) is not None}


def configuration(transformers, name):
    """The tiny configuration of a class, or of the text model within."""
    model_class = getattr(transformers, name)
    config_class = model_class.config_class
    own = dict(FIELDS.get(name, {}))
    parts = getattr(config_class, "sub_configs", {})
    if "text_config" not in parts:
        return model_class, config_class(**{**known(config_class, SIZES), **own})
    default = config_class()
    made = {}
    for part in parts:
        inner = getattr(default, part, None)
        if inner is None:
            continue
        sizes = SIZES if part == "text_config" else ENCODER
        made[part] = {"model_type": inner.model_type, **known(type(inner), sizes)}
        made[part] |= own.pop(part, {})
    return model_class, config_class(**made, **own)


def copy_tokenizer(zoo, folder):
    for file in zoo.iterdir():
        if file.name.startswith(("tokenizer", "special_tokens", "vocab", "merges", "added")):
            if file.name != "tokenizer_cases.json":
                shutil.copyfile(file, folder / file.name)


def write(name, stated, work, zoo):
    """Writes checkpoints of a class that say to be of class `stated`, if `transformers` has it: as it writes them, and once more without
    the width of a head if that follows from other fields. Yields their folders."""
    import torch
    import transformers

    if not hasattr(transformers, name):
        return
    torch.manual_seed(7)
    torch.set_num_threads(1)
    model_class, config = configuration(transformers, name)
    model = model_class(config).to(torch.bfloat16)
    for tensor_name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if tensor.is_floating_point() and "inv_freq" not in tensor_name:
            noise = torch.randn(tensor.shape) * 0.1 + ("norm" in tensor_name)
            tensor.data.copy_(noise)
    folder = work / name
    model.save_pretrained(folder)
    exchange(folder / "model.safetensors", EXCHANGED.get(name, ()))
    if name.startswith(FURTHER):
        add_further(folder / "model.safetensors")
    copy_tokenizer(zoo / FOLDERS.get(name, "qwen2"), folder)
    add_tokens(folder, TOKENS.get(name, []))
    set_fields(folder / "tokenizer_config.json", TOKENIZER_FIELDS.get(name, {}))
    path = folder / "config.json"
    written = json.loads(path.read_text())
    written["architectures"] = [stated]
    written |= PUBLISHED.get(name, {})
    path.write_text(json.dumps(written, indent=2))
    yield folder
    for part in (written, written.get("text_config", {})):
        part.pop("head_dim", None)
    if head_dim(config) is not None and head_dim(type(config)(**written)) == head_dim(config):
        sparse = work / f"{name} without head_dim"
        shutil.copytree(folder, sparse)
        (sparse / "config.json").write_text(json.dumps(written, indent=2))
        yield sparse


def head_dim(config):
    return getattr(config, "text_config", config).to_dict().get("head_dim")


def exchange(path, names):
    from safetensors.torch import load_file, save_file

    tensors = load_file(path)
    turned = {name: tensor.transpose(-1, -2).contiguous() for name, tensor in tensors.items() if name.endswith(names)}
    if turned:
        save_file(tensors | turned, path)


def add_further(path):
    """Adds the last layer once more as one that guesses further tokens, with what joins it to the model."""
    import re

    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(path)
    layers = {name: re.fullmatch(r".*layers\.1\.(.*)", name) for name in tensors}
    further = {f"mtp.layers.0.{found[1]}": tensors[name].clone() for name, found in layers.items() if found}
    width = next(tensor.shape[1] for name, tensor in tensors.items() if name.endswith("embed_tokens.weight"))
    further["mtp.fc.weight"] = torch.randn(width, 2 * width).to(torch.bfloat16)
    for norm in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
        further[f"mtp.{norm}.weight"] = torch.randn(width).to(torch.bfloat16)
    save_file(tensors | further, path)


def add_tokens(folder, texts):
    """Adds special tokens behind those that are there."""
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text()) if texts else {}
    for text in texts:
        used = [token["id"] for token in tokenizer["added_tokens"]] + list(tokenizer["model"]["vocab"].values())
        token = {"id": max(used) + 1, "content": text, "single_word": False, "lstrip": False, "rstrip": False}
        tokenizer["added_tokens"].append(token | {"normalized": False, "special": True})
    if texts:
        path.write_text(json.dumps(tokenizer))
        # Classes of their own make the tokenizer anew from other files.
        set_fields(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast"})


def set_fields(path, fields):
    if fields:
        path.write_text(json.dumps(json.loads(path.read_text()) | fields, indent=2))


def pre_tokenizer(name):
    """What both converters are told, as the tokenizer of the folder is that of no published model."""
    return PRE_TOKENIZERS.get(FOLDERS.get(name, "qwen2"))

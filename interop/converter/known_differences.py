"""Keys and tensors in which llama.cpp's converter is known to differ; docs/models.md says how.

The comparison fails if one of them does not differ.
"""

from interop.fixtures.encoder_layers import ENC_LAYERS
from interop.fixtures.layers import LAYERS

# The exponential, square root, logarithm, sine and cosine of the C library are off by a last bit here and there.
SSM_A = {f"blk.{i}.ssm_a" for i in range(LAYERS)}

# By checkpoint.
BY_CHECKPOINT = {
    # The pooler is dropped, and missing in the number of parameters.
    "bert_classifier": {"cls.weight", "cls.bias", "general.size_label"},
    # Q/K norms of the first head are used for all heads.
    "chameleon": {f"blk.{i}.attn_{part}_norm.{end}" for i in range(2) for part in "qk" for end in ("weight", "bias")},
    # All tensors with `vision_` in their names are dropped, the vision expert matrices too.
    "cogvlm": {"general.size_label"}
    | {f"blk.{i}.vis_{part}.weight" for i in range(2) for part in ("attn_qkv", "attn_output", "gate", "up", "down")},
    "falcon_mamba": SSM_A,
    # 1 is added to norms in F16.
    "gemma_f16": {f"blk.{i}.{x}_norm.weight" for i in range(LAYERS) for x in ("attn", "ffn")} | {"output_norm.weight"},
    "glm": {"chatglm.context_length", "chatglm.attention.layer_norm_rms_epsilon", "chatglm.rope.freq_base"},
    "mamba2": {"blk.0.ssm_a"},
    # The attention temperature is dropped.
    "mistral4": {f"mistral4.attention.temperature_{part}" for part in ("scale", "length")},
    # Another summation order, and the exponential of the C library.
    "qwen3_tts_silu": {"token_embd.weight"},
    # The name that newer versions of `transformers` give to layers with an indexer is unknown.
    **dict.fromkeys(("Qwen4ExpForCausalLM", "Qwen4ExpForConditionalGeneration"), {"qwen4exp.attention.compress_ratios"}),
    "stablelm_code": {"stablelm.rope.freq_base"},
}
# By class.
BY_CLASS = {
    "CamembertModel": {"bert.context_length", "position_embd.weight"},
    "DeepseekV32ForCausalLM": {"deepseek32.expert_gating_func"},
    "ExaoneForCausalLM": {"exaone.attention.layer_norm_rms_epsilon"},
    "Glm4MoeLiteForCausalLM": {"deepseek2.expert_gating_func"},
    # llama.cpp reads the epsilon under another key.
    "QWenLMHeadModel": {"qwen.attention.layer_norm_rms_epsilon"},
    "MambaForCausalLM": SSM_A,
    "MambaLMHeadModel": SSM_A,
    "JambaForCausalLM": {"blk.0.ssm_a"},
    "Plamo2ForCausalLM": {"blk.0.ssm_a"},
    "PLaMo2ForCausalLM": {"blk.0.ssm_a"},
    # The mean is computed in the 16-bit type of the checkpoint.
    "SarvamMoEForCausalLM": {"blk.1.exp_probs_b.bias"},
    "modeling_sarvam_moe.SarvamMoEForCausalLM": {"blk.1.exp_probs_b.bias"},
    "Qwen3MoeForCausalLM": {"qwen3moe.expert_weights_norm"},
}
# By class, in F16 files only: matrices that llama.cpp needs in F32 are stored as F16.
BY_CLASS_IN_F16 = {"DbrxForCausalLM": {f"blk.{i}.ffn_gate_inp.weight" for i in range(LAYERS)}}

BLOCKS = range(ENC_LAYERS)
CONV_NORMS = {f"a.blk.{i}.conv_norm.{end}" for i in BLOCKS for end in ("weight", "bias")}
POSITIONS = {"a.position_embd.weight"}
# By class, in mmproj files.
BY_ENCODER = {
    # Embeddings of the tokens between image rows: the converter searches them among tensors that it has dropped, and llama.cpp
    # rejects the file.
    "LlavaForConditionalGeneration": {"v.token_embd.img_break"},
    "Mistral3ForConditionalGeneration": {"v.token_embd.img_break"},
    "Gemma4ForConditionalGeneration": {f"a.blk.{i}.per_dim_scale.weight" for i in BLOCKS},
    "Lfm2AudioForConditionalGeneration": CONV_NORMS,
    # They get the name of a norm that Gemma 4 has and Llama 4 has not.
    "Llama4ForConditionalGeneration": {
        f"v.blk.{i}.{norm}.{end}" for i in BLOCKS for norm in ("ln2", "attn_post_norm") for end in ("weight", "bias")
    },
    "Qwen2_5OmniModel": POSITIONS,
    "Qwen3ASRForConditionalGeneration": POSITIONS,
    "Qwen3OmniMoeForConditionalGeneration": POSITIONS,
    # They get a name that llama.cpp does not load.
    **dict.fromkeys(
        ("GraniteSpeechForConditionalGeneration", "GraniteSpeechPlusForConditionalGeneration"),
        CONV_NORMS | {name.replace("conv_norm", "conv_norm_var") for name in CONV_NORMS},
    ),
}

"""Tiny checkpoints of encoders with weights in folders beside those of the model, or of many kinds of blocks; as the
cases of tiny_encoders.py, by which they are used. Where there is a third part it says what else stands where: folder,
configuration and tensors."""

import math

import numpy as np
from tiny_encoders import FF, LAYERS, MELS, PATCH, SIDE, TEXT, WIDTH
from tiny_encoders import both, case, config, of_text, vision
from converter import linear, norm
from coverage_speech import NO_FILE, flow


def norms(name, width=WIDTH):
    return norm(name, width) | {f"{name}.bias": (width,)}


@case
def gemma3n():
    made = config("Gemma3nForConditionalGeneration", text_config={"hidden_size": TEXT})
    made["vision_config"] = {"hidden_size": WIDTH, "architecture": "mobilenetv5_300m_enc"}
    made["audio_config"] = {"hidden_size": WIDTH, "conf_num_hidden_layers": LAYERS, "conf_num_attention_heads": 2}
    made["audio_config"]["input_feat_size"] = MELS
    v = "model.vision_tower.timm_model"
    tensors = {f"{v}.conv_stem.conv.weight": (8, 3, 3, 3), f"{v}.conv_stem.conv.bias": (8,)}
    tensors |= {f"{v}.conv_stem.bn.weight": (8,), f"{v}.msfa.norm.weight": (WIDTH,)}
    for part, out, inside in (("pw_exp", 48, 40), ("pw_proj", WIDTH, 48)):
        tensors |= {f"{v}.msfa.ffn.{part}.conv.weight": (out, inside, 1, 1), f"{v}.msfa.ffn.{part}.bn.weight": (out,)}
    for b in range(2):
        p = f"{v}.blocks.{b}.0"
        tensors |= {f"{p}.conv_exp.weight": (16, 8, 3, 3), f"{p}.bn1.weight": (16,)}
        tensors |= {f"{p}.conv_pwl.weight": (8, 16, 1, 1), f"{p}.bn2.weight": (8,)}
        p = f"{v}.blocks.{b}.1"
        for part, out, inside, side in (
            ("dw_start", 8, 1, 5), ("pw_exp", 32, 8, 1), ("dw_mid", 32, 1, 5), ("pw_proj", 8, 32, 1)
        ):
            tensors |= {f"{p}.{part}.conv.weight": (out, inside, side, side), f"{p}.{part}.bn.weight": (out,)}
        tensors |= {f"{p}.layer_scale.gamma": (8,)}
        p = f"{v}.blocks.{b}.2"
        tensors |= {f"{p}.norm.weight": (8,), f"{p}.layer_scale.gamma": (8,)}
        for part in ("query", "key", "value", "output"):
            tensors |= {f"{p}.attn.{part}.proj.weight": (8, 32, 1, 1) if part == "output" else (32, 8, 1, 1)}
        for part in ("key", "value"):
            tensors |= {f"{p}.attn.{part}.down_conv.weight": (8, 1, 3, 3), f"{p}.attn.{part}.norm.weight": (8,)}
    a = "model.audio_tower"
    for i, inside in ((0, 1), (1, 8)):
        p = f"{a}.subsample_conv_projection.conv_{i}"
        tensors |= {f"{p}.conv.weight": (8, inside, 3, 3), f"{p}.norm.weight": (8,)}
    tensors |= linear(f"{a}.subsample_conv_projection.input_proj_linear", WIDTH, WIDTH)
    for i in range(LAYERS):
        p = f"{a}.conformer.{i}"
        tensors |= norm(f"{p}.norm", WIDTH)
        for part in ("pre_attn_norm", "post_norm"):
            tensors |= norm(f"{p}.attention.{part}", WIDTH)
        for part in ("q_proj", "k_proj", "v_proj", "relative_position_embedding.pos_proj"):
            tensors |= linear(f"{p}.attention.attn.{part}", WIDTH, WIDTH)
        tensors |= {f"{p}.attention.attn.per_dim_scale": (16,)} | linear(f"{p}.attention.post", WIDTH, WIDTH)
        for part in ("ffw_layer_start", "ffw_layer_end"):
            tensors |= norm(f"{p}.{part}.pre_layer_norm", WIDTH) | norm(f"{p}.{part}.post_layer_norm", WIDTH)
            tensors |= linear(f"{p}.{part}.ffw_layer_1", FF, WIDTH) | linear(f"{p}.{part}.ffw_layer_2", WIDTH, FF)
        tensors |= norm(f"{p}.lconv1d.pre_layer_norm", WIDTH) | norm(f"{p}.lconv1d.conv_norm", WIDTH)
        tensors |= linear(f"{p}.lconv1d.linear_start", 2 * WIDTH, WIDTH) | linear(f"{p}.lconv1d.linear_end", WIDTH, WIDTH)
        tensors |= {f"{p}.lconv1d.depthwise_conv1d.weight": (WIDTH, 1, 5)}
    for p in ("model.embed_vision", "model.embed_audio"):
        tensors |= linear(f"{p}.embedding", 64, WIDTH) | linear(f"{p}.embedding_projection", TEXT, WIDTH)
        tensors |= norm(f"{p}.hard_embedding_norm", WIDTH) | norm(f"{p}.soft_embedding_norm", WIDTH)
    return made, tensors | of_text("model.language_")


@case
def mimo():
    codes, channels = (40, 24, 24), 3
    made = config("MiMoV2ForCausalLM")
    made["vision_config"] = vision(
        num_heads=4, num_key_value_heads=2, qk_channels=8, depth=LAYERS, spatial_merge_size=2, use_sink=True,
        fullatt_block_indexes=[0], vit_window_attn_types=[-1, 0, 1, 0], visual_token_window_size=128, image_size=SIDE,
    )
    made["audio_config"] = {"audio_channels": channels, "input_local_layers": 2, "group_size": 4}
    tensors = {"visual.patch_embed.proj.weight": (WIDTH, 3, 2, PATCH, PATCH)} | norm("visual.merger.ln_q", WIDTH)
    for i in range(LAYERS):
        p = f"visual.blocks.{i}"
        tensors |= norm(f"{p}.norm1", WIDTH) | norm(f"{p}.norm2", WIDTH) | {f"{p}.attn.sinks": (4,)}
        tensors |= both(f"{p}.attn.qkv", 64, WIDTH) | both(f"{p}.attn.proj", WIDTH, WIDTH)
        tensors |= both(f"{p}.mlp.gate_proj", FF, WIDTH) | both(f"{p}.mlp.up_proj", FF, WIDTH)
        tensors |= both(f"{p}.mlp.down_proj", WIDTH, FF)
    tensors |= both("visual.merger.mlp.0", 4 * WIDTH, 4 * WIDTH) | both("visual.merger.mlp.2", TEXT, 4 * WIDTH)
    tensors |= {f"speech_embeddings.{i}.weight": (48, WIDTH) for i in range(channels)}
    a = "audio_encoder"
    for i in range(2):
        p = f"{a}.input_local_transformer.layers.{i}"
        tensors |= norm(f"{p}.input_layernorm", WIDTH) | norm(f"{p}.post_attention_layernorm", WIDTH)
        for part in "qkv":
            tensors |= both(f"{p}.self_attn.{part}_proj", WIDTH, WIDTH)
        tensors |= linear(f"{p}.self_attn.o_proj", WIDTH, WIDTH) | linear(f"{p}.mlp.down_proj", WIDTH, FF)
        tensors |= linear(f"{p}.mlp.gate_proj", FF, WIDTH) | linear(f"{p}.mlp.up_proj", FF, WIDTH)
    tensors |= norm(f"{a}.input_local_transformer.norm", WIDTH)
    tensors |= linear(f"{a}.projection.mlp.0", 96, 4 * WIDTH) | linear(f"{a}.projection.mlp.2", TEXT, 96)
    hears = {"d_model": WIDTH, "encoder_ffn_dim": FF, "encoder_attention_heads": 2, "encoder_layers": LAYERS}
    hears |= {"n_mels": MELS, "hybrid_attention": True, "swa_per_block": 2, "encoder_attn_window_size": [128, 0]}
    e = "encoder"
    of_sound = both(f"{e}.conv1", WIDTH, MELS) | both(f"{e}.conv2", WIDTH, WIDTH) | norms(f"{e}.layer_norm")
    of_sound |= linear(f"{e}.down_sample_layer.0", WIDTH, WIDTH) | norms(f"{e}.down_sample_norm")
    for name, width in (("conv1", 3), ("conv2", 3), ("down_sample_layer.0", 2)):
        of_sound[f"{e}.{name}.weight"] += (width,)
    for i in range(LAYERS):
        p = f"{e}.layers.{i}"
        of_sound |= norms(f"{p}.self_attn_layer_norm") | norms(f"{p}.final_layer_norm")
        for part in "qv":
            of_sound |= both(f"{p}.self_attn.{part}_proj", WIDTH, WIDTH)
        of_sound |= linear(f"{p}.self_attn.k_proj", WIDTH, WIDTH) | both(f"{p}.self_attn.out_proj", WIDTH, WIDTH)
        of_sound |= both(f"{p}.fc1", FF, WIDTH) | both(f"{p}.fc2", WIDTH, FF)
    for i, size in enumerate(codes):
        p = f"{e}.quantizer.vq.layers.{i}._codebook"
        of_sound |= {f"{p}.embed": (size, WIDTH), f"{p}.embed_avg": (size, WIDTH)}
        of_sound |= {f"{p}.cluster_size": (size,), f"{p}.inited": (1,)}
    of_sound |= linear("decoder.layers.0.fc1", FF, WIDTH)
    return made, tensors | of_text(), {"audio_tokenizer": (hears, of_sound)}


def like_machines(*shape):
    """Numbers whose exponential the machine rounds as it must be."""
    random, found = np.random.default_rng(3), []
    try:
        import torch
    except ImportError:
        # Then there is no other converter to compare with.
        return random.normal(0, 0.5, shape).astype(np.float32)
    while len(found) < np.prod(shape):
        x = np.float32(random.normal(0, 0.5))
        if torch.exp(torch.tensor([x] * 8))[0].item() == np.float32(math.exp(x)):
            found.append(x)
    return np.array(found, np.float32).reshape(shape)


def decoder_of_codes(layers, wide=24, codes=32):
    d = "decoder"
    tensors = {}
    for part, count in (("first", 1), ("rest", 15)):
        p = f"{d}.quantizer.rvq_{part}"
        tensors |= {f"{p}.input_proj.weight": (16, wide, 1), f"{p}.output_proj.weight": (wide, 16, 1)}
        for i in range(count):
            q = f"{p}.vq.layers.{i}._codebook"
            used = np.abs(np.random.default_rng(i).normal(0, 3, codes)).astype(np.float32)
            used[3] = 0
            tensors |= {f"{q}.embedding_sum": (codes, 16), f"{q}.cluster_usage": used, f"{q}.initialized": (1,)}

    def convolution(name, out, inside, width):
        return {f"{name}.weight": (out, inside, width), f"{name}.bias": (out,)}

    def snake(name, width):
        return {f"{name}.alpha": like_machines(width), f"{name}.beta": like_machines(width)}

    tensors |= convolution(f"{d}.pre_conv.conv", 32, wide, 3)
    p = f"{d}.pre_transformer"
    tensors |= both(f"{p}.input_proj", WIDTH, 32) | both(f"{p}.output_proj", 32, WIDTH) | norm(f"{p}.norm", WIDTH)
    for i in range(layers):
        q = f"{p}.layers.{i}"
        tensors |= norm(f"{q}.input_layernorm", WIDTH) | norm(f"{q}.post_attention_layernorm", WIDTH)
        for part in "qkvo":
            tensors |= linear(f"{q}.self_attn.{part}_proj", WIDTH, WIDTH)
        tensors |= linear(f"{q}.mlp.gate_proj", FF, WIDTH) | linear(f"{q}.mlp.up_proj", FF, WIDTH)
        tensors |= linear(f"{q}.mlp.down_proj", WIDTH, FF)
        tensors |= {f"{q}.self_attn_layer_scale.scale": (WIDTH,), f"{q}.mlp_layer_scale.scale": (WIDTH,)}
    for i in range(2):
        q = f"{d}.upsample.{i}"
        tensors |= convolution(f"{q}.0.conv", 32, 32, 2) | convolution(f"{q}.1.dwconv.conv", 32, 1, 7)
        tensors |= norms(f"{q}.1.norm", 32) | both(f"{q}.1.pwconv1", 128, 32) | both(f"{q}.1.pwconv2", 32, 128)
        tensors |= {f"{q}.1.gamma": (32,)}
    tensors |= convolution(f"{d}.decoder.0.conv", 64, 32, 7)
    for i in range(1, 5):
        q, c = f"{d}.decoder.{i}.block", 64 >> i
        tensors |= snake(f"{q}.0", 2 * c) | convolution(f"{q}.1.conv", c, 2 * c, 4)
        tensors[f"{q}.1.conv.weight"] = (2 * c, c, 4)
        for unit in (2, 3, 4):
            r = f"{q}.{unit}"
            tensors |= snake(f"{r}.act1", c) | convolution(f"{r}.conv1.conv", c, c, 7)
            tensors |= snake(f"{r}.act2", c) | convolution(f"{r}.conv2.conv", c, c, 1)
    tensors |= snake(f"{d}.decoder.5", 4) | convolution(f"{d}.decoder.6.conv", 1, 4, 7)
    return tensors | linear("encoder.layers.0.fc1", FF, WIDTH)


@case
def qwen3_tts():
    made = {"architectures": ["Qwen3TTSForConditionalGeneration"], "speaker_encoder_config": {"enc_dim": TEXT}}
    predicts = {"hidden_size": WIDTH, "intermediate_size": FF, "num_hidden_layers": 2, "num_attention_heads": 4}
    predicts |= {"num_key_value_heads": 2, "rms_norm_eps": 1e-6}
    made["talker_config"] = {"hidden_size": TEXT, "code_predictor_config": predicts}
    s, c = "speaker_encoder", 32

    def convolution(name, out, inside, width):
        return {f"{name}.weight": (out, inside, width), f"{name}.bias": (out,)}

    tensors = convolution(f"{s}.blocks.0.conv", c, 128, 5)
    for i in (1, 2, 3):
        p = f"{s}.blocks.{i}"
        tensors |= convolution(f"{p}.tdnn1.conv", c, c, 1) | convolution(f"{p}.tdnn2.conv", c, c, 1)
        tensors |= convolution(f"{p}.se_block.conv1", 8, c, 1) | convolution(f"{p}.se_block.conv2", c, 8, 1)
        for j in range(7):
            tensors |= convolution(f"{p}.res2net_block.blocks.{j}.conv", 4, 4, 3)
    tensors |= convolution(f"{s}.mfa.conv", 3 * c, 3 * c, 1) | convolution(f"{s}.asp.tdnn.conv", 8, 9 * c, 1)
    tensors |= convolution(f"{s}.asp.conv", 3 * c, 8, 1) | convolution(f"{s}.fc", TEXT, 6 * c, 1)
    t = "talker.code_predictor"
    tensors |= {"talker.model.codec_embedding.weight": (96, TEXT)} | norm(f"{t}.model.norm", WIDTH)
    tensors |= both(f"{t}.small_to_mtp_projection", WIDTH, TEXT)
    for i in range(15):
        tensors |= {f"{t}.model.codec_embedding.{i}.weight": (64, TEXT), f"{t}.lm_head.{i}.weight": (64, WIDTH)}
    for i in range(2):
        p = f"{t}.model.layers.{i}"
        tensors |= norm(f"{p}.input_layernorm", WIDTH) | norm(f"{p}.post_attention_layernorm", WIDTH)
        for part, out in (("q", 64), ("k", 32), ("v", 32)):
            tensors |= linear(f"{p}.self_attn.{part}_proj", out, WIDTH)
        tensors |= linear(f"{p}.self_attn.o_proj", WIDTH, 64) | norm(f"{p}.self_attn.q_norm", 16)
        tensors |= norm(f"{p}.self_attn.k_norm", 16) | linear(f"{p}.mlp.gate_proj", FF, WIDTH)
        tensors |= linear(f"{p}.mlp.up_proj", FF, WIDTH) | linear(f"{p}.mlp.down_proj", WIDTH, FF)
    decodes = {"num_hidden_layers": 2, "upsampling_ratios": [2, 2], "upsample_rates": [8, 5, 4, 3]}
    folder = {"speech_tokenizer": ({"decoder_config": decodes}, decoder_of_codes(2))}
    return made, tensors | {"talker.model.layers.0.mlp.up_proj.weight": (FF, TEXT)}, folder


@case
def pocket_tts():
    return dict(NO_FILE), flow(voice=True)

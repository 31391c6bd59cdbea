"""Tiny checkpoints of decoders of speech, as converter.py's cases."""

import io

import numpy as np
from converter import FF, HEAD, HEADS, KV, LAYERS, VOCAB, WIDTH
from converter import attention, block, case, config, linear, norm


def nothing(folder):
    """What goes in are codes: there is no tokenizer."""


def convolution(name, out, inside, width):
    return {f"{name}.weight": (out, inside, width), f"{name}.bias": (out, 1)}


def column(name, width):
    return {f"{name}.weight": (width, 1), f"{name}.bias": (width, 1)}


@case
def wavtokenizer():
    codes, features, wide, bins, deep = 48, 24, 40, 34, 3
    made = {"architectures": ["WavTokenizerDec"], "model_type": "wavtokenizer_dec", "hidden_size": bins, "n_head": 1}
    made |= {"n_embd_features": features, "n_ff": FF, "vocab_size": codes, "layer_norm_epsilon": 1e-6, "n_layer": 6}
    made |= {"group_norm_epsilon": 1e-6, "group_norm_groups": 4, "max_position_embeddings": 8192}
    made |= {"posnet": {"n_embd": wide, "n_layer": 6}, "convnext": {"n_embd": wide, "n_layer": deep}}
    tensors = {"backbone.embedding.weight": (codes, features)} | convolution("backbone.embed", wide, features, 7)
    for i in range(6):
        p = f"backbone.posnet.{i}"
        if i == 2:
            tensors |= column(f"{p}.norm", wide)
            for part in ("q", "k", "v", "proj_out"):
                tensors |= convolution(f"{p}.{part}", wide, wide, 1)
        elif i == 5:
            tensors |= column(f"{p}.norm", wide)
        else:
            for part in (1, 2):
                tensors |= column(f"{p}.norm{part}", wide) | convolution(f"{p}.conv{part}", wide, wide, 3)
    for i in range(deep):
        p = f"backbone.convnext.{i}"
        tensors |= convolution(f"{p}.dwconv", wide, 1, 7) | norm(f"{p}.norm", wide, True)
        tensors |= linear(f"{p}.pwconv1", FF, wide, True) | linear(f"{p}.pwconv2", wide, FF, True)
        tensors |= {f"{p}.gamma.weight": (wide,)}
    for part in ("norm", "final_layer_norm"):
        tensors |= norm(f"backbone.{part}", wide, True)
    p = "feature_extractor.encodec.quantizer.vq.layers.0._codebook"
    tensors |= {f"{p}.{part}": (codes,) for part in ("cluster_size", "inited")} | {f"{p}.embed_avg": (codes, features)}
    return made, tensors | linear("head.out", bins, wide, True), nothing, None


@case
def lfm25_tokenizer():
    kinds = ["conv", "conv", "sliding_attention"]
    made = config("Lfm25AudioTokenizer", "lfm25_audio_tokenizer", norm_eps=1e-5, conv_L_cache=3, rope_theta=1e6)
    made |= {"layer_types": kinds, "num_hidden_layers": len(kinds), "sliding_window": 30, "output_size": 82}
    made |= {"block_auto_adjust_ff_dim": False, "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 256}
    tensors = {"lfm.embed_tokens.weight": (VOCAB, WIDTH)} | norm("lfm.embedding_norm") | linear("lin", 82, WIDTH, True)
    for i, kind in enumerate(kinds):
        p = f"lfm.layers.{i}"
        tensors |= norm(f"{p}.operator_norm") | norm(f"{p}.ffn_norm")
        if kind == "conv":
            tensors |= {f"{p}.conv.conv.weight": (WIDTH, 1, 3)} | linear(f"{p}.conv.in_proj", 3 * WIDTH, WIDTH)
            tensors |= linear(f"{p}.conv.out_proj", WIDTH, WIDTH)
        else:
            tensors |= attention(f"{p}.self_attn", out="out_proj")
            tensors |= {f"{p}.self_attn.{x}_layernorm.weight": (HEAD,) for x in "qk"}
        for part, shape in (("w1", (FF, WIDTH)), ("w2", (WIDTH, FF)), ("w3", (FF, WIDTH))):
            tensors |= linear(f"{p}.feed_forward.{part}", *shape)
    return made, tensors | {"emb.emb.weight": (8, WIDTH), "istft.window": (64,)}, nothing, None


def eighths(*shape):
    """Numbers of so few digits that sums of their products are exact."""
    return np.random.default_rng(5).integers(-8, 9, shape) / 8


CODES = 3072


def qwen3_tts(activation):
    made = {"architectures": ["Qwen3TTSForConditionalGeneration"], "model_type": "qwen3_tts_remote"}
    talker = config("", "qwen3_tts_talker", vocab_size=CODES, text_vocab_size=VOCAB, text_hidden_size=48, head_dim=HEAD)
    del talker["architectures"], talker["bos_token_id"], talker["eos_token_id"]
    talker |= {"rms_norm_eps": 1e-6, "rope_theta": 1e6, "hidden_act": activation, "codec_bos_id": 2149}
    talker |= {"codec_eos_token_id": 2150, "codec_think_id": 2154, "codec_language_id": {"chinese": 2055, "english": 2050}}
    talker |= {"spk_id": {}, "pad_token_id": None, "num_code_groups": 16}
    talker["rope_scaling"] = {"interleaved": True, "mrope_section": [4, 2, 2], "rope_type": "default", "type": "default"}
    made["talker_config"] = talker
    tensors = {"model.codec_embedding.weight": (CODES, WIDTH), "codec_head.weight": (CODES, WIDTH)}
    for i in range(LAYERS):
        p = f"model.layers.{i}"
        tensors |= block(p) | {f"{p}.self_attn.{x}_norm.weight": (HEAD,) for x in "qk"}
    tensors |= norm("model.norm") | {"model.text_embedding.weight": eighths(VOCAB, 48)}
    for i, out in ((1, 48), (2, WIDTH)):
        p = f"text_projection.linear_fc{i}"
        tensors |= {f"{p}.weight": eighths(out, 48), f"{p}.bias": eighths(out)}
    tensors |= {"code_predictor.model.norm.weight": (32,)}
    tensors = {f"talker.{name}": shape for name, shape in tensors.items()}
    return made, tensors | {"speaker_encoder.fc.weight": (WIDTH, 8, 1)}, "qwen2", "qwen2"


@case
def qwen3_tts_exact():
    return qwen3_tts("relu")


@case
def qwen3_tts_silu():
    return qwen3_tts("silu")


PIECES = 100


def pieces(folder):
    import sentencepiece

    made = io.BytesIO()
    words = [f"{'aeiou'[i % 5]}{'bcdfgh'[i % 6]}{'klmnpr'[i % 7 % 6]} s{i * 37 % 1000}" for i in range(400)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(words), model_writer=made, vocab_size=PIECES, model_type="unigram", minloglevel=2
    )
    (folder / "tokenizer.model").write_bytes(made.getvalue())


def flow(voice):
    """Of which half belongs to the model of texts."""
    wide, latent = 128, 16
    tensors = {"flow_lm.conditioner.embed.weight": (PIECES + 1, wide), "flow_lm.bos_emb": eighths(latent)}
    tensors |= {"flow_lm.input_linear.weight": eighths(wide, latent), "flow_lm.emb_mean": (latent,)}
    tensors |= {"flow_lm.emb_std": (latent,), "flow_lm.speaker_proj_weight": (wide, 64)}
    tensors |= norm("flow_lm.out_norm", wide, True) | linear("flow_lm.out_eos", 1, wide, True)
    if voice:
        tensors["flow_lm.bos_before_voice"] = (1, 1, wide)
    for i in range(3):
        p = f"flow_lm.transformer.layers.{i}"
        tensors |= norm(f"{p}.norm1", wide, True) | norm(f"{p}.norm2", wide, True)
        tensors |= linear(f"{p}.self_attn.in_proj", 3 * wide, wide) | linear(f"{p}.self_attn.out_proj", wide, wide)
        tensors |= linear(f"{p}.linear1", 4 * wide, wide) | linear(f"{p}.linear2", wide, 4 * wide)
    p = "flow_lm.flow_net"
    tensors |= linear(f"{p}.input_proj", 48, latent, True) | linear(f"{p}.cond_embed", 48, wide, True)
    tensors |= linear(f"{p}.final_layer.linear", latent, 48, True)
    tensors |= linear(f"{p}.final_layer.adaLN_modulation.1", 96, 48, True)
    for i in range(2):
        q = f"{p}.time_embed.{i}"
        tensors |= linear(f"{q}.mlp.0", 48, 32, True) | linear(f"{q}.mlp.2", 48, 48, True)
        tensors |= {f"{q}.freqs": (16,), f"{q}.mlp.3.alpha": (48,)}
        q = f"{p}.res_blocks.{i}"
        tensors |= norm(f"{q}.in_ln", 48, True) | linear(f"{q}.mlp.0", 48, 48, True) | linear(f"{q}.mlp.2", 48, 48, True)
        tensors |= linear(f"{q}.adaLN_modulation.1", 144, 48, True)
    m = 64
    for half in ("encoder", "decoder"):
        for i in range(2):
            q = f"mimi.{half}_transformer.transformer.layers.{i}"
            tensors |= norm(f"{q}.norm1", m, True) | norm(f"{q}.norm2", m, True)
            tensors |= linear(f"{q}.self_attn.in_proj", 3 * m, m) | linear(f"{q}.self_attn.out_proj", m, m)
            tensors |= linear(f"{q}.linear1", 96, m) | linear(f"{q}.linear2", m, 96)
            tensors |= {f"{q}.layer_scale_1.scale": (m,), f"{q}.layer_scale_2.scale": (m,)}
        q = f"mimi.{half}.model"
        ends = {0: (8, 1, 7), 11: (m, 64, 3)} if half == "encoder" else {0: (64, m, 7), 11: (1, 8, 3)}
        for i, shape in ends.items():
            tensors |= {f"{q}.{i}.conv.weight": shape, f"{q}.{i}.conv.bias": (shape[0],)}
        for stage in range(3):
            c = 8 << stage
            residual, scale = (1, 3) if half == "encoder" else (3, 2)
            kind = "conv" if half == "encoder" else "convtr"
            tensors |= {f"{q}.{scale + 3 * stage}.{kind}.weight": (2 * c, c, 4), f"{q}.{scale + 3 * stage}.{kind}.bias": (c,)}
            for inner, width in ((1, 3), (3, 1)):
                r = f"{q}.{residual + 3 * stage}.block.{inner}.conv"
                tensors |= {f"{r}.weight": (c, c, width), f"{r}.bias": (c,)}
    tensors |= {"mimi.downsample.conv.conv.weight": (m, m, 4), "mimi.upsample.convtr.convtr.weight": (m, 1, 4)}
    return tensors | {"mimi.quantizer.output_proj.weight": (m, latent, 1)}


NO_FILE = {"architectures": ["PocketTTSModel"], "model_type": "pockettts", "has_no_file": True}


@case
def pocket_tts():
    return dict(NO_FILE), flow(voice=False), pieces, None


@case
def pocket_tts_with_voice():
    return dict(NO_FILE), flow(voice=True), pieces, None

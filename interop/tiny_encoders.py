"""Tiny checkpoints with random weights, of classes with an encoder of images or sound.

Used by coverage.py. Where `transformers` has the class it makes them, as `tiny_checkpoints.py` has it; `CASES`
are the others, by the names and shapes that llama.cpp's converter asks for. `PREPARATION` is what stands beside
them of how images are prepared.
"""

import json

import tiny_checkpoints
from converter import linear, norm, write_checkpoint

TEXT, WIDTH, FF, PATCH, SIDE, MELS = 64, 32, 48, 14, 28, 16
# llama.cpp's converter knows as many layers of a projector as the encoder has.
LAYERS = 4

PREPARATION = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "min_pixels": 784,
    "max_pixels": 50176,
    "image_seq_length": 4,
    "patch_size": PATCH,
    "size": {"longest_edge": 56, "shortest_edge": 28, "height": 28, "width": 28},
}
# What a class needs besides, or otherwise, in the configuration that `transformers` gives it.
GEMMA4 = {
    "model_type": "gemma4_vision", "hidden_size": WIDTH, "intermediate_size": FF, "num_hidden_layers": LAYERS,
    "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16, "position_embedding_size": 32,
    "use_clipped_linears": True, "standardize": True,
}
GEMMA4_SOUND = {
    "model_type": "gemma4_audio", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": 2,
    "subsampling_conv_channels": [8, 4], "output_proj_dims": 48,
}
FIELDS = {
    "Gemma4ForConditionalGeneration": {"vision_config": GEMMA4, "audio_config": GEMMA4_SOUND},
    "Gemma4UnifiedForConditionalGeneration": {
        "vision_config": {
            "model_type": "gemma4_unified_vision", "mm_embed_dim": 64, "mm_posemb_size": 8, "output_proj_dims": 64,
            "patch_size": 2, "pooling_kernel_size": 3,
        },
        "audio_config": {"model_type": "gemma4_unified_audio", "audio_embed_dim": 40},
    },
    "Glm5NextForConditionalGeneration": {"text_config": {"num_key_value_heads": 4, "index_topk": 16, "qk_rope_head_dim": 0}},
    "Granite4VisionForConditionalGeneration": {
        "downsample_rate": "4/8", "deepstack_layer_map": [[-2, 0], [1, 1]], "spatial_target_layers": [0, 1, 0, 1],
        "vision_config": {
            "model_type": "siglip_vision_model", "image_size": 224, "patch_size": PATCH, "hidden_size": 64,
            "num_hidden_layers": 8,
        },
        "qformer_config": {"model_type": "blip_2_qformer", "num_hidden_layers": 1},
    },
    "Qwen3VLForConditionalGeneration": {"vision_config": {"deepstack_visual_indexes": [1, 3]}},
    "Qwen3VLMoeForConditionalGeneration": {"vision_config": {"deepstack_visual_indexes": [1, 3]}},
    "LlavaForConditionalGeneration": {
        "vision_config": {"model_type": "pixtral", "hidden_act": "silu", "head_dim": 16, "intermediate_size": FF},
    },
}
# Tokens that the converter of a class looks for.
TOKENS = {
    "LlavaForConditionalGeneration": ["[IMG_BREAK]"],
    "Mistral3ForConditionalGeneration": ["[IMG_BREAK]"],
}
# How names of tensors begin in published checkpoints, where `transformers` writes them otherwise; `None` where
# those have none.
PUBLISHED = {
    "Granite4VisionForConditionalGeneration": {"model.vision_tower.head.": None},
    "Gemma3ForConditionalGeneration": {"vision_tower.": "vision_tower.vision_model."},
    "Lfm2VlForConditionalGeneration": {
        "model.vision_tower.head.": None, "model.vision_tower.": "model.vision_tower.vision_model.",
    },
}
CASES = {}


def case(function):
    made = function()[0]
    own = made.get("vision_config", {}).get("architectures") or made["architectures"]
    CASES[own[0]] = function
    return function


def write(name, zoo, work):
    """Writes the checkpoints of a class; yields their folders."""
    if name in CASES:
        folder = work / name
        made, tensors, *further = CASES[name]()
        write_checkpoint(folder, {"model_type": "remote", **made}, tensors, zoo / "qwen2", False)
        for place, (fields, inside) in (further[0] if further else {}).items():
            write_checkpoint(folder / place, {"model_type": "remote", **fields}, inside, lambda _: None, "F32")
        folders = [folder]
    else:
        folders = list(made_by_transformers(name, zoo, work))
    for folder in folders:
        (folder / "preprocessor_config.json").write_text(json.dumps(PREPARATION))
        yield folder


def made_by_transformers(name, zoo, work):
    tiny_checkpoints.ENCODER |= dict.fromkeys(("num_hidden_layers", "depth", "encoder_layers", "num_layers"), LAYERS)
    for table, own in ((tiny_checkpoints.FIELDS, FIELDS), (tiny_checkpoints.TOKENS, TOKENS)):
        if name in own:
            table[name] = {**table.get(name, {}), **own[name]} if isinstance(own[name], dict) else own[name]
    folders = tiny_checkpoints.write(name, name, work, zoo)
    # Those that leave out what the text model does not need are the same here.
    for folder in list(folders)[:1]:
        rename(folder / "model.safetensors", PUBLISHED.get(name, {}))
        yield folder


def rename(path, beginnings):
    from safetensors.torch import load_file, save_file

    def renamed(name):
        for written, published in beginnings.items():
            if name.startswith(written):
                return published and name.replace(written, published, 1)
        return name

    if beginnings:
        tensors = {renamed(name): tensor for name, tensor in load_file(path).items()}
        save_file({name: tensor for name, tensor in tensors.items() if name}, path)


# ---- by hand


def config(name, **fields):
    made = {"architectures": [name], "hidden_size": TEXT, "num_hidden_layers": 2, "vocab_size": 640}
    return made | fields


def vision(**fields):
    made = {"hidden_size": WIDTH, "intermediate_size": FF, "num_hidden_layers": LAYERS, "num_attention_heads": 2}
    return made | {"image_size": SIDE, "patch_size": PATCH} | fields


def both(name, *shape):
    return linear(name, *shape, True)


def norms(name, width=WIDTH):
    return norm(name, width) | {f"{name}.bias": (width,)}


def clip(p, patches=4):
    """The encoder of CLIP and SigLIP as `transformers` has it."""
    tensors = {f"{p}.embeddings.patch_embedding.weight": (WIDTH, 3, PATCH, PATCH)}
    tensors |= {f"{p}.embeddings.patch_embedding.bias": (WIDTH,)}
    tensors |= {f"{p}.embeddings.position_embedding.weight": (patches, WIDTH)}
    for i in range(LAYERS):
        q = f"{p}.encoder.layers.{i}"
        tensors |= norms(f"{q}.layer_norm1") | norms(f"{q}.layer_norm2")
        for x in ("q", "k", "v", "out"):
            tensors |= both(f"{q}.self_attn.{x}_proj", WIDTH, WIDTH)
        tensors |= both(f"{q}.mlp.fc1", FF, WIDTH) | both(f"{q}.mlp.fc2", WIDTH, FF)
    return tensors | norms(f"{p}.post_layernorm")


def whisper(p, width=WIDTH):
    tensors = both(f"{p}.conv1", width, MELS) | both(f"{p}.conv2", width, width)
    for i in (1, 2):
        tensors[f"{p}.conv{i}.weight"] += (3,)
    tensors |= {f"{p}.embed_positions.weight": (30, width)} | norms(f"{p}.layer_norm", width)
    for i in range(LAYERS):
        q = f"{p}.layers.{i}"
        tensors |= norms(f"{q}.self_attn_layer_norm", width) | norms(f"{q}.final_layer_norm", width)
        for x in ("q", "v", "out"):
            tensors |= both(f"{q}.self_attn.{x}_proj", width, width)
        tensors |= linear(f"{q}.self_attn.k_proj", width, width)
        tensors |= both(f"{q}.fc1", FF, width) | both(f"{q}.fc2", width, FF)
    return tensors


def of_whisper(**fields):
    made = {"d_model": WIDTH, "encoder_ffn_dim": FF, "encoder_attention_heads": 2, "encoder_layers": LAYERS}
    return made | {"num_mel_bins": MELS, "model_type": "whisper"} | fields


def of_text(prefix=""):
    """A tensor of the text model, which is left out."""
    return {f"{prefix}model.layers.0.self_attn.q_proj.weight": (TEXT, TEXT)}


@case
def internvl():
    made = config("InternVLChatModel", downsample_ratio=0.5, min_dynamic_patch=1, max_dynamic_patch=12)
    made["llm_config"] = {"hidden_size": TEXT, "architectures": ["Qwen2ForCausalLM"]}
    made["vision_config"] = vision(architectures=["InternVisionModel"], hidden_act="gelu", layer_norm_eps=1e-6)
    p = "vision_model"
    tensors = {f"{p}.embeddings.class_embedding": (1, 1, WIDTH), f"{p}.embeddings.position_embedding": (1, 5, WIDTH)}
    tensors |= {f"{p}.embeddings.patch_embedding.weight": (WIDTH, 3, PATCH, PATCH)}
    tensors |= {f"{p}.embeddings.patch_embedding.bias": (WIDTH,)}
    for i in range(LAYERS):
        q = f"{p}.encoder.layers.{i}"
        tensors |= norms(f"{q}.norm1") | norms(f"{q}.norm2") | {f"{q}.ls1": (WIDTH,), f"{q}.ls2": (WIDTH,)}
        tensors |= both(f"{q}.attn.qkv", 3 * WIDTH, WIDTH) | both(f"{q}.attn.proj", WIDTH, WIDTH)
        tensors |= norm(f"{q}.attn.q_norm", WIDTH) | norm(f"{q}.attn.k_norm", WIDTH)
        tensors |= both(f"{q}.mlp.fc1", FF, WIDTH) | both(f"{q}.mlp.fc2", WIDTH, FF)
    tensors |= norms("mlp1.0", 4 * WIDTH) | both("mlp1.1", TEXT, 4 * WIDTH) | both("mlp1.3", TEXT, TEXT)
    return made, tensors | of_text("language_model.")


def moon_vit(p):
    tensors = both(f"{p}.patch_embed.proj", WIDTH, 3) | {f"{p}.patch_embed.pos_emb.weight": (4, 4, WIDTH)}
    tensors[f"{p}.patch_embed.proj.weight"] += (PATCH, PATCH)
    for i in range(LAYERS):
        q = f"{p}.encoder.blocks.{i}"
        tensors |= norms(f"{q}.norm0") | norms(f"{q}.norm1")
        tensors |= both(f"{q}.wqkv", 3 * WIDTH, WIDTH) | both(f"{q}.wo", WIDTH, WIDTH)
        tensors |= both(f"{q}.mlp.fc0", FF, WIDTH) | both(f"{q}.mlp.fc1", WIDTH, FF)
    return tensors | norms(f"{p}.encoder.final_layernorm")


@case
def kimi_vl():
    made = config("KimiVLForConditionalGeneration", text_config={"hidden_size": TEXT}, vision_config=vision())
    p = "multi_modal_projector"
    tensors = moon_vit("vision_tower") | norms(f"{p}.pre_norm")
    tensors |= both(f"{p}.linear_1", TEXT, 4 * WIDTH) | both(f"{p}.linear_2", TEXT, TEXT)
    return made, tensors | of_text("language_model.")


def kimi_k25(name, projector):
    fields = {f"vt_{name}": value for name, value in vision().items() if name not in ("image_size", "patch_size")}
    fields |= {"patch_size": PATCH, "init_pos_emb_height": 4, "init_pos_emb_width": 4, "num_attention_heads": 2}
    fields |= {"merge_kernel_size": [2, 2], "projector_hidden_act": "gelu", "projector_ln_eps": 1e-5}
    made = config(name, text_config={"hidden_size": TEXT}, vision_config=fields)
    tensors = moon_vit("vision_tower") | norms("mm_projector.pre_norm")
    for place, shape in zip(projector, ((TEXT, 4 * WIDTH), (TEXT, TEXT))):
        tensors |= both(f"mm_projector.{place}", *shape)
    return made, tensors | of_text("language_model.")


@case
def kimi_k2_5():
    return kimi_k25("KimiK25ForConditionalGeneration", ("proj.0", "proj.2"))


@case
def glm5v():
    return kimi_k25("Glm5vForConditionalGeneration", ("linear_1", "linear_2"))


@case
def sarashina2():
    made = config("Sarashina2VisionForCausalLM", rms_norm_eps=1e-6, text_config={"hidden_size": TEXT})
    made["vision_config"] = {"depth": LAYERS, "embed_dim": WIDTH, "hidden_size": TEXT, "num_heads": 2, "patch_size": PATCH}
    tensors = {"visual.patch_embed.proj.weight": (WIDTH, 3, 2, PATCH, PATCH)}
    for i in range(LAYERS):
        p = f"visual.blocks.{i}"
        tensors |= norms(f"{p}.norm1") | norms(f"{p}.norm2")
        tensors |= both(f"{p}.attn.qkv", 3 * WIDTH, WIDTH) | both(f"{p}.attn.proj", WIDTH, WIDTH)
        tensors |= both(f"{p}.mlp.fc1", 4 * WIDTH, WIDTH) | both(f"{p}.mlp.fc2", WIDTH, 4 * WIDTH)
    tensors |= norms("visual.merger.ln_q") | both("visual.merger.mlp.0", 4 * WIDTH, 4 * WIDTH)
    return made, tensors | both("visual.merger.mlp.2", TEXT, 4 * WIDTH) | of_text("llm.")


@case
def dots_ocr():
    made = config("DotsOCRForCausalLM")
    made["vision_config"] = vision(rms_norm_eps=1e-5, spatial_merge_size=2, embed_dim=WIDTH)
    p = "vision_tower"
    tensors = both(f"{p}.patch_embed.patchifier.proj", WIDTH, 3) | norm(f"{p}.patch_embed.patchifier.norm", WIDTH)
    tensors[f"{p}.patch_embed.patchifier.proj.weight"] += (PATCH, PATCH)
    for i in range(LAYERS):
        q = f"{p}.blocks.{i}"
        tensors |= norm(f"{q}.norm1", WIDTH) | norm(f"{q}.norm2", WIDTH)
        tensors |= linear(f"{q}.attn.qkv", 3 * WIDTH, WIDTH) | linear(f"{q}.attn.proj", WIDTH, WIDTH)
        tensors |= linear(f"{q}.mlp.fc1", FF, WIDTH) | linear(f"{q}.mlp.fc2", WIDTH, FF)
        tensors |= linear(f"{q}.mlp.fc3", FF, WIDTH)
    tensors |= norm(f"{p}.post_trunk_norm", WIDTH) | norms(f"{p}.merger.ln_q")
    tensors |= both(f"{p}.merger.mlp.0", 4 * WIDTH, 4 * WIDTH) | both(f"{p}.merger.mlp.2", TEXT, 4 * WIDTH)
    return made, tensors | of_text()


@case
def cogvlm():
    made = config("CogVLMForCausalLM")
    made["vision_config"] = vision(num_heads=2, layer_norm_eps=1e-6)
    p = "model.vision"
    tensors = {f"{p}.boi": (1, 1, TEXT), f"{p}.eoi": (1, 1, TEXT)}
    tensors |= {f"{p}.patch_embedding.cls_embedding": (1, WIDTH), f"{p}.patch_embedding.position_embedding.weight": (5, WIDTH)}
    tensors |= both(f"{p}.patch_embedding.proj", WIDTH, 3)
    tensors[f"{p}.patch_embedding.proj.weight"] += (PATCH, PATCH)
    for i in range(LAYERS):
        q = f"{p}.transformer.layers.{i}"
        tensors |= norms(f"{q}.input_layernorm") | norms(f"{q}.post_attention_layernorm")
        tensors |= both(f"{q}.attention.query_key_value", 3 * WIDTH, WIDTH) | both(f"{q}.attention.dense", WIDTH, WIDTH)
        tensors |= both(f"{q}.mlp.fc1", FF, WIDTH) | both(f"{q}.mlp.fc2", WIDTH, FF)
    q = f"{p}.linear_proj"
    tensors |= linear(f"{q}.linear_proj", TEXT, WIDTH) | norms(f"{q}.norm1", TEXT)
    tensors |= linear(f"{q}.gate_proj", FF, TEXT) | linear(f"{q}.dense_h_to_4h", FF, TEXT)
    return made, tensors | linear(f"{q}.dense_4h_to_h", TEXT, FF) | of_text()


@case
def ultravox():
    made = config("UltravoxModel", stack_factor=8, text_config={"hidden_size": TEXT}, audio_config=of_whisper())
    p = "multi_modal_projector"
    tensors = whisper("audio_tower") | norm(f"{p}.ln_pre", 8 * WIDTH) | norm(f"{p}.ln_mid", FF)
    return made, tensors | linear(f"{p}.linear_1", 2 * FF, 8 * WIDTH) | linear(f"{p}.linear_2", TEXT, FF)


@case
def glm_asr():
    made = config("GlmasrModel", merge_factor=4, lm_config={"hidden_size": TEXT}, whisper_config=of_whisper())
    p = "audio_encoder"
    tensors = whisper(f"{p}.whisper") | norms(f"{p}.layer_norm") | {f"{p}.audio_bos_eos_token.weight": (2, TEXT)}
    tensors |= both(f"{p}.adapting.0", FF, 4 * WIDTH) | both(f"{p}.adapting.2", TEXT, FF)
    return made, tensors | of_text()


@case
def meralion():
    made = config("MERaLiON2ForConditionalGeneration", text_config={"hidden_size": TEXT}, speech_config=of_whisper())
    made["speech_mlp_scale_factor"] = 5
    p = "speech_audio_adapter"
    tensors = whisper("speech_encoder") | norms("ln_speech") | both(f"{p}.mlp_adapter.0", FF, 5 * WIDTH)
    for x, shape in (("gate", (FF, FF)), ("pool", (FF, FF)), ("out", (TEXT, FF))):
        tensors |= both(f"{p}.{x}_proj", *shape)
    return made, tensors | of_text("text_decoder.")


@case
def light_on_ocr():
    made = config("LightOnOCRForConditionalGeneration", text_config={"hidden_size": TEXT}, spatial_merge_size=2)
    made["vision_config"] = vision(model_type="pixtral", hidden_act="silu", head_dim=16)
    p = "model.vision_encoder"
    tensors = {f"{p}.patch_conv.weight": (WIDTH, 3, PATCH, PATCH)} | norm(f"{p}.ln_pre", WIDTH)
    for i in range(LAYERS):
        q = f"{p}.transformer.layers.{i}"
        tensors |= norm(f"{q}.attention_norm", WIDTH) | norm(f"{q}.ffn_norm", WIDTH)
        for x in "qkvo":
            tensors |= linear(f"{q}.attention.{x}_proj", WIDTH, WIDTH)
        tensors |= linear(f"{q}.feed_forward.gate_proj", FF, WIDTH) | linear(f"{q}.feed_forward.up_proj", FF, WIDTH)
        tensors |= linear(f"{q}.feed_forward.down_proj", WIDTH, FF)
    q = "model.vision_projection"
    tensors |= norm(f"{q}.norm", WIDTH) | linear(f"{q}.patch_merger.merging_layer", WIDTH, 4 * WIDTH)
    return made, tensors | linear(f"{q}.linear_1", TEXT, WIDTH) | linear(f"{q}.linear_2", TEXT, TEXT) | of_text("language_model.")


@case
def youtu():
    made = config("YoutuVLForConditionalGeneration")
    made["vision_config"] = vision(hidden_act="gelu_pytorch_tanh", window_size=112, fullatt_block_indexes=[1])
    tensors = clip("siglip2.vision_model") | norms("merger.ln_q")
    del tensors["siglip2.vision_model.embeddings.position_embedding.weight"]
    tensors |= both("merger.mlp.0", 4 * WIDTH, 4 * WIDTH) | both("merger.mlp.2", TEXT, 4 * WIDTH)
    return made, tensors | of_text()


def sam():
    p = "model.sam_model"
    tensors = {f"{p}.pos_embed": (1, 4, 4, WIDTH), f"{p}.patch_embed.proj.weight": (WIDTH, 3, 16, 16)}
    tensors |= {f"{p}.patch_embed.proj.bias": (WIDTH,)}
    for i in range(LAYERS):
        q = f"{p}.blocks.{i}"
        tensors |= norms(f"{q}.norm1") | norms(f"{q}.norm2")
        tensors |= {f"{q}.attn.rel_pos_h": (7, 16), f"{q}.attn.rel_pos_w": (7, 16)}
        tensors |= both(f"{q}.attn.qkv", 3 * WIDTH, WIDTH) | both(f"{q}.attn.proj", WIDTH, WIDTH)
        tensors |= both(f"{q}.mlp.lin1", FF, WIDTH) | both(f"{q}.mlp.lin2", WIDTH, FF)
    tensors |= {f"{p}.neck.0.weight": (WIDTH, WIDTH, 1, 1), f"{p}.neck.2.weight": (WIDTH, WIDTH, 3, 3)}
    tensors |= norms(f"{p}.neck.1") | norms(f"{p}.neck.3")
    tensors |= {f"{p}.net_2.weight": (WIDTH, WIDTH, 3, 3), f"{p}.net_3.weight": (WIDTH, WIDTH, 3, 3)}
    return tensors | both("model.projector.layers", TEXT, WIDTH) | {"model.view_seperator": (TEXT,)}


def deepseek_ocr_of(name):
    made = config(name, language_config={"hidden_size": TEXT})
    widths = {"clip-l-14-224": {"heads": 2, "image_size": 224, "layers": LAYERS, "patch_size": PATCH, "width": WIDTH}}
    widths |= {"sam_vit_b": {"heads": 2, "layers": LAYERS, "width": WIDTH, "global_attn_indexes": [1]}}
    made["vision_config"] = {"image_size": 1024, "mlp_ratio": 3.7, "width": widths}
    p = "model.vision_model"
    tensors = sam() | {"model.image_newline": (TEXT,), f"{p}.embeddings.class_embedding": (WIDTH,)}
    tensors |= {f"{p}.embeddings.patch_embedding.weight": (WIDTH, 3, PATCH, PATCH)}
    tensors |= {f"{p}.embeddings.position_embedding.weight": (5, WIDTH)} | norms(f"{p}.pre_layrnorm")
    for i in range(LAYERS):
        q = f"{p}.transformer.layers.{i}"
        tensors |= norms(f"{q}.layer_norm1") | norms(f"{q}.layer_norm2")
        tensors |= both(f"{q}.self_attn.qkv_proj", 3 * WIDTH, WIDTH) | both(f"{q}.self_attn.out_proj", WIDTH, WIDTH)
        tensors |= both(f"{q}.mlp.fc1", FF, WIDTH) | both(f"{q}.mlp.fc2", WIDTH, FF)
    return made, tensors | of_text()


@case
def deepseek_ocr():
    return deepseek_ocr_of("DeepseekOCRForCausalLM")


@case
def unlimited_ocr():
    return deepseek_ocr_of("UnlimitedOCRForCausalLM")


@case
def deepseek_ocr_2():
    made = config("DeepseekOCR2ForCausalLM", language_config={"hidden_size": TEXT})
    widths = {"qwen2-0-5b": {"dim": WIDTH}, "sam_vit_b": {"heads": 2, "layers": LAYERS, "width": WIDTH}}
    made["vision_config"] = {"image_size": 1024, "mlp_ratio": 3.7, "width": widths}
    p = "model.qwen2_model"
    tensors = sam() | {f"{p}.query_768.weight": (4, WIDTH), f"{p}.query_1024.weight": (6, WIDTH)}
    p = f"{p}.model.model"
    tensors |= norm(f"{p}.norm", WIDTH)
    for i in range(LAYERS):
        q = f"{p}.layers.{i}"
        tensors |= norm(f"{q}.input_layernorm", WIDTH) | norm(f"{q}.post_attention_layernorm", WIDTH)
        for x in "qkv":
            tensors |= both(f"{q}.self_attn.{x}_proj", WIDTH, WIDTH)
        tensors |= linear(f"{q}.self_attn.o_proj", WIDTH, WIDTH) | linear(f"{q}.mlp.gate_proj", FF, WIDTH)
        tensors |= linear(f"{q}.mlp.up_proj", FF, WIDTH) | linear(f"{q}.mlp.down_proj", WIDTH, FF)
    return made, tensors | of_text()


@case
def deepseek4v():
    made = config("DeepseekV4ForCausalLM", vision_n_layers=LAYERS, vision_dim=WIDTH, vision_n_heads=2, vision_inter_dim=FF)
    made |= {"vision_patch_size": PATCH, "vision_downsample_ratio": 3, "vision_min_pixels": 4096}
    made |= {"vision_max_n_token": 384, "vision_max_wh_ratio": 8}
    tensors = both("vision.patch_embed.proj", WIDTH, 3 * PATCH * PATCH) | norm("vision.norm", WIDTH)
    for i in range(LAYERS):
        p = f"vision.blocks.{i}"
        tensors |= norm(f"{p}.norm1", WIDTH) | norm(f"{p}.norm2", WIDTH)
        tensors |= linear(f"{p}.attn.wqkv", 3 * WIDTH, WIDTH) | linear(f"{p}.attn.wo", WIDTH, WIDTH)
        tensors |= linear(f"{p}.mlp.w1", 2 * FF, WIDTH) | linear(f"{p}.mlp.w2", WIDTH, FF)
    tensors |= linear("aligner.w1", FF, 9 * WIDTH) | linear("aligner.w2", TEXT, FF)
    for x in ("newline", "start", "end", "pad"):
        tensors[f"image_{x}"] = (TEXT,)
    return made, tensors | {"layers.0.attn.wq_a.weight": (TEXT, TEXT)}


@case
def hunyuan_vl():
    made = config("HunYuanVLForConditionalGeneration", text_config={"hidden_size": TEXT})
    made["vision_config"] = vision(rms_norm_eps=1e-5, spatial_merge_size=2, max_image_size=56)
    del made["vision_config"]["image_size"]
    p = "vit"
    tensors = both(f"{p}.embeddings.patch_embedding", WIDTH, 3) | {f"{p}.embeddings.position_embedding.weight": (17, WIDTH)}
    tensors[f"{p}.embeddings.patch_embedding.weight"] += (PATCH, PATCH)
    for i in range(LAYERS):
        q = f"{p}.layers.{i}"
        tensors |= norms(f"{q}.input_layernorm") | norms(f"{q}.post_attention_layernorm")
        for x in "qkvo":
            tensors |= both(f"{q}.self_attn.{x}_proj", WIDTH, WIDTH)
        tensors |= both(f"{q}.mlp.dense_h_to_4h", FF, WIDTH) | both(f"{q}.mlp.dense_4h_to_h", WIDTH, FF)
    q = f"{p}.perceive"
    tensors |= norm(f"{q}.before_rms", WIDTH) | norm(f"{q}.after_rms", TEXT) | both(f"{q}.mlp", TEXT, FF)
    tensors |= both(f"{q}.proj.0", FF, WIDTH) | both(f"{q}.proj.2", FF, FF)
    tensors[f"{q}.proj.0.weight"] += (2, 2)
    tensors[f"{q}.proj.2.weight"] += (1, 1)
    for x in ("begin", "end", "newline", "sep"):
        tensors[f"{q}.image_{x}"] = (TEXT,)
    return made, tensors | of_text()


@case
def paddle_ocr():
    made = config("PaddleOCRVLForConditionalGeneration", text_config={"hidden_size": TEXT})
    made["vision_config"] = vision(architectures=["PaddleOCRVisionModel"], spatial_merge_size=2)
    tensors = clip("visual.vision_model") | norms("mlp_AR.pre_norm")
    tensors |= {"visual.vision_model.embeddings.packing_position_embedding.weight": (8, WIDTH)}
    tensors |= both("mlp_AR.linear_1", 4 * WIDTH, 4 * WIDTH) | both("mlp_AR.linear_2", TEXT, 4 * WIDTH)
    return made, tensors | of_text()


@case
def phi4():
    made = config("Phi4ForCausalLMV", min_num_patches=16, max_num_patches=64)
    made["vision_config"] = vision(layer_norm_eps=1e-6, num_hidden_layers=LAYERS + 1)
    p = "model.vision_tower.vision_tower.vision_model"
    tensors = clip(p) | {f"{p}.embeddings.patch_embedding.weight": (WIDTH, PATCH * PATCH * 3)}
    last = f"{p}.encoder.layers.{LAYERS}.mlp.fc1"
    tensors |= both(last, FF, WIDTH) | both("model.mm_projector.0", TEXT, WIDTH) | both("model.mm_projector.2", TEXT, TEXT)
    return made, tensors | of_text()


def step3(name):
    made = config(name, understand_projector_stride=2, text_config={"hidden_size": TEXT})
    made["vision_config"] = {"image_size": 728, "width": 1536, "layers": 47, "heads": 16, "patch_size": PATCH}
    p = "vision_model"
    tensors = {f"{p}.conv1.weight": (WIDTH, 3, PATCH, PATCH), f"{p}.positional_embedding": (4, WIDTH)}
    tensors |= norms(f"{p}.ln_pre")
    for i in range(LAYERS):
        q = f"{p}.transformer.resblocks.{i}"
        tensors |= norms(f"{q}.ln_1") | norms(f"{q}.ln_2") | both(f"{q}.attn.out_proj", WIDTH, WIDTH)
        tensors |= {f"{q}.attn.in_proj_weight": (3 * WIDTH, WIDTH), f"{q}.attn.in_proj_bias": (3 * WIDTH,)}
        tensors |= {f"{q}.ls_1.gamma": (WIDTH,), f"{q}.ls_2.gamma": (WIDTH,)}
        tensors |= both(f"{q}.mlp.c_fc", FF, WIDTH) | both(f"{q}.mlp.c_proj", WIDTH, FF)
    for i, shape in ((1, (FF, WIDTH)), (2, (FF, FF))):
        tensors |= both(f"{p}.vit_downsampler{i}", *shape)
        tensors[f"{p}.vit_downsampler{i}.weight"] += (3, 3)
    return made, tensors | linear("vit_large_projector", TEXT, FF) | of_text()


@case
def step_vl():
    return step3("StepVLForConditionalGeneration")


@case
def step3_7():
    return step3("Step3p7ForConditionalGeneration")


@case
def lfm2_audio():
    made = config("Lfm2AudioForConditionalGeneration", lfm={"hidden_size": TEXT})
    made["encoder"] = {"d_model": WIDTH, "n_heads": 2, "n_layers": LAYERS, "feat_in": MELS}
    p = "conformer"
    tensors = both(f"{p}.pre_encode.conv.0", WIDTH, 1) | both(f"{p}.pre_encode.conv.2", WIDTH, WIDTH)
    for i in (0, 2):
        tensors[f"{p}.pre_encode.conv.{i}.weight"] += (3, 3)
    tensors |= both(f"{p}.pre_encode.out", WIDTH, WIDTH)
    for i in range(LAYERS):
        q = f"{p}.layers.{i}"
        for x in ("norm_feed_forward1", "norm_feed_forward2", "norm_self_att", "norm_conv", "norm_out"):
            tensors |= norms(f"{q}.{x}")
        for x in (1, 2):
            tensors |= both(f"{q}.feed_forward{x}.linear1", FF, WIDTH) | both(f"{q}.feed_forward{x}.linear2", WIDTH, FF)
        for x in ("q", "k", "v", "out"):
            tensors |= both(f"{q}.self_attn.linear_{x}", WIDTH, WIDTH)
        tensors |= linear(f"{q}.self_attn.linear_pos", WIDTH, WIDTH)
        tensors |= {f"{q}.self_attn.pos_bias_u": (2, 16), f"{q}.self_attn.pos_bias_v": (2, 16)}
        tensors |= both(f"{q}.conv.pointwise_conv1", 2 * WIDTH, WIDTH) | both(f"{q}.conv.pointwise_conv2", WIDTH, WIDTH)
        tensors |= both(f"{q}.conv.depthwise_conv", WIDTH, 1) | norms(f"{q}.conv.batch_norm")
        for x, size in (("pointwise_conv1", 1), ("pointwise_conv2", 1), ("depthwise_conv", 9)):
            tensors[f"{q}.conv.{x}.weight"] += (size,)
        tensors |= {f"{q}.conv.batch_norm.{x}": (WIDTH,) for x in ("running_mean", "running_var")}
        tensors |= {f"{q}.conv.batch_norm.num_batches_tracked": (1,)}
    tensors |= norms("audio_adapter.model.0") | both("audio_adapter.model.1", TEXT, WIDTH)
    return made, tensors | both("audio_adapter.model.3", TEXT, TEXT) | {"lfm.embed_tokens.weight": (64, TEXT)}


@case
def ling3_vl():
    made = config("BailingMoeV3VLForConditionalGeneration", text_config={"hidden_size": TEXT, "rms_norm_eps": 1e-5})
    made["vision_config"] = {"depth": LAYERS, "hidden_size": WIDTH, "num_heads": 2, "intermediate_size": FF}
    made["vision_config"] |= {"patch_size": PATCH, "spatial_merge_size": 2, "num_position_embeddings": 16}
    made["vision_config"] |= {"disable_merger_proj": True, "out_hidden_size": 4 * WIDTH}
    tensors = {"model.visual.patch_embed.proj.weight": (WIDTH, 3, 2, PATCH, PATCH)}
    tensors |= {"model.visual.pos_embed.weight": (16, WIDTH)} | norms("model.visual.merger.norm")
    for i in range(LAYERS):
        p = f"model.visual.blocks.{i}"
        tensors |= norms(f"{p}.norm1") | norms(f"{p}.norm2")
        tensors |= both(f"{p}.attn.qkv", 3 * WIDTH, WIDTH) | both(f"{p}.attn.proj", WIDTH, WIDTH)
        tensors |= both(f"{p}.mlp.linear_fc1", FF, WIDTH) | both(f"{p}.mlp.linear_fc2", WIDTH, FF)
    return made, tensors | both("linear_proj.0", TEXT, 4 * WIDTH) | both("linear_proj.2", TEXT, TEXT) | of_text()


@case
def minimax_m3():
    made = config("MiniMaxM3SparseForConditionalGeneration", text_config={"hidden_size": TEXT})
    width, p = 160, "vision_tower.vision_model"
    made["vision_config"] = vision(hidden_size=width, layer_norm_eps=1e-5)
    tensors = {f"{p}.embeddings.patch_embedding.weight": (width, 3, 2, PATCH, PATCH)} | norms(f"{p}.pre_layrnorm", width)
    for i in range(LAYERS):
        q = f"{p}.encoder.layers.{i}"
        tensors |= norms(f"{q}.layer_norm1", width) | norms(f"{q}.layer_norm2", width)
        for x in ("q", "k", "v", "out"):
            tensors |= both(f"{q}.self_attn.{x}_proj", width, width)
        tensors |= both(f"{q}.mlp.fc1", FF, width) | both(f"{q}.mlp.fc2", width, FF)
    for q, wide in (("multi_modal_projector", width), ("patch_merge_mlp", 4 * TEXT)):
        tensors |= both(f"{q}.linear_1", TEXT, wide) | both(f"{q}.linear_2", TEXT, TEXT)
    return made, tensors | of_text("language_model.")



def qwen_sound(p, convolutions):
    tensors = norms(f"{p}.ln_post") | convolutions
    for i in range(LAYERS):
        q = f"{p}.layers.{i}"
        tensors |= norms(f"{q}.self_attn_layer_norm") | norms(f"{q}.final_layer_norm")
        for x in ("q", "v", "out"):
            tensors |= both(f"{q}.self_attn.{x}_proj", WIDTH, WIDTH)
        tensors |= linear(f"{q}.self_attn.k_proj", WIDTH, WIDTH)
        tensors |= both(f"{q}.fc1", FF, WIDTH) | both(f"{q}.fc2", WIDTH, FF)
    return tensors


def images_of_sound(p):
    """Convolutions over time and pitch."""
    tensors = linear(f"{p}.conv_out", WIDTH, 16) | both(f"{p}.proj1", WIDTH, WIDTH) | both(f"{p}.proj2", TEXT, WIDTH)
    for i, inputs in ((1, 1), (2, 8), (3, 8)):
        tensors |= {f"{p}.conv2d{i}.weight": (8, inputs, 3, 3), f"{p}.conv2d{i}.bias": (8,)}
    return tensors


@case
def qwen3_asr():
    made = config("Qwen3ASRForConditionalGeneration")
    made["thinker_config"] = {"text_config": {"hidden_size": TEXT}, "audio_config": of_whisper()}
    p = "thinker.audio_tower"
    return made, qwen_sound(p, images_of_sound(p)) | of_text("thinker.")


@case
def qwen3_omni():
    made = config("Qwen3OmniMoeForConditionalGeneration")
    see = {"depth": LAYERS, "hidden_size": WIDTH, "intermediate_size": FF, "num_heads": 2, "patch_size": PATCH}
    see |= {"num_position_embeddings": 16, "spatial_merge_size": 2, "deepstack_visual_indexes": [1, 2]}
    made["thinker_config"] = {"text_config": {"hidden_size": TEXT}, "audio_config": of_whisper(), "vision_config": see}
    p, v = "thinker.audio_tower", "thinker.visual"
    tensors = qwen_sound(p, images_of_sound(p)) | {f"{v}.patch_embed.proj.weight": (WIDTH, 3, 2, PATCH, PATCH)}
    tensors |= {f"{v}.patch_embed.proj.bias": (WIDTH,), f"{v}.pos_embed.weight": (16, WIDTH)}
    for i in range(LAYERS):
        q = f"{v}.blocks.{i}"
        tensors |= norms(f"{q}.norm1") | norms(f"{q}.norm2")
        tensors |= both(f"{q}.attn.qkv", 3 * WIDTH, WIDTH) | both(f"{q}.attn.proj", WIDTH, WIDTH)
        tensors |= both(f"{q}.mlp.linear_fc1", FF, WIDTH) | both(f"{q}.mlp.linear_fc2", WIDTH, FF)
    for q in (f"{v}.merger", f"{v}.merger_list.0", f"{v}.merger_list.1"):
        tensors |= norms(f"{q}.ln_q", 4 * WIDTH) | both(f"{q}.mlp.0", FF, 4 * WIDTH) | both(f"{q}.mlp.2", TEXT, FF)
    return made, tensors | of_text("thinker.")


@case
def qwen2_5_omni():
    made = config("Qwen2_5OmniModel", model_type="qwen2_5_omni")
    see = {"depth": LAYERS, "hidden_size": WIDTH, "intermediate_size": FF, "num_heads": 2, "patch_size": PATCH}
    see |= {"fullatt_block_indexes": [1, 3], "out_hidden_size": TEXT}
    made["thinker_config"] = {"text_config": {"hidden_size": TEXT}, "audio_config": of_whisper(), "vision_config": see}
    p, v = "thinker.audio_tower", "thinker.visual"
    convolutions = both(f"{p}.conv1", WIDTH, MELS) | both(f"{p}.conv2", WIDTH, WIDTH) | both(f"{p}.proj", TEXT, WIDTH)
    for i in (1, 2):
        convolutions[f"{p}.conv{i}.weight"] += (3,)
    tensors = qwen_sound(p, convolutions) | {f"{v}.patch_embed.proj.weight": (WIDTH, 3, 2, PATCH, PATCH)}
    for i in range(LAYERS):
        q = f"{v}.blocks.{i}"
        tensors |= norm(f"{q}.norm1", WIDTH) | norm(f"{q}.norm2", WIDTH)
        for x in ("q", "k", "v", "proj"):
            tensors |= both(f"{q}.attn.{x}", WIDTH, WIDTH)
        tensors |= both(f"{q}.mlp.gate_proj", FF, WIDTH) | both(f"{q}.mlp.up_proj", FF, WIDTH)
        tensors |= both(f"{q}.mlp.down_proj", WIDTH, FF)
    tensors |= norm(f"{v}.merger.ln_q", WIDTH) | both(f"{v}.merger.mlp.0", 4 * WIDTH, 4 * WIDTH)
    tensors |= {"thinker.audio_tower.audio_bos_eos_token.weight": (2, TEXT)}
    return made, tensors | both(f"{v}.merger.mlp.2", TEXT, 4 * WIDTH) | of_text("thinker.")


@case
def dots3():
    made = config("Dots3NoteForCausalLM", text_config={"hidden_size": TEXT})
    pyramid = [-1, 2, 0, 3]
    made["vision_config"] = vision(
        embed_dim=WIDTH, rms_norm_eps=1e-5, spatial_merge_size=2, adapter_type="patch_merger", pre_pixel_shuffle=True,
        use_qk_norm=True, use_bias=False, pyramid_num_routed=pyramid, capacity_factor=2.0,
    )
    whisper = {"d_model": WIDTH, "encoder_ffn_dim": FF, "encoder_attention_heads": 2, "encoder_layers": LAYERS}
    whisper |= {"num_mel_bins": MELS, "activation_function": "swiglu"}
    made["audio_config"] = {
        "whisper_config": whisper, "use_conv2d_stem": True, "use_rope": True, "use_rms_norm": True, "chunk_seconds": 60,
        "rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 10000.0},
    }
    v, a = "vision_encoder", "audio_encoder.dots_encoder.speech_encoder"
    tensors = both(f"{v}.patch_embed.proj", WIDTH, 3) | norm(f"{v}.patch_embed.norm", WIDTH)
    tensors[f"{v}.patch_embed.proj.weight"] += (PATCH, PATCH)
    for i, experts in enumerate(pyramid):
        p = f"{v}.blocks.{i}"
        tensors |= norm(f"{p}.norm_1", WIDTH) | norm(f"{p}.norm_2", WIDTH) | linear(f"{p}.attn.qkv", 3 * WIDTH, WIDTH)
        tensors |= norm(f"{p}.attn.q_norm", 16) | norm(f"{p}.attn.k_norm", 16) | linear(f"{p}.attn.proj", WIDTH, WIDTH)
        for q in [f"{p}.mlp.experts.{e}" for e in range(experts)] or [f"{p}.mlp"]:
            tensors |= linear(f"{q}.fc1", FF, WIDTH) | linear(f"{q}.fc2", WIDTH, FF) | linear(f"{q}.fc3", FF, WIDTH)
        if experts > 0:
            tensors |= {f"{p}.mlp.gate_weight": (experts, WIDTH), f"{p}.mlp.router_bias": (experts,)}
    tensors |= norm(f"{v}.post_trunk_norm", WIDTH) | norms(f"{v}.adapter.ln_q")
    tensors |= both(f"{v}.adapter.mlp.0", 4 * WIDTH, 4 * WIDTH) | both(f"{v}.adapter.mlp.2", TEXT, 4 * WIDTH)
    for i in (1, 2, 3):
        tensors |= both(f"{a}.conv2d{i}", WIDTH, 1 if i == 1 else WIDTH)
        tensors[f"{a}.conv2d{i}.weight"] += (3, 3)
    tensors |= linear(f"{a}.conv_out", WIDTH, 2 * WIDTH) | norm(f"{a}.layer_norm", WIDTH)
    for i in range(LAYERS):
        p = f"{a}.layers.{i}"
        tensors |= norm(f"{p}.self_attn_layer_norm", WIDTH) | norm(f"{p}.final_layer_norm", WIDTH)
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            tensors |= linear(f"{p}.self_attn.{part}", WIDTH, WIDTH, part != "k_proj")
        tensors |= both(f"{p}.fc1", 2 * FF, WIDTH) | both(f"{p}.fc2", WIDTH, FF)
    p = "audio_encoder.audio_adapter.proj"
    tensors |= norms(f"{p}.0") | both(f"{p}.1", TEXT, WIDTH) | both(f"{p}.3", TEXT, TEXT)
    return made, tensors | of_text()


@case
def dots3_seeing():
    made, tensors = dots3()
    return made | {"architectures": ["Dots3NoteForConditionalGeneration"]}, tensors


@case
def muse_glimmer():
    made = config("MuseGlimmerForConditionalGeneration", text_config={"hidden_size": TEXT})
    made["vision_config"] = vision(layer_norm_eps=1e-5, merge_size=2, pos_emb_height=4, patch_temporal=2)
    p = "model.vision_tower"
    tensors = linear(f"{p}.patch_embedder.patch_embedding", WIDTH, 2 * 3 * PATCH * PATCH)
    tensors |= {f"{p}.patch_embedder.position_embedding_table.weight": (16, WIDTH)} | norms(f"{p}.ln_pre") | norms(f"{p}.ln_post")
    for i in range(LAYERS):
        q = f"{p}.layers.{i}"
        tensors |= norms(f"{q}.norm1") | norms(f"{q}.norm2")
        for part in ("q_proj", "k_proj", "v_proj", "proj"):
            tensors |= both(f"{q}.attn.{part}", WIDTH, WIDTH)
        tensors |= both(f"{q}.mlp.fc1", FF, WIDTH) | both(f"{q}.mlp.fc2", WIDTH, FF)
    tensors |= both("model.vision_adapter.fc1", 4 * WIDTH, 4 * WIDTH) | both("model.vision_adapter.fc2", FF, 4 * WIDTH)
    return made, tensors | linear("model.vision_projection", TEXT, FF) | of_text("model.language_model.")


def radio(name, sound):
    """The width is that of the published model, which the other converter does not ask for."""
    wide, side = 1280, 6
    made = config(name, llm_config={"hidden_size": TEXT}, force_image_size=4 * PATCH, downsample_ratio=0.5)
    made["vision_config"] = {"patch_size": PATCH}
    r = "vision_model.radio_model.model"
    tensors = linear(f"{r}.patch_generator.embedder", wide, 3 * PATCH * PATCH)
    tensors |= {f"{r}.patch_generator.pos_embed": (1, side * side, wide), f"{r}.patch_generator.cls_token.token": (2, wide)}
    tensors |= {"vision_model.radio_model.input_conditioner.norm_mean": (3, 1, 1)}
    for i in range(LAYERS):
        p = f"{r}.blocks.{i}"
        tensors |= norms(f"{p}.norm1") | norms(f"{p}.norm2") | both(f"{p}.attn.qkv", 3 * WIDTH, WIDTH)
        tensors |= both(f"{p}.attn.proj", WIDTH, WIDTH) | both(f"{p}.mlp.fc1", FF, WIDTH) | both(f"{p}.mlp.fc2", WIDTH, FF)
    tensors |= norm("mlp1.0", 64) | linear("mlp1.1", 96, 64) | linear("mlp1.3", TEXT, 96)
    if not sound:
        return made, tensors | of_text("language_model.")
    made["sound_config"] = {"num_mel_bins": MELS, "subsampling_factor": 8, "conv_kernel_size": 9, "hidden_size": WIDTH}
    made["sound_config"] |= {"intermediate_size": FF, "num_hidden_layers": LAYERS, "num_attention_heads": 2}
    e = "sound_encoder.encoder"
    for i in (0, 2, 3):
        tensors |= both(f"{e}.subsampling.layers.{i}", 8, 1)
        tensors[f"{e}.subsampling.layers.{i}.weight"] += (1, 1) if i == 3 else (3, 3)
    tensors |= both(f"{e}.subsampling.linear", WIDTH, 64)
    tensors |= {f"{e}.feature_extractor.featurizer.fb": (1, MELS, 257), f"{e}.feature_extractor.featurizer.window": (400,)}
    for i in range(LAYERS):
        p = f"{e}.layers.{i}"
        for part in ("self_att", "out", "conv", "feed_forward1", "feed_forward2"):
            tensors |= norms(f"{p}.norm_{part}")
        for part in ("feed_forward1", "feed_forward2"):
            tensors |= linear(f"{p}.{part}.linear1", FF, WIDTH) | linear(f"{p}.{part}.linear2", WIDTH, FF)
        for part in ("q_proj", "k_proj", "v_proj", "o_proj", "relative_k_proj"):
            tensors |= linear(f"{p}.self_attn.{part}", WIDTH, WIDTH)
        tensors |= {f"{p}.self_attn.bias_{part}": (2, WIDTH // 2) for part in "uv"}
        tensors |= both(f"{p}.conv.pointwise_conv1", 2 * WIDTH, WIDTH) | both(f"{p}.conv.pointwise_conv2", WIDTH, WIDTH)
        for part in (1, 2):
            tensors[f"{p}.conv.pointwise_conv{part}.weight"] += (1,)
        tensors |= {f"{p}.conv.depthwise_conv.weight": (WIDTH, 1, 9)} | norms(f"{p}.conv.norm")
        tensors |= {f"{p}.conv.norm.running_{part}": (WIDTH,) for part in ("mean", "var")}
    tensors |= norm("sound_projection.norm", WIDTH) | linear("sound_projection.linear1", FF, WIDTH)
    return made, tensors | linear("sound_projection.linear2", TEXT, FF) | of_text("language_model.")


@case
def nemotron_nano():
    return radio("NemotronH_Nano_VL_V2", True)


@case
def radio_alone():
    return radio("RADIOModel", False)


import tiny_speech  # noqa: E402, F401  whose cases are made of those above

//! Encoders of images and sound, each of a tiny checkpoint whose numbers are known: keys, names, types, and
//! where every element goes.

use gguf::{Bytes, Error, Gguf};
use gguf_checkpoint::Checkpoint;
use gguf_convert::hf::{self, Options};
use gguf_store::{Existing, Overwrite};
use serde_json::{Value, json};

use crate::tiny::{Tiny, elements};

/// The file of the encoder, and what it is to be called.
pub fn sidecar(tiny: &Tiny, outtype: &str) -> Result<(Bytes, String), Error> {
    tiny.write_weights();
    let checkpoint = Checkpoint::open(tiny.path())?;
    let outtype = (outtype != "auto").then(|| outtype.parse().unwrap());
    let options =
        Options { outtype, mmproj: true, model_name: Some("Tiny".into()), ..Options::default() };
    let conversion = hf::plan(tiny.path(), &checkpoint, &options)?;
    let out = tiny.path().join("out.gguf");
    conversion.job.write(&out, &Overwrite::new(Existing::Replace), &())?;
    Ok((std::fs::read(out).unwrap().into(), conversion.file_name))
}

/// How images are prepared.
pub fn prepared(tiny: Tiny) -> Tiny {
    let stated = json!({"image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.25, 0.25],
        "min_num_patches": 4, "max_num_patches": 16, "patch_size": 2});
    tiny.file("preprocessor_config.json", stated.to_string());
    tiny
}

fn qwen2_vl(vision: Value) -> Tiny {
    let config = json!({"architectures": ["Qwen2VLForConditionalGeneration"], "model_type": "qwen2_vl",
        "hidden_size": 8, "vision_config": vision});
    prepared(Tiny::new(config)).tensors(&[
        ("visual.patch_embed.proj.weight", &[4, 3, 2, 2, 2]),
        ("visual.blocks.0.norm1.weight", &[4]),
        ("visual.blocks.0.attn.qkv.weight", &[12, 4]),
        ("visual.blocks.0.attn.qkv.bias", &[12]),
        ("visual.merger.mlp.0.weight", &[16, 16]),
        ("model.layers.0.mlp.up_proj.weight", &[8, 8]),
    ])
}

fn vision() -> Value {
    json!({"depth": 1, "embed_dim": 4, "hidden_size": 8, "num_heads": 2, "patch_size": 2})
}

#[test]
fn frames_and_fused_matrices_are_taken_apart() {
    let tiny = qwen2_vl(vision());
    let (bytes, name) = sidecar(&tiny, "f32").unwrap();
    // Between them stands what it has of the directory, whose name differs from run to run.
    assert!(name.starts_with("mmproj-Tiny-") && name.ends_with("-F32.gguf"), "{name}");
    let model = Gguf::read(&bytes).unwrap();
    let keys: Vec<_> =
        model.metadata().iter().map(|(key, value)| format!("{key}={value}")).collect();
    let expected = [
        "general.architecture=\"clip\"",
        "general.type=\"mmproj\"",
        "general.name=\"Tiny\"",
        "general.size_label=\"0.42K\"",
        "general.file_type=0",
        "clip.has_vision_encoder=true",
        "clip.vision.projection_dim=8",
        "clip.vision.image_size=560",
        "clip.vision.patch_size=2",
        "clip.vision.embedding_length=4",
        "clip.vision.feed_forward_length=8",
        "clip.vision.block_count=1",
        "clip.vision.attention.head_count=2",
        "clip.vision.image_mean=[0.5, 0.5, 0.5]",
        "clip.vision.image_std=[0.25, 0.25, 0.25]",
        "clip.projector_type=\"qwen2vl_merger\"",
        "clip.vision.attention.layer_norm_epsilon=0.000001",
        "general.quantization_version=2",
    ];
    // What the name of the directory says.
    let of_directory = |key: &&str| {
        ["general.basename", "general.finetune", "general.version"]
            .iter()
            .any(|start| key.starts_with(start))
    };
    let keys: Vec<_> = keys.iter().map(|key| &**key).filter(|key| !of_directory(key)).collect();
    assert_eq!(keys, expected);
    // Of each colour the first image, then the second: 4 pixels of each.
    let both = tiny.values("visual.patch_embed.proj.weight");
    let frame = |which: usize| {
        let images = both.chunks_exact(8);
        images.flat_map(|two| two[which * 4..which * 4 + 4].to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(elements(&bytes, "v.patch_embd.weight"), frame(0));
    assert_eq!(elements(&bytes, "v.patch_embd.weight.1"), frame(1));
    let fused = tiny.values("visual.blocks.0.attn.qkv.weight");
    assert_eq!(elements(&bytes, "v.blk.0.attn_k.weight"), fused[16..32]);
    let fused = tiny.values("visual.blocks.0.attn.qkv.bias");
    assert_eq!(elements(&bytes, "v.blk.0.attn_v.bias"), fused[8..]);
    assert_eq!(model.tensors().len(), 10, "none of the text model");
    let (findings, _) = gguf_check::check(&bytes);
    let bad = findings.iter().find(|finding| finding.severity == gguf::Severity::Error);
    assert!(bad.is_none(), "{bad:?}");
}

#[test]
fn types_are_those_that_programs_have() {
    let types = |outtype: &str| {
        let (bytes, _) = sidecar(&qwen2_vl(vision()), outtype).unwrap();
        let model = Gguf::read(&bytes).unwrap();
        let of = |name: &str| {
            let tensor = model.tensors().iter().find(|tensor| &*tensor.name == name).unwrap();
            tensor.tensor_type.name()
        };
        ["v.patch_embd.weight", "v.patch_embd.weight.1", "v.blk.0.attn_q.weight", "mm.0.weight"]
            .map(of)
    };
    assert_eq!(types("f16"), ["F16"; 4]);
    assert_eq!(types("bf16"), ["F32", "F32", "BF16", "BF16"]);
    // Rows of 4 and of 16 are no blocks of 32.
    assert_eq!(types("q8_0"), ["F32", "F32", "F16", "F16"]);
    let error = sidecar(&qwen2_vl(vision()), "q4_k_m").unwrap_err();
    assert!(error.to_string().contains("encoders are not written as"), "{error}");
}

#[test]
fn queries_turn_by_pairs_and_a_token_of_the_text_goes_along() {
    let config = json!({"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava",
        "text_config": {"hidden_size": 8}, "vision_config": {"model_type": "pixtral", "hidden_size": 8,
            "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 4,
            "patch_size": 2, "hidden_act": "silu"}});
    let tiny = prepared(Tiny::new(config)).tensors(&[
        ("vision_tower.transformer.layers.0.attention.q_proj.weight", &[8, 8]),
        ("language_model.model.embed_tokens.weight", &[4, 8]),
    ]);
    let added = json!({"added_tokens": [{"id": 2, "content": "[IMG_BREAK]"}]});
    tiny.file("tokenizer.json", added.to_string());
    let (bytes, _) = sidecar(&tiny, "f32").unwrap();
    let rows = tiny.values("vision_tower.transformer.layers.0.attention.q_proj.weight");
    let row = |row: usize| rows[row * 8..row * 8 + 8].to_vec();
    let expected: Vec<f32> = [0, 2, 1, 3, 4, 6, 5, 7].into_iter().flat_map(row).collect();
    assert_eq!(elements(&bytes, "v.blk.0.attn_q.weight"), expected);
    let tokens = tiny.values("language_model.model.embed_tokens.weight");
    assert_eq!(elements(&bytes, "v.token_embd.img_break"), tokens[16..24]);
    tiny.file("tokenizer.json", "{}");
    assert_eq!(sidecar(&tiny, "f32").unwrap_err().code(), "vocabulary-other-model");
}

#[test]
fn patches_become_images_of_each_colour() {
    let config = json!({"architectures": ["Lfm2VlForConditionalGeneration"], "model_type": "lfm2_vl",
        "text_config": {"hidden_size": 8}, "vision_config": {"hidden_size": 2, "intermediate_size": 8,
            "num_hidden_layers": 3, "num_attention_heads": 2, "patch_size": 2},
        "vision_feature_layer": -2});
    let name = "model.vision_tower.vision_model.embeddings.patch_embedding.weight";
    let tiny = prepared(Tiny::new(config)).tensors(&[(name, &[2, 12])]);
    let (bytes, _) = sidecar(&tiny, "f32").unwrap();
    let stored = tiny.values(name);
    let places = (0..2).flat_map(|row| {
        (0..3).flat_map(move |colour| (0..4).map(move |pixel| (row, colour, pixel)))
    });
    let expected: Vec<f32> =
        places.map(|(row, colour, pixel)| stored[row * 12 + pixel * 3 + colour]).collect();
    assert_eq!(elements(&bytes, "v.patch_embd.weight"), expected);
    let model = Gguf::read(&bytes).unwrap();
    assert_eq!(model.metadata().u64("clip.vision.block_count"), Some(2), "without the last layer");
}

#[test]
fn parts_of_a_fused_matrix_are_sorted_and_stay_fused() {
    let config = json!({"architectures": ["KimiK25ForConditionalGeneration"],
        "text_config": {"hidden_size": 8}, "vision_config": {"vt_hidden_size": 16,
            "vt_intermediate_size": 8, "vt_num_hidden_layers": 1, "vt_num_attention_heads": 2,
            "num_attention_heads": 2, "patch_size": 2}});
    let name = "vision_tower.encoder.blocks.0.wqkv.bias";
    let tiny = prepared(Tiny::new(config)).tensors(&[(name, &[48])]);
    let (bytes, _) = sidecar(&tiny, "f32").unwrap();
    let stored = tiny.values(name);
    // Of a head of 8: pairs of rows and columns take turns.
    let head = |start: usize| [0, 1, 4, 5, 2, 3, 6, 7].map(|place| stored[start + place]);
    let sorted: Vec<f32> = [0, 8, 16, 24].into_iter().flat_map(head).collect();
    assert_eq!(elements(&bytes, "v.blk.0.attn_qkv.bias"), [&sorted, &stored[32..]].concat());
}

#[test]
fn running_means_go_into_weight_and_bias() {
    let config = json!({"architectures": ["Lfm2AudioForConditionalGeneration"],
        "lfm": {"hidden_size": 8},
        "encoder": {"d_model": 4, "n_heads": 2, "n_layers": 1, "feat_in": 16}});
    let norm = |end: &str| format!("conformer.layers.0.conv.batch_norm.{end}");
    let names = ["weight", "bias", "running_mean", "running_var"].map(norm);
    let tensors: Vec<(&str, &[usize])> = names.iter().map(|name| (&**name, &[4][..])).collect();
    let tiny = Tiny::new(config).tensors(&tensors);
    let (bytes, _) = sidecar(&tiny, "f32").unwrap();
    let [weight, bias, mean, variance] = names.each_ref().map(|name| tiny.values(name));
    for i in 0..4 {
        let scale = weight[i] / (variance[i] + 1e-5).sqrt();
        assert_eq!(elements(&bytes, "a.blk.0.conv_norm.weight")[i], scale);
        assert_eq!(elements(&bytes, "a.blk.0.conv_norm.bias")[i], bias[i] - mean[i] * scale);
    }
}

#[test]
fn what_is_missing_or_contradicts_is_named() {
    let failed = |tiny: &Tiny| sidecar(tiny, "f32").unwrap_err();
    let bare = json!({"architectures": ["Gemma3ForConditionalGeneration"], "hidden_size": 8});
    let error = failed(&Tiny::new(bare).tensors(&[("vision_tower.x.weight", &[2, 2])]));
    assert_eq!(error.code(), "config-field-missing", "{error}");
    let llama = json!({"architectures": ["LlamaForCausalLM"], "hidden_size": 8});
    let error = failed(&Tiny::new(llama).tensors(&[("lm_head.weight", &[2, 2])]));
    assert_eq!(error.code(), "class-unknown", "{error}");
    let error = failed(&qwen2_vl(vision()).tensors(&[("visual.blocks.0.extra.weight", &[2, 2])]));
    assert_eq!(error.code(), "checkpoint-tensor-unexpected", "{error}");
    assert!(error.to_string().contains("visual.blocks.0.extra.weight"), "{error}");
    let without = json!({"depth": 1, "embed_dim": 4, "hidden_size": 8, "patch_size": 2});
    let error = failed(&qwen2_vl(without));
    assert!(error.to_string().contains("num_attention_heads"), "{error}");
    let config = json!({"architectures": ["Qwen3VLForConditionalGeneration"],
        "text_config": {"hidden_size": 8}, "vision_config": {"depth": 2, "hidden_size": 4,
            "intermediate_size": 8, "num_heads": 2, "patch_size": 2, "deepstack_visual_indexes": [5]}});
    let tiny = prepared(Tiny::new(config)).tensors(&[("model.visual.blocks.0.norm1.weight", &[4])]);
    let error = failed(&tiny);
    assert!(error.to_string().contains("deepstack_visual_indexes"), "{error}");
}

fn muse_glimmer(times: u32) -> Tiny {
    let vision = json!({"hidden_size": 4, "intermediate_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 1, "patch_size": 2, "patch_temporal": times, "merge_size": 2,
        "pos_emb_height": 3, "layer_norm_eps": 1e-5});
    let config = json!({"architectures": ["MuseGlimmerForConditionalGeneration"],
        "model_type": "muse_glimmer", "hidden_size": 8, "vision_config": vision});
    prepared(Tiny::new(config)).tensors(&[
        ("model.vision_tower.patch_embedder.patch_embedding.weight", &[4, 24]),
        ("model.vision_tower.layers.0.attn.q_proj.weight", &[4, 4]),
        ("model.vision_projection.weight", &[8, 4]),
    ])
}

#[test]
fn patches_one_after_the_other_are_summed() {
    let tiny = muse_glimmer(2);
    let (bytes, _) = sidecar(&tiny, "f32").unwrap();
    let model = Gguf::read(&bytes).unwrap();
    assert_eq!(model.metadata().u64("clip.vision.image_size"), Some(12));
    let stored = tiny.values("model.vision_tower.patch_embedder.patch_embedding.weight");
    let both = stored.chunks(24).flat_map(|row| (0..12).map(move |i| row[i] + row[12 + i]));
    assert_eq!(elements(&bytes, "v.patch_embd.weight"), both.collect::<Vec<f32>>());
    // Halves of a head that rotate against each other become pairs.
    let stored = tiny.values("model.vision_tower.layers.0.attn.q_proj.weight");
    let rows = [0, 2, 1, 3].map(|row| &stored[row * 4..][..4]).concat();
    assert_eq!(elements(&bytes, "v.blk.0.attn_q.weight"), rows);
    let error = sidecar(&muse_glimmer(3), "f32").unwrap_err().to_string();
    assert!(error.contains("patch_temporal"), "{error}");
}

#[test]
fn a_class_without_an_encoder_is_told_the_nearest_that_have_one() {
    let of = |class: &str| {
        let fault = sidecar(&Tiny::new(json!({"architectures": [class]})), "f32").unwrap_err();
        let finding = fault.finding().unwrap();
        format!("{}; {}", finding.message, finding.help)
    };
    let told = of("Qwen3VLForConditionalGenerations");
    assert!(told.contains("`Qwen3VLForConditionalGenerations` is not known"), "{told}");
    assert!(told.contains("the nearest with one are Qwen3VLForConditionalGeneration"), "{told}");
    let told = of("LlamaForCausalLM");
    assert!(told.contains("--print-supported-models") && told.len() < 400, "{told}");
}

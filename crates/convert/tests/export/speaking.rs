//! Decoders of sound there and back, and models that speak, of which there is no way back.

use gguf::Gguf;
use gguf_convert::export;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::decoder::{HEADS, KV, VOCAB, WIDTH, config};
use crate::there_and_back::exported_as_it_was;
use crate::tiny::{Tiny, assert_sound, elements};
use crate::tokenizer_files::{bytes, number, piece};

#[test]
fn wavtokenizer_decodes_codes() {
    const DEEP: usize = 2;
    const WIDE: usize = 12;
    const INNER: usize = 10;
    let config = json!({"architectures": ["WavTokenizerDec"], "model_type": "wavtokenizer_dec",
        "hidden_size": 18, "n_head": 1, "n_layer": 6, "n_embd_features": 8, "n_ff": INNER,
        "vocab_size": VOCAB, "layer_norm_epsilon": 1e-6, "group_norm_epsilon": 1e-6, "group_norm_groups": 4,
        "max_position_embeddings": 64, "posnet": {"n_embd": WIDE, "n_layer": 6},
        "convnext": {"n_embd": WIDE, "n_layer": DEEP}});
    let mut tiny = Tiny::new(config.clone()).tensors(&[
        ("backbone.embedding.weight", &[VOCAB, 8]),
        ("backbone.embed.weight", &[WIDE, 8, 7]),
        ("backbone.embed.bias", &[WIDE, 1]),
        ("head.out.weight", &[18, WIDE]),
        ("head.out.bias", &[18]),
    ]);
    for layer in 0..6 {
        let (norms, squares): (&[&str], &[(&str, usize)]) = match layer {
            2 => (&["norm"], &[("q", 1), ("k", 1), ("v", 1), ("proj_out", 1)]),
            5 => (&["norm"], &[]),
            _ => (&["norm1", "norm2"], &[("conv1", 3), ("conv2", 3)]),
        };
        let name = |part: &str, end: &str| format!("backbone.posnet.{layer}.{part}.{end}");
        for part in norms {
            for end in ["weight", "bias"] {
                tiny = tiny.tensors(&[(&name(part, end), &[WIDE, 1])]);
            }
        }
        for (part, kernel) in squares {
            tiny = tiny.tensors(&[(&name(part, "weight"), &[WIDE, WIDE, *kernel])]);
            tiny = tiny.tensors(&[(&name(part, "bias"), &[WIDE, 1])]);
        }
    }
    tiny = tiny.layers(
        DEEP,
        &[
            ("backbone.convnext.{}.dwconv.weight", &[WIDE, 1, 7]),
            ("backbone.convnext.{}.dwconv.bias", &[WIDE, 1]),
            ("backbone.convnext.{}.norm.weight", &[WIDE]),
            ("backbone.convnext.{}.norm.bias", &[WIDE]),
            ("backbone.convnext.{}.pwconv1.weight", &[INNER, WIDE]),
            ("backbone.convnext.{}.pwconv1.bias", &[INNER]),
            ("backbone.convnext.{}.pwconv2.weight", &[WIDE, INNER]),
            ("backbone.convnext.{}.pwconv2.bias", &[WIDE]),
            ("backbone.convnext.{}.gamma.weight", &[WIDE]),
        ],
    );
    for part in ["norm", "final_layer_norm"] {
        for end in ["weight", "bias"] {
            tiny = tiny.tensors(&[(&format!("backbone.{part}.{end}"), &[WIDE])]);
        }
    }
    let back = exported_as_it_was(&tiny).config;
    assert_eq!(back["posnet"], json!({"n_embd": WIDE, "n_layer": 6}));
    assert_eq!(back["convnext"]["n_layer"], DEEP);
    assert_eq!(back["vocab_size"], VOCAB);
    // A part that the configuration lacks, and a layer that the checkpoint lacks.
    let mut without = config.clone();
    without.as_object_mut().unwrap().remove("convnext");
    tiny.file("config.json", without.to_string());
    let fault = tiny.convert().unwrap_err().to_string();
    assert!(fault.contains("has no field `convnext`"), "{fault}");
    tiny.file("config.json", config.to_string());
    tiny.tensors.retain(|(name, _)| !name.starts_with("backbone.convnext.1.pwconv2"));
    let fault = tiny.convert().unwrap_err().to_string();
    assert!(fault.contains("`convnext.1.pw2.weight`"), "{fault}");
}

#[test]
fn lfm_decodes_codes() {
    const FRAME: usize = 10;
    const FF: usize = 96;
    let own = json!({"norm_eps": 1e-5, "conv_L_cache": 3, "rope_theta": 1e6, "layer_types":
        ["conv", "full_attention"], "num_hidden_layers": 2, "block_auto_adjust_ff_dim": false,
        "sliding_window": 30, "output_size": FRAME});
    let of_all: &[(&str, &[usize])] = &[
        ("lfm.layers.{}.operator_norm.weight", &[WIDTH]),
        ("lfm.layers.{}.ffn_norm.weight", &[WIDTH]),
        ("lfm.layers.{}.feed_forward.w1.weight", &[FF, WIDTH]),
        ("lfm.layers.{}.feed_forward.w2.weight", &[WIDTH, FF]),
        ("lfm.layers.{}.feed_forward.w3.weight", &[FF, WIDTH]),
    ];
    let head = WIDTH / HEADS;
    let made = |own: Value| {
        let config = config("Lfm25AudioTokenizer", "lfm25_audio_tokenizer", own);
        Tiny::new(config).layers(2, of_all).tensors(&[
            ("lfm.embed_tokens.weight", &[VOCAB, WIDTH]),
            ("lfm.embedding_norm.weight", &[WIDTH]),
            ("lin.weight", &[FRAME, WIDTH]),
            ("lin.bias", &[FRAME]),
            ("lfm.layers.0.conv.conv.weight", &[WIDTH, 1, 3]),
            ("lfm.layers.0.conv.in_proj.weight", &[3 * WIDTH, WIDTH]),
            ("lfm.layers.0.conv.out_proj.weight", &[WIDTH, WIDTH]),
            ("lfm.layers.1.self_attn.q_proj.weight", &[WIDTH, WIDTH]),
            ("lfm.layers.1.self_attn.k_proj.weight", &[KV * head, WIDTH]),
            ("lfm.layers.1.self_attn.v_proj.weight", &[KV * head, WIDTH]),
            ("lfm.layers.1.self_attn.out_proj.weight", &[WIDTH, WIDTH]),
            ("lfm.layers.1.self_attn.q_layernorm.weight", &[head]),
            ("lfm.layers.1.self_attn.k_layernorm.weight", &[head]),
        ])
    };
    let tiny = made(own.clone());
    let back = exported_as_it_was(&tiny);
    assert_eq!(back.config["output_size"], FRAME);
    assert_eq!(back.config["sliding_window"], 30);
    assert_eq!(elements(&back.gguf, "dense_2.bias"), tiny.values("lin.bias"));
    let mut without = own;
    without.as_object_mut().unwrap().remove("output_size");
    let fault = made(without).convert().unwrap_err().to_string();
    assert!(fault.contains("has no field `output_size`"), "{fault}");
}

/// That nothing leads back from this file.
#[track_caller]
fn is_one_way(file: &gguf::Bytes, architecture: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    std::fs::write(&path, file).unwrap();
    let model = Model::open(&path).unwrap();
    let fault = export::plan(&model, export::Options::default()).err().unwrap().to_string();
    let expected = format!("no checkpoint can be made of {architecture} models");
    assert!(fault.contains(&expected), "{fault}");
}

#[test]
fn qwen_speaks_in_codes() {
    const CODES: usize = 3072;
    const INSIDE: usize = 6;
    let talker = json!({"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6, "rope_theta": 1e6, "hidden_act": "silu", "vocab_size": CODES,
        "text_vocab_size": VOCAB, "codec_bos_id": 2149, "codec_eos_token_id": 2150, "pad_token_id": null,
        "codec_language_id": {"english": 2050},
        "rope_scaling": {"mrope_section": [1, 1, 0], "rope_type": "default"}});
    let made = |talker: &Value| {
        let config = json!({"architectures": ["Qwen3TTSForConditionalGeneration"],
            "model_type": "qwen3_tts", "talker_config": talker});
        Tiny::new(config).byte_level(VOCAB).tensors(&[
            ("talker.codec_head.weight", &[CODES, 8]),
            ("talker.model.codec_embedding.weight", &[CODES, 8]),
            ("talker.model.norm.weight", &[8]),
            ("talker.model.text_embedding.weight", &[VOCAB, INSIDE]),
            ("talker.text_projection.linear_fc1.weight", &[INSIDE, INSIDE]),
            ("talker.text_projection.linear_fc1.bias", &[INSIDE]),
            ("talker.text_projection.linear_fc2.weight", &[8, INSIDE]),
            ("talker.text_projection.linear_fc2.bias", &[8]),
            ("talker.code_predictor.model.norm.weight", &[8]),
            ("talker.model.layers.0.input_layernorm.weight", &[8]),
            ("talker.model.layers.0.post_attention_layernorm.weight", &[8]),
            ("talker.model.layers.0.self_attn.q_proj.weight", &[8, 8]),
            ("talker.model.layers.0.self_attn.k_proj.weight", &[4, 8]),
            ("talker.model.layers.0.self_attn.v_proj.weight", &[4, 8]),
            ("talker.model.layers.0.self_attn.o_proj.weight", &[8, 8]),
            ("talker.model.layers.0.self_attn.q_norm.weight", &[4]),
            ("talker.model.layers.0.self_attn.k_norm.weight", &[4]),
            ("talker.model.layers.0.mlp.gate_proj.weight", &[12, 8]),
            ("talker.model.layers.0.mlp.up_proj.weight", &[12, 8]),
            ("talker.model.layers.0.mlp.down_proj.weight", &[8, 12]),
        ])
    };
    let mut tiny = made(&talker);
    let file = tiny.convert().unwrap();
    assert_sound(&file);
    is_one_way(&file, "qwen3tts");
    let embedding = elements(&file, "token_embd.weight");
    assert_eq!(embedding[VOCAB * 8..], tiny.values("talker.model.codec_embedding.weight"));
    let values = |name: &str| tiny.values(&format!("talker.{name}"));
    let [first, second] = [1, 2].map(|i| {
        let name = format!("text_projection.linear_fc{i}");
        (values(&format!("{name}.weight")), values(&format!("{name}.bias")))
    });
    // In double precision, so that it is off by less than the last bits of a sum of six numbers.
    let layer = |x: &[f64], (rows, bias): &(Vec<f32>, Vec<f32>)| -> Vec<f64> {
        let dot = |row: &[f32]| row.iter().zip(x).map(|(w, x)| f64::from(*w) * x).sum::<f64>();
        rows.chunks(x.len()).zip(bias).map(|(row, bias)| dot(row) + f64::from(*bias)).collect()
    };
    let texts = values("model.text_embedding.weight");
    for (row, found) in texts.chunks(INSIDE).zip(embedding.chunks(8)) {
        let row: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
        let hidden: Vec<f64> = layer(&row, &first).iter().map(|x| x / (1.0 + (-x).exp())).collect();
        for (expected, found) in layer(&hidden, &second).iter().zip(found) {
            let off = (expected - f64::from(*found)).abs();
            assert!(off <= expected.abs() * 1e-6, "{found} instead of {expected}");
        }
    }
    let model = Gguf::read(&file).unwrap();
    let tokens = model.metadata().array("tokenizer.ggml.tokens").unwrap();
    let tokens: Vec<&[u8]> = tokens.strings().unwrap().collect();
    assert_eq!(tokens.len(), VOCAB + CODES);
    for (code, name) in [
        (0, "<|codec_0|>"),
        (2149, "<|codec_bos|>"),
        (2150, "<|codec_eos_token|>"),
        (2050, "<|codec_language_english|>"),
    ] {
        assert_eq!(tokens[VOCAB + code], name.as_bytes());
    }
    let never = model.metadata().array("tokenizer.ggml.suppress_tokens").unwrap();
    assert_eq!(never.len(), 1023, "the last 1024 but for the one that ends speech");
    let end = model.metadata().u64("tokenizer.ggml.eos_token_id");
    assert_eq!(end, Some(VOCAB as u64 + 2150));

    let changed = |field: &str, value: Value| {
        let mut talker = talker.clone();
        talker[field] = value;
        made(&talker).convert().unwrap_err().to_string()
    };
    let fault = changed("hidden_act", json!("tanh"));
    assert!(fault.contains("`hidden_act` is tanh"), "{fault}");
    let fault = changed("codec_bos_id", json!(CODES));
    assert!(fault.contains("field `codec_bos_id` is 3072, of 3072 codes"), "{fault}");
    tiny.tensors.retain(|(name, _)| !name.ends_with("linear_fc1.bias"));
    let fault = tiny.convert().unwrap_err().to_string();
    assert!(fault.contains("`talker.text_projection.linear_fc1.bias`"), "{fault}");
    assert!(fault.contains("Qwen3TTSForConditionalGeneration"), "{fault}");
}

#[test]
fn pocket_speaks_in_vectors() {
    const WIDE: usize = 64;
    const LATENT: usize = 4;
    let made = |voice: bool| {
        let mut tiny = Tiny::new(json!({})).tensors(&[
            ("flow_lm.bos_emb", &[LATENT]),
            ("flow_lm.conditioner.embed.weight", &[VOCAB + 1, WIDE]),
            ("flow_lm.input_linear.weight", &[WIDE, LATENT]),
            ("flow_lm.out_norm.weight", &[WIDE]),
            ("flow_lm.out_norm.bias", &[WIDE]),
            ("flow_lm.transformer.layers.0.norm1.weight", &[WIDE]),
            ("flow_lm.transformer.layers.0.norm1.bias", &[WIDE]),
            ("flow_lm.transformer.layers.0.norm2.weight", &[WIDE]),
            ("flow_lm.transformer.layers.0.norm2.bias", &[WIDE]),
            ("flow_lm.transformer.layers.0.self_attn.in_proj.weight", &[3 * WIDE, WIDE]),
            ("flow_lm.transformer.layers.0.self_attn.out_proj.weight", &[WIDE, WIDE]),
            ("flow_lm.transformer.layers.0.linear1.weight", &[96, WIDE]),
            ("flow_lm.transformer.layers.0.linear2.weight", &[WIDE, 96]),
            ("mimi.encoder_transformer.transformer.layers.0.norm1.weight", &[WIDE]),
            ("mimi.encoder_transformer.transformer.layers.0.linear1.weight", &[96, WIDE]),
        ]);
        if voice {
            tiny = tiny.tensors(&[("flow_lm.bos_before_voice", &[1, 1, WIDE])]);
        }
        std::fs::remove_file(tiny.path().join("config.json")).unwrap();
        let pieces = [("<unk>", 0.0, 2), ("a", -1.0, 1), ("b", -2.0, 1), ("c", -3.0, 1)];
        let pieces = pieces.map(|(text, score, kind)| piece(text, score, kind)).concat();
        // Of most probable pieces, without a space in front.
        tiny.file(
            "tokenizer.model",
            [pieces, bytes(2, &number(3, 1)), bytes(3, &number(3, 0))].concat(),
        );
        tiny
    };
    let mut tiny = made(true);
    let file = tiny.convert().unwrap();
    is_one_way(&file, "pockettts");
    let (findings, _) = gguf_check::check(&file);
    let error = findings.iter().find(|one| one.severity == gguf::Severity::Error);
    assert!(error.is_none(), "{}", error.unwrap());
    let embedding = elements(&file, "token_embd.weight");
    let stored = tiny.values("flow_lm.conditioner.embed.weight");
    let voice = tiny.values("flow_lm.bos_before_voice");
    let [input, begin] =
        ["input_linear.weight", "bos_emb"].map(|x| tiny.values(&format!("flow_lm.{x}")));
    let begins = input.chunks(LATENT).map(|row| row.iter().zip(&begin).map(|(x, y)| x * y).sum());
    assert_eq!(embedding, [stored, voice, begins.collect()].concat());
    let fused = tiny.values("flow_lm.transformer.layers.0.self_attn.in_proj.weight");
    assert_eq!(elements(&file, "blk.0.attn_k.weight"), fused[WIDE * WIDE..2 * WIDE * WIDE]);
    let texts = |file: &gguf::Bytes| {
        let model = Gguf::read(file).unwrap();
        let tokens = model.metadata().array("tokenizer.ggml.tokens").unwrap();
        let text = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap();
        tokens.strings().unwrap().map(text).collect::<Vec<_>>()
    };
    assert_eq!(texts(&file)[VOCAB..], ["<|pad|>", "<|bos_before_voice|>", "<|audio_bos|>"]);
    assert_eq!(texts(&made(false).convert().unwrap())[VOCAB..], ["<|pad|>", "<|audio_bos|>"]);
    tiny.tensors.retain(|(name, _)| name != "flow_lm.input_linear.weight");
    let fault = tiny.convert().unwrap_err().to_string();
    assert!(
        fault.contains("`flow_lm.input_linear.weight`") && fault.contains("PocketTTSModel"),
        "{fault}"
    );
    // What it leaves out makes it no likely family of others.
    tiny.file("config.json", json!({"architectures": ["Unheard"]}).to_string());
    let fault = tiny.convert().unwrap_err();
    assert_eq!(fault.code(), "class-unknown");
    assert!(!fault.to_string().contains("--like"), "{fault}");
    let other = tiny.tensors(&[("abc.weight", &[2, 2])]);
    let fault = other.convert().unwrap_err().to_string();
    assert!(!fault.contains("--like"), "{fault}");
    other.file("config.json", json!({"architectures": ["PocketTTSModel"]}).to_string());
    let fault = other.convert().unwrap_err().to_string();
    assert!(fault.contains("has no field `has_voice`"), "{fault}");
}

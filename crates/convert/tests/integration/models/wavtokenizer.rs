//! WavTokenizer decoder.

use serde_json::json;

use crate::fixtures::Tiny;
use crate::fixtures::decoder::VOCAB;
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn wavtokenizer_round_trip() {
    const CONVNEXT_LAYERS: usize = 2;
    const EMBED: usize = 12;
    const INNER: usize = 10;
    let config = json!({"architectures": ["WavTokenizerDec"], "model_type": "wavtokenizer_dec",
        "hidden_size": 18, "n_head": 1, "n_layer": 6, "n_embd_features": 8, "n_ff": INNER,
        "vocab_size": VOCAB, "layer_norm_epsilon": 1e-6, "group_norm_epsilon": 1e-6, "group_norm_groups": 4,
        "max_position_embeddings": 64, "posnet": {"n_embd": EMBED, "n_layer": 6},
        "convnext": {"n_embd": EMBED, "n_layer": CONVNEXT_LAYERS}});
    let mut tiny = Tiny::new(config.clone()).tensors(&[
        ("backbone.embedding.weight", &[VOCAB, 8]),
        ("backbone.embed.weight", &[EMBED, 8, 7]),
        ("backbone.embed.bias", &[EMBED, 1]),
        ("head.out.weight", &[18, EMBED]),
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
                tiny = tiny.tensors(&[(&name(part, end), &[EMBED, 1])]);
            }
        }
        for (part, kernel) in squares {
            tiny = tiny.tensors(&[(&name(part, "weight"), &[EMBED, EMBED, *kernel])]);
            tiny = tiny.tensors(&[(&name(part, "bias"), &[EMBED, 1])]);
        }
    }
    tiny = tiny.layers(
        CONVNEXT_LAYERS,
        &[
            ("backbone.convnext.{}.dwconv.weight", &[EMBED, 1, 7]),
            ("backbone.convnext.{}.dwconv.bias", &[EMBED, 1]),
            ("backbone.convnext.{}.norm.weight", &[EMBED]),
            ("backbone.convnext.{}.norm.bias", &[EMBED]),
            ("backbone.convnext.{}.pwconv1.weight", &[INNER, EMBED]),
            ("backbone.convnext.{}.pwconv1.bias", &[INNER]),
            ("backbone.convnext.{}.pwconv2.weight", &[EMBED, INNER]),
            ("backbone.convnext.{}.pwconv2.bias", &[EMBED]),
            ("backbone.convnext.{}.gamma.weight", &[EMBED]),
        ],
    );
    for part in ["norm", "final_layer_norm"] {
        for end in ["weight", "bias"] {
            tiny = tiny.tensors(&[(&format!("backbone.{part}.{end}"), &[EMBED])]);
        }
    }
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["posnet"], json!({"n_embd": EMBED, "n_layer": 6}));
    assert_eq!(exported["convnext"]["n_layer"], CONVNEXT_LAYERS);
    assert_eq!(exported["vocab_size"], VOCAB);
    // A section that the configuration lacks, and a layer that the checkpoint lacks.
    let mut without = config.clone();
    without.as_object_mut().unwrap().remove("convnext");
    tiny.file("config.json", without.to_string());
    let error = tiny.convert().unwrap_err().to_string();
    assert!(error.contains("has no field `convnext`"), "{error}");
    tiny.file("config.json", config.to_string());
    tiny.tensors.retain(|(name, _)| !name.starts_with("backbone.convnext.1.pwconv2"));
    let error = tiny.convert().unwrap_err().to_string();
    assert!(error.contains("`convnext.1.pw2.weight`"), "{error}");
}

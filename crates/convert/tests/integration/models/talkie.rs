//! Talkie.

use serde_json::json;

use crate::fixtures::decoder::{FF, HEAD, HEADS, LAYERS, VOCAB, WIDTH, config};
use crate::fixtures::round_trip::assert_round_trip;
use crate::fixtures::{Tiny, elements};

#[test]
pub fn talkie_round_trip() {
    let config = config(
        "TalkieForCausalLM",
        "talkie",
        json!({"head_dim": HEAD, "rope_theta": 1e6, "num_key_value_heads": HEADS}),
    );
    let mut layer: Vec<(String, Vec<usize>)> = vec![("attn.head_gain.head_g".into(), vec![HEADS])];
    layer.extend(
        ["attn_gain", "mlp_gain", "embed_skip"].map(|part| (format!("{part}.a_g"), vec![1])),
    );
    for part in ["query", "key", "value", "resid"] {
        layer.push((format!("attn.attn_{part}.weight"), vec![WIDTH, WIDTH]));
    }
    layer.push(("mlp.mlp_gate.weight".into(), vec![FF, WIDTH]));
    layer.push(("mlp.mlp_linear.weight".into(), vec![FF, WIDTH]));
    layer.push(("mlp.mlp_resid.weight".into(), vec![WIDTH, FF]));
    let names: Vec<String> =
        layer.iter().map(|(name, _)| format!("model.blocks.{{}}.{name}")).collect();
    let layer: Vec<(&str, &[usize])> =
        names.iter().zip(&layer).map(|(name, (_, shape))| (&**name, &**shape)).collect();
    let tiny = Tiny::new(config).byte_level(VOCAB).layers(LAYERS, &layer).tensors(&[
        ("model.embed.weight", &[VOCAB, WIDTH]),
        ("lm_head", &[VOCAB, WIDTH]),
        ("lm_head_gain.w_g", &[1]),
    ]);
    let gguf = assert_round_trip(&tiny).gguf;
    let model = gguf::Gguf::read(&gguf).unwrap();
    let gain = tiny.values("lm_head_gain.w_g")[0];
    assert_eq!(model.metadata().get("talkie.logit_scale"), Some(&gain.into()));
    // The second half of a head is negated.
    let (ours, stored) = (
        elements(&gguf, "blk.0.attn_q.weight"),
        tiny.values("model.blocks.0.attn.attn_query.weight"),
    );
    let half = HEAD / 2 * WIDTH;
    assert_eq!(ours[..half], stored[..half]);
    assert_eq!(ours[half], -stored[half]);
    assert_eq!(ours[2 * half], stored[2 * half]);
}

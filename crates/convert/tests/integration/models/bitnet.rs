//! BitNet.

use serde_json::json;

use crate::fixtures::decoder::{FF, TIED, WIDTH, checkpoint, config, layer_weight, llama_layer};
use crate::fixtures::elements;
use crate::fixtures::round_trip::assert_gguf_round_trip;

#[test]
pub fn bitnet_weights_are_ternary() {
    let fields = json!({"rms_norm_eps": 1e-5, "rope_theta": 1e4, "hidden_act": "silu"});
    let own = vec![
        layer_weight("self_attn.inner_attn_ln", &[WIDTH]),
        layer_weight("mlp.ffn_layernorm", &[FF]),
    ];
    let layer = [llama_layer(), vec![own]].concat();
    let made = config("BitnetForCausalLM", "bitnet", fields);
    let tiny = checkpoint(made.clone(), layer.clone(), TIED);
    let ours = elements(&tiny.convert().unwrap(), "blk.1.ffn_up.weight");
    let stored = tiny.values("model.layers.1.mlp.up_proj.weight");
    let size = stored.iter().map(|x| f64::from(x.abs())).sum::<f64>() / stored.len() as f64;
    for (ours, x) in ours.iter().zip(stored) {
        let expected = (f64::from(x) / size).round().clamp(-1.0, 1.0) * size;
        // Tolerance for two F32 divisions.
        assert!((f64::from(*ours) - expected).abs() <= 1e-6 * size, "{ours} of {x}");
    }
    assert_gguf_round_trip(tiny.path());
    let mut other = made;
    other["hidden_act"] = json!("relu2");
    let error = checkpoint(other, layer, TIED).convert().unwrap_err().to_string();
    assert!(error.contains("`hidden_act`"), "{error}");
}

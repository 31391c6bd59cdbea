//! Apertus.

use serde_json::json;

use crate::fixtures::decoder::{
    FF, LAYERS, UNTIED, WIDTH, attention, checkpoint, config, layer_tensor, layer_weight, norms,
    qk_norms,
};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn apertus_round_trip() {
    let fields = json!({"rms_norm_eps": 1e-5, "rope_theta": 1e6, "hidden_act": "xielu"});
    let mut layer = norms(&["attention_layernorm", "feedforward_layernorm"]);
    layer.extend(
        ["alpha_n", "alpha_p", "beta", "eps"]
            .map(|part| layer_tensor(&format!("mlp.act_fn.{part}"), &[1])),
    );
    layer.extend([
        layer_weight("mlp.up_proj", &[FF, WIDTH]),
        layer_weight("mlp.down_proj", &[WIDTH, FF]),
    ]);
    let layer = vec![layer, attention(), qk_norms()];
    let config = config("ApertusForCausalLM", "apertus", fields);
    let tiny = checkpoint(config.clone(), layer.clone(), UNTIED);
    let gguf = assert_round_trip(&tiny).gguf;
    let model = gguf::Gguf::read(&gguf).unwrap();
    let beta = model.metadata().array("xielu.beta").unwrap();
    let beta: Vec<f64> = beta.iter().map(|number| number.to_f64().unwrap()).collect();
    let stored = (0..LAYERS).map(|i| tiny.values(&format!("model.layers.{i}.mlp.act_fn.beta"))[0]);
    assert_eq!(beta, stored.map(f64::from).collect::<Vec<_>>());
    let without = layer
        .into_iter()
        .map(|part| part.into_iter().filter(|(n, _)| !n.ends_with("beta")).collect());
    let tiny = checkpoint(config, without.collect(), UNTIED);
    let error = tiny.convert().unwrap_err().to_string();
    assert!(error.contains("model.layers.0.mlp.act_fn.beta"), "{error}");
}

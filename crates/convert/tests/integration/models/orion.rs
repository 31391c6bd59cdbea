//! Orion.

use serde_json::json;

use crate::fixtures::decoder::{UNTIED, WIDTH, checkpoint, config, llama_layer, pre_norms};
use crate::fixtures::round_trip::assert_round_trip_with_findings;
use crate::fixtures::tokenizer_files::use_sentencepiece;

#[test]
pub fn orion_round_trip() {
    let biases =
        pre_norms().into_iter().map(|(name, shape)| (name.replace("weight", "bias"), shape));
    let layer = [llama_layer(), vec![biases.collect()]].concat();
    let fields = json!({"rms_norm_eps": 1e-5, "rope_theta": 1e4});
    let tiny = checkpoint(config("OrionForCausalLM", "orion", fields), layer, UNTIED)
        .tensors(&[("model.norm.bias", &[WIDTH])]);
    use_sentencepiece(&tiny);
    assert_round_trip_with_findings(&tiny);
}

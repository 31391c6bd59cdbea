//! Nemotron and Nemotron-H.

use serde_json::{Value, json};

use crate::fixtures::Tiny;
use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, FF, HEAD, HEADS, KV, NamedShape, UNTIED, VOCAB, WIDTH, attention,
    checkpoint, config, ffn, merged, pre_norms,
};
use crate::fixtures::round_trip::{assert_round_trip, assert_round_trip_with_findings};
use crate::fixtures::tokenizer_files::use_sentencepiece;

const INNER: usize = 2 * WIDTH;

const STATE: usize = 16;

const MAMBA_TENSORS: &[(&str, &[usize])] = &[
    ("in_proj.weight", &[2 * INNER + 4 * STATE + 8, WIDTH]),
    ("conv1d.weight", &[INNER + 4 * STATE, 1, 4]),
    ("conv1d.bias", &[INNER + 4 * STATE]),
    ("norm.weight", &[INNER]),
    ("out_proj.weight", &[WIDTH, INNER]),
    ("A_log", &[8]),
    ("D", &[8]),
    ("dt_bias", &[8]),
];

const ATTENTION_TENSORS: &[(&str, &[usize])] = &[
    ("q_proj.weight", &[HEADS * HEAD, WIDTH]),
    ("k_proj.weight", &[KV * HEAD, WIDTH]),
    ("v_proj.weight", &[KV * HEAD, WIDTH]),
    ("o_proj.weight", &[WIDTH, HEADS * HEAD]),
];

/// Returns the tensors of a mixture of experts: width of an expert, width of its input and output.
fn moe_tensors(width: usize, latent: usize) -> Vec<(String, Vec<usize>)> {
    let mut experts = vec![
        ("gate.weight".to_owned(), vec![EXPERTS, WIDTH]),
        ("gate.e_score_correction_bias".to_owned(), vec![EXPERTS]),
        ("shared_experts.up_proj.weight".to_owned(), vec![FF, WIDTH]),
        ("shared_experts.down_proj.weight".to_owned(), vec![WIDTH, FF]),
    ];
    for e in 0..EXPERTS {
        experts.push((format!("experts.{e}.up_proj.weight"), vec![width, latent]));
        experts.push((format!("experts.{e}.down_proj.weight"), vec![latent, width]));
    }
    experts
}

/// Builds a checkpoint of these layers.
fn nemotron_h(config: Value, layers: &[Vec<(&str, &[usize])>]) -> Tiny {
    let mut tiny = Tiny::new(config).byte_level(VOCAB).tensors(&[
        ("backbone.embeddings.weight", &[VOCAB, WIDTH]),
        ("backbone.norm_f.weight", &[WIDTH]),
        ("lm_head.weight", &[VOCAB, WIDTH]),
    ]);
    for (layer, own) in layers.iter().enumerate() {
        let stem = format!("backbone.layers.{layer}");
        tiny = tiny.tensors(&[(&format!("{stem}.norm.weight"), &[WIDTH])]);
        for (name, shape) in own {
            tiny = tiny.tensors(&[(&format!("{stem}.mixer.{name}"), shape)]);
        }
    }
    tiny
}

fn nemotron_h_fields(more: Value) -> Value {
    merged(
        json!({"rms_norm_eps": 1e-5, "layer_norm_epsilon": 1e-5,
        "head_dim": HEAD, "ssm_state_size": STATE,
        "conv_kernel": 4, "n_groups": 2, "mamba_num_heads": 8, "mamba_head_dim": 16,
        "num_hidden_layers": 3}),
        more,
    )
}

#[test]
pub fn nemotron_h_puzzle_round_trip() {
    const LATENT: usize = 32;
    let mut routed = json!({"n_routed_experts": EXPERTS, "n_shared_experts": 1, "n_group": 1,
        "topk_group": 1, "moe_shared_expert_intermediate_size": FF, "norm_topk_prob": true,
        "routed_scaling_factor": 2.5, "moe_latent_size": LATENT, "num_hidden_layers": 4});
    routed["block_configs"] = json!([{"block_type": "mamba"}, {"block_type": "attention"},
        {"block_type": "moe", "moe_intermediate_size": 32, "num_experts_per_tok": 1},
        {"block_type": "moe", "moe_intermediate_size": 64, "num_experts_per_tok": 2}]);
    let config =
        config("NemotronHPuzzleForCausalLM", "nemotron_h_puzzle", nemotron_h_fields(routed));
    let experts = [32, 64].map(|width| {
        let mut experts = moe_tensors(width, LATENT);
        experts.push(("fc1_latent_proj.weight".to_owned(), vec![LATENT, WIDTH]));
        experts.push(("fc2_latent_proj.weight".to_owned(), vec![WIDTH, LATENT]));
        experts
    });
    let mut layers = vec![MAMBA_TENSORS.to_vec(), ATTENTION_TENSORS.to_vec()];
    for experts in &experts {
        layers.push(experts.iter().map(|(name, shape)| (&**name, &**shape)).collect());
    }
    let exported = assert_round_trip(&nemotron_h(config, &layers)).config;
    assert_eq!(exported["architectures"], json!(["NemotronHPuzzleForCausalLM"]));
    assert_eq!(exported["block_configs"][3]["num_experts_per_tok"], 2);
    assert_eq!(exported["block_configs"][2]["moe_intermediate_size"], 32);
}

#[test]
pub fn nemotron_h_round_trip() {
    let network: &[(&str, &[usize])] =
        &[("up_proj.weight", &[FF, WIDTH]), ("down_proj.weight", &[WIDTH, FF])];
    let experts = moe_tensors(EXPERT_FF, WIDTH);
    let experts: Vec<(&str, &[usize])> =
        experts.iter().map(|(n, shape)| (&**n, &**shape)).collect();
    let routed = json!({"num_experts_per_tok": 2, "n_routed_experts": EXPERTS,
        "n_shared_experts": 1, "moe_intermediate_size": EXPERT_FF, "n_group": 1,
        "topk_group": 1, "moe_shared_expert_intermediate_size": FF, "norm_topk_prob": true,
        "routed_scaling_factor": 2.5});
    for (letters, last, more) in [("M*-", network, json!({})), ("M*E", &experts[..], routed)] {
        let mut fields = nemotron_h_fields(more);
        fields["hybrid_override_pattern"] = json!(letters);
        let config = config("NemotronHForCausalLM", "nemotron_h", fields);
        let layers = [MAMBA_TENSORS, ATTENTION_TENSORS, last].map(<[_]>::to_vec);
        let tiny = nemotron_h(config, &layers);
        let exported = assert_round_trip(&tiny).config;
        assert_eq!(exported["hybrid_override_pattern"], letters);
        assert_eq!(exported["mamba_head_dim"], 16);
    }
}

#[test]
pub fn nemotron_round_trip() {
    let weights = pre_norms();
    let biases = |(name, shape): &NamedShape| (name.replace("weight", "bias"), shape.clone());
    let biases = weights.iter().map(biases).collect();
    let network = ffn();
    let fields = json!({"norm_eps": 1e-5, "rope_theta": 1e4, "head_dim": HEAD,
        "partial_rotary_factor": 0.5});
    let layer = vec![weights, biases, attention(), network];
    let config = config("NemotronForCausalLM", "nemotron", fields);
    let tiny = checkpoint(config, layer, UNTIED).tensors(&[("model.norm.bias", &[WIDTH])]);
    use_sentencepiece(&tiny);
    assert_eq!(assert_round_trip_with_findings(&tiny).config["partial_rotary_factor"], 0.5);
}

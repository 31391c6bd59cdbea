//! DeepSeek V4 and its draft model.

use std::collections::BTreeMap;

use gguf::{Gguf, TensorType};
use gguf_checkpoint::Checkpoint;
use gguf_convert::hf;
use serde_json::{Map, Value, json};

use crate::fixtures::Tiny;
use crate::fixtures::decoder::*;
use crate::fixtures::round_trip::{assert_round_trip, assert_round_trip_with_findings};

const USED: usize = 2;
const STREAMS: usize = 2;
const STREAM_WIDTH: usize = STREAMS * WIDTH;
const QUERIES: usize = 48;
const GROUPS: usize = 2;
const OUTPUT: usize = 24;
const INDEX: usize = 16;
const INDEX_HEADS: usize = 2;
const RATIOS: [usize; LAYERS] = [0, 4, 128, 4];
const TABLE: [i64; VOCAB * USED] = [0, 1, 3, 2, 1, 0, 2, 3, 1, 3, 0, 2];

fn layer(begin: &str, ratio: usize, biased: bool) -> Vec<(String, Vec<usize>)> {
    const COUNT: usize = (2 + STREAMS) * STREAMS;
    let inner = EXPERT_FF;
    let mut all: Vec<(String, Vec<usize>)> = [
        ("attn_norm.weight", vec![WIDTH]),
        ("ffn_norm.weight", vec![WIDTH]),
        ("attn.wq_a.weight", vec![QUERIES, WIDTH]),
        ("attn.q_norm.weight", vec![QUERIES]),
        ("attn.wq_b.weight", vec![HEADS * HEAD, QUERIES]),
        ("attn.wkv.weight", vec![HEAD, WIDTH]),
        ("attn.kv_norm.weight", vec![HEAD]),
        ("attn.wo_a.weight", vec![GROUPS * OUTPUT, HEADS * HEAD / GROUPS]),
        ("attn.wo_b.weight", vec![WIDTH, GROUPS * OUTPUT]),
        ("attn.attn_sink", vec![HEADS]),
        ("hc_attn_fn", vec![COUNT, STREAM_WIDTH]),
        ("hc_attn_base", vec![COUNT]),
        ("hc_attn_scale", vec![3]),
        ("hc_ffn_fn", vec![COUNT, STREAM_WIDTH]),
        ("hc_ffn_base", vec![COUNT]),
        ("hc_ffn_scale", vec![3]),
        ("ffn.gate.weight", vec![EXPERTS, WIDTH]),
        ("ffn.shared_experts.w1.weight", vec![inner, WIDTH]),
        ("ffn.shared_experts.w2.weight", vec![WIDTH, inner]),
        ("ffn.shared_experts.w3.weight", vec![inner, WIDTH]),
    ]
    .map(|(name, shape)| (name.to_owned(), shape))
    .into();
    if biased {
        all.push(("ffn.gate.bias".into(), vec![EXPERTS]));
    }
    for e in 0..EXPERTS {
        for (part, shape) in
            [("w1", [inner, WIDTH]), ("w2", [WIDTH, inner]), ("w3", [inner, WIDTH])]
        {
            all.push((format!("ffn.experts.{e}.{part}.weight"), shape.to_vec()));
        }
    }
    if ratio > 0 {
        all.extend(compressor("attn.compressor", ratio, HEAD));
    }
    if ratio == 4 {
        all.push(("attn.indexer.wq_b.weight".into(), vec![INDEX_HEADS * INDEX, QUERIES]));
        all.push(("attn.indexer.weights_proj.weight".into(), vec![INDEX_HEADS, WIDTH]));
        all.extend(compressor("attn.indexer.compressor", ratio, INDEX));
    }
    all.into_iter().map(|(name, shape)| (format!("{begin}.{name}"), shape)).collect()
}

fn compressor(stem: &str, ratio: usize, width: usize) -> Vec<(String, Vec<usize>)> {
    let wide = if ratio == 4 { 2 * width } else { width };
    vec![
        (format!("{stem}.ape"), vec![ratio, wide]),
        (format!("{stem}.wkv.weight"), vec![wide, WIDTH]),
        (format!("{stem}.wgate.weight"), vec![wide, WIDTH]),
        (format!("{stem}.norm.weight"), vec![width]),
    ]
}

fn deepseek4_config(class: &str, fields: Value) -> Value {
    let own = json!({"rms_norm_eps": 1e-6, "rope_theta": 1e4, "num_key_value_heads": 1, "head_dim": HEAD,
        "q_lora_rank": QUERIES, "qk_rope_head_dim": 8, "o_groups": GROUPS, "o_lora_rank": OUTPUT,
        "moe_intermediate_size": EXPERT_FF, "n_routed_experts": EXPERTS, "n_shared_experts": 1,
        "num_experts_per_tok": USED, "scoring_func": "sqrtsoftplus", "norm_topk_prob": true, "swiglu_limit": 7.0,
        "routed_scaling_factor": 2.5, "sliding_window": 32, "index_n_heads": INDEX_HEADS, "index_head_dim": INDEX,
        "index_topk": 8, "compress_ratios": RATIOS, "compress_rope_theta": 1.6e5, "hc_mult": STREAMS,
        "hc_sinkhorn_iters": 20, "hc_eps": 1e-6, "num_hash_layers": 1,
        "rope_scaling": {"type": "yarn", "factor": 16.0, "original_max_position_embeddings": 64,
            "beta_fast": 32.0, "beta_slow": 1.0}});
    let mut config = config(class, "deepseek_v4", merged(own, fields));
    config.as_object_mut().unwrap().remove("intermediate_size");
    config
}

/// Returns the tensors of the hyper-connection head.
fn hc_head(begin: &str) -> [(String, Vec<usize>); 3] {
    [
        (format!("{begin}hc_head_fn"), vec![STREAMS, STREAM_WIDTH]),
        (format!("{begin}hc_head_base"), vec![STREAMS]),
        (format!("{begin}hc_head_scale"), vec![1]),
    ]
}

fn deepseek4(fields: Value) -> Tiny {
    let mut tiny = Tiny::new(deepseek4_config("DeepseekV4ForCausalLM", fields)).byte_level(VOCAB);
    tiny = tiny.tensors(&[
        ("embed.weight", &[VOCAB, WIDTH]),
        ("norm.weight", &[WIDTH]),
        ("head.weight", &[VOCAB, WIDTH]),
    ]);
    tiny.tensors.extend(hc_head(""));
    for (number, ratio) in RATIOS.into_iter().enumerate() {
        tiny.tensors.extend(layer(&format!("layers.{number}"), ratio, number > 0));
    }
    tiny.integer_matrix("layers.0.ffn.gate.tid2eid", USED, &TABLE)
}

#[test]
pub fn deepseek4_round_trip() {
    let exported = assert_round_trip(&deepseek4(json!({})));
    assert_eq!(exported.config["compress_ratios"], json!(RATIOS));
    assert_eq!(exported.config["num_hash_layers"], 1);
    assert_eq!(exported.config["swiglu_limit"], 7.0);
    assert_eq!(exported.config["scoring_func"], "sqrtsoftplus");
    let model = Gguf::read(&exported.gguf).unwrap();
    let names: Vec<&str> = model.tensors().iter().map(|tensor| &*tensor.name).collect();
    let first = ["tid2eid", "gate_exps", "down_exps", "up_exps"];
    assert_eq!(
        names[..4],
        first.map(|part| format!("blk.0.ffn_{}.weight", part.replace("tid", "gate_tid")))
    );
    assert_eq!(names[4], "blk.1.ffn_gate_exps.weight");
    let table = &model.tensors()[0];
    assert_eq!(table.tensor_type, TensorType::I32);
    let numbers = model.data(table).unwrap().as_chunks().0.iter();
    let numbers: Vec<i64> = numbers.map(|x| i32::from_le_bytes(*x).into()).collect();
    assert_eq!(numbers, TABLE);
    assert_eq!(model.metadata().u64("deepseek4.embedding_length_out"), Some(STREAM_WIDTH as u64));
}

/// Writes the weights in the types of published checkpoints: routed experts as MXFP4, other large matrices as FP8, both
/// with power-of-two scales.
fn write_quantized_weights(tiny: &Tiny) {
    let (mut header, mut data) = (Map::new(), Vec::new());
    let mut put = |name: &str, dtype: &str, shape: &[usize], bits: usize| {
        let start = data.len();
        data.resize(start + shape.iter().product::<usize>() * bits / 8, 0x11);
        let offsets = [start, data.len()];
        let entry = json!({"dtype": dtype, "shape": shape, "data_offsets": offsets});
        header.insert(name.to_owned(), entry);
    };
    for (name, shape) in &tiny.tensors {
        let scale = name.replace("weight", "scale");
        let is_fp8 = name.contains(".attn.w") || name.contains("shared_") || name.contains("wq_b");
        match &shape[..] {
            [rows, columns] if name.contains(".experts.") => {
                put(name, "I8", &[*rows, columns / 2], 8);
                put(&scale, "F8_E8M0", &[*rows, columns / 32], 8);
            }
            [rows, columns] if is_fp8 => {
                put(name, "F8_E4M3", shape, 8);
                put(&scale, "F8_E8M0", &[rows.div_ceil(128), columns.div_ceil(128)], 8);
            }
            _ if name.contains("hc_") || name.ends_with(".ape") => put(name, "F32", shape, 32),
            _ => put(name, "BF16", shape, 16),
        }
    }
    put("layers.0.ffn.gate.tid2eid", "I32", &[VOCAB, USED], 32);
    let header = Value::from(header).to_string();
    let length = (header.len() as u64).to_le_bytes();
    tiny.file("model.safetensors", [&length, header.as_bytes(), &data].concat());
}

#[test]
fn auto_keeps_stored_tensor_types() {
    let quantization = json!({"quant_method": "fp8", "weight_block_size": [128, 128]});
    let tiny = deepseek4(json!({"quantization_config": quantization}));
    write_quantized_weights(&tiny);
    let checkpoint = Checkpoint::open(tiny.path()).unwrap();
    let types = |outtype: Option<&str>| {
        let outtype = outtype.map(|outtype| outtype.parse().unwrap());
        let options = hf::HfOptions { outtype, ..hf::HfOptions::default() };
        let job = hf::plan(tiny.path(), &checkpoint, &options).unwrap().job;
        let types = job.items.into_iter().map(|item| (item.tensor.name, item.target));
        (types.collect::<BTreeMap<_, _>>(), job.metadata.u64("general.file_type"))
    };
    let (types_of_auto, file_type) = types(None);
    assert_eq!(file_type, Some(38));
    for (name, expected) in [
        ("blk.0.ffn_gate_exps.weight", TensorType::MXFP4),
        ("blk.3.ffn_down_exps.weight", TensorType::MXFP4),
        ("blk.0.attn_q_a.weight", TensorType::Q8_0),
        ("blk.1.ffn_up_shexp.weight", TensorType::Q8_0),
        // Rows of 48 elements, which do not divide into blocks.
        ("blk.1.indexer.attn_q_b.weight", TensorType::F16),
        ("blk.0.hc_attn_fn.weight", TensorType::F32),
        ("blk.1.attn_compressor_ape.weight", TensorType::F32),
        ("blk.1.attn_compressor_gate.weight", TensorType::BF16),
        // Other models store these as F32.
        ("blk.0.ffn_gate_inp.weight", TensorType::BF16),
        ("blk.1.indexer.proj.weight", TensorType::BF16),
        ("blk.0.attn_norm.weight", TensorType::F32),
        ("blk.0.ffn_gate_tid2eid.weight", TensorType::I32),
    ] {
        assert_eq!(types_of_auto.get(name), Some(&expected), "{name}");
    }
    let (f16, file_type) = types(Some("f16"));
    assert_eq!(file_type, Some(1));
    assert_eq!(f16["blk.0.ffn_gate_exps.weight"], TensorType::F16);
    assert_eq!(f16["blk.0.ffn_gate_inp.weight"], TensorType::F32);
    assert_eq!(f16["blk.0.ffn_gate_tid2eid.weight"], TensorType::I32);
}

#[test]
fn transformers_configuration_converts_to_the_same_keys() {
    let stated = deepseek4(json!({})).convert().unwrap();
    let kinds = ["sliding", "compressed_sparse", "heavily_compressed", "compressed_sparse"];
    let kinds = kinds.map(|kind| format!("{kind}_attention"));
    let yarn = json!({"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 64,
        "beta_fast": 32.0, "beta_slow": 1.0, "attention_factor": 1.0, "rope_theta": 1.6e5,
        "partial_rotary_factor": 0.5});
    let current = deepseek4(
        json!({"compress_ratios": null, "layer_types": kinds, "num_hash_layers": null,
        "mlp_layer_types": ["hash_moe", "moe", "moe", "moe"], "qk_rope_head_dim": null, "rope_theta": null,
        "partial_rotary_factor": 0.5, "compress_rope_theta": null, "rope_scaling": null,
        "rope_parameters": {"main": {"rope_type": "default", "rope_theta": 1e4}, "compress": yarn}}),
    );
    let current = current.convert().unwrap();
    let keys = |bytes| {
        let model = Gguf::read(bytes).unwrap();
        let own = model.metadata().iter().filter(|(key, _)| key.starts_with("deepseek4."));
        own.map(|(key, value)| format!("{key} {value:?}")).collect::<Vec<_>>()
    };
    assert_eq!(keys(&current), keys(&stated));
}

#[test]
fn invalid_configurations_fail() {
    for (fields, expected) in [
        (json!({"compress_ratios": [0, 4]}), "field `compress_ratios` is [0,4]"),
        (json!({"compress_ratios": [0, 4, 8, 4]}), "`compress_ratios` is 8 in a layer"),
        (json!({"compress_ratios": null}), "has no field `compress_ratios`"),
        (json!({"num_hash_layers": null}), "has no field `num_hash_layers`"),
        (json!({"num_hash_layers": 2}), "blk.1.ffn_gate_tid2eid.weight"),
        (json!({"num_hash_layers": 0}), "`layers.0.ffn.gate.tid2eid` is not a tensor of deepseek4"),
        (json!({"scoring_func": "sigmoid"}), "`scoring_func` is \"sigmoid\""),
        (json!({"n_routed_experts": 8}), "has 4 of the 8 parts of `blk.0.ffn_down_exps.weight`"),
        (json!({"n_routed_experts": 3}), "has an index beyond the 3 of the configuration"),
        (json!({"num_hidden_layers": 5, "compress_ratios": [0, 4, 128, 4, 0]}), "claims 5 layers"),
    ] {
        let error = conversion_error(&deepseek4(fields));
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let mut wide = deepseek4(json!({}));
    let (_, _, numbers, bits) = &mut wide.integers[0];
    (numbers[3], *bits) = (1 << 31, 64);
    let error = conversion_error(&wide);
    assert!(error.contains("2147483648, which overflows 32 bits"), "{error}");
}

#[test]
pub fn dspark_draft_round_trip() {
    let fields = json!({"dspark_block_size": 4, "dspark_noise_token_id": 3, "dspark_target_layer_ids": [1, 3]});
    let config = deepseek4_config("DeepseekV4DSparkModel", fields);
    let mut tiny = Tiny::new(config).byte_level(VOCAB).with_target(draft_target());
    for number in 0..2 {
        tiny.tensors.extend(layer(&format!("mtp.{number}"), 0, true));
    }
    tiny.tensors.extend(hc_head("mtp.0."));
    tiny = tiny.tensors(&[
        ("mtp.0.main_proj.weight", &[WIDTH, 2 * WIDTH]),
        ("mtp.0.main_norm.weight", &[WIDTH]),
        ("mtp.0.norm.weight", &[WIDTH]),
        ("mtp.0.markov_head.markov_w1.weight", &[VOCAB, 8]),
        ("mtp.0.markov_head.markov_w2.weight", &[VOCAB, 8]),
        ("mtp.0.confidence_head.proj.weight", &[1, WIDTH + 8]),
    ]);
    let exported = assert_round_trip_with_findings(&tiny);
    assert_eq!(exported.config["architectures"], json!(["DeepseekV4DSparkModel"]));
    assert_eq!(exported.config["dspark_target_layer_ids"], json!([1, 3]));
    let model = Gguf::read(&exported.gguf).unwrap();
    assert_eq!(model.metadata().architecture(), Some("dflash"));
    assert_eq!(model.metadata().u64("dflash.block_count"), Some(2));
    assert_eq!(model.metadata().u64("tokenizer.ggml.mask_token_id"), Some(3));
    let missing = deepseek4_config("DeepseekV4DSparkModel", json!({"dspark_block_size": 4}));
    tiny.file("config.json", missing.to_string());
    let error = conversion_error(&tiny);
    assert!(error.contains("has no field `dspark_target_layer_ids`"), "{error}");
}

fn conversion_error(tiny: &Tiny) -> String {
    tiny.convert().unwrap_err().to_string()
}

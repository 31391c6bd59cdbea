//! There and back: models with several streams of the residual instead of norms, or of which first layers hash tokens.

use std::collections::BTreeMap;

use gguf::{Gguf, TensorType};
use gguf_checkpoint::Checkpoint;
use gguf_convert::hf;
use serde_json::{Map, Value, json};

use crate::decoder::*;
use crate::drafts::target;
use crate::there_and_back::{exported_as_it_was, exported_but_for, there_and_back};
use crate::tiny::{Tiny, elements};

const EXPERTS: usize = 4;
const USED: usize = 2;
const EXPERT_FF: usize = 32;
const STREAMS: usize = 2;
const EVERY: usize = STREAMS * WIDTH;
const RANK: usize = 24;

fn with(mut all: Value, fields: Value) -> Value {
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    all
}

/// What is said of a checkpoint that cannot be converted.
fn refused(tiny: &Tiny) -> String {
    tiny.convert().unwrap_err().to_string()
}

mod qwen {
    use super::*;

    const KEYS: usize = 2;
    const VALUES: usize = 4;
    const DIM: usize = 8;
    const SHARED: usize = 40;
    const SIZES: [i64; 4] = [11, 13, 17, 19];
    const ROW: usize = WIDTH / SIZES.len();
    const EMBEDDING: &str = "model.layers.0.ple.ple_embedding";

    fn hyper_connection(stem: &str) -> Vec<(String, Vec<usize>)> {
        vec![
            (format!("{stem}.hc_norm.weight"), vec![EVERY]),
            (format!("{stem}.input_mix_weight_down.weight"), vec![RANK, EVERY]),
            (format!("{stem}.input_mix_weight_up.weight"), vec![EVERY, RANK]),
        ]
    }

    fn layer(number: usize) -> Vec<(String, Vec<usize>)> {
        let (keys, values) = (KEYS * DIM, VALUES * DIM);
        let mut all: Vec<(&str, Vec<usize>)> = vec![
            ("attn_hyper_connection.block_inject_weight.weight", vec![STREAMS, EVERY]),
            ("mlp_hyper_connection.block_inject_weight.weight", vec![STREAMS, EVERY]),
            ("mlp.gate.weight", vec![EXPERTS, WIDTH]),
            ("mlp.shared_expert_gate.weight", vec![1, WIDTH]),
        ];
        all.extend(match number % 2 {
            0 => vec![
                ("linear_attn.in_proj_qkv.weight", vec![2 * keys + values, WIDTH]),
                ("linear_attn.in_proj_z.weight", vec![values, WIDTH]),
                ("linear_attn.in_proj_a.weight", vec![VALUES, WIDTH]),
                ("linear_attn.in_proj_b.weight", vec![VALUES, WIDTH]),
                ("linear_attn.conv1d.weight", vec![2 * keys + values, 1, 4]),
                ("linear_attn.A_log", vec![VALUES]),
                ("linear_attn.dt_bias", vec![VALUES]),
                ("linear_attn.norm.weight", vec![DIM]),
                ("linear_attn.out_proj.weight", vec![WIDTH, values]),
            ],
            _ => vec![
                ("self_attn.q_proj.weight", vec![2 * HEADS * HEAD, WIDTH]),
                ("self_attn.k_proj.weight", vec![KV * HEAD, WIDTH]),
                ("self_attn.v_proj.weight", vec![KV * HEAD, WIDTH]),
                ("self_attn.o_proj.weight", vec![WIDTH, HEADS * HEAD]),
                ("self_attn.q_norm.weight", vec![HEAD]),
                ("self_attn.k_norm.weight", vec![HEAD]),
                ("self_attn.indexer.index_qk_proj.weight", vec![3 * HEAD, WIDTH]),
                ("self_attn.indexer.q_layernorm.weight", vec![HEAD]),
                ("self_attn.indexer.k_layernorm.weight", vec![HEAD]),
            ],
        });
        if number == 0 {
            all.push(("ple.key_proj.weight", vec![EVERY, WIDTH]));
            all.push(("ple.value_proj.weight", vec![WIDTH, WIDTH]));
            all.push(("ple.conv1d.weight", vec![EVERY, 1, 4]));
            for norm in ["ple.norm_key.weight", "ple.norm_query.weight", "ple.norm_conv.weight"] {
                all.push((norm, vec![EVERY]));
            }
        }
        let begin = format!("model.layers.{number}");
        let mut named: Vec<_> =
            all.into_iter().map(|(name, shape)| (format!("{begin}.{name}"), shape)).collect();
        for part in ["attn", "mlp"] {
            named.extend(hyper_connection(&format!("{begin}.{part}_hyper_connection")));
        }
        let experts = (0..EXPERTS).map(|e| (format!("mlp.experts.{e}"), EXPERT_FF));
        for (stem, width) in experts.chain([("mlp.shared_expert".to_owned(), SHARED)]) {
            let of_layer = gated(&stem, width).into_iter();
            named.extend(
                of_layer.map(|(name, shape)| (name.replace("{}", &number.to_string()), shape)),
            );
        }
        named
    }

    /// With the embedding of n-grams in parts of so many rows.
    pub fn tiny(fields: Value, parts: &[usize]) -> Tiny {
        let kinds: Vec<_> =
            ["linear_attention", "full_attention"].into_iter().cycle().take(LAYERS).collect();
        let own = json!({"rms_norm_eps": 1e-6, "head_dim": HEAD, "layer_types": kinds, "num_experts": EXPERTS,
            "num_experts_per_tok": USED, "moe_intermediate_size": EXPERT_FF,
            "shared_expert_intermediate_size": SHARED, "linear_num_key_heads": KEYS, "linear_num_value_heads": VALUES,
            "linear_key_head_dim": DIM, "linear_value_head_dim": DIM, "linear_conv_kernel_dim": 4,
            "output_gate_type": "sigmoid", "hc_count": STREAMS, "hc_lowrank": RANK, "indexer_n_heads": 2,
            "indexer_head_dim": HEAD, "indexer_budget": 8, "indexer_compress_ratio": 4, "ple_layer_ids": [1],
            "ngram_size": 3, "heads_per_ngram": 2, "ple_conv_kernel_size": 4, "split_ngram_parts": parts.len(),
            "eos_token_id": [2, 3], "image_token_id": 4,
            "rope_parameters": {"rope_theta": 1e7, "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1]}});
        let config = config("Qwen4ExpForCausalLM", "qwen4_exp_text", with(own, fields));
        let mut tiny = checkpoint(config, vec![], &["lm_head"]);
        for number in 0..LAYERS {
            tiny.tensors.extend(layer(number));
        }
        tiny.tensors.extend(hyper_connection("model.hyper_connection_mixer"));
        for (i, rows) in parts.iter().enumerate() {
            let name = format!("{EMBEDDING}.ngram_embedding.shard_{i}.weight");
            tiny.tensors.push((name, vec![*rows, ROW]));
        }
        let offsets = [0, 11, 24, 41];
        tiny.list(&format!("{EMBEDDING}.layer_multipliers"), &[23_456_789_012_345, 5, 3])
            .list(&format!("{EMBEDDING}.ngram_heads_vocab_sizes"), &SIZES)
            .list(&format!("{EMBEDDING}.ngram_heads_offsets"), &offsets)
    }

    #[test]
    fn streams_and_ngrams_come_back() {
        let tiny = tiny(json!({}), &[64]);
        let back = exported_as_it_was(&tiny);
        assert_eq!(back.config["ple_layer_ids"], json!([1]));
        assert_eq!(back.config["hc_lowrank"], RANK);
        assert_eq!(back.config["indexer_compress_ratio"], 4);
        assert_eq!(back.config["layer_types"][1], "full_attention");
        let model = Gguf::read(&back.gguf).unwrap();
        let list = |key: &str| {
            let array = model.metadata().array(&format!("qwen4exp.{key}")).unwrap();
            array.iter().map(|number| number.to_u64().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(list("ple.layer_multipliers"), [23_456_789_012_345, 5, 3]);
        assert_eq!(list("attention.compress_ratios"), [0, 4, 0, 4]);
        assert_eq!(list("ple.layers"), [0]);
        // Of those that end a text the first ends n-grams.
        assert_eq!(model.metadata().u64("qwen4exp.ple.eos_token_id"), Some(2));
        let stored = tiny.values("model.layers.1.self_attn.indexer.index_qk_proj.weight");
        let (queries, keys) = stored.split_at(2 * HEAD * WIDTH);
        assert_eq!(elements(&back.gguf, "blk.1.indexer.q_proj.weight"), queries);
        assert_eq!(elements(&back.gguf, "blk.1.indexer.k_proj.weight"), keys);
        let gammas: Vec<f32> =
            tiny.values("model.layers.0.ple.norm_key.weight").iter().map(|x| x + 1.0).collect();
        assert_eq!(elements(&back.gguf, "blk.0.ple_norm_key.weight"), gammas);
    }

    #[test]
    fn parts_of_several_lengths_make_one_embedding() {
        let tiny = tiny(json!({}), &[24, 24, 16]);
        let parts = [0, 1, 2]
            .map(|i| tiny.values(&format!("{EMBEDDING}.ngram_embedding.shard_{i}.weight")));
        let gguf = tiny.convert().unwrap();
        assert_eq!(elements(&gguf, "per_layer_token_embd.weight"), parts.concat());
        there_and_back(tiny.path(), u64::MAX);
    }

    #[test]
    fn what_programs_have_no_place_for_is_refused() {
        for (fields, expected) in [
            (json!({"output_gate_type": null}), "`output_gate_type` is \"silu\""),
            (json!({"ple_layer_ids": [1, 3]}), "`ple_layer_ids` is [1,3]"),
            (json!({"ple_layer_ids": [2]}), "`ple_layer_ids` is 2"),
            (json!({"ple_layer_ids": [0]}), "`ple_layer_ids` is [0]"),
            (json!({"ple_embed_dim": 32}), "`ple_embed_dim` is 32"),
            (json!({"hc_count": 1}), "`hc_count` is 1"),
            (json!({"indexer_budget": null}), "has no field `indexer_budget`"),
            (json!({"layer_types": ["full_attention"]}), "field `layer_types`"),
            (json!({"heads_per_ngram": 3}), "has 4 numbers, and 6"),
            (
                json!({"split_ngram_parts": 2}),
                "has 1 of the 2 parts of `per_layer_token_embd.weight`",
            ),
            (json!({"eos_token_id": null}), "has no field `eos_token_id`"),
            (json!({"norm_topk_prob": false}), "`norm_topk_prob` is false"),
        ] {
            let fault = refused(&tiny(fields, &[64]));
            assert!(fault.contains(expected), "{expected}: {fault}");
        }
        let mut without = tiny(json!({}), &[64]);
        without.lists.remove(0);
        let fault = refused(&without);
        assert!(fault.contains("ple_embedding.layer_multipliers"), "{fault}");
    }
}

mod deepseek {
    use super::*;

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
            ("hc_attn_fn", vec![COUNT, EVERY]),
            ("hc_attn_base", vec![COUNT]),
            ("hc_attn_scale", vec![3]),
            ("hc_ffn_fn", vec![COUNT, EVERY]),
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

    fn configured(class: &str, fields: Value) -> Value {
        let own = json!({"rms_norm_eps": 1e-6, "rope_theta": 1e4, "num_key_value_heads": 1, "head_dim": HEAD,
            "q_lora_rank": QUERIES, "qk_rope_head_dim": 8, "o_groups": GROUPS, "o_lora_rank": OUTPUT,
            "moe_intermediate_size": EXPERT_FF, "n_routed_experts": EXPERTS, "n_shared_experts": 1,
            "num_experts_per_tok": USED, "scoring_func": "sqrtsoftplus", "norm_topk_prob": true, "swiglu_limit": 7.0,
            "routed_scaling_factor": 2.5, "sliding_window": 32, "index_n_heads": INDEX_HEADS, "index_head_dim": INDEX,
            "index_topk": 8, "compress_ratios": RATIOS, "compress_rope_theta": 1.6e5, "hc_mult": STREAMS,
            "hc_sinkhorn_iters": 20, "hc_eps": 1e-6, "num_hash_layers": 1,
            "rope_scaling": {"type": "yarn", "factor": 16.0, "original_max_position_embeddings": 64,
                "beta_fast": 32.0, "beta_slow": 1.0}});
        let mut config = config(class, "deepseek_v4", with(own, fields));
        config.as_object_mut().unwrap().remove("intermediate_size");
        config
    }

    /// What mixes streams behind the last layer.
    fn heads(begin: &str) -> [(String, Vec<usize>); 3] {
        [
            (format!("{begin}hc_head_fn"), vec![STREAMS, EVERY]),
            (format!("{begin}hc_head_base"), vec![STREAMS]),
            (format!("{begin}hc_head_scale"), vec![1]),
        ]
    }

    fn tiny(fields: Value) -> Tiny {
        let mut tiny = Tiny::new(configured("DeepseekV4ForCausalLM", fields)).byte_level(VOCAB);
        tiny = tiny.tensors(&[
            ("embed.weight", &[VOCAB, WIDTH]),
            ("norm.weight", &[WIDTH]),
            ("head.weight", &[VOCAB, WIDTH]),
        ]);
        tiny.tensors.extend(heads(""));
        for (number, ratio) in RATIOS.into_iter().enumerate() {
            tiny.tensors.extend(layer(&format!("layers.{number}"), ratio, number > 0));
        }
        tiny.table("layers.0.ffn.gate.tid2eid", USED, &TABLE)
    }

    #[test]
    fn tokens_are_hashed_and_compressed() {
        let back = exported_as_it_was(&tiny(json!({})));
        assert_eq!(back.config["compress_ratios"], json!(RATIOS));
        assert_eq!(back.config["num_hash_layers"], 1);
        assert_eq!(back.config["swiglu_limit"], 7.0);
        assert_eq!(back.config["scoring_func"], "sqrtsoftplus");
        let model = Gguf::read(&back.gguf).unwrap();
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
        assert_eq!(model.metadata().u64("deepseek4.embedding_length_out"), Some(EVERY as u64));
    }

    /// Writes the weights in the types of published checkpoints: experts in four bits, what is multiplied by in eight,
    /// both under powers of two.
    fn write_as_published(tiny: &Tiny) {
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
            let is_eight =
                name.contains(".attn.w") || name.contains("shared_") || name.contains("wq_b");
            match &shape[..] {
                [rows, columns] if name.contains(".experts.") => {
                    put(name, "I8", &[*rows, columns / 2], 8);
                    put(&scale, "F8_E8M0", &[*rows, columns / 32], 8);
                }
                [rows, columns] if is_eight => {
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
    fn tensors_keep_the_types_that_they_are_stored_in() {
        let quantization = json!({"quant_method": "fp8", "weight_block_size": [128, 128]});
        let tiny = tiny(json!({"quantization_config": quantization}));
        write_as_published(&tiny);
        let checkpoint = Checkpoint::open(tiny.path()).unwrap();
        let types = |outtype: Option<&str>| {
            let outtype = outtype.map(|outtype| outtype.parse().unwrap());
            let options = hf::Options { outtype, ..hf::Options::default() };
            let job = hf::plan(tiny.path(), &checkpoint, &options).unwrap().job;
            let types = job.items.into_iter().map(|item| (item.tensor.name, item.target));
            (types.collect::<BTreeMap<_, _>>(), job.metadata.u64("general.file_type"))
        };
        let (kept, file_type) = types(None);
        assert_eq!(file_type, Some(38));
        for (name, expected) in [
            ("blk.0.ffn_gate_exps.weight", TensorType::MXFP4),
            ("blk.3.ffn_down_exps.weight", TensorType::MXFP4),
            ("blk.0.attn_q_a.weight", TensorType::Q8_0),
            ("blk.1.ffn_up_shexp.weight", TensorType::Q8_0),
            // Rows of 48, which are no blocks.
            ("blk.1.indexer.attn_q_b.weight", TensorType::F16),
            ("blk.0.hc_attn_fn.weight", TensorType::F32),
            ("blk.1.attn_compressor_ape.weight", TensorType::F32),
            ("blk.1.attn_compressor_gate.weight", TensorType::BF16),
            // Of other models these are F32.
            ("blk.0.ffn_gate_inp.weight", TensorType::BF16),
            ("blk.1.indexer.proj.weight", TensorType::BF16),
            ("blk.0.attn_norm.weight", TensorType::F32),
            ("blk.0.ffn_gate_tid2eid.weight", TensorType::I32),
        ] {
            assert_eq!(kept.get(name), Some(&expected), "{name}");
        }
        let (asked, file_type) = types(Some("f16"));
        assert_eq!(file_type, Some(1));
        assert_eq!(asked["blk.0.ffn_gate_exps.weight"], TensorType::F16);
        assert_eq!(asked["blk.0.ffn_gate_inp.weight"], TensorType::F32);
        assert_eq!(asked["blk.0.ffn_gate_tid2eid.weight"], TensorType::I32);
    }

    #[test]
    fn newer_configurations_say_the_same() {
        let stated = tiny(json!({})).convert().unwrap();
        let kinds = ["sliding", "compressed_sparse", "heavily_compressed", "compressed_sparse"];
        let kinds = kinds.map(|kind| format!("{kind}_attention"));
        let yarn = json!({"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 64,
            "beta_fast": 32.0, "beta_slow": 1.0, "attention_factor": 1.0, "rope_theta": 1.6e5,
            "partial_rotary_factor": 0.5});
        let newer = tiny(
            json!({"compress_ratios": null, "layer_types": kinds, "num_hash_layers": null,
            "mlp_layer_types": ["hash_moe", "moe", "moe", "moe"], "qk_rope_head_dim": null, "rope_theta": null,
            "partial_rotary_factor": 0.5, "compress_rope_theta": null, "rope_scaling": null,
            "rope_parameters": {"main": {"rope_type": "default", "rope_theta": 1e4}, "compress": yarn}}),
        );
        let newer = newer.convert().unwrap();
        let keys = |bytes| {
            let model = Gguf::read(bytes).unwrap();
            let own = model.metadata().iter().filter(|(key, _)| key.starts_with("deepseek4."));
            own.map(|(key, value)| format!("{key} {value:?}")).collect::<Vec<_>>()
        };
        assert_eq!(keys(&newer), keys(&stated));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (fields, expected) in [
            (json!({"compress_ratios": [0, 4]}), "field `compress_ratios` is [0,4]"),
            (json!({"compress_ratios": [0, 4, 8, 4]}), "`compress_ratios` is 8 in a layer"),
            (json!({"compress_ratios": null}), "has no field `compress_ratios`"),
            (json!({"num_hash_layers": null}), "has no field `num_hash_layers`"),
            (json!({"num_hash_layers": 2}), "blk.1.ffn_gate_tid2eid.weight"),
            (json!({"num_hash_layers": 0}), "`layers.0.ffn.gate.tid2eid` belongs to no deepseek4"),
            (json!({"scoring_func": "sigmoid"}), "`scoring_func` is \"sigmoid\""),
            (
                json!({"n_routed_experts": 8}),
                "has 4 of the 8 parts of `blk.0.ffn_down_exps.weight`",
            ),
            (json!({"n_routed_experts": 3}), "is beyond the 3 that the configuration states"),
            (
                json!({"num_hidden_layers": 5, "compress_ratios": [0, 4, 128, 4, 0]}),
                "claims 5 layers",
            ),
        ] {
            let fault = refused(&tiny(fields));
            assert!(fault.contains(expected), "{expected}: {fault}");
        }
        let mut wide = tiny(json!({}));
        let (_, _, numbers, bits) = &mut wide.lists[0];
        (numbers[3], *bits) = (1 << 31, 64);
        let fault = refused(&wide);
        assert!(fault.contains("2147483648, which overflows 32 bits"), "{fault}");
    }

    #[test]
    fn the_draft_has_layers_of_its_own() {
        let fields = json!({"dspark_block_size": 4, "dspark_noise_token_id": 3, "dspark_target_layer_ids": [1, 3]});
        let config = configured("DeepseekV4DSparkModel", fields);
        let mut tiny = Tiny::new(config).byte_level(VOCAB).target(target());
        for number in 0..2 {
            tiny.tensors.extend(layer(&format!("mtp.{number}"), 0, true));
        }
        tiny.tensors.extend(heads("mtp.0."));
        tiny = tiny.tensors(&[
            ("mtp.0.main_proj.weight", &[WIDTH, 2 * WIDTH]),
            ("mtp.0.main_norm.weight", &[WIDTH]),
            ("mtp.0.norm.weight", &[WIDTH]),
            ("mtp.0.markov_head.markov_w1.weight", &[VOCAB, 8]),
            ("mtp.0.markov_head.markov_w2.weight", &[VOCAB, 8]),
            ("mtp.0.confidence_head.proj.weight", &[1, WIDTH + 8]),
        ]);
        let back = exported_but_for(&tiny, |_| false);
        assert_eq!(back.config["architectures"], json!(["DeepseekV4DSparkModel"]));
        assert_eq!(back.config["dspark_target_layer_ids"], json!([1, 3]));
        let model = Gguf::read(&back.gguf).unwrap();
        assert_eq!(model.metadata().architecture(), Some("dflash"));
        assert_eq!(model.metadata().u64("dflash.block_count"), Some(2));
        assert_eq!(model.metadata().u64("tokenizer.ggml.mask_token_id"), Some(3));
        let missing = configured("DeepseekV4DSparkModel", json!({"dspark_block_size": 4}));
        tiny.file("config.json", missing.to_string());
        let fault = refused(&tiny);
        assert!(fault.contains("has no field `dspark_target_layer_ids`"), "{fault}");
    }
}

//! The graphs of architectures: of models as the schema describes them, and what no reference shows.

use std::collections::BTreeSet;

use gguf::{Array, Value};
use gguf_graph::{
    Gating, Graph, Limits, Mask, Matmul, Op, OutputKind, Pool, Pooling, PositionBias, RopeScaling,
    stored,
};
use gguf_models::build_graph as build;
use gguf_models::registry::architectures_with_graph;
use gguf_models::schema::{architecture, architectures as schemas};

use crate::tiny::{metadata, tensors, text_models};

/// Tensors that no graph reads: those of the first layer of RWKV 7, which
/// mixes with the values that it has itself, distances between the halves of T5, which it has not, and
/// what CogVLM does with images.
const UNREAD: &[&str] = &["blk.0.time_mix_v", "cross_attn_rel_b", ".vis_"];
/// Those of single architectures: an encoder says nothing; the bonus of RWKV 6 in Qwen 2 has a name, and no model
/// has it; before the first layer of Kimi K3 there is nothing to be mixed; of images DeepSeek 4 sees nothing.
const UNREAD_OF: &[(&str, &str)] = &[
    ("t5encoder", "output.weight"),
    ("rwkv6qwen2", ".time_mix_first.weight"),
    ("kimi-k3", "blk.0.attn_res_score.weight"),
    ("deepseek4", ".exp_probs_b_vl.bias"),
];

/// The graph of a model with these keys besides, and the tensors that it needs.
fn graph(name: &str, others: &[(&str, Value)]) -> Graph {
    let of = architecture(name).unwrap();
    let metadata = metadata(of, others);
    build(&metadata, &tensors(of, &metadata, false)).unwrap()
}

fn masks(graph: &Graph) -> Vec<Mask> {
    let ops = &graph.main().0.ops;
    ops.iter()
        .filter_map(|op| if let Op::Attention(a) = op { Some(a.mask) } else { None })
        .collect()
}

fn biases(graph: &Graph) -> Vec<PositionBias> {
    let ops = &graph.main().0.ops;
    ops.iter()
        .filter_map(|op| if let Op::Attention(a) = op { Some(a.position_bias) } else { None })
        .collect()
}

fn count(graph: &Graph, is: impl Fn(&Op) -> bool) -> usize {
    graph.main().0.ops.iter().filter(|op| is(op)).count()
}

#[test]
fn every_other_architecture_has_a_graph() {
    let known: BTreeSet<_> = architectures_with_graph().collect();
    let names = schemas().map(|of| of.name);
    let missing: Vec<_> = names.filter(|name| !known.contains(name)).collect();
    assert_eq!(missing, WITHOUT_GRAPH);
}

/// Architectures that are converted and checked only. `clip` has projectors of images, which other
/// models read; `gemma4-assistant` is a draft, which reads what another model computes;
/// `wavtokenizer-dec`, `qwen3tts` and `pockettts` make sound, or what becomes sound.
const WITHOUT_GRAPH: &[&str] =
    &["clip", "gemma4-assistant", "pockettts", "qwen3tts", "wavtokenizer-dec"];

#[test]
fn models_of_the_schema_have_graphs_that_read_all_their_tensors() {
    for of in text_models() {
        for all in [false, true] {
            let metadata = metadata(of, &[]);
            let tensors = tensors(of, &metadata, all);
            let graph = build(&metadata, &tensors)
                .unwrap_or_else(|finding| panic!("{}, all: {all}: {finding}", of.name));
            let read: BTreeSet<_> =
                graph.raw().weights.iter().map(|weight| weight.name.as_str()).collect();
            let unread: Vec<_> = tensors
                .iter()
                .map(|tensor| tensor.name.as_str())
                .filter(|name| !read.contains(name))
                .filter(|name| {
                    !UNREAD_OF
                        .iter()
                        .any(|(of_one, unread)| *of_one == of.name && name.ends_with(unread))
                })
                .filter(|name| !UNREAD.iter().any(|unread| name.contains(unread)))
                .collect();
            assert!(unread.is_empty(), "{}, all: {all}: {unread:?}", of.name);
        }
    }
}

#[test]
fn dflash_models_have_graphs_if_their_layers_are_like_those_of_qwen() {
    let of = architecture("dflash").unwrap();
    let layers = ("target_layers", Array::from(&[1u32, 3][..]).into());
    let ff = ("feed_forward_length", 96u32.into());
    let metadata = metadata(of, &[layers, ff]);
    let mut all = tensors(of, &metadata, true);
    // The length of the kernels of DFlash 2 is in its tensors only.
    let conv = all.iter().find(|tensor| tensor.name == "blk.0.attn_q.weight").unwrap().clone();
    all.push(gguf::TensorInfo { name: "blk.0.attn_conv_proj.weight".into(), ..conv });
    let build = |without: &[&str]| {
        let is_left_out = |name: &str| without.iter().any(|part| name.contains(part));
        build(&metadata, all.iter().filter(|tensor| !is_left_out(&tensor.name)))
    };
    let without = ["conv", "post_ffw", "layer_output_scale", "attn_v."];
    let graph = build(&without).unwrap();
    assert_eq!(masks(&graph), [Mask::Full; 4]);
    let (encoder, _) = graph.encoder().unwrap();
    assert_eq!(encoder.token_features_width(), Some(128));
    let stores = encoder.ops.iter().filter(|op| matches!(op, Op::KvStore(_)));
    assert_eq!(stores.count(), 4);
    let message = build(&without[1..]).map(drop).unwrap_err().message;
    assert!(message.contains("DFlash 2"), "{message}");
}

#[test]
fn a_decoder_of_sound_is_no_model_of_texts() {
    let of = architecture("lfm2").unwrap();
    let metadata = metadata(of, &[("embedding_length_out", 64u64.into())]);
    let fault = build(&metadata, &tensors(of, &metadata, false)).unwrap_err();
    assert_eq!(
        (fault.code, fault.key.as_deref()),
        ("key-value", Some("lfm2.embedding_length_out"))
    );
}

#[test]
fn a_stored_graph_is_the_one_that_was_built() {
    for of in text_models() {
        let mut metadata = metadata(of, &[]);
        let built = build(&metadata, &tensors(of, &metadata, true)).unwrap();
        stored::store(&built, &mut metadata);
        let read = stored::stored(&metadata, Limits::default()).unwrap();
        assert!(read.is_some_and(|read| read == built), "{}", of.name);
    }
}

#[test]
fn baichuan_of_40_layers_has_slopes_and_does_not_rotate() {
    let rotations = |graph: &Graph| count(graph, |op| matches!(op, Op::Rope(_)));
    let large = graph("baichuan", &[("block_count", 40u64.into())]);
    assert_eq!(biases(&large), [PositionBias::Alibi { max_bias: 8.0 }; 40]);
    assert_eq!(rotations(&large), 0);
    let small = graph("baichuan", &[]);
    assert_eq!((biases(&small), rotations(&small)), (vec![PositionBias::None; 4], 8));
}

#[test]
fn windows_are_where_the_model_or_its_architecture_has_them() {
    let window = |len: u32| ("attention.sliding_window", Value::from(len));
    let pattern = |value: Value| ("attention.sliding_window_pattern", value);
    let (w, all) = (Mask::SlidingWindow, Mask::Causal);
    let of = |name, others: &[(&str, Value)]| masks(&graph(name, others));
    assert_eq!(of("gemma2", &[]), [w(4096), all, w(4096), all], "without a key");
    assert_eq!(of("gemma3", &[]), [all; 4]);
    assert_eq!(of("gemma3", &[window(8), pattern(2u32.into())]), [w(8), all, w(8), all]);
    assert_eq!(of("olmo2", &[window(8)]), [w(8), w(8), w(8), all]);
    let flags = Array::from(&[0u32, 1, 1, 0][..]);
    assert_eq!(of("olmo2", &[window(8), pattern(flags.into())]), [all, w(8), w(8), all]);
    let flags = Array::from(&[true, false, false, true][..]);
    assert_eq!(of("gpt-oss", &[window(8), pattern(flags.into())]), [w(8), all, all, w(8)]);
    assert_eq!(of("phi3", &[window(8)]), [w(8); 4]);
    assert_eq!(of("phi3", &[window(0)]), [all; 4]);
    let chunk = Mask::Chunked(8192);
    assert_eq!(of("llama4", &[]), [chunk, chunk, chunk, all]);
    assert_eq!(of("llama4", &[window(0)]), [all; 4]);
    assert_eq!(of("qwen2", &[("attention.causal", false.into())]), [Mask::Full; 4]);
}

#[test]
fn encoders_see_half_a_window_on_both_sides() {
    let of = |others: &[(&str, Value)]| masks(&graph("gemma-embedding", others));
    let pattern = ("attention.sliding_window_pattern", Value::from(2u32));
    let (around, all) = (Mask::SymmetricWindow(16), Mask::Full);
    assert_eq!(of(&[]), [around; 4], "of six layers the last sees all");
    assert_eq!(of(std::slice::from_ref(&pattern)), [around, all, around, all]);
    let window = Mask::SlidingWindow(16);
    let causal = of(&[pattern, ("attention.causal", true.into())]);
    assert_eq!(causal, [window, Mask::Causal, window, Mask::Causal], "if the model is none");
}

/// The operations that lead to the vector of a text, the last first, and its width.
fn to_vector(graph: &Graph) -> (Vec<String>, u64) {
    let (mut at, shape) = graph.output(OutputKind::Pooled).unwrap();
    let (program, _) = graph.main();
    let mut found = Vec::new();
    loop {
        match &program.ops[at.0 as usize] {
            Op::Matmul(Matmul { x, weight, bias: None }) => {
                found.push(graph.raw().weights[weight.0 as usize].name.clone());
                at = *x;
            }
            Op::Pool(Pool { kind, .. }) => {
                found.push(format!("{kind:?}"));
                return (found, shape.width.into());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn matrices_behind_the_pooling_are_applied_whatever_it_is() {
    let of = architecture("gemma-embedding").unwrap();
    let size = |name: &'static str, n: u32| (name, Value::from(n));
    let sizes = [size("dense_2_feat_out", 96), size("dense_3_feat_in", 96)];
    let built = |others: &[(&str, Value)]| {
        let metadata = metadata(of, &[&sizes[..], others].concat());
        build(&metadata, &tensors(of, &metadata, true)).unwrap()
    };
    let of_names = |kind: &str| {
        (vec!["dense_3.weight".to_owned(), "dense_2.weight".to_owned(), kind.to_owned()], 64)
    };
    assert_eq!(to_vector(&built(&[])), of_names("Mean"));
    let first = built(&[size("pooling_type", 2)]);
    assert_eq!(to_vector(&first), of_names("Cls"));
    assert_eq!(to_vector(&first.pooled(Pooling::Last).unwrap()), of_names("Last"));
}

#[test]
fn only_some_layers_rotate() {
    let rotations = |name, others: &[(&str, Value)]| {
        count(&graph(name, others), |op| matches!(op, Op::Rope(_)))
    };
    assert_eq!(rotations("smollm3", &[]), 6);
    assert_eq!(rotations("cohere2", &[]), 6);
    assert_eq!(rotations("llama4", &[]), 6);
    assert_eq!(rotations("llama4", &[("attention.sliding_window", 0u32.into())]), 8);
    assert_eq!(rotations("granite", &[]), 8);
    assert_eq!(rotations("granite", &[("rope.scaling.finetuned", false.into())]), 0);
}

#[test]
fn scales_of_attention_that_no_key_tells() {
    let scale = |name, layers: u64| {
        let graph = graph(name, &[("block_count", layers.into())]);
        let ops = &graph.main().0.ops;
        ops.iter().find_map(|op| if let Op::Attention(a) = op { Some(a.scale) } else { None })
    };
    // Keys are 256 wide, the model 64 with four heads.
    let wide = |name, layers: u64| {
        let others = [
            ("block_count", Value::from(layers)),
            ("attention.key_length", 256u32.into()),
            ("attention.value_length", 256u32.into()),
        ];
        let graph = graph(name, &others);
        let ops = &graph.main().0.ops;
        ops.iter().find_map(|op| if let Op::Attention(a) = op { Some(a.scale) } else { None })
    };
    assert_eq!(scale("gemma2", 4), Some(0.25));
    assert_eq!((wide("gemma2", 4), wide("gemma2", 46)), (Some(1.0 / 16.0), Some(0.25)));
    assert_eq!((wide("gemma3", 46), wide("gemma3", 62)), (Some(1.0 / 16.0), Some(0.25)));
}

#[test]
fn experts_are_weighed_as_the_model_says() {
    let gating = |name, others: &[(&str, Value)]| {
        let graph = graph(name, others);
        let ops = &graph.main().0.ops;
        ops.iter().find_map(|op| match op {
            Op::Moe(e) => Some((e.gating, e.normalize_weights, e.group_top_k)),
            _ => None,
        })
    };
    let function = |number: u32| ("expert_gating_func", Value::from(number));
    assert_eq!(gating("qwen2moe", &[]), Some((Gating::Softmax, false, 1)));
    assert_eq!(gating("qwen3moe", &[]), Some((Gating::Softmax, true, 1)));
    assert_eq!(gating("gpt-oss", &[]), Some((Gating::SoftmaxAfterTopk, false, 1)));
    assert_eq!(gating("deepseek2", &[]), Some((Gating::Softmax, false, 1)));
    assert_eq!(gating("deepseek2", &[function(2)]), Some((Gating::Sigmoid, false, 2)));
    let norm = ("expert_weights_norm", Value::from(true));
    assert_eq!(gating("deepseek2", &[norm]), Some((Gating::Softmax, true, 1)));
    let of = architecture("deepseek2").unwrap();
    let unknown = metadata(of, &[function(5)]);
    let finding = build(&unknown, &tensors(of, &unknown, false)).unwrap_err();
    assert_eq!(
        (finding.code, &*finding.message),
        ("key-value", "expert_gating_func is 5: no known function")
    );
    // The bias of the choice is of models whose gate is the sigmoid.
    let plain = metadata(of, &[]);
    let graph = build(&plain, &tensors(of, &plain, true)).unwrap();
    let ops = &graph.main().0.ops;
    assert!(ops.iter().any(|op| matches!(op, Op::Moe(e) if e.gating == Gating::Sigmoid)));
}

#[test]
fn yarn_is_rounded_but_in_gpt_oss() {
    let yarn = [
        ("rope.scaling.type", Value::from("yarn")),
        ("rope.scaling.factor", 4.0f32.into()),
        ("rope.scaling.original_context_length", 32u32.into()),
    ];
    let rounding = |name| {
        let graph = graph(name, &yarn);
        let ops = &graph.main().0.ops;
        ops.iter().find_map(|op| match op {
            Op::Rope(rope) => match rope.parameters.scaling {
                RopeScaling::Yarn { truncate, .. } => {
                    Some((truncate, rope.parameters.attention_factor))
                }
                _ => None,
            },
            _ => None,
        })
    };
    let magnitude = 1.0 + 0.1 * 4f32.ln();
    assert_eq!(rounding("llama"), Some((true, magnitude)));
    assert_eq!(rounding("gpt-oss"), Some((false, magnitude)));
}

#[test]
fn last_layers_of_gemma_use_keys_and_values_of_earlier_ones() {
    let shared = ("attention.shared_kv_layers", Value::from(2u32));
    let flags = Array::from(&[true, false, true, false][..]);
    let pattern = ("attention.sliding_window_pattern", flags.into());
    for name in ["gemma3n", "gemma4"] {
        let graph = graph(name, &[shared.clone(), pattern.clone()]);
        let ops = &graph.main().0.ops;
        let states: Vec<_> = ops
            .iter()
            .filter(|op| matches!(op, Op::Attention(_)))
            .map(|op| op.states()[0].0)
            .collect();
        assert_eq!(states, [0, 1, 0, 1], "{name}: of those that see as much");
        assert_eq!(graph.raw().states.len(), 2, "{name}");
    }
}

#[test]
fn layers_without_an_indexer_look_at_what_one_before_them_has_chosen() {
    let of = architecture("glm-dsa").unwrap();
    let metadata = metadata(of, &[]);
    let mut tensors = tensors(of, &metadata, true);
    tensors.retain(|tensor| !tensor.name.starts_with("blk.2.indexer"));
    let graph = build(&metadata, &tensors).unwrap();
    let chosen = graph.main().0.ops.iter().filter_map(|op| match op {
        Op::Attention(attention) => Some(attention.selection.unwrap().indices),
        _ => None,
    });
    let chosen: Vec<_> = chosen.collect();
    assert_eq!(count(&graph, |op| matches!(op, Op::TopkIndexer(_))), 3);
    assert!(chosen[1] == chosen[2] && chosen[0] != chosen[1] && chosen[2] != chosen[3]);
}

#[test]
fn layers_that_guess_further_tokens_are_left_out() {
    let graph = graph("glm4", &[("nextn_predict_layers", 1u32.into())]);
    assert_eq!(masks(&graph).len(), 3);
}

#[test]
fn layers_of_deepseek_4_see_blocks_as_long_as_their_ratio() {
    let of = architecture("deepseek4").unwrap();
    let metadata = metadata(of, &[]);
    let mut tensors = tensors(of, &metadata, true);
    // The third layer compresses without overlap, and has no indexer.
    tensors.retain(|tensor| !tensor.name.starts_with("blk.2.indexer"));
    for tensor in tensors.iter_mut().filter(|t| t.name.starts_with("blk.2.attn_compressor")) {
        let shape: Vec<u64> = tensor.shape.iter().map(|n| if *n == 32 { 16 } else { *n }).collect();
        tensor.shape = gguf::Shape::new(&shape).unwrap();
    }
    let graph = build(&metadata, &tensors).unwrap();
    let (program, _) = graph.main();
    let compressed = program.ops.iter().filter_map(|op| match op {
        Op::BlockCompress(compress) => Some((compress.block, compress.overlap)),
        _ => None,
    });
    let of_indexed = [(4, true); 2];
    let wanted = [&of_indexed[..], &[(8, false)], &of_indexed].concat();
    assert_eq!(compressed.collect::<Vec<_>>(), wanted);
    let attentions = program.ops.iter().filter_map(|op| match op {
        Op::Attention(attention) => Some(attention),
        _ => None,
    });
    let seen =
        attentions.map(|attention| attention.compressed.map(|blocks| blocks.indices.is_some()));
    assert_eq!(seen.collect::<Vec<_>>(), [None, Some(true), Some(false), Some(true)]);
    assert_eq!(masks(&graph), [Mask::SlidingWindow(16); 4]);
    let chosen = program.ops.iter().filter_map(|op| match op {
        Op::Moe(experts) => Some((experts.expert_ids.is_some(), experts.gating)),
        _ => None,
    });
    let gating = Gating::SqrtSoftplus;
    let wanted = [true, true, false, false].map(|by_token| (by_token, gating));
    assert_eq!(chosen.collect::<Vec<_>>(), wanted);
    // Keys and values of 16 numbers: of each token in four layers, of a fourth in two and of an eighth in one; and
    // the indexers' keys.
    assert_eq!(graph.cache_width(), 4 * 32 + 2 * (32 + 16) / 4 + 32 / 8);
}

#[test]
fn layers_of_glm_5_3_choose_blocks_or_look_at_what_one_before_them_has_chosen() {
    let kinds = Array::from(&[true, true, true, false][..]);
    let of = architecture("glm5-next").unwrap();
    let metadata = metadata(of, &[("attention.indexer.types", kinds.into())]);
    let graph = build(&metadata, &tensors(of, &metadata, true)).unwrap();
    let among = graph.main().0.ops.iter().filter_map(|op| match op {
        Op::Attention(attention) => attention.selection,
        _ => None,
    });
    let among: Vec<_> = among.collect();
    assert_eq!(count(&graph, |op| matches!(op, Op::TopkIndexer(_))), 1);
    assert_eq!(count(&graph, |op| matches!(op, Op::LinearAttention(_))), 2);
    assert!(
        among.len() == 2 && among[0] == among[1] && among[0].block == 2 && among[0].include_tail
    );
}

#[test]
fn adapters_have_a_token_each_and_one_that_stands_in_for_it() {
    let of = architecture("graniteswitch").unwrap();
    let fault = |key: &str, tokens: &[i32]| {
        let metadata = metadata(of, &[(key, Array::from(tokens).into())]);
        let fault = build(&metadata, &tensors(of, &metadata, false)).unwrap_err();
        (fault.code, fault.message.into_string())
    };
    let replacing = "adapters.token_ids_substitute";
    let few = "2 control tokens and 1 substitute tokens for 2 adapters";
    assert_eq!(fault(replacing, &[1]), ("key-value", few.to_owned()));
    assert_eq!(fault(replacing, &[1, -1]).0, "key-value");
    // There are 40 tokens.
    let (code, message) = fault(replacing, &[1, 40]);
    assert_eq!(code, "graph-invalid");
    assert!(message.ends_with("a mapped token id has no row in the table"), "{message}");
}

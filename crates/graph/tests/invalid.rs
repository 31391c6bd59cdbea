//! Every way in which a graph can be wrong, one fault at a time.

use gguf::Metadata;
use gguf_graph::{Graph, Limits, RawGraph, stored};
use serde_json::{Value as Json, json};

/// A small graph with one of many things: width 8, two heads of 4, one of keys and values.
fn sound() -> Json {
    let rotation = json!({"pairs": "halves", "count": 4, "base": 10000.0});
    json!({
        "architecture": "sound",
        "weights": [
            {"name": "embd", "shape": [8, 20]}, {"name": "norm", "shape": [8]},
            {"name": "q", "shape": [8, 8]}, {"name": "k", "shape": [8, 4]},
            {"name": "up", "shape": [8, 6, 3]}, {"name": "down", "shape": [6, 8, 3]},
            {"name": "inp", "shape": [8, 3]}, {"name": "conv", "shape": [4, 8]},
            {"name": "sinks", "shape": [2]}, {"name": "three", "shape": [3]},
            {"name": "twelve", "shape": [12]},
        ],
        "states": [{"kind": "cache", "keys": 4, "values": 4}, {"kind": "rows", "width": 8, "rows": 3},
                   {"kind": "cache", "keys": 4, "values": 0}],
        "main": {
            "ops": [
                {"op": "embed", "table": 0, "index": "token"},
                {"op": "norm", "x": 0, "kind": "mean_square", "epsilon": 1e-5, "weight": 1},
                {"op": "product", "x": 1, "weight": 2},
                {"op": "product", "x": 1, "weight": 3},
                {"op": "rotate", "x": 2, "heads": 2, "rotation": rotation},
                {"op": "attention", "query": 4, "memory": {"cached": {"key": 3, "value": 3, "state": 0}},
                 "heads": 2, "heads_kv": 1, "key_len": 4, "value_len": 4, "scale": 0.5, "mask": "causal",
                 "sinks": 8},
                {"op": "add", "a": 0, "b": 5},
                {"op": "product", "x": 6, "weight": 6},
                {"op": "experts", "x": 6, "scores": 7, "used": 2, "gating": "softmax", "normalize": true,
                 "scale": 1.0, "up": 4, "down": 5, "function": {"plain": "silu"}},
                {"op": "causal_convolution", "x": 8, "weight": 7, "state": 1},
                {"op": "slice", "x": 9, "groups": 2, "start": 1, "len": 2},
                {"op": "select", "x": 9},
                {"op": "product", "x": 11, "weight": 0},
            ],
            "outputs": [{"kind": "logits", "value": 12}],
        },
    })
}

/// An operation that chooses tokens.
fn choose(heads: u32, count: u32, block: u32, state: Json) -> Json {
    json!({"op": "choose", "query": 4, "key": 3, "heads": heads, "count": count, "block": block,
           "state": state})
}

/// An operation on a row of four numbers.
fn sinkhorn(iterations: u32, epsilon: f32) -> Json {
    json!({"op": "sinkhorn", "x": 3, "iterations": iterations, "epsilon": epsilon})
}

fn combine(x: u32, shares: u32, parts: u32) -> Json {
    json!({"op": "combine", "x": x, "shares": shares, "parts": parts})
}

fn finding(graph: Json) -> (&'static str, String) {
    let mut metadata = Metadata::new();
    metadata.set(stored::VERSION_KEY, 1u32);
    metadata.set(stored::GRAPH_KEY, graph.to_string().as_str());
    match stored::stored(&metadata, Limits::default()) {
        Ok(_) => ("", String::new()),
        Err(finding) => (finding.code, finding.message.into()),
    }
}

#[test]
fn the_sound_one_is_sound() {
    assert_eq!(finding(sound()).1, "");
    let raw: RawGraph = serde_json::from_value(sound()).unwrap();
    let graph = Graph::new(raw.clone(), Limits::default()).unwrap();
    let (_, shapes) = graph.main();
    let shapes: Vec<_> = shapes.iter().map(ToString::to_string).collect();
    assert_eq!(shapes[4..6], ["tokens x 8", "tokens x 8"]);
    assert_eq!(shapes[10..], ["tokens x 4", "outputs x 8", "outputs x 20"]);
    assert_eq!(graph.cache_width(), 12);
    let text = stored::to_text(&graph);
    assert_eq!(serde_json::from_str::<RawGraph>(&text).unwrap(), raw, "there and back");
}

#[test]
fn every_fault_is_named() {
    /// Where, what stands there instead, and what is said.
    type Case<'c> = (&'c str, Json, &'c str);
    let cases: &[Case] = &[
        ("/main/ops/1/x", json!(1), "operation 1: value 1 is not made before"),
        ("/main/ops/1/x", json!(900), "operation 1: value 900 is not made before"),
        ("/main/ops/1/weight", json!(99), "operation 1: there is no weight 99"),
        ("/main/ops/1/epsilon", json!(-1.0), "operation 1: epsilon is below 0"),
        ("/weights/1/shape", json!([7]), "operation 1: the weight of the norm is neither"),
        (
            "/weights/2/shape",
            json!([9, 8]),
            "operation 2: width of the value and rows of the matrix: 8 and 9",
        ),
        (
            "/weights/2/shape",
            json!([8, 0]),
            "operation 2: a dimension of the weight is 0 or too large",
        ),
        ("/weights/2/shape", json!([8, 8, 2]), "operation 2: the weight has too many dimensions"),
        (
            "/weights/2/shape",
            json!([8, 1u64 << 40]),
            "operation 2: a dimension of the weight is 0 or too large",
        ),
        ("/main/ops/4/heads", json!(3), "operation 4: 3 parts do not divide a row of 8"),
        ("/main/ops/4/heads", json!(0), "operation 4: 0 parts do not divide a row of 8"),
        ("/main/ops/4/rotation/count", json!(3), "operation 4: an odd number"),
        ("/main/ops/4/rotation/count", json!(6), "operation 4: the rotation ends beyond the head"),
        ("/main/ops/4/rotation/base", json!(0.0), "operation 4: the base is not above 0"),
        ("/main/ops/5/heads_kv", json!(0), "operation 5: there are no heads"),
        ("/main/ops/5/heads", json!(1), "operation 5: width of queries: 8 and 4"),
        ("/main/ops/5/memory/cached/state", json!(1), "operation 5: the state is 3 rows of 8"),
        ("/main/ops/5/memory/cached/state", json!(7), "operation 5: there is no state 7"),
        ("/states/0/keys", json!(5), "operation 5: keys of the state: 5 and 4"),
        ("/weights/8/shape", json!([3]), "operation 5: the weight is [3] instead of [2]"),
        ("/main/ops/6/b", json!(3), "operation 6: the values have other shapes"),
        (
            "/main/ops/8/used",
            json!(4),
            "operation 8: a token uses no expert, or more than there are",
        ),
        (
            "/main/ops/8/used",
            json!(0),
            "operation 8: a token uses no expert, or more than there are",
        ),
        ("/main/ops/8/scores", json!(6), "operation 8: number of scores and experts: 8 and 3"),
        (
            "/weights/5/shape",
            json!([7, 8, 3]),
            "operation 8: what goes into the experts' last matrices is not as wide",
        ),
        (
            "/main/ops/8/function",
            json!({"clamped": {"alpha": 1.0, "limit": -1.0}}),
            "operation 8: the limit is below 0",
        ),
        (
            "/main/ops/10",
            json!({"op": "sum", "x": 9, "groups": 3}),
            "operation 10: 3 parts do not divide a row of 8",
        ),
        (
            "/main/ops/10",
            json!({"op": "multiply", "a": 9, "b": 7}),
            "operation 10: 3 parts do not divide a row of 8",
        ),
        (
            "/main/ops/10",
            json!({"op": "multiply_weight", "x": 9, "weight": 9}),
            "operation 10: 3 parts do not divide a row of 8",
        ),
        (
            "/main/ops/10",
            json!({"op": "multiply_weight", "x": 9, "weight": 10}),
            "operation 10: numbers of the weight: 12 and 8",
        ),
        (
            "/main/ops/10",
            json!({"op": "sinkhorn", "x": 9, "iterations": 2, "epsilon": 0.1}),
            "operation 10: a row is no square matrix",
        ),
        ("/main/ops/10", sinkhorn(0, 0.1), "operation 10: too few or too many iterations"),
        ("/main/ops/10", sinkhorn(u32::MAX, 0.1), "operation 10: too few or too many iterations"),
        ("/main/ops/10", sinkhorn(20, -0.1), "operation 10: epsilon is below 0"),
        ("/main/ops/10", combine(9, 3, 3), "operation 10: 3 parts do not divide a row of 4"),
        ("/main/ops/10", combine(9, 7, 3), "operation 10: 3 parts do not divide a row of 8"),
        ("/main/ops/10", combine(9, 3, 0), "operation 10: 0 parts do not divide a row of 4"),
        ("/main/ops/8/share", json!(2), "operation 8: number of scores and experts: 3 and 6"),
        ("/main/ops/8/share", json!(0), "operation 8: number of scores and experts: 3 and 0"),
        ("/main/ops/8/chosen", json!(9), "operation 8: value 9 is not made before"),
        (
            "/main/ops/8/chosen",
            json!(3),
            "operation 8: numbers of experts and experts of a token: 4 and 2",
        ),
        (
            "/main/ops/10",
            json!({"op": "head_product", "x": 9, "weight": 4}),
            "operation 10: width of the value and of all heads: 8 and 24",
        ),
        ("/main/ops/8/scales", json!(8), "operation 8: the weight is [2] instead of [3]"),
        (
            "/main/ops/8/gating",
            json!({"softmax_of_close": {"margin": -1.0}}),
            "operation 8: the margin is below 0",
        ),
        (
            "/main/ops/8/function",
            json!({"bounded": {"function": "silu", "limit": -1.0}}),
            "operation 8: the limit is below 0",
        ),
        ("/main/ops/10", choose(0, 2, 1, json!(2)), "operation 10: there are no heads"),
        ("/main/ops/10", choose(2, 0, 1, json!(2)), "operation 10: there are no heads"),
        ("/main/ops/10", choose(2, 2, 0, json!(2)), "operation 10: a block has no positions"),
        (
            "/main/ops/10",
            choose(1, 2, 1, json!(2)),
            "operation 10: width of queries and of all heads: 8 and 4",
        ),
        (
            "/main/ops/10",
            choose(2, 2, 1, json!(0)),
            "operation 10: the state is a cache of 4 and 4 numbers",
        ),
        (
            "/main/ops/10",
            json!({"op": "choose", "query": 4, "key": 3, "weights": 7, "heads": 2, "count": 2,
                   "state": 2}),
            "operation 10: weights and heads: 3 and 2",
        ),
        ("/main/ops/5/among", json!({"chosen": 9}), "operation 5: value 9 is not made before"),
        (
            "/main/ops/5/among",
            json!({"chosen": 0, "groups": 3}),
            "operation 5: 3 parts do not divide a row of 8",
        ),
        (
            "/main/ops/5/among",
            json!({"chosen": 0, "groups": 2}),
            "operation 5: the groups do not divide the heads",
        ),
        (
            "/main/ops/5/among",
            json!({"chosen": 0, "block": 0}),
            "operation 5: a block has no positions",
        ),
        (
            "/states/1/rows",
            json!(2),
            "operation 9: the state is 2 rows of 8 instead of 3 rows of 8",
        ),
        ("/main/ops/10/len", json!(4), "operation 10: the slice ends beyond the row"),
        ("/main/ops/10/start", json!(u32::MAX), "operation 10: the slice ends beyond the row"),
        (
            "/main/ops/12/x",
            json!(10),
            "operation 12: width of the value and rows of the matrix: 4 and 8",
        ),
        ("/main/outputs/0/value", json!(13), "main program: there is no value 13"),
        ("/main/outputs", json!([]), "main program: nothing comes out"),
        ("/weights/1/name", json!("embd"), "the weight embd is named twice"),
        ("/main/ops/0/op", json!("embody"), "unknown variant `embody`"),
        ("/main/ops/0/index", json!("time"), "unknown variant `time`"),
        ("/main/ops/2/x", json!(-1), "invalid value"),
        ("/main/ops/2/x", json!("1"), "invalid type"),
        ("/main/more", json!(1), "unknown field `more`"),
        ("/main/ops/2/more", json!(1), "unknown field `more`"),
    ];
    for (path, instead, said) in cases {
        let mut graph = sound();
        match graph.pointer_mut(path) {
            Some(place) => *place = instead.clone(),
            None => {
                let (parent, field) = path.rsplit_once('/').unwrap();
                graph.pointer_mut(parent).unwrap()[field] = instead.clone();
            }
        }
        let (code, message) = finding(graph);
        assert!(message.contains(said), "{path}: {message}");
        assert_eq!(code, "graph-invalid", "{path}");
    }
}

#[test]
fn an_operation_has_a_state_for_itself() {
    let mut graph = sound();
    let mut again = graph["main"]["ops"][5].clone();
    graph["main"]["ops"][6] = again.clone();
    assert_eq!(finding(graph.clone()).1, "", "the same keys and values are kept once");
    again["memory"]["cached"]["value"] = json!(7);
    again["heads_kv"] = json!(1);
    graph["main"]["ops"][7] = json!({"op": "scale", "x": 3, "factor": 2.0});
    graph["main"]["ops"][8] = again;
    let (code, message) = finding(graph);
    assert_eq!(code, "graph-invalid");
    assert!(message.contains("operation 8: another operation changes state 0 too"), "{message}");
}

#[test]
fn too_much_is_refused() {
    let raw: RawGraph = serde_json::from_value(sound()).unwrap();
    let code = |limits| Graph::new(raw.clone(), limits).err().map(|finding| finding.code);
    let limits = Limits::default();
    assert_eq!(code(limits), None);
    assert_eq!(code(Limits { ops: 12, ..limits }), Some("graph-limit"));
    assert_eq!(code(Limits { parts: 10, ..limits }), Some("graph-limit"));
    assert_eq!(code(Limits { width: 100, ..limits }), Some("graph-limit"));
}

#[test]
fn products_without_end_are_refused() {
    let weights = json!([{"name": "w", "shape": [4096, 4096]}, {"name": "e", "shape": [4096, 1]}]);
    let mut ops = vec![json!({"op": "embed", "table": 1, "index": "zero"})];
    ops.extend((0..300).map(|x| json!({"op": "product", "x": x, "weight": 0})));
    let outputs = json!([{"kind": "hidden", "value": 300}]);
    let graph = |ops: &[Json]| {
        json!({"architecture": "x", "weights": weights, "states": [],
               "main": {"ops": ops, "outputs": outputs}})
    };
    assert_eq!(finding(graph(&ops)).0, "graph-limit");
}

#[test]
fn what_is_no_graph() {
    let of = |version: Option<u32>, value: gguf::Value| {
        let mut metadata = Metadata::new();
        if let Some(version) = version {
            metadata.set(stored::VERSION_KEY, version);
        }
        metadata.set(stored::GRAPH_KEY, value);
        stored::stored(&metadata, Limits::default()).unwrap_err().code
    };
    assert_eq!(of(None, "{}".into()), "graph-version");
    assert_eq!(of(Some(2), "{}".into()), "graph-version");
    assert_eq!(of(Some(1), "{}".into()), "graph-invalid");
    assert_eq!(of(Some(1), 7u32.into()), "graph-invalid");
    assert_eq!(of(Some(1), "[".repeat(100_000).as_str().into()), "graph-invalid");
    assert!(stored::stored(&Metadata::new(), Limits::default()).unwrap().is_none());
}

#[test]
fn every_fault_of_linear_attention_is_named() {
    let embed = |table: u32| json!({"op": "embed", "table": table, "index": "token"});
    let sound = json!({
        "architecture": "x",
        "weights": [{"name": "keys", "shape": [8, 20]}, {"name": "values", "shape": [6, 20]},
            {"name": "heads", "shape": [2, 20]}],
        "states": [{"kind": "floats", "len": 24}],
        "main": {"outputs": [{"kind": "hidden", "value": 3}], "ops": [
            embed(0), embed(1), embed(2),
            {"op": "linear_attention", "query": 0, "key": 0, "value": 1, "heads": 2,
             "decay": {"value": 2}, "rate": 2, "state": 0}]},
    });
    assert_eq!(finding(sound.clone()).1, "");
    let slopes = |max: Json, factor: Json| json!({"slopes": {"max": max, "factor": factor}});
    let cases = [
        ("query", json!(1), "widths of queries and keys: 6 and 8"),
        ("value", json!(4), "value 4 is not made before"),
        ("heads", json!(3), "3 parts do not divide a row of 8"),
        ("heads", json!(0), "0 parts do not divide a row of 8"),
        ("heads", json!(4), "4 parts do not divide a row of 6"),
        ("decay", json!({"value": 1}), "the decay is neither for heads nor for each number"),
        ("decay", slopes(json!(1e39), json!(1)), "the slopes are not finite"),
        ("decay", slopes(json!(8), json!(1e39)), "the slopes are not finite"),
        ("rate", json!(1), "rates and heads: 6 and 2"),
        ("state", json!(1), "there is no state 1"),
        ("more", json!(1), "unknown field `more`"),
    ];
    for (field, instead, said) in cases {
        let mut graph = sound.clone();
        graph["main"]["ops"][3][field] = instead;
        let (code, message) = finding(graph);
        assert!(message.contains(said), "{field}: {message}");
        assert_eq!(code, "graph-invalid", "{field}");
    }
    let mut graph = sound;
    graph["states"][0]["len"] = 25.into();
    assert!(finding(graph).1.contains("the state is 25 floats instead of 24 floats"));
}

#[test]
fn every_fault_of_numbers_of_tokens_is_named() {
    let sound = json!({
        "architecture": "x",
        "weights": [{"name": "table", "shape": [4, 9]}, {"name": "matrices", "shape": [4, 6, 3]}],
        "states": [],
        "main": {"outputs": [{"kind": "hidden", "value": 3}], "ops": [
            {"op": "embed", "table": 0, "index": {"replaced": [[2, 1], [5, 8]]}},
            {"op": "mark", "marks": [[2, 1.0], [5, 2.0]], "otherwise": 0.0},
            {"op": "numbered_product", "x": 0, "number": 1, "weight": 1},
            {"op": "select", "x": 2}]},
    });
    assert_eq!(finding(sound.clone()).1, "");
    let replaced = |tokens: Json| json!({ "replaced": tokens });
    let cases = [
        (0, "index", replaced(json!([[2, 9]])), "a token that stands in has no row"),
        (0, "index", replaced(json!([[5, 1], [2, 1]])), "tokens are not in ascending order"),
        (0, "index", replaced(json!([[2, 1], [2, 3]])), "tokens are not in ascending order"),
        (0, "index", replaced(json!([[2, -1]])), "invalid value"),
        (1, "marks", json!([[5, 1.0], [5, 2.0]]), "tokens are not in ascending order"),
        (1, "marks", json!([[5, 1e39]]), "a number is not finite"),
        (1, "marks", json!([[5]]), "invalid length"),
        (1, "otherwise", json!(-1e39), "a number is not finite"),
        (2, "x", json!(1), "width of the value and rows of the matrices: 1 and 4"),
        (2, "number", json!(0), "numbers of a row: 4 and 1"),
        (2, "number", json!(2), "value 2 is not made before"),
        (2, "weight", json!(2), "there is no weight 2"),
        (2, "more", json!(1), "unknown field `more`"),
    ];
    for (op, field, instead, said) in cases {
        let mut graph = sound.clone();
        graph["main"]["ops"][op][field] = instead;
        let (code, message) = finding(graph);
        assert!(message.contains(said), "{field}: {message}");
        assert_eq!(code, "graph-invalid", "{field}");
    }
    let mut graph = sound;
    graph["main"]["ops"][2] = json!({"op": "select", "x": 0});
    graph["main"]["ops"][3] = json!({"op": "numbered_product", "x": 2, "number": 1, "weight": 1});
    assert!(finding(graph).1.contains("the values have other rows"));
}

#[test]
fn every_fault_of_compressed_blocks_is_named() {
    let embed = |table: u32| json!({"op": "embed", "table": table, "index": "token"});
    let sound = json!({
        "architecture": "x",
        "weights": [{"name": "four", "shape": [4, 20]}, {"name": "eight", "shape": [8, 20]},
            {"name": "place", "shape": [8, 3]}],
        "states": [{"kind": "rows", "width": 16, "rows": 6},
            {"kind": "cache", "keys": 4, "values": 4}, {"kind": "cache", "keys": 4, "values": 4, "block": 3},
            {"kind": "cache", "keys": 4, "values": 0, "block": 3}],
        "main": {"outputs": [{"kind": "hidden", "value": 4}], "ops": [
            embed(0), embed(1),
            {"op": "compress", "x": 1, "gate": 1, "place": 2, "block": 3, "overlap": true, "state": 0},
            {"op": "choose", "query": 1, "key": 2, "heads": 2, "count": 2, "state": 3},
            {"op": "attention", "query": 1, "memory": {"cached": {"key": 0, "value": 0, "state": 1}},
             "heads": 2, "heads_kv": 1, "key_len": 4, "value_len": 4, "scale": 0.5, "mask": "causal",
             "blocks": {"key": 2, "value": 2, "state": 2, "chosen": 3}},
            {"op": "rotate", "x": 2, "heads": 1, "rotation":
                {"pairs": "halves", "count": 4, "base": 10000.0, "block": 3, "inverse": true}}]},
    });
    assert_eq!(finding(sound.clone()).1, "");
    let cases = [
        ("/main/ops/2/gate", json!(0), "widths of what is compressed and of its weights: 8 and 4"),
        ("/main/ops/2/block", json!(0), "a block has no tokens"),
        ("/main/ops/2/block", json!(4), "the weight is [8, 3] instead of [8, 4]"),
        ("/main/ops/2/block", json!(u32::MAX), "the weight is [8, 3] instead of [8, 4294967295]"),
        ("/main/ops/2/place", json!(0), "the weight is [4, 20] instead of [8, 3]"),
        ("/main/ops/2/overlap", json!(false), "6 rows of 16 instead of 3 rows of 16"),
        ("/main/ops/2/state", json!(1), "the state is a cache of 4 and 4 numbers"),
        ("/states/0/width", json!(8), "6 rows of 8 instead of 6 rows of 16"),
        ("/main/ops/3/state", json!(2), "the state is a cache of 4 and 4 numbers for 3 tokens"),
        ("/states/3/block", json!(0), "a cache keeps a row of each 0 tokens"),
        (
            "/main/ops/4/memory/cached/state",
            json!(2),
            "the state is a cache of 4 and 4 numbers for",
        ),
        ("/main/ops/4/blocks/state", json!(1), "the state is a cache of 4 and 4 numbers"),
        ("/main/ops/4/blocks/state", json!(0), "the state is 6 rows of 16"),
        ("/main/ops/4/blocks/state", json!(9), "there is no state 9"),
        ("/main/ops/4/blocks/key", json!(1), "width of keys: 8 and 4"),
        ("/main/ops/4/blocks/value", json!(1), "width of values: 8 and 4"),
        ("/main/ops/4/blocks/chosen", json!(4), "value 4 is not made before"),
        ("/main/ops/4/blocks/more", json!(4), "unknown field `more`"),
        ("/states/2/keys", json!(5), "keys of the state: 5 and 4"),
        ("/states/2/values", json!(5), "values of the state: 5 and 4"),
        ("/main/ops/4/bias", json!({"slopes": {"max": 8.0}}), "blocks have no single distance"),
        (
            "/main/ops/4/memory",
            json!({"given": {"key": 0, "value": 0}}),
            "only what attends to a cache sees blocks besides",
        ),
        ("/main/ops/5/rotation/block", json!(0), "a block has no positions"),
    ];
    for (path, instead, said) in cases {
        let mut graph = sound.clone();
        let (parent, field) = path.rsplit_once('/').unwrap();
        match graph.pointer_mut(path) {
            Some(place) => *place = instead,
            None => graph.pointer_mut(parent).unwrap()[field] = instead,
        }
        let (code, message) = finding(graph);
        assert!(message.contains(said), "{path}: {message}");
        assert_eq!(code, "graph-invalid", "{path}");
    }
    let mut twice = sound;
    let again = twice["main"]["ops"][2].clone();
    twice["main"]["ops"][5] = again;
    assert!(finding(twice).1.contains("another operation changes state 0 too"));
}

#[test]
fn every_fault_of_what_looks_back_is_named() {
    let sound = json!({
        "architecture": "x",
        "weights": [{"name": "table", "shape": [4, 20]}, {"name": "rows", "shape": [3, 1u64 << 30]},
            {"name": "conv", "shape": [3, 4]}],
        "states": [{"kind": "tokens", "count": 2}, {"kind": "rows", "width": 4, "rows": 4},
            {"kind": "rows", "width": 8, "rows": 2},
            {"kind": "cache", "keys": 4, "values": 0, "block": 2}],
        "main": {"outputs": [{"kind": "hidden", "value": 5}], "ops": [
            {"op": "embed", "table": 0, "index": "token"},
            {"op": "ngrams", "table": 1, "multipliers": [u64::MAX, 1, 3], "end": 2, "state": 0,
             "heads": [{"start": 0, "count": 7}, {"start": 7, "count": (1u64 << 30) - 7}]},
            {"op": "causal_convolution", "x": 0, "weight": 2, "dilation": 2, "state": 1},
            {"op": "compress", "x": 2, "block": 2, "state": 2},
            {"op": "rotate", "x": 3, "heads": 1,
             "rotation": {"pairs": "halves", "count": 4, "base": 10.0, "block": 2}},
            {"op": "choose", "query": 0, "key": 4, "heads": 1, "together": true, "count": 3,
             "state": 3}]},
    });
    let raw: RawGraph = serde_json::from_value(sound.clone()).unwrap();
    let graph = Graph::new(raw, Limits::default()).unwrap();
    let shapes: Vec<_> = graph.main().1.iter().map(|shape| shape.width).collect();
    assert_eq!((&shapes[..], graph.cache_width()), (&[4, 6, 4, 4, 4, 3][..], 2));
    let head = |start: u64, count: u64| json!([{"start": 0, "count": 1}, {"start": start, "count": count}]);
    let beyond = "operation 1: a head has no rows, or some beyond the table";
    let cases = [
        ("/main/ops/1/table", json!(2), beyond),
        ("/main/ops/1/heads", head(1, 0), beyond),
        ("/main/ops/1/heads", head(1, 1 << 30), beyond),
        ("/main/ops/1/heads", head(u64::MAX, 1), beyond),
        ("/main/ops/1/heads", json!([{"start": 0, "count": 1}]), "heads are not equally many"),
        ("/main/ops/1/heads", json!([]), "operation 1: a row has 0 numbers"),
        ("/main/ops/1/multipliers", json!([1, 2]), "tokens of the state: 2 and 1"),
        ("/main/ops/1/multipliers", json!([1]), "there are no multipliers for two tokens"),
        ("/main/ops/1/multipliers", json!([-1, 1, 1]), "invalid value"),
        ("/main/ops/1/state", json!(1), "operation 1: the state is 4 rows of 4"),
        ("/weights/1/shape", json!([0, 1u64 << 30]), "a dimension of the weight is 0 or too large"),
        ("/weights/1/shape", json!([3, 1u64 << 40]), "a dimension of the weight is 0 or too large"),
        ("/weights/1/shape", json!([3, 1u64 << 30, 2]), "the weight has too many dimensions"),
        ("/states/0/count", json!(3), "operation 1: tokens of the state: 3 and 2"),
        ("/main/ops/2/dilation", json!(0), "operation 2: the dilation is 0"),
        ("/main/ops/2/dilation", json!(3), "the state is 4 rows of 4 instead of 6 rows of 4"),
        ("/main/ops/3/block", json!(0), "operation 3: a block has no tokens"),
        ("/main/ops/3/block", json!(3), "the state is 2 rows of 8 instead of 3 rows of 8"),
        ("/main/ops/4/rotation/block", json!(0), "operation 4: a block has no positions"),
        ("/main/ops/5/weights", json!(0), "operation 5: heads with weights are together"),
    ];
    for (path, instead, said) in cases {
        let mut graph = sound.clone();
        let (parent, field) = path.rsplit_once('/').unwrap();
        graph.pointer_mut(parent).unwrap()[field] = instead;
        let (code, message) = finding(graph);
        assert!(message.contains(said), "{path}: {message}");
        assert_eq!(code, "graph-invalid", "{path}");
    }
}

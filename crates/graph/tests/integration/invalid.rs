//! Refusal of invalid graphs, one fault at a time. What single operations refuse is tested in their files.

use gguf::{Finding, Metadata};
use gguf_graph::{Graph, Limits, RawGraph, stored};
use serde_json::{Value as Json, json};

/// Returns a valid graph of width 8 with two query heads of length 4 and one key head.
fn valid() -> Json {
    let parameters = json!({"layout": "neox", "dimensions": 4, "freq_base": 10000.0});
    json!({
        "architecture": "valid",
        "weights": [
            {"name": "embd", "shape": [8, 20]}, {"name": "norm", "shape": [8]},
            {"name": "q", "shape": [8, 8]}, {"name": "k", "shape": [8, 4]},
            {"name": "up", "shape": [8, 6, 3]}, {"name": "down", "shape": [6, 8, 3]},
            {"name": "inp", "shape": [8, 3]}, {"name": "conv", "shape": [4, 8]},
            {"name": "sinks", "shape": [2]},
        ],
        "states": [{"kind": "kv_cache", "key_width": 4, "value_width": 4},
                   {"kind": "row_history", "width": 8, "len": 3}],
        "main": {
            "ops": [
                {"op": "embedding", "table": 0, "index": "token"},
                {"op": "rms_norm", "x": 0, "epsilon": 1e-5, "weight": 1},
                {"op": "matmul", "x": 1, "weight": 2},
                {"op": "matmul", "x": 1, "weight": 3},
                {"op": "rope", "x": 2, "heads": 2, "parameters": parameters},
                {"op": "attention", "query": 4, "kv": {"cached": {"key": 3, "value": 3, "state": 0}},
                 "heads": 2, "heads_kv": 1, "key_len": 4, "value_len": 4, "scale": 0.5, "mask": "causal",
                 "sinks": 8},
                {"op": "add", "a": 0, "b": 5},
                {"op": "matmul", "x": 6, "weight": 6},
                {"op": "moe", "x": 6, "router_logits": 7, "experts_per_token": 2, "gating": "softmax",
                 "normalize_weights": true, "weights_scale": 1.0, "up": 4, "down": 5,
                 "function": {"plain": "silu"}},
                {"op": "causal_conv1d", "x": 8, "weight": 7, "state": 1},
                {"op": "slice", "x": 9, "groups": 2, "start": 1, "len": 2},
                {"op": "select_outputs", "x": 9},
                {"op": "matmul", "x": 11, "weight": 0},
            ],
            "outputs": [{"kind": "logits", "value": 12}],
        },
    })
}

/// Returns a graph without and with compressed blocks, for states of several kinds.
fn compressed() -> Json {
    let embedding = |table: u32| json!({"op": "embedding", "table": table, "index": "token"});
    json!({
        "architecture": "x",
        "weights": [{"name": "four", "shape": [4, 20]}, {"name": "eight", "shape": [8, 20]},
            {"name": "position_bias", "shape": [8, 3]}],
        "states": [{"kind": "row_history", "width": 16, "len": 6},
            {"kind": "kv_cache", "key_width": 4, "value_width": 4},
            {"kind": "kv_cache", "key_width": 4, "value_width": 4, "block": 3},
            {"kind": "kv_cache", "key_width": 4, "value_width": 0, "block": 3}],
        "main": {"outputs": [{"kind": "hidden", "value": 4}], "ops": [
            embedding(0), embedding(1),
            {"op": "block_compress", "x": 1, "gate": 1, "position_bias": 2, "block": 3, "overlap": true,
             "state": 0},
            {"op": "topk_indexer", "query": 1, "key": 2, "heads": 2, "top_k": 2, "state": 3},
            {"op": "attention", "query": 1, "kv": {"cached": {"key": 0, "value": 0, "state": 1}},
             "heads": 2, "heads_kv": 1, "key_len": 4, "value_len": 4, "scale": 0.5, "mask": "causal",
             "compressed": {"key": 2, "value": 2, "state": 2, "indices": 3}}]},
    })
}

/// Returns the finding about a stored graph.
fn read(version: Option<u32>, graph: gguf::Value) -> Result<Option<Graph>, Finding> {
    let mut metadata = Metadata::new();
    if let Some(version) = version {
        metadata.set(stored::VERSION_KEY, version);
    }
    metadata.set(stored::GRAPH_KEY, graph);
    stored::stored(&metadata, Limits::default())
}

/// Returns code and message of the finding about a stored graph; both empty if it is valid.
fn finding(graph: &Json) -> (&'static str, String) {
    match read(Some(stored::VERSION), graph.to_string().as_str().into()) {
        Ok(_) => ("", String::new()),
        Err(finding) => (finding.code, finding.message.into()),
    }
}

fn assert_faults(valid: &Json, cases: &[(&str, Json, &str)]) {
    for (path, value, expected) in cases {
        let mut graph = valid.clone();
        let (parent, field) = path.rsplit_once('/').unwrap();
        match graph.pointer_mut(path) {
            Some(place) => *place = value.clone(),
            None => graph.pointer_mut(parent).unwrap()[field] = value.clone(),
        }
        let (code, message) = finding(&graph);
        assert!(message.contains(expected), "{path}: {message}");
        assert_eq!(code, "graph-invalid", "{path}");
    }
}

#[test]
fn a_valid_graph_round_trips() {
    assert_eq!(finding(&valid()).1, "");
    let raw: RawGraph = serde_json::from_value(valid()).unwrap();
    let graph = Graph::new(raw.clone(), Limits::default()).unwrap();
    let (_, shapes) = graph.main();
    let shapes: Vec<_> = shapes.iter().map(ToString::to_string).collect();
    assert_eq!(shapes[4..6], ["tokens x 8", "tokens x 8"]);
    assert_eq!(shapes[10..], ["tokens x 4", "outputs x 8", "outputs x 20"]);
    assert_eq!(graph.cache_width(), 8);
    let text = stored::to_text(&graph);
    assert_eq!(serde_json::from_str::<RawGraph>(&text).unwrap(), raw);
}

#[test]
fn faults_name_their_operation() {
    assert_faults(
        &valid(),
        &[
            (
                "/main/ops/1/x",
                json!(1),
                "main program, operation 1: value 1 is not computed before",
            ),
            ("/main/ops/1/x", json!(900), "operation 1: value 900 is not computed before"),
            ("/main/ops/1/weight", json!(99), "operation 1: there is no weight 99"),
            (
                "/main/ops/1/epsilon",
                json!(-1.0),
                "operation 1: `epsilon` is -1; expected at least 0",
            ),
            ("/weights/1/shape", json!([7]), "operation 1: the weight has 7 elements; expected 8"),
            (
                "/weights/2/shape",
                json!([9, 8]),
                "operation 2: the width of the input is 8; expected 9",
            ),
            (
                "/weights/2/shape",
                json!([8, 0]),
                "operation 2: the weight has shape [8, 0]; expected",
            ),
            (
                "/weights/2/shape",
                json!([8, 8, 2]),
                "operation 2: the weight [8, 8, 2] has more than 2",
            ),
            (
                "/weights/2/shape",
                json!([8, 1u64 << 40]),
                "operation 2: the weight has shape [8, 109",
            ),
            (
                "/main/ops/5/kv/cached/state",
                json!(1),
                "operation 5: the state is a history of 3 rows",
            ),
            ("/main/ops/5/kv/cached/state", json!(7), "operation 5: there is no state 7"),
            (
                "/states/0/key_width",
                json!(5),
                "operation 5: the key width of the state is 5; expected 4",
            ),
            ("/weights/8/shape", json!([3]), "operation 5: the weight has shape [3]; expected [2]"),
            ("/states/1/len", json!(2), "operation 9: the state is a history of 2 rows of width 8"),
            ("/main/ops/12/x", json!(10), "operation 12: the width of the input is 4; expected 8"),
            ("/main/outputs/0/value", json!(13), "main program: there is no value 13"),
            ("/main/outputs", json!([]), "the main program has no outputs"),
            ("/weights/1/name", json!("embd"), "the weight embd occurs twice"),
            ("/main/ops/0/op", json!("embody"), "unknown variant `embody`"),
            ("/main/ops/0/index", json!("time"), "unknown variant `time`"),
            ("/main/ops/2/x", json!(-1), "invalid value"),
            ("/main/ops/2/x", json!("1"), "invalid type"),
            ("/main/more", json!(1), "unknown field `more`"),
            ("/main/ops/2/more", json!(1), "unknown field `more`"),
            ("/main/ops/4/parameters/more", json!(1), "unknown field `more`"),
        ],
    );
}

#[test]
fn faults_of_states_are_named() {
    assert_eq!(finding(&compressed()).1, "");
    let graph: RawGraph = serde_json::from_value(compressed()).unwrap();
    let graph = Graph::new(graph, Limits::default()).unwrap();
    assert_eq!(graph.cache_width(), 8 + 8 / 3 + 4 / 3);
    assert_faults(
        &compressed(),
        &[
            ("/states/0/width", json!(8), "the state is a history of 6 rows of width 8; expected"),
            ("/states/2/key_width", json!(5), "the key width of the state is 5; expected 4"),
            ("/states/2/value_width", json!(5), "the value width of the state is 5; expected 4"),
            ("/states/3/block", json!(0), "the `block` of a KV cache is 0; expected at least 1"),
            (
                "/main/ops/3/state",
                json!(2),
                "the state is a KV cache of widths 4 and 4 with blocks of 3 tokens; expected",
            ),
            ("/main/ops/4/kv/cached/state", json!(2), "expected a KV cache of tokens"),
            ("/main/ops/4/compressed/state", json!(1), "expected a KV cache of blocks"),
            (
                "/main/ops/4/compressed/state",
                json!(0),
                "the state is a history of 6 rows of width 16",
            ),
            ("/main/ops/4/compressed/state", json!(9), "there is no state 9"),
            ("/main/ops/4/compressed/key", json!(1), "the key width is 8; expected 4"),
            ("/main/ops/4/compressed/value", json!(1), "the value width is 8; expected 4"),
            ("/main/ops/4/compressed/indices", json!(4), "value 4 is not computed before"),
            ("/main/ops/4/compressed/more", json!(4), "unknown field `more`"),
            (
                "/main/ops/4/position_bias",
                json!({"alibi": {"max_bias": 8.0}}),
                "compressed blocks occur with a position bias",
            ),
            (
                "/main/ops/4/kv",
                json!({"batch": {"key": 0, "value": 0}}),
                "compressed blocks occur without a KV cache",
            ),
        ],
    );
}

#[test]
fn a_state_has_one_writer() {
    let mut graph = valid();
    let mut again = graph["main"]["ops"][5].clone();
    graph["main"]["ops"][6] = again.clone();
    assert_eq!(finding(&graph).1, "", "the same keys and values are written once");
    again["kv"]["cached"]["value"] = json!(7);
    again["heads_kv"] = json!(1);
    graph["main"]["ops"][7] = json!({"op": "scale", "x": 3, "factor": 2.0});
    graph["main"]["ops"][8] = again;
    let (code, message) = finding(&graph);
    assert_eq!(code, "graph-invalid");
    assert!(message.contains("operation 8: another operation writes state 0 too"), "{message}");
    let mut graph = compressed();
    let again = graph["main"]["ops"][2].clone();
    graph["main"]["ops"].as_array_mut().unwrap().push(again);
    assert!(finding(&graph).1.contains("another operation writes state 0 too"));
}

#[test]
fn limits_are_enforced() {
    let raw: RawGraph = serde_json::from_value(valid()).unwrap();
    let code = |limits| Graph::new(raw.clone(), limits).err().map(|finding| finding.code);
    let limits = Limits::default();
    assert_eq!(code(limits), None);
    assert_eq!(code(Limits { ops: 12, ..limits }), Some("graph-limit"));
    assert_eq!(code(Limits { tensors: 8, ..limits }), Some("graph-limit"));
    assert_eq!(code(Limits { width: 100, ..limits }), Some("graph-limit"));
}

#[test]
fn endless_arithmetic_is_refused() {
    let weights = json!([{"name": "w", "shape": [4096, 4096]}, {"name": "e", "shape": [4096, 1]}]);
    let mut ops = vec![json!({"op": "embedding", "table": 1, "index": "zero"})];
    ops.extend((0..300).map(|x| json!({"op": "matmul", "x": x, "weight": 0})));
    let outputs = json!([{"kind": "hidden", "value": 300}]);
    let graph = json!({"architecture": "x", "weights": weights, "states": [],
                       "main": {"ops": ops, "outputs": outputs}});
    assert_eq!(finding(&graph).0, "graph-limit");
}

#[test]
fn other_versions_are_refused() {
    let finding = |version| read(version, valid().to_string().as_str().into()).unwrap_err();
    let first = finding(Some(1));
    assert_eq!(first.code, "graph-version");
    assert_eq!(&*first.message, "the stored graph has version 1; expected 2");
    assert_eq!(
        first.help,
        "rebuild it from the architecture: `gguf graph MODEL --graph built --store`"
    );
    assert_eq!(&*finding(None).message, "the stored graph has no version; expected 2");
    let newer = finding(Some(3));
    assert_eq!(&*newer.message, "the stored graph has version 3; expected 2");
    assert_eq!(newer.help, "a newer version of this program reads it");
}

#[test]
fn other_values_are_refused() {
    let code = |value: gguf::Value| read(Some(stored::VERSION), value).unwrap_err().code;
    assert_eq!(code("{}".into()), "graph-invalid");
    assert_eq!(code(7u32.into()), "graph-invalid");
    assert_eq!(code("[".repeat(100_000).as_str().into()), "graph-invalid");
    assert!(stored::stored(&Metadata::new(), Limits::default()).unwrap().is_none());
}

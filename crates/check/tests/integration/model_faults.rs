//! Every way in which a model can contradict its own terms, by name: a small whole model, one
//! change, and the code of the finding that must come of it.

use gguf::{
    Array, ByteOrder, Finding, Header, RawHeader, Severity, Shape, TensorInfo, TensorType, Value,
    shard_keys, write_header,
};
use gguf_check::{check, check_name, check_shards};

const ARCH: &str = "llama";

/// A llama of two layers with a vocabulary of 260 tokens.
fn model() -> RawHeader {
    let mut header = RawHeader::default();
    let metadata = &mut header.metadata;
    metadata.set("general.architecture", ARCH);
    metadata.set("general.file_type", 0u32);
    for (key, value) in [
        ("context_length", 16u32),
        ("embedding_length", 8),
        ("block_count", 2),
        ("feed_forward_length", 12),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
        ("vocab_size", 260),
    ] {
        metadata.set(format!("{ARCH}.{key}"), value);
    }
    metadata.set("llama.attention.layer_norm_rms_epsilon", 1e-5f32);
    let bytes = (0..256).map(|byte| format!("<0x{byte:02X}>"));
    let texts = ["<s>", "a", "b", "ab"].map(String::from);
    let tokens: Vec<String> = bytes.chain(texts).collect();
    let types: Vec<i32> = (0..260)
        .map(|id| [(256, 6), (257, 3)].iter().find(|(end, _)| id < *end).map_or(1, |(_, ty)| *ty))
        .collect();
    metadata.set("tokenizer.ggml.model", "llama");
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(&tokens));
    metadata.set("tokenizer.ggml.scores", Array::from(&[0f32; 260][..]));
    metadata.set("tokenizer.ggml.token_type", Array::from(&types[..]));
    metadata.set("tokenizer.ggml.merges", Array::from_strings(["a b"]));
    metadata.set("tokenizer.ggml.eos_token_id", 256u32);
    tensor(&mut header, "token_embd.weight", &[8, 260]);
    tensor(&mut header, "output_norm.weight", &[8]);
    for layer in 0..2 {
        for (name, shape) in [
            ("attn_norm", &[8u64][..]),
            ("attn_q", &[8, 8]),
            ("attn_k", &[8, 4]),
            ("attn_v", &[8, 4]),
            ("attn_output", &[8, 8]),
            ("ffn_norm", &[8]),
            ("ffn_gate", &[8, 12]),
            ("ffn_up", &[8, 12]),
            ("ffn_down", &[12, 8]),
        ] {
            tensor(&mut header, &format!("blk.{layer}.{name}.weight"), shape);
        }
    }
    header
}

fn tensor(header: &mut RawHeader, name: &str, dims: &[u64]) {
    header.tensors.push(TensorInfo {
        name: name.to_owned(),
        shape: Shape::new(dims).unwrap(),
        tensor_type: TensorType::F32,
        offset: 0,
        opaque_len: None,
    });
}

fn findings(mut header: RawHeader) -> Vec<Finding> {
    let data = header.lay_out().unwrap() as usize;
    let mut file = write_header(&Header::new(header).unwrap()).unwrap();
    let start = file.len();
    file.resize(start + data, 0);
    check(&file.into()).0
}

type Change = Box<dyn Fn(&mut RawHeader)>;

fn set(key: &'static str, value: impl Into<Value> + Clone + 'static) -> Change {
    Box::new(move |header| header.metadata.set(key, value.clone()))
}

fn remove(key: &'static str) -> Change {
    Box::new(move |header| drop(header.metadata.remove(key)))
}

fn add(name: &'static str, dims: &'static [u64]) -> Change {
    Box::new(move |header| tensor(header, name, dims))
}

fn omit(name: &'static str) -> Change {
    Box::new(move |header| header.tensors.retain(|tensor| tensor.name != name))
}

fn reshape(name: &'static str, dims: &'static [u64]) -> Change {
    Box::new(move |header| {
        let found = header.tensors.iter_mut().find(|tensor| tensor.name == name);
        found.unwrap().shape = Shape::new(dims).unwrap();
    })
}

fn tokens(change: impl Fn(&mut Vec<Vec<u8>>) + 'static) -> Change {
    Box::new(move |header| {
        let key = "tokenizer.ggml.tokens";
        let array = header.metadata.array(key).unwrap();
        let mut tokens: Vec<_> = array.strings().unwrap().map(<[u8]>::to_vec).collect();
        change(&mut tokens);
        header.metadata.set(key, Array::from_strings(tokens));
    })
}

/// The code, what it must be said of, the severity, the change.
fn cases() -> Vec<(&'static str, &'static str, Severity, Change)> {
    use Severity::{Error, Note, Warning};
    vec![
        ("key-type", "llama.block_count", Error, set("llama.block_count", 2i32)),
        ("key-type", "general.name", Warning, set("general.name", 2u32)),
        (
            "key-type",
            "tokenizer.ggml.scores",
            Error,
            set("tokenizer.ggml.scores", Array::from(&[0u8; 260][..])),
        ),
        ("key-deprecated", "llama.rope.scale_linear", Note, set("llama.rope.scale_linear", 1f32)),
        ("key-near-miss", "llama.blok_count", Note, set("llama.blok_count", 1u32)),
        ("key-foreign", "qwen2.block_count", Note, set("qwen2.block_count", 1u32)),
        ("key-missing", "llama.context_length", Error, remove("llama.context_length")),
        ("key-missing", "adapter.type", Error, set("general.type", "adapter")),
        ("key-missing", "clip.vision.patch_size", Warning, set("clip.has_vision_encoder", true)),
        ("key-value", "llama.attention.head_count", Error, set("llama.attention.head_count", 3u32)),
        (
            "key-value",
            "llama.attention.head_count_kv",
            Error,
            set("llama.attention.head_count_kv", 3u32),
        ),
        ("key-value", "llama.embedding_length", Error, set("llama.embedding_length", 0u32)),
        ("key-value", "llama.rope.dimension_count", Error, set("llama.rope.dimension_count", 4u32)),
        ("key-value", "llama.expert_used_count", Error, set("llama.expert_used_count", 2u32)),
        ("key-value", "llama.context_length", Warning, set("llama.context_length", 0u32)),
        ("key-value", "llama.block_count", Error, set("llama.block_count", 0u32)),
        ("key-value", "llama.attention.head_count", Error, set("llama.attention.head_count", 0u32)),
        (
            "key-value",
            "llama.rope.dimension_count",
            Error,
            Box::new(|header| {
                // Half of a head of 8.
                set("llama.attention.head_count", 1u32)(header);
                set("llama.attention.head_count_kv", 1u32)(header);
                set("llama.rope.dimension_count", 4u32)(header);
            }),
        ),
        ("key-value", "llama.rope.scaling.type", Error, set("llama.rope.scaling.type", "dynamic")),
        ("key-value", "llama.expert_used_count", Error, set("llama.expert_count", 2u32)),
        ("key-value", "llama.nextn_predict_layers", Error, set("llama.nextn_predict_layers", 3u32)),
        ("layer-count", "llama.block_count", Error, set("llama.block_count", u64::MAX)),
        ("layer-count", "llama.block_count", Error, set("llama.block_count", 1u32)),
        (
            "layer-count",
            "llama.block_count",
            Error,
            Box::new(|header| {
                header.metadata.set("llama.block_count", u64::MAX);
                tensor(header, "blk.18446744073709551614.attn_q.weight", &[8, 8]);
            }),
        ),
        (
            "key-value",
            "llama.feed_forward_length",
            Error,
            set("llama.feed_forward_length", Array::from(&[12u32][..])),
        ),
        (
            "architecture-unknown",
            "general.architecture",
            Note,
            set("general.architecture", "other"),
        ),
        ("architecture-other", "general.architecture", Note, set("general.architecture", "olmo2")),
        ("tensor-missing", "blk.1.ffn_up.weight", Error, omit("blk.1.ffn_up.weight")),
        ("tensor-missing", "blk.0.attn_k.weight", Error, omit("blk.0.attn_k.weight")),
        (
            "tensor-unexpected",
            "blk.0.attn_sinks.weight",
            Warning,
            add("blk.0.attn_sinks.weight", &[4]),
        ),
        ("ollama-naming", "general.architecture", Error, add("v.blk.0.attn_q.weight", &[4])),
        ("tensor-shape", "blk.0.attn_k.weight", Error, reshape("blk.0.attn_k.weight", &[8, 8])),
        ("tensor-shape", "output.weight", Error, add("output.weight", &[8, 100])),
        ("vocab-size", "llama.vocab_size", Warning, set("llama.vocab_size", 7u32)),
        (
            "vocab-rows",
            "token_embd.weight",
            Warning,
            Box::new(|header| {
                header.metadata.set("general.architecture", "other");
                reshape("token_embd.weight", &[8, 100])(header);
            }),
        ),
        (
            "tokenizer-tokens-missing",
            "tokenizer.ggml.tokens",
            Error,
            remove("tokenizer.ggml.tokens"),
        ),
        (
            "tokenizer-length",
            "tokenizer.ggml.scores",
            Error,
            set("tokenizer.ggml.scores", Array::from(&[0f32; 3][..])),
        ),
        (
            "tokenizer-length",
            "tokenizer.ggml.scores",
            Warning,
            set("tokenizer.ggml.scores", Array::from(&[0f32; 261][..])),
        ),
        ("key-missing", "general.architecture", Error, remove("general.architecture")),
        ("tokenizer-missing", "tokenizer.ggml.model", Error, remove("tokenizer.ggml.model")),
        (
            "tokenizer-merges-missing",
            "tokenizer.ggml.merges",
            Error,
            Box::new(|header| {
                set("tokenizer.ggml.model", "gpt2")(header);
                remove("tokenizer.ggml.merges")(header);
            }),
        ),
        (
            "tokenizer-pre-missing",
            "tokenizer.ggml.pre",
            Warning,
            set("tokenizer.ggml.model", "gpt2"),
        ),
        (
            "token-id-range",
            "tokenizer.ggml.eos_token_id",
            Warning,
            set("tokenizer.ggml.eos_token_id", 260u32),
        ),
        (
            "token-type",
            "tokenizer.ggml.eos_token_id",
            Warning,
            set("tokenizer.ggml.token_type", Array::from(&[1i32; 260][..])),
        ),
        ("token-duplicate", "tokenizer.ggml.tokens", Error, tokens(|t| t[3] = b"a".to_vec())),
        ("token-duplicate", "tokenizer.ggml.tokens", Error, tokens(|t| t[3] = t[4].clone())),
        (
            "token-empty",
            "tokenizer.ggml.tokens",
            Warning,
            tokens(|t| t[3..5].iter_mut().for_each(Vec::clear)),
        ),
        (
            "byte-tokens-missing",
            "tokenizer.ggml.tokens",
            Warning,
            tokens(|t| t[3] = vec![0xff, 0xfe]),
        ),
        (
            "merge-malformed",
            "tokenizer.ggml.merges",
            Warning,
            set("tokenizer.ggml.merges", Array::from_strings(["ab"])),
        ),
        (
            "merge-unknown",
            "tokenizer.ggml.merges",
            Warning,
            set("tokenizer.ggml.merges", Array::from_strings(["b a"])),
        ),
        ("file-type-wrong", "general.file_type", Warning, set("general.file_type", 1u32)),
        ("file-type-unknown", "general.file_type", Warning, set("general.file_type", 99u32)),
        (
            "quantization-version-missing",
            "general.quantization_version",
            Warning,
            Box::new(|header| {
                tensor(header, "output.weight", &[32, 1]);
                header.tensors.last_mut().unwrap().tensor_type = TensorType::Q8_0;
            }),
        ),
        (
            "quantization-version-type",
            "general.quantization_version",
            Warning,
            set("general.quantization_version", "2"),
        ),
    ]
}

#[test]
fn a_complete_model_has_no_findings() {
    assert_eq!(findings(model()), []);
}

#[test]
fn later_shards_take_their_keys_from_the_first() {
    let mut header = RawHeader::default();
    shard_keys::push(&mut header.metadata, 1, 2, 40);
    tensor(&mut header, "output.weight", &[32, 1]);
    header.tensors[0].tensor_type = TensorType::Q8_0;
    assert_eq!(findings(header), []);
}

#[test]
fn each_fault_has_its_code() {
    for (i, (code, subject, severity, change)) in cases().into_iter().enumerate() {
        let mut header = model();
        change(&mut header);
        let findings = findings(header);
        let said_of = |finding: &&Finding| {
            finding.code == code
                && [&finding.key, &finding.tensor]
                    .iter()
                    .any(|name| name.as_deref() == Some(subject))
        };
        let found = findings.iter().find(said_of);
        let found = found.unwrap_or_else(|| panic!("case {i}: no {code} among {findings:#?}"));
        assert_eq!(found.severity, severity, "case {i}: {code}");
    }
}

#[test]
fn optional_variations_have_no_findings() {
    let changes: Vec<Change> = vec![
        add("output.weight", &[8, 260]),
        add("rope_freqs.weight", &[1]),
        add("blk.0.attn_q.bias", &[8]),
        add("blk.0.attn_q.scale", &[1]),
        Box::new(|header| {
            for name in ["blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight"] {
                omit(name)(header);
            }
            tensor(header, "blk.0.attn_qkv.weight", &[8, 16]);
        }),
        reshape("blk.0.attn_norm.weight", &[8, 1]),
        set("llama.block_count", 2u64),
        set("llama.attention.head_count_kv", Array::from(&[2i32, 2][..])),
        set("general.base_model.0.name", "parent"),
        set("mine.some_key", 1u8),
        remove("general.file_type"),
        // A vocabulary, an adapter, a shard.
        Box::new(|header| header.tensors.clear()),
        Box::new(|header| {
            header.metadata.set("general.type", "adapter");
            header.metadata.set("adapter.type", "lora");
            header.metadata.set("adapter.lora.alpha", 8f32);
            header.tensors.truncate(3);
        }),
        Box::new(|header| {
            header.metadata.set("split.no", 0u16);
            header.metadata.set("split.count", 2u16);
            header.tensors.truncate(3);
        }),
        Box::new(|header| {
            header.metadata = Default::default();
            header.metadata.set("split.no", 1u16);
            header.metadata.set("split.count", 2u16);
            header.metadata.set("split.tensors.count", 20i32);
        }),
        Box::new(|header| {
            header.metadata = Default::default();
            header.metadata.set("general.type", "imatrix");
            header.metadata.set("imatrix.datasets", Array::from_strings(["text"]));
            header.metadata.set("imatrix.chunk_count", 1u32);
            header.metadata.set("imatrix.chunk_size", 512u32);
        }),
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let mut header = model();
        change(&mut header);
        assert_eq!(findings(header), [], "case {i}");
    }
}

/// Numbers that make nonsense of a model, in keys that hold one and in keys that hold many.
#[test]
fn out_of_range_values_are_errors() {
    let scores = |x: f32| Array::from(&[&[0f32; 259][..], &[x]].concat()[..]);
    for (key, value, wrong) in [
        ("llama.rope.freq_base", f32::NAN, true),
        ("llama.rope.freq_base", f32::INFINITY, true),
        ("llama.rope.freq_base", 0.0, true),
        ("llama.rope.freq_base", -1.0, true),
        ("llama.rope.freq_base", 1e6, false),
        ("llama.attention.layer_norm_rms_epsilon", f32::NAN, true),
        ("llama.attention.layer_norm_rms_epsilon", -1e-5, true),
        ("llama.attention.layer_norm_rms_epsilon", 0.0, false),
        ("llama.logit_scale", f32::NEG_INFINITY, true),
        ("general.sampling.temp", f32::NAN, true),
        ("tokenizer.ggml.scores", f32::NAN, true),
        ("tokenizer.ggml.scores", f32::NEG_INFINITY, false),
        // A key of one's own holds anything.
        ("mine.some_key", f32::NAN, false),
    ] {
        let mut header = model();
        match key {
            "tokenizer.ggml.scores" => header.metadata.set(key, scores(value)),
            _ => header.metadata.set(key, value),
        }
        let findings = findings(header);
        let found = findings.iter().find(|finding| finding.code == "key-value");
        assert_eq!(found.is_some(), wrong, "{key} = {value}: {findings:?}");
        if let Some(found) = found {
            assert_eq!((found.severity, found.key.as_deref()), (Severity::Error, Some(key)));
            assert!(found.offset.is_some());
        }
    }
}

#[test]
fn missing_required_keys_and_tensors_are_errors() {
    let has_error = |header: RawHeader| {
        findings(header).iter().any(|finding| finding.severity == Severity::Error)
    };
    assert!(!has_error(model()));
    for tensor in model().tensors {
        let mut header = model();
        header.tensors.retain(|other| other.name != tensor.name);
        assert!(has_error(header), "without {}", tensor.name);
        // A matrix that is turned, a vector that is longer.
        let mut header = model();
        let other = header.tensors.iter_mut().find(|other| other.name == tensor.name).unwrap();
        let mut dims = tensor.shape.to_vec();
        dims[0] += 4;
        other.shape = Shape::new(&dims).unwrap();
        assert!(has_error(header), "{} in the shape {dims:?}", tensor.name);
    }
    let needed = [
        "context_length",
        "embedding_length",
        "block_count",
        "feed_forward_length",
        "attention.head_count",
        "attention.layer_norm_rms_epsilon",
    ];
    for key in needed.map(|key| format!("llama.{key}")) {
        let mut header = model();
        header.metadata.remove(&key).unwrap();
        assert!(has_error(header), "without {key}");
        for wrong in [Value::from("text"), Value::I8(1)] {
            let mut header = model();
            header.metadata.set(key.clone(), wrong.clone());
            assert!(has_error(header), "{key} = {wrong}");
        }
        let zero_is_fine = key.ends_with("epsilon") || key.ends_with("context_length");
        for wrong in [0u32, u32::MAX, 7].into_iter().filter(|_| !zero_is_fine) {
            let mut header = model();
            header.metadata.set(key.clone(), wrong);
            assert!(has_error(header), "{key} = {wrong}");
        }
    }
}

/// One wrong key changes the shapes of all layers; one lost kind of tensor is lost in each.
#[test]
fn repeated_faults_of_layers_are_reported_once() {
    let mut header = model();
    header.metadata.set("llama.feed_forward_length", 16u32);
    let found = findings(header);
    let told: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 3, "{told:#?}");
    assert!(
        told[0].starts_with(
            "tensor `blk.0.ffn_gate.weight`: has shape [8, 12] instead of [8, 16]; also \
             `blk.1.ffn_gate.weight` (byte "
        ),
        "{}",
        told[0]
    );
    let mut header = model();
    header.metadata.remove("llama.block_count");
    let found = findings(header);
    assert_eq!(found.len(), 1, "{found:#?}");
    let mut header = model();
    header.metadata.set("llama.block_count", 4u32);
    for layer in 2..4 {
        let of_first: Vec<_> = header
            .tensors
            .iter()
            .filter(|tensor| tensor.name.starts_with("blk.0."))
            .cloned()
            .collect();
        for mut tensor in of_first {
            tensor.name = tensor.name.replace("blk.0.", &format!("blk.{layer}."));
            header.tensors.push(tensor);
        }
    }
    header.tensors.retain(|tensor| !tensor.name.contains("ffn_up"));
    let found = findings(header);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(
        found[0].message.as_ref(),
        "llama requires this tensor; also 3 more, `blk.1.ffn_up.weight` to \
         `blk.3.ffn_up.weight`"
    );
}

/// A directory of a hundred thousand strange names is no reason for as many findings.
#[test]
fn the_number_of_findings_is_bounded() {
    let mut header = model();
    for i in 0..100_000 {
        let letters: String = format!("{i:05}").bytes().map(|b| char::from(b + 49)).collect();
        tensor(&mut header, &letters, &[1]);
    }
    let found = findings(header);
    assert_eq!(found.len(), 101, "a hundred of a code, and how many more");
    assert!(found.iter().all(|finding| finding.code == "tensor-unexpected"));
}

#[test]
fn missing_alternatives_are_reported_once() {
    let mut header = model();
    omit("blk.0.attn_k.weight")(&mut header);
    let findings = findings(header);
    let missing: Vec<_> = findings.iter().filter(|f| f.code == "tensor-missing").collect();
    assert_eq!(missing.len(), 1, "{findings:?}");
}

/// A shard lacks tensors; all shards together may not.
#[test]
fn shards_are_checked_together() {
    let set = |lost: Option<&str>| {
        let mut first = model();
        let mut tensors = std::mem::take(&mut first.tensors);
        tensors.retain(|tensor| Some(&*tensor.name) != lost);
        let total = tensors.len() as i32;
        let mut second = RawHeader { tensors: tensors.split_off(7), ..RawHeader::default() };
        first.tensors = tensors;
        for (no, header) in [&mut first, &mut second].into_iter().enumerate() {
            header.metadata.set("split.no", no as u16);
            header.metadata.set("split.count", 2u16);
            header.metadata.set("split.tensors.count", total);
        }
        for header in [&first, &second] {
            assert_eq!(findings(header.clone()), []);
        }
        let names = ["a-00001-of-00002.gguf", "a-00002-of-00002.gguf"].map(std::path::Path::new);
        check_shards(&[(names[0], &first), (names[1], &second)])
    };
    assert_eq!(set(None), []);
    for lost in ["output_norm.weight", "blk.0.attn_q.weight", "blk.1.ffn_down.weight"] {
        let found = set(Some(lost));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].code, found[0].severity), ("tensor-missing", Severity::Error));
        assert_eq!(found[0].tensor.as_deref(), Some(lost));
    }
}

#[test]
fn shards_have_one_byte_order() {
    let codes = |order| {
        let drafts = [(0u16, ByteOrder::Little), (1, order)].map(|(no, order)| {
            let mut header = RawHeader { order, ..RawHeader::default() };
            header.metadata.set("split.no", no);
            header.metadata.set("split.count", 2u16);
            header.metadata.set("split.tensors.count", 0i32);
            header
        });
        let names = ["a-00001-of-00002.gguf", "a-00002-of-00002.gguf"].map(std::path::Path::new);
        let found = check_shards(&[(names[0], &drafts[0]), (names[1], &drafts[1])]);
        found.iter().map(|finding| finding.code).collect::<Vec<_>>()
    };
    assert_eq!(codes(ByteOrder::Little), [""; 0]);
    assert_eq!(codes(ByteOrder::Big), ["shard-byte-order"]);
}

#[test]
fn names_are_compared_with_metadata() {
    let mut header = model();
    for (key, value) in [
        ("general.basename", "Tiny Llama"),
        ("general.size_label", "4M"),
        ("general.finetune", "chat"),
        ("general.version", "1.0"),
    ] {
        header.metadata.set(key, value);
    }
    header.metadata.set("general.file_type", 15u32);
    for (name, codes) in [
        ("Tiny-Llama-4M-Chat-v1.0-Q4_K_M.gguf", &[][..]),
        ("tiny-llama-4M-v1.0.gguf", &[]),
        ("tiny-llama-4M-v1.0-mine.gguf", &[]),
        ("model.gguf", &[]),
        ("my-model.gguf", &["name-convention"]),
        ("Other-4M-Chat-v1.0-Q4_K_M.gguf", &["name-metadata"]),
        ("Tiny-Llama-7B-Code-v2-Q4_K_M.gguf", &["name-metadata"; 3]),
        ("Tiny-Llama-4M-v1.0-Q8_0.gguf", &["name-encoding"]),
        ("Tiny-Llama-4M-v1.0-LoRA.gguf", &["name-kind"]),
        ("Tiny-Llama-4M-v1.0-vocab.gguf", &["name-kind"]),
        ("mmproj-Tiny-Llama-4M-v1.0.gguf", &["name-kind"]),
        ("Tiny-Llama-4M-v1.0-00001-of-00002.gguf", &["name-shard"]),
    ] {
        let found: Vec<_> = check_name(name, &header).iter().map(|f| f.code).collect();
        assert_eq!(found, codes, "{name}");
    }
    header.metadata.set("split.no", 0u16);
    header.metadata.set("split.count", 2u16);
    assert_eq!(check_name("Tiny-Llama-4M-v1.0-00001-of-00002.gguf", &header), []);
}

/// No rule relies on what an earlier rule has found wrong.
#[test]
fn any_corrupt_byte_is_handled() {
    let mut header = model();
    header.lay_out().unwrap();
    let file = write_header(&Header::new(header).unwrap()).unwrap();
    for at in 8..file.len() {
        let mut file = file.clone();
        file[at] = [0, 0xff, file[at] ^ 1][at % 3];
        check(&file.into());
    }
}

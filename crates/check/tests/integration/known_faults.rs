//! Faults of published files: each has a finding, and a repair where there is one right answer.

use gguf::{Array, Finding, RawHeader, Severity, Shape, TensorInfo, TensorType, Value};
use gguf_check::{check_raw_header, fix, fix_end};

const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const LLAMA_3: &[(usize, &str)] = &[
    (128_000, "<|begin_of_text|>"),
    (128_001, "<|end_of_text|>"),
    (128_006, "<|start_header_id|>"),
    (128_007, "<|end_header_id|>"),
    (128_009, "<|eot_id|>"),
];
const QWEN_2: &[(usize, &str)] =
    &[(151_643, "<|endoftext|>"), (151_644, "<|im_start|>"), (151_645, "<|im_end|>")];

fn tensor(header: &mut RawHeader, name: &str, dims: &[u64]) {
    header.tensors.push(TensorInfo {
        name: name.to_owned(),
        shape: Shape::new(dims).unwrap(),
        tensor_type: TensorType::F32,
        offset: 0,
        opaque_len: None,
    });
}

/// A model of one layer with byte-level BPE, these special tokens and as many tokens as they need.
fn model(architecture: &str, pre: &str, special: &[(usize, &str)]) -> RawHeader {
    let count = special.last().unwrap().0 + 1;
    let mut tokens: Vec<String> = (0..count).map(|id| format!("t{id}")).collect();
    tokens[1] = "\u{120}the".into();
    let mut types = vec![1i32; count];
    for (id, text) in special {
        tokens[*id] = (*text).to_owned();
        types[*id] = 3;
    }
    let mut header = RawHeader::default();
    let metadata = &mut header.metadata;
    metadata.set("general.architecture", architecture);
    metadata.set("tokenizer.ggml.model", "gpt2");
    metadata.set("tokenizer.ggml.pre", pre);
    metadata.set(TOKENS, Array::from_strings(&tokens));
    metadata.set(TYPES, Array::from(&types[..]));
    metadata.set("tokenizer.ggml.merges", Array::from_strings([""; 0]));
    metadata.set("tokenizer.ggml.bos_token_id", special[0].0 as u32);
    metadata.set("tokenizer.ggml.eos_token_id", special.last().unwrap().0 as u32);
    for (key, value) in [
        ("context_length", 8192u32),
        ("embedding_length", 8),
        ("block_count", 1),
        ("feed_forward_length", 12),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
    ] {
        metadata.set(format!("{architecture}.{key}"), value);
    }
    metadata.set(format!("{architecture}.attention.layer_norm_rms_epsilon"), 1e-5f32);
    metadata.set(format!("{architecture}.rope.freq_base"), 500_000f32);
    tensor(&mut header, "token_embd.weight", &[8, count as u64]);
    tensor(&mut header, "output_norm.weight", &[8]);
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
        tensor(&mut header, &format!("blk.0.{name}.weight"), shape);
    }
    header
}

fn llama_3() -> RawHeader {
    let mut header = model("llama", "llama-bpe", LLAMA_3);
    header.metadata.set("tokenizer.ggml.add_bos_token", true);
    header
}

fn qwen_2() -> RawHeader {
    let mut header = model("qwen2", "qwen2", QWEN_2);
    for name in ["attn_q", "attn_k", "attn_v"] {
        let rows = if name == "attn_q" { 8 } else { 4 };
        tensor(&mut header, &format!("blk.0.{name}.bias"), &[rows]);
    }
    header.metadata.set("tokenizer.ggml.add_bos_token", false);
    header
}

/// A llama with the vocabulary of SentencePiece.
fn llama_2() -> RawHeader {
    let mut header =
        model("llama", "default", &[(0, "<unk>"), (1, "<s>"), (2, "</s>"), (1299, "x")]);
    let special = ["<unk>", "<s>", "</s>"].map(String::from);
    let bytes = (0..256).map(|byte| format!("<0x{byte:02X}>"));
    let words = (0..1041).map(|i| format!("\u{2581}w{i}"));
    let tokens: Vec<String> = special.into_iter().chain(bytes).chain(words).collect();
    let types: Vec<i32> = (0..1300)
        .map(|id| match id {
            0 => 2,
            1 | 2 => 3,
            3..259 => 6,
            _ => 1,
        })
        .collect();
    let scores: Vec<f32> = (0..1300).map(|id| -(id as f32)).collect();
    let metadata = &mut header.metadata;
    metadata.set("tokenizer.ggml.model", "llama");
    metadata.remove("tokenizer.ggml.merges");
    metadata.set(TOKENS, Array::from_strings(&tokens));
    metadata.set(TYPES, Array::from(&types[..]));
    metadata.set("tokenizer.ggml.scores", Array::from(&scores[..]));
    metadata.set("tokenizer.ggml.bos_token_id", 1u32);
    metadata.set("tokenizer.ggml.eos_token_id", 2u32);
    header
}

/// A mixture of four experts, of which two are used.
fn mixture() -> RawHeader {
    let mut header = llama_2();
    header.tensors.retain(|tensor| !tensor.name.contains(".ffn_") || tensor.name.contains("norm"));
    tensor(&mut header, "blk.0.ffn_gate_inp.weight", &[8, 4]);
    tensor(&mut header, "blk.0.ffn_gate_exps.weight", &[8, 12, 4]);
    tensor(&mut header, "blk.0.ffn_up_exps.weight", &[8, 12, 4]);
    tensor(&mut header, "blk.0.ffn_down_exps.weight", &[12, 8, 4]);
    header.metadata.set("llama.expert_count", 4u32);
    header.metadata.set("llama.expert_used_count", 2u32);
    header
}

type Change = fn(&mut RawHeader);
type Model = fn() -> RawHeader;

fn set(header: &mut RawHeader, key: &str, value: impl Into<Value>) {
    header.metadata.set(key, value);
}

fn retype(header: &mut RawHeader, change: impl Fn(usize, i32) -> i32) {
    let types = header.metadata.array(TYPES).unwrap().to_i64s().unwrap();
    let types: Vec<i32> =
        types.into_iter().enumerate().map(|(id, ty)| change(id, ty as i32)).collect();
    header.metadata.set(TYPES, Array::from(&types[..]));
}

/// State of a fault after a repair.
#[derive(Clone, Copy, PartialEq)]
enum After {
    /// There is one right answer.
    Repaired,
    /// Only a person knows.
    Same,
}

/// Name, model, change, code of the finding, key or tensor, severity, and what a repair does.
#[rustfmt::skip]
fn cases() -> Vec<(&'static str, Model, Change, &'static str, &'static str, Severity, After)> {
    use After::{Repaired, Same};
    use Severity::{Error, Note, Warning};
    let linear: Change = |h| set(h, "llama.rope.scaling.type", "linear");
    vec![
        ("an unknown pre-tokenizer", qwen_2, |h| set(h, "tokenizer.ggml.pre", "nonsense"),
            "tokenizer-unknown", "tokenizer.ggml.pre", Error, Repaired),
        ("a misspelled pre-tokenizer", llama_3, |h| { set(h, "tokenizer.ggml.pre", "lama-bpe"); h.metadata.set(TOKENS, Array::from_strings((0..128_010).map(|i| format!("x{i}")))); },
            "tokenizer-unknown", "tokenizer.ggml.pre", Error, Same),
        ("the pre-tokenizer of files before April 2024", llama_3, |h| set(h, "tokenizer.ggml.pre", "default"),
            "tokenizer-pre-wrong", "tokenizer.ggml.pre", Warning, Repaired),
        ("the pre-tokenizer of another family", qwen_2, |h| set(h, "tokenizer.ggml.pre", "gpt-2"),
            "tokenizer-pre-wrong", "tokenizer.ggml.pre", Warning, Repaired),
        ("no pre-tokenizer", llama_3, |h| drop(h.metadata.remove("tokenizer.ggml.pre")),
            "tokenizer-pre-missing", "tokenizer.ggml.pre", Warning, Repaired),
        ("an unknown tokenizer model", llama_2, |h| set(h, "tokenizer.ggml.model", "lama"),
            "tokenizer-unknown", "tokenizer.ggml.model", Error, Same),
        ("the tokenizer model of byte-level BPE on SentencePiece", llama_2, |h| set(h, "tokenizer.ggml.model", "gpt2"),
            "tokenizer-model-wrong", "tokenizer.ggml.model", Warning, Same),
        ("an EOS that is a word", qwen_2, |h| set(h, "tokenizer.ggml.eos_token_id", 5000u32),
            "token-role", "tokenizer.ggml.eos_token_id", Warning, Same),
        ("an EOS outside of the vocabulary", qwen_2, |h| set(h, "tokenizer.ggml.eos_token_id", 200_000u32),
            "token-id-range", "tokenizer.ggml.eos_token_id", Warning, Same),
        ("no EOS, and no template", qwen_2, |h| drop(h.metadata.remove("tokenizer.ggml.eos_token_id")),
            "eos-missing", "tokenizer.ggml.eos_token_id", Note, Same),
        ("no EOS, and a template", qwen_2, |h| { h.metadata.remove("tokenizer.ggml.eos_token_id"); set(h, "tokenizer.chat_template", "{{ 1 }}"); },
            "eos-missing", "tokenizer.ggml.eos_token_id", Warning, Same),
        ("no BOS", llama_3, |h| drop(h.metadata.remove("tokenizer.ggml.bos_token_id")),
            "bos-missing", "tokenizer.ggml.bos_token_id", Warning, Repaired),
        ("a BOS of -1", llama_3, |h| set(h, "tokenizer.ggml.bos_token_id", u32::MAX),
            "bos-missing", "tokenizer.ggml.bos_token_id", Warning, Repaired),
        ("BOS that is not added", llama_3, |h| set(h, "tokenizer.ggml.add_bos_token", false),
            "add-bos-wrong", "tokenizer.ggml.add_bos_token", Warning, Repaired),
        ("BOS that only the template adds", llama_3, |h| { set(h, "tokenizer.ggml.add_bos_token", false); set(h, "tokenizer.chat_template", "{{ bos_token }}"); },
            "add-bos-wrong", "tokenizer.ggml.add_bos_token", Note, Same),
        ("BOS of a model without BOS", qwen_2, |h| set(h, "tokenizer.ggml.add_bos_token", true),
            "add-bos-wrong", "tokenizer.ggml.add_bos_token", Warning, Same),
        ("all types normal, byte-level BPE", llama_3, |h| retype(h, |_, _| 1),
            "token-type", TYPES, Warning, Repaired),
        ("all types normal, SentencePiece", llama_2, |h| retype(h, |_, _| 1),
            "byte-tokens-type", TYPES, Warning, Repaired),
        ("turn tokens typed normal", qwen_2, |h| retype(h, |id, ty| if id >= 151_644 { 1 } else { ty }),
            "token-type", TYPES, Warning, Repaired),
        ("scores of SentencePiece lost", llama_2, |h| set(h, "tokenizer.ggml.scores", Array::from(&[0f32; 1300][..])),
            "tokenizer-scores", "tokenizer.ggml.scores", Warning, Same),
        ("a vocabulary without its padding", qwen_2, |h| h.tensors[0].shape = Shape::new(&[8, 151_936]).unwrap(),
            "vocab-padding", "token_embd.weight", Error, Repaired),
        ("added tokens twice", qwen_2, |h| {
                let mut tokens: Vec<Vec<u8>> = h.metadata.array(TOKENS).unwrap().strings().unwrap().map(<[u8]>::to_vec).collect();
                tokens[9] = b"<|im_end|>".to_vec();
                retype(h, |id, ty| if id == 9 { 3 } else { ty });
                h.metadata.set(TOKENS, Array::from_strings(&tokens));
            }, "token-duplicate", TOKENS, Error, Same),
        ("the RoPE base lost, by vocabulary", llama_3, |h| drop(h.metadata.remove("llama.rope.freq_base")),
            "rope-base-lost", "llama.rope.freq_base", Warning, Repaired),
        ("the default RoPE base, by vocabulary", llama_3, |h| set(h, "llama.rope.freq_base", 10_000f32),
            "rope-base-lost", "llama.rope.freq_base", Warning, Same),
        ("the RoPE base lost, by context", qwen_2, |h| { h.metadata.remove("qwen2.rope.freq_base"); set(h, "qwen2.context_length", 32_768u32); },
            "rope-base-lost", "qwen2.rope.freq_base", Warning, Same),
        ("Llama 3.1 without frequency factors", llama_3, |h| set(h, "llama.context_length", 131_072u32),
            "rope-factors-missing", "llama.context_length", Warning, Same),
        ("linear scaling by 0", llama_2, |h| { set(h, "llama.rope.scaling.type", "linear"); set(h, "llama.rope.scaling.factor", 0f32); },
            "rope-scaling", "llama.rope.scaling.factor", Error, Same),
        ("a scaling factor below 0 without a type", llama_2, |h| set(h, "llama.rope.scaling.factor", -2f32),
            "rope-scaling", "llama.rope.scaling.factor", Error, Same),
        ("linear scaling without a factor", llama_2, linear,
            "rope-scaling", "llama.rope.scaling.factor", Warning, Same),
        ("a factor that shortens", llama_2, |h| { set(h, "llama.rope.scaling.type", "linear"); set(h, "llama.rope.scaling.factor", 0.25f32); },
            "rope-scaling", "llama.rope.scaling.factor", Warning, Same),
        ("YaRN without its original length", llama_2, |h| { set(h, "llama.rope.scaling.type", "yarn"); set(h, "llama.rope.scaling.factor", 4f32); },
            "rope-scaling", "llama.rope.scaling.original_context_length", Warning, Same),
        ("LongRoPE without its factors", llama_2, |h| { set(h, "llama.rope.scaling.type", "longrope"); set(h, "llama.rope.scaling.original_context_length", 4096u32); },
            "rope-scaling", "llama.rope.scaling.type", Warning, Same),
        ("an original length above the context", llama_2, |h| { set(h, "llama.rope.scaling.type", "yarn"); set(h, "llama.rope.scaling.factor", 4f32); set(h, "llama.rope.scaling.original_context_length", 32_768u32); },
            "rope-scaling", "llama.rope.scaling.original_context_length", Warning, Same),
        ("an attention factor of 0", llama_2, |h| set(h, "llama.rope.scaling.attn_factor", 0f32),
            "rope-scaling", "llama.rope.scaling.attn_factor", Error, Same),
        ("the context length of the base model", llama_2, |h| { set(h, "llama.rope.scaling.type", "yarn"); set(h, "llama.rope.scaling.factor", 4f32); set(h, "llama.rope.scaling.original_context_length", 8192u32); },
            "context-length-unscaled", "llama.context_length", Warning, Same),
        ("a wrong number of experts", mixture, |h| set(h, "llama.expert_count", 8u32),
            "count-wrong", "llama.expert_count", Error, Repaired),
        ("no number of experts", mixture, |h| drop(h.metadata.remove("llama.expert_count")),
            "count-wrong", "llama.expert_count", Error, Repaired),
        ("more experts used than there are", mixture, |h| set(h, "llama.expert_used_count", 5u32),
            "key-value", "llama.expert_used_count", Error, Same),
        ("no number of KV heads", llama_2, |h| drop(h.metadata.remove("llama.attention.head_count_kv")),
            "count-wrong", "llama.attention.head_count_kv", Error, Repaired),
        ("a wrong number of KV heads", llama_2, |h| set(h, "llama.attention.head_count_kv", 4u32),
            "count-wrong", "llama.attention.head_count_kv", Error, Repaired),
        ("norms in F16", llama_2, |h| h.tensors[1].tensor_type = TensorType::F16,
            "norm-type", "output_norm.weight", Warning, Same),
        ("layers that are missing", llama_2, |h| set(h, "llama.block_count", 2u32),
            "layer-count", "llama.block_count", Error, Same),
        ("a file type that no tensor has", llama_2, |h| set(h, "general.file_type", 1u32),
            "file-type-wrong", "general.file_type", Warning, Repaired),
    ]
}

/// Findings about a header with valid offsets.
fn checked(header: &RawHeader) -> Vec<Finding> {
    let mut header = header.clone();
    header.lay_out().unwrap();
    check_raw_header(&header)
}

fn found<'f>(findings: &'f [Finding], code: &str, subject: &str) -> Option<&'f Finding> {
    findings.iter().find(|finding| {
        finding.code == code
            && [&finding.key, &finding.tensor].iter().any(|one| one.as_deref() == Some(subject))
    })
}

#[test]
fn sound_models_have_no_warning() {
    for model in [llama_3, qwen_2, llama_2, mixture] {
        let mut header = model();
        let findings = checked(&header);
        let bad: Vec<_> = findings.iter().filter(|one| one.severity != Severity::Note).collect();
        assert!(bad.is_empty(), "{bad:#?}");
        assert_eq!(fix(&mut header), [""; 0]);
    }
}

#[test]
fn each_fault_is_found_and_repaired_if_there_is_one_right_answer() {
    for (name, model, change, code, subject, severity, after) in cases() {
        let mut header = model();
        change(&mut header);
        let findings = checked(&header);
        let finding = found(&findings, code, subject);
        let finding = finding.unwrap_or_else(|| panic!("{name}: no {code} among {findings:#?}"));
        assert_eq!(finding.severity, severity, "{name}");
        assert!(!finding.help.is_empty() || code == "key-value", "{name}: {finding}");
        let before = header.metadata.clone();
        let done = fix(&mut header);
        if after == After::Same {
            assert!(done.is_empty(), "{name}: {done:?}");
            assert_eq!(header.metadata, before, "{name}");
            continue;
        }
        let findings = checked(&header);
        let bad = findings.iter().find(|one| one.severity != Severity::Note);
        assert!(!done.is_empty() && bad.is_none(), "{name}: {done:?} {bad:?}");
    }
}

#[test]
fn repairs_set_the_right_values() {
    let mut header = qwen_2();
    header.tensors[0].shape = Shape::new(&[8, 151_648]).unwrap();
    assert_eq!(fix(&mut header), ["added 2 padding tokens, one per row of the token embedding"]);
    let tokens = header.metadata.array(TOKENS).unwrap();
    assert_eq!(tokens.strings().unwrap().last(), Some(&b"[PAD151647]"[..]));
    assert_eq!(header.metadata.array(TYPES).unwrap().to_i64s().unwrap()[151_646..], [5, 5]);

    let mut header = llama_3();
    header.metadata.remove("llama.rope.freq_base");
    set(&mut header, "tokenizer.ggml.pre", "default");
    assert_eq!(
        fix(&mut header),
        [
            "set llama.rope.freq_base to 500000",
            "set tokenizer.ggml.pre to llama-bpe, the pre-tokenizer of Llama 3"
        ]
    );
}

#[test]
fn the_end_of_answers_becomes_an_end_token() {
    const EOS: &str = "tokenizer.ggml.eos_token_id";
    const EOT: &str = "tokenizer.ggml.eot_token_id";
    let mut metadata = qwen_2().metadata;
    assert_eq!(fix_end(&mut metadata, 151_645), None);
    // EOS ends documents, so it stays.
    metadata.set(EOS, 151_643u32);
    let done = fix_end(&mut metadata, 151_645).unwrap();
    assert!(done.contains(EOT), "{done}");
    assert_eq!((metadata.u64(EOS), metadata.u64(EOT)), (Some(151_643), Some(151_645)));
    assert_eq!(fix_end(&mut metadata, 151_644), None);
    // A word is not EOS.
    metadata.set(EOS, 5000u32);
    assert!(fix_end(&mut metadata, 151_644).unwrap().contains(EOS));
    assert_eq!(metadata.u64(EOS), Some(151_644));
}

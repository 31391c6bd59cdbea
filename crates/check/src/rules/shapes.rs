//! Rules on counts that the shapes of tensors state: experts and KV heads; types of norms.

use std::ops::ControlFlow;

use gguf::{FileKind, Finding, Metadata, RawHeader, Sink, Subject, TensorInfo, TensorType};
use gguf_models::schema::{self, Scope};

pub(super) fn check(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let header = subject.header;
    if !matches!(FileKind::detect(header), FileKind::Model | FileKind::FirstShard) {
        return ControlFlow::Continue(());
    }
    for (key, count, what) in wrong_counts(header) {
        let message = match header.metadata.get(&key) {
            None => format!("is missing, but the tensors have {count} {what}"),
            Some(stated) => format!("is {stated}, but the tensors have {count} {what}"),
        };
        let at = subject.value_at(&key);
        sink.report(
            Finding::error("count-wrong", message)
                .key(key)
                .at(at)
                .help("loaders reject the model; run `gguf check --fix`"),
        )?;
    }
    norms(subject, sink)
}

/// Returns the keys whose counts differ from those that all tensors have, with the counts and what they count.
pub(crate) fn wrong_counts(header: &RawHeader) -> Vec<(String, u64, &'static str)> {
    let Some(name) = header.metadata.architecture() else { return Vec::new() };
    // Other architectures may give these tensors another meaning.
    if schema::architecture(name).is_none_or(|architecture| architecture.open) {
        return Vec::new();
    }
    let scope = Scope::new(&header.metadata, name);
    let counts = [
        (format!("{name}.expert_count"), "n_expert", expert_count(header), "experts"),
        (
            format!("{name}.attention.head_count_kv"),
            "n_head_kv",
            kv_heads(header, &scope),
            "KV heads",
        ),
    ];
    let is_wrong = |key: &str, symbol: &str, count: u64| {
        // Values per layer are checked by the shapes of tensors.
        let per_layer = header.metadata.array(key).is_some();
        !per_layer && scope.value(symbol, None).unwrap_or(0) != count
    };
    let wrong = counts.into_iter().filter_map(|(key, symbol, count, what)| {
        let count = count.filter(|count| is_wrong(&key, symbol, *count))?;
        Some((key, count, what))
    });
    wrong.collect()
}

/// Returns the number that all tensors agree on.
fn common(mut counts: impl Iterator<Item = u64>) -> Option<u64> {
    let first = counts.next()?;
    counts.all(|count| count == first).then_some(first)
}

fn expert_count(header: &RawHeader) -> Option<u64> {
    const SUFFIXES: [&str; 3] =
        [".ffn_gate_exps.weight", ".ffn_up_exps.weight", ".ffn_down_exps.weight"];
    let is_expert = |tensor: &&TensorInfo| {
        tensor.name.starts_with("blk.") && SUFFIXES.iter().any(|end| tensor.name.ends_with(end))
    };
    let tensors = header.tensors.iter().filter(is_expert);
    common(tensors.map(|tensor| tensor.shape.get(2).copied().unwrap_or(1)))
}

/// Returns the number of heads of all key projections; `None` where it is not a whole number.
fn kv_heads(header: &RawHeader, scope: &Scope) -> Option<u64> {
    let heads = scope.value("n_head", None).filter(|heads| *heads > 0)?;
    let width = scope.value("head_k", None).filter(|width| *width > 0)?;
    if scope.value("mla", None).unwrap_or(0) != 0 {
        return None;
    }
    let is_key = |tensor: &&TensorInfo| {
        tensor.name.starts_with("blk.") && tensor.name.ends_with(".attn_k.weight")
    };
    let rows = |tensor: &TensorInfo| tensor.shape.get(1).copied().unwrap_or(1);
    let rows = common(header.tensors.iter().filter(is_key).map(rows))?;
    let query = header.tensors.iter().find(|tensor| tensor.name == "blk.0.attn_q.weight")?;
    // Only if the width of a head is right can the rows count heads.
    let is_width = query.shape.get(1).is_some_and(|rows| heads.checked_mul(width) == Some(*rows));
    let count = rows / width;
    (is_width && rows % width == 0 && count > 0 && heads % count == 0).then_some(count)
}

/// Reports norms in a type that loaders do not multiply with.
fn norms(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let is_norm = |tensor: &TensorInfo| {
        tensor.shape.len() == 1
            && tensor.name.contains("norm")
            && tensor.name.ends_with(".weight")
            && tensor.tensor_type != TensorType::F32
    };
    if !knows_norms(&subject.header.metadata) {
        return ControlFlow::Continue(());
    }
    let mut wrong = subject.header.tensors.iter().enumerate().filter(|(_, one)| is_norm(one));
    let Some((i, first)) = wrong.next() else { return ControlFlow::Continue(()) };
    let more = match wrong.count() {
        0 => String::new(),
        count => format!(", and {count} more norms are not F32"),
    };
    let message = format!("is {}, but norms are F32{more}", first.tensor_type);
    sink.report(
        Finding::warning("norm-type", message).tensor(&*first.name).at(subject.tensor_at(i)).help(
            "some backends abort; in F16, weights above 65504 overflow: convert the model again",
        ),
    )
}

/// Whether the norms of the architecture are computed in F32.
fn knows_norms(metadata: &Metadata) -> bool {
    let known = metadata.architecture().and_then(schema::architecture);
    known.is_some_and(|architecture| !architecture.open)
}

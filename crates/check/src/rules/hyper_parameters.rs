//! Rules on hyper-parameters: invalid or contradictory values.

use std::ops::ControlFlow;

use gguf::{Finding, Severity, Sink, Subject};
use gguf_models::schema;
use gguf_models::schema::{Architecture, Arity, HyperParameters, Scope};

/// Valid values of `rope.scaling.type`; llama.cpp rejects others.
const ROPE_SCALINGS: &[&str] = &["none", "linear", "yarn", "longrope"];
/// Architectures for which llama.cpp requires full rotary dimensions.
const FULL_ROPE: &[&str] = &["llama", "falcon"];
/// Limit on checked layers, higher than any model has.
const MAX_LAYERS: u64 = 1 << 16;

pub(super) fn check(
    subject: &Subject,
    architecture: &Architecture,
    scope: &Scope,
    sink: &mut dyn Sink,
) -> ControlFlow<()> {
    let name = architecture.name;
    // MTP layers need no values.
    if let Some(layers) = scope.value("n_trunk", None) {
        per_layer(subject, name, layers, sink)?;
    }
    let mut report = |suffix: &str, severity: Severity, message: String| {
        let key = format!("{name}.{suffix}");
        let at = subject.value_at(&key);
        let finding = Finding { severity, ..Finding::error("key-value", message) };
        sink.report(finding.key(key).at(at))
    };
    for (suffix, severity, message) in invalid_values(subject, architecture, scope) {
        report(suffix, severity, message)?;
    }
    ControlFlow::Continue(())
}

/// Returns the keys with invalid or contradictory values, and messages.
fn invalid_values(
    subject: &Subject,
    architecture: &Architecture,
    scope: &Scope,
) -> Vec<(&'static str, Severity, String)> {
    use Severity::{Error, Warning};
    let mut found = Vec::new();
    let value = |symbol| scope.value(symbol, None);
    for (symbol, suffix, severity) in [
        ("n_embd", "embedding_length", Error),
        ("n_layer", "block_count", Error),
        // Loaders accept 0 and require an explicit context length.
        ("n_ctx", "context_length", Warning),
    ] {
        if value(symbol) == Some(0) {
            found.push((suffix, severity, "is 0".into()));
        }
    }
    // Models without attention have 0 heads.
    let heads = value("n_head").filter(|&heads| heads > 0);
    let attention = architecture.required.concat().contains(&"attention.head_count");
    if attention && value("n_head") == Some(0) {
        found.push(("attention.head_count", Error, "is 0".into()));
    }
    if let (Some(heads), Some(width)) = (heads, value("n_embd"))
        && value("head_k").is_none()
    {
        let message = format!("{heads} heads do not divide the embedding size of {width}");
        found.push(("attention.head_count", Error, message));
    }
    if let (Some(heads), Some(groups)) = (heads, value("n_head_kv"))
        && groups > 0
        && !heads.is_multiple_of(groups)
    {
        let message = format!("{groups} KV heads do not divide {heads} heads");
        found.push(("attention.head_count_kv", Error, message));
    }
    if let (Some(rotated), Some(width)) = (value("n_rot"), value("head_k"))
        && value("mla") == Some(0)
    {
        let full = FULL_ROPE.contains(&architecture.name);
        if rotated > width || rotated % 2 != 0 {
            let message = format!(
                "{rotated} dimensions of {width} cannot be rotated by RoPE, which takes pairs"
            );
            found.push(("rope.dimension_count", Error, message));
        } else if full && rotated != width {
            let message = format!("is {rotated}; {} rotates all {width}", architecture.name);
            found.push(("rope.dimension_count", Error, message));
        }
    }
    let hparams = HyperParameters::new(&subject.header.metadata, architecture.name);
    if let Ok(kind) = hparams.str("rope.scaling.type")
        && !ROPE_SCALINGS.contains(&kind)
    {
        let message = format!("is {kind:?}; expected one of {}", ROPE_SCALINGS.join(", "));
        found.push(("rope.scaling.type", Error, message));
    }
    // Dense layers use no experts.
    let layers = value("n_layer").unwrap_or(0).min(MAX_LAYERS);
    let used = |layer| scope.value("n_expert_used", layer);
    let most_used = (0..layers).filter_map(|layer| used(Some(layer))).max().or(used(None));
    match (value("n_expert"), most_used) {
        (Some(experts), Some(used)) if used > experts => {
            let message = format!("{used} of {experts} experts cannot be used");
            found.push(("expert_used_count", Error, message));
        }
        (Some(experts @ 1..), None | Some(0)) => {
            found.push(("expert_used_count", Error, format!("is 0 for {experts} experts")));
        }
        _ => {}
    }
    for (symbol, suffix, severity) in [
        ("n_dense", "leading_dense_block_count", Warning),
        ("n_mtp", "nextn_predict_layers", Error),
    ] {
        if let (Some(part), Some(layers)) = (value(symbol), value("n_layer"))
            && part > layers
        {
            found.push((suffix, severity, format!("{part} of {layers} layers")));
        }
    }
    found
}

/// Reports per-layer arrays with too few elements.
fn per_layer(subject: &Subject, name: &str, layers: u64, sink: &mut dyn Sink) -> ControlFlow<()> {
    for (i, (key, value)) in subject.header.metadata.iter().enumerate() {
        let own = key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let Some(array) = value.as_array().filter(|array| own && array.len() < layers) else {
            continue;
        };
        if schema::key(key).is_some_and(|key| key.value.arity == Arity::PerLayer) {
            let message = format!("has {} elements for {layers} layers", array.len());
            let finding = Finding::error("key-value", message);
            sink.report(finding.key(key).at(subject.value_of(i)))?;
        }
    }
    ControlFlow::Continue(())
}

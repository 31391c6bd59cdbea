//! Summary of a model.

use gguf_kit::summary::{
    Experts, Imatrix, Origin, PerLayer, Provenance, Rope, SpecialToken, Summary, Vocabulary,
};

use crate::{listing, terminal};

/// Labelled lines.
struct Lines(String);

impl Lines {
    fn add(&mut self, label: &str, value: impl Into<Option<String>>) {
        if let Some(value) = value.into() {
            let label = format!("  {label:<14} ");
            let lines = terminal::wrap(&terminal::plain(&value), &" ".repeat(label.len()));
            // Continuation lines are indented below the value.
            self.0 += &(label.clone() + &lines[label.len()..] + "\n");
        }
    }
}

pub fn text(summary: &Summary, diffable: bool) -> String {
    let mut lines = Lines(String::new());
    let (layers, vocabulary) = (&summary.layers, &summary.vocabulary);
    let shown = |text: &Option<String>| text.as_deref().map(listing::shortened);
    lines.add("name", shown(&summary.name));
    lines.add("architecture", architecture(summary));
    let parameters = listing::count(summary.parameters);
    lines.add(
        "parameters",
        format!("{parameters} in {}", listing::plural(summary.tensors, "tensor")),
    );
    lines.add("size", size(summary, diffable));
    lines
        .add("context", layers.context_length.map(|tokens| context(tokens, layers.sliding_window)));
    lines.add(
        "heads",
        layers.heads.map(|heads| heads_text(heads, layers.heads_kv, layers.key_length)),
    );
    lines.add("experts", layers.experts.as_ref().map(experts_text));
    lines.add("rope", layers.rope.as_ref().and_then(rope_text));
    lines.add("vocabulary", vocabulary_text(vocabulary));
    // Three per line: vocabularies have up to fifteen.
    for (number, tokens) in vocabulary.special.chunks(3).enumerate() {
        let tokens: Vec<_> = tokens.iter().map(token_text).collect();
        lines.add(if number == 0 { "special tokens" } else { "" }, tokens.join(", "));
    }
    if vocabulary.model.is_some() {
        lines.add("chat template", template_text(vocabulary));
    }
    add_origin(&mut lines, &summary.origin);
    lines.0 + "\n" + &types(summary)
}

fn architecture(summary: &Summary) -> String {
    let name = summary.architecture.as_deref().map_or("unknown".into(), listing::shortened);
    let kind = summary.kind.as_deref().filter(|kind| *kind != "model");
    let kind = kind.map_or(String::new(), |kind| format!(" ({})", listing::shortened(kind)));
    let blocks = summary.layers.block_count.map(|n| listing::plural(n as usize, "block"));
    let width = summary.layers.embedding_length.map(|n| format!("embedding size {n}"));
    let inner = summary.layers.feed_forward_length.map(|n| format!("FFN size {n}"));
    let parts: Vec<_> = [blocks, width, inner].into_iter().flatten().collect();
    match parts.is_empty() {
        true => format!("{name}{kind}"),
        false => format!("{name}{kind}: {}", parts.join(", ")),
    }
}

fn size(summary: &Summary, diffable: bool) -> String {
    let bits = format!("{:.2} bits per weight", summary.bits_per_weight());
    let file_type = summary.file_type.map_or(String::new(), |name| format!(", {name}"));
    let version = format!("GGUF version {}", summary.version);
    // The division into shards is not part of the content.
    if diffable {
        return format!("{} of data, {bits}{file_type}", listing::bytes(summary.data_bytes));
    }
    let files = match summary.files {
        1 => String::new(),
        files => format!(" in {files} files"),
    };
    format!("{}{files}, {bits}{file_type}, {version}", listing::bytes(summary.file_bytes))
}

fn context(tokens: u64, window: Option<u64>) -> String {
    let window = window.map_or(String::new(), |n| format!(", sliding window {n}"));
    format!("{tokens} tokens{window}")
}

fn heads_text(heads: PerLayer, kv: Option<PerLayer>, len: Option<u64>) -> String {
    let kv = kv.filter(|kv| *kv != heads).map_or(String::new(), |kv| format!(", {kv} KV heads"));
    let len = len.map_or(String::new(), |len| format!(", head size {len}"));
    format!("{heads}{kv}{len}")
}

fn experts_text(experts: &Experts) -> String {
    let used = experts.used.map_or(String::new(), |used| format!(", {used} used per token"));
    let shared = experts.shared.map_or(String::new(), |shared| format!(", {shared} shared"));
    format!("{}{used}{shared}", experts.count)
}

fn rope_text(rope: &Rope) -> Option<String> {
    let base = rope.base.map(|base| format!("base {base}"));
    let scaling = rope.scaling.as_ref().map(|scaling| {
        let factor = rope.factor.map_or(String::new(), |factor| format!(" by {factor}"));
        let from = rope.original_context_length;
        let from = from.map_or(String::new(), |from| format!(" from {from} tokens"));
        format!("{scaling} scaling{factor}{from}")
    });
    let dimensions = rope.dimensions.map(|n| format!("{n} dimensions"));
    let parts: Vec<_> = [base, dimensions, scaling].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn vocabulary_text(vocabulary: &Vocabulary) -> Option<String> {
    let model = listing::shortened(vocabulary.model.as_ref()?);
    let pre = vocabulary.pre.as_deref().map_or(String::new(), |pre| format!(" ({pre})"));
    let tokens = vocabulary.tokens.map_or(String::new(), |n| format!("{n} tokens, "));
    Some(format!("{tokens}{model}{pre}"))
}

fn token_text(token: &SpecialToken) -> String {
    let text = token.text.as_deref().map_or("missing".into(), |text| format!("{text:?}"));
    let added = if token.added == Some(true) { " (added)" } else { "" };
    format!("{} {} {text}{added}", token.role, token.id)
}

fn template_text(vocabulary: &Vocabulary) -> String {
    let Some(template) = &vocabulary.template else { return "none".into() };
    let size = listing::bytes(template.bytes as u64);
    match &template.others[..] {
        [] => format!("yes, {size}"),
        others => format!("yes, {size}; also {}", others.join(", ")),
    }
}

fn add_origin(lines: &mut Lines, origin: &Origin) {
    let shown = |text: &Option<String>| text.as_deref().map(listing::shortened);
    lines.add("description", shown(&origin.description));
    lines.add("license", shown(&origin.license));
    lines.add("author", shown(&origin.author));
    for base in &origin.base_models {
        lines.add("base model", shown(&base.name.clone().or(base.url.clone())));
    }
    lines.add("quantized by", shown(&origin.quantized_by));
    lines.add("imatrix", origin.imatrix.as_ref().map(imatrix_text));
    lines.add("written by", origin.provenance.as_ref().map(provenance_text));
}

fn imatrix_text(imatrix: &Imatrix) -> String {
    let of = |text: &Option<String>| text.as_deref().map(listing::shortened);
    let chunks = imatrix.chunks.map(|n| listing::plural(n as usize, "chunk"));
    let entries = imatrix.entries.map(|n| listing::plural(n as usize, "tensor"));
    let dataset = of(&imatrix.dataset).map(|dataset| format!("dataset {dataset}"));
    let parts = [of(&imatrix.file), dataset, chunks, entries];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn provenance_text(provenance: &Provenance) -> String {
    let of = |text: &Option<String>| text.as_deref().map(listing::shortened);
    let source = of(&provenance.source).map(|source| format!("from {source}"));
    let parts = [of(&provenance.tool), source, of(&provenance.settings)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns the table of tensor types, largest first.
fn types(summary: &Summary) -> String {
    let mut types: Vec<_> = summary.types.iter().collect();
    types.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
    let head = format!("  {:<8} {:>7} {:>10} {:>7}", "type", "tensors", "size", "share");
    let mut text = terminal::faint(head) + "\n";
    for (ty, (tensors, bytes)) in types {
        let share = *bytes as f64 / summary.data_bytes.max(1) as f64 * 100.0;
        let size = listing::bytes(*bytes);
        text += &format!("  {:<8} {tensors:>7} {size:>10} {share:>6.1}%\n", ty.to_string());
    }
    text
}

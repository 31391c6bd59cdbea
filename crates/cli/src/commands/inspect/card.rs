//! Model card in Markdown, for the Hugging Face Hub.

use std::path::Path;

use gguf_kit::summary::Summary;

use crate::{listing, terminal};

/// Returns the model card of a file.
pub fn text(summary: &Summary, source: &str) -> String {
    let (layers, origin) = (&summary.layers, &summary.origin);
    let file = Path::new(source).file_name().map(|name| name.to_string_lossy().into_owned());
    let file = file.unwrap_or_else(|| source.to_owned());
    let name = summary.name.as_ref().unwrap_or(&file);
    let mut card = front_matter(summary) + &format!("\n# {}\n\n", cell(name));
    let mut rows = vec![
        ("File", format!("`{}`", file.replace('`', ""))),
        ("Architecture", summary.architecture.as_deref().map_or("not stated".into(), cell)),
        ("Parameters", listing::count(summary.parameters)),
        ("Type", summary.file_type.unwrap_or("mixed").to_owned()),
        (
            "Size",
            format!(
                "{}, {:.2} bits per weight",
                listing::bytes(summary.file_bytes),
                summary.bits_per_weight()
            ),
        ),
    ];
    let mut add = |label, value: Option<String>| rows.extend(value.map(|value| (label, value)));
    add("Context", layers.context_length.map(|tokens| format!("{tokens} tokens")));
    add("Blocks", layers.block_count.map(|n| n.to_string()));
    add("Attention heads", layers.heads.map(|n| n.to_string()));
    add("KV heads", layers.heads_kv.map(|n| n.to_string()));
    add("Experts", layers.experts.as_ref().map(|experts| experts.count.to_string()));
    add("Vocabulary", summary.vocabulary.tokens.map(|n| format!("{n} tokens")));
    let template = summary.vocabulary.template.is_some();
    add("Chat template", Some(if template { "yes" } else { "no" }.to_owned()));
    add("License", origin.license.as_deref().map(cell));
    add("Author", origin.author.as_deref().map(cell));
    add("Quantized by", origin.quantized_by.as_deref().map(cell));
    let matrix = origin.imatrix.as_ref();
    add("Importance matrix", matrix.map(|it| it.dataset.as_deref().map_or("yes".into(), cell)));
    card += "| | |\n|---|---|\n";
    for (label, value) in rows {
        card += &format!("| {label} | {value} |\n");
    }
    card += "\n## Types\n\n| Type | Tensors | Size |\n|---|---:|---:|\n";
    for (ty, (tensors, bytes)) in &summary.types {
        card += &format!("| {ty} | {tensors} | {} |\n", listing::bytes(*bytes));
    }
    card
}

/// Returns the YAML front matter.
fn front_matter(summary: &Summary) -> String {
    let origin = &summary.origin;
    let mut front = String::from("---\nlibrary_name: gguf\n");
    if let Some(license) = &origin.license {
        front += &format!("license: {}\n", scalar(license));
    }
    let bases = origin.base_models.iter().filter_map(|base| {
        let address = base.url.as_deref()?;
        Some(address.strip_prefix("https://huggingface.co/").unwrap_or(address).to_owned())
    });
    front += &list("base_model", bases.collect());
    front += &list("language", origin.languages.clone());
    let mut tags: Vec<String> = Vec::new();
    for tag in origin.tags.iter().map(String::as_str).chain(["gguf"]) {
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    front + &list("tags", tags) + "---\n"
}

fn list(name: &str, items: Vec<String>) -> String {
    let lines: String = items.iter().map(|item| format!("- {}\n", scalar(item))).collect();
    if items.is_empty() { String::new() } else { format!("{name}:\n{lines}") }
}

/// Formats a YAML scalar, quoted where a plain one could be misread.
fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
        && !["true", "false", "null", "yes", "no", "on", "off"].contains(&&*text.to_lowercase());
    // A JSON string is a valid YAML string.
    if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

/// Escapes text for a table cell.
fn cell(text: &str) -> String {
    terminal::plain(text).replace('|', "\\|").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_scalars_are_quoted_where_needed() {
        assert_eq!(scalar("apache-2.0"), "apache-2.0");
        assert_eq!(scalar("a: b"), "\"a: b\"");
        assert_eq!(scalar("no"), "\"no\"");
        assert_eq!(scalar("a\nb"), "\"a\\nb\"");
        assert_eq!(cell("a|b\n<script>"), "a\\|b\\n&lt;script>");
    }
}

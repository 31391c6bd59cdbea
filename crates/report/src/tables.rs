//! Measurements and files as tables in Markdown.

use gguf::units::{bytes, count};
use gguf_eval::quality::{Conditions, QualityReport};
use gguf_eval::{Divergence, Spread};
use gguf_inspect::summary::Summary;

use crate::card::front_matter_of_file;
use crate::figures::significant;
use crate::markdown::{code, code_cell, text};

/// Returns the table of a quality report, the largest type first, with the recommended types in bold and the conditions
/// below.
pub fn quality_markdown(report: &QualityReport) -> String {
    let choices = report.choices();
    let purpose_of = |name: &str| {
        let chosen = choices.iter().find(|(_, entry)| entry.name == name);
        chosen.map(|(purpose, _)| purpose.name())
    };
    let mut table = String::from(
        "| Type | Size | Bits per weight | KL divergence, mean | Top-1 agreement | Perplexity | Recommended for |\n\
         |---|---:|---:|---:|---:|---:|---|\n",
    );
    let reference = &report.reference;
    table += &format!(
        "| reference | {} | {:.2} | 0 | 100 % | {:.4} ± {} | |\n",
        bytes(reference.cost.file_bytes),
        reference.cost.bits_per_weight,
        reference.ppl,
        significant(reference.ppl_error, 2),
    );
    for entry in report.by_size() {
        let note = match (purpose_of(&entry.name), &entry.dominated_by) {
            (Some(purpose), _) => format!("**{purpose}** "),
            (None, Some(other)) => format!("dominated by {} ", code_cell(other)),
            (None, None) => String::new(),
        };
        table += &format!(
            "| {} | {} | {:.2} | {} | {:.2} ± {} % | {:.4} ± {} | {note}|\n",
            code_cell(&entry.name),
            bytes(entry.cost.file_bytes),
            entry.cost.bits_per_weight,
            with_error(entry.mean_kld, entry.mean_kld_error),
            entry.top1_agreement,
            significant(entry.top1_agreement_error, 2),
            entry.ppl_q,
            significant(entry.ppl_q_error, 2),
        );
    }
    let Conditions { tokens, chunks, chunk_size, text: file, program, .. } = &report.conditions;
    table += &format!(
        "\n{tokens} tokens evaluated in {chunks} chunks of {chunk_size} tokens of {}, compared with {}, by {}. ± is the \
         standard error.\n",
        code(file_name(file)),
        code(file_name(&reference.file)),
        text(program),
    );
    table
}

/// Returns the table of a comparison with a reference model: one row per model, with its name.
pub fn divergence_markdown(reference: &str, models: &[(&str, &Divergence)]) -> String {
    let mut table = String::from(
        "| Model | KL divergence, mean | Median | 99th percentile | Max | Top-1 agreement | Perplexity | Perplexity ratio |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for (name, found) in models {
        let spread = Spread::new(&found.divergences);
        let at = |share: f64| significant(spread.at(share), 3);
        let ((same, same_error), (ratio, ratio_error)) = (found.top1_agreement(), found.ratio());
        table += &format!(
            "| {} | {} | {} | {} | {} | {:.2} ± {} % | {:.4} ± {} | {ratio:.4} ± {} |\n",
            code_cell(file_name(name)),
            with_error(found.divergence.value(), found.divergence.error()),
            at(0.5),
            at(0.99),
            at(1.0),
            100.0 * same,
            significant(100.0 * same_error, 2),
            found.model.value(),
            significant(found.model.error(), 2),
            significant(ratio_error, 2),
        );
    }
    if let Some((_, first)) = models.first() {
        let (tokens, chunks) = (first.model.surprise.count, first.model.chunks);
        let perplexity = with_error(first.reference.value(), first.reference.error());
        table += &format!(
            "\n{tokens} tokens evaluated in {chunks} chunks, compared with {} (perplexity {perplexity}). ± is the standard \
             error.\n",
            code(file_name(reference)),
        );
    }
    table
}

fn with_error(value: f64, error: f64) -> String {
    format!("{} ± {}", significant(value, 3), significant(error, 2))
}

/// Returns the last part of a path of any system.
fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(path)
}

/// Returns the model card of one file, which the user named `source`.
pub fn file_card_markdown(summary: &Summary, source: &str) -> String {
    let (layers, origin) = (&summary.layers, &summary.origin);
    let file = file_name(source);
    let name = summary.name.as_deref().unwrap_or(file);
    let mut card = format!("{}\n# {}\n\n", front_matter_of_file(summary), text(name));
    let mut rows = vec![
        ("File", code_cell(file)),
        ("Architecture", summary.architecture.as_deref().map_or("not stated".into(), text)),
        ("Parameters", count(summary.parameters)),
        ("Type", summary.file_type.unwrap_or("mixed").to_owned()),
        (
            "Size",
            format!(
                "{}, {:.2} bits per weight",
                bytes(summary.file_bytes),
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
    add("License", origin.license.as_deref().map(text));
    add("Author", origin.author.as_deref().map(text));
    add("Quantized by", origin.quantized_by.as_deref().map(text));
    // The name of the text, without the folders of the machine where it was read.
    let matrix = origin.imatrix.as_ref();
    let dataset =
        matrix.map(|it| it.dataset.as_deref().map_or("yes".into(), |it| text(file_name(it))));
    add("Importance matrix", dataset);
    card += "| | |\n|---|---|\n";
    for (label, value) in rows {
        card += &format!("| {label} | {value} |\n");
    }
    card += "\n## Types\n\n| Type | Tensors | Size |\n|---|---:|---:|\n";
    for (ty, (tensors, size)) in &summary.types {
        card += &format!("| {ty} | {tensors} | {} |\n", bytes(*size));
    }
    card
}

//! Sections of the card of a repository.

use gguf::units::{bytes, count};

use super::front_matter::distinct;
use super::{Card, CardFile, CardImatrix, CardModel, License, Making, Measurement, meaning_of};
use crate::figures::significant;
use crate::markdown::{code, code_block, code_cell, link_target, text, web_address};

/// Address of the Hub.
const HUB: &str = "https://huggingface.co/";

/// Returns title, base models and description.
pub(super) fn introduction(card: &Card) -> String {
    let mut section = format!("# {}\n", text(&card.title));
    let bases: Vec<_> = card.base_models.iter().map(|base| base_link(base)).collect();
    let of = match &bases[..] {
        [] => String::new(),
        bases => format!(" of {}", listed(bases)),
    };
    let by = card.quantized_by.as_deref().map(|author| format!(", quantized by {}", text(author)));
    section += &format!(
        "\n[GGUF](https://github.com/ggml-org/ggml/blob/master/docs/gguf.md) files{of}{}.\n",
        by.unwrap_or_default()
    );
    if card.models.len() > 1 {
        section += &format!("\nThis repository holds {} models.\n", card.models.len());
    }
    let bases_of = |model: &CardModel| model.base_models.clone();
    if distinct(card.models.iter().map(bases_of)).len() > 1 {
        section += "\nThey come from different base models:\n\n";
        for model in &card.models {
            let bases: Vec<_> = model.base_models.iter().map(|base| base_link(base)).collect();
            let bases = if bases.is_empty() { "not stated".to_owned() } else { listed(&bases) };
            section += &format!("- {}: {bases}\n", text(&model.name));
        }
    }
    if let [CardModel { description: Some(description), .. }] = &card.models[..] {
        section += &format!("\n{}\n", text(description));
    }
    section
}

/// Returns the files of each model, with their facts.
pub(super) fn models(card: &Card) -> String {
    let mut section = String::new();
    for model in &card.models {
        section += &match &card.models[..] {
            [_] => "## Files\n\n".to_owned(),
            _ => format!("## {}\n\n", text(&model.name)),
        };
        section += &files_of(model);
        section += &legend_of(card, model);
        section += &facts_of(model);
        section.push('\n');
    }
    section.trim_end().to_owned() + if section.is_empty() { "" } else { "\n" }
}

fn files_of(model: &CardModel) -> String {
    let is_measured = model.files.iter().any(|file| file.loss.is_some());
    let is_recommended = model
        .files
        .iter()
        .any(|file| file.recommended_for.is_some() || file.dominated_by.is_some());
    let mut header = String::from("| File | Type | Size | Bits per weight |");
    let mut rule = String::from("|---|---|---:|---:|");
    if is_measured {
        header += " KL divergence, mean | Top-1 agreement |";
        rule += "---:|---:|";
    }
    if is_recommended {
        header += " Recommended for |";
        rule += "---|";
    }
    let mut table = format!("{header}\n{rule}\n");
    for file in &model.files {
        table += &format!("{} {:.2} |", size_row(file), file.bits_per_weight);
        if is_measured {
            table += &match &file.loss {
                Some(loss) => format!(
                    " {} ± {} | {:.1} % |",
                    significant(loss.mean_kld, 3),
                    significant(loss.mean_kld_error, 2),
                    loss.top1_agreement
                ),
                None => " | |".to_owned(),
            };
        }
        if is_recommended {
            table += &match (file.recommended_for, &file.dominated_by) {
                (Some(purpose), _) => format!(" **{purpose}** |"),
                (None, Some(other)) => {
                    format!(" {} is no larger and more accurate |", name_of(other))
                }
                (None, None) => " |".to_owned(),
            };
        }
        table.push('\n');
    }
    table
}

/// Returns the first cells of a row: link, type and size.
fn size_row(file: &CardFile) -> String {
    let shards = match file.shards {
        0 | 1 => String::new(),
        shards => format!(", {shards} shards"),
    };
    let (name, target) = (code_cell(&file.file), link_target(&file.file));
    format!(
        "| [{name}]({target}){shards} | {} | {} |",
        code_cell(&file.file_type),
        bytes(file.file_bytes)
    )
}

/// Returns the file name of a path as code.
fn name_of(path: &str) -> String {
    code_cell(path.rsplit('/').next().unwrap_or(path))
}

/// Explains the figures and recommendations of a table.
fn legend_of(card: &Card, model: &CardModel) -> String {
    let used = distinct(model.files.iter().filter_map(|file| Some(file.loss?.measurement)));
    let mut legend = String::new();
    let recommended = model.files.iter().filter_map(|file| file.recommended_for);
    for purpose in distinct(recommended) {
        if let Some(meaning) = meaning_of(purpose) {
            legend += &format!("- **{purpose}**: {meaning}\n");
        }
    }
    for measurement in used.into_iter().filter_map(|number| card.measurements.get(number)) {
        legend += &format!("- {}\n", conditions(measurement));
    }
    if legend.is_empty() { legend } else { format!("\n{legend}") }
}

fn conditions(measurement: &Measurement) -> String {
    let Measurement { reference, text: file, text_sha256, tokens, chunk_size, program, .. } =
        measurement;
    let mut line = format!(
        "KL divergence and top-1 agreement compare next-token predictions with those of {}",
        code(reference)
    );
    if let Some(file) = file {
        line += &format!(" on {}", code(file));
    }
    if let Some(digest) = text_sha256 {
        line += &format!(" (SHA-256 {})", code(digest));
    }
    line += &format!(": {tokens} evaluated tokens");
    if let Some(size) = chunk_size {
        line += &format!(", context of {size}");
    }
    if let Some(program) = program {
        line += &format!(", measured by {}", text(program));
    }
    line + ". ± is the standard error."
}

fn facts_of(model: &CardModel) -> String {
    let mut facts = Vec::new();
    facts.extend(model.architecture.as_deref().map(|name| format!("architecture {}", code(name))));
    facts.push(format!("{} parameters", count(model.parameters)));
    facts.extend(model.context_length.map(|tokens| format!("context of {tokens} tokens")));
    facts.extend(model.vocabulary.map(|tokens| format!("vocabulary of {tokens} tokens")));
    facts.push(
        if model.has_chat_template { "with a chat template" } else { "without a chat template" }
            .to_owned(),
    );
    let facts = facts.join(", ");
    let mut letters = facts.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    format!("\n{}{}.\n", first.map(String::from).unwrap_or_default(), letters.as_str())
}

/// Returns the vision and audio encoders.
pub(super) fn encoders(card: &Card) -> String {
    let intro =
        "Programs load one of these files beside a model, to read images or audio (`--mmproj`).";
    plain_files("Vision and audio encoders (mmproj)", intro, &card.encoders)
}

/// Returns the LoRA adapters.
pub(super) fn adapters(card: &Card) -> String {
    plain_files(
        "LoRA adapters",
        "Programs apply these files to a model (`--lora`).",
        &card.adapters,
    )
}

fn plain_files(title: &str, introduction: &str, files: &[CardFile]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let rows: String = files.iter().map(|file| size_row(file) + "\n").collect();
    format!("## {title}\n\n{introduction}\n\n| File | Type | Size |\n|---|---|---:|\n{rows}")
}

/// Returns commands that run the model.
pub(super) fn usage(card: &Card) -> String {
    let (Some(repository), [model]) = (&card.repository, &card.models[..]) else {
        return String::new();
    };
    if card.pipeline_tag.as_deref() != Some("text-generation") {
        return String::new();
    }
    let balanced = model.files.iter().find(|file| file.recommended_for == Some("balanced"));
    let usual = || model.files.iter().find(|file| file.file_type == "Q4_K_M");
    let Some(file) = balanced.or_else(usual).or(model.files.last()) else { return String::new() };
    let tag = &file.file_type;
    let commands = format!(
        "gguf chat hf:{repository}:{tag}\nllama-cli -hf {repository}:{tag}\nollama run hf.co/{repository}:{tag}"
    );
    format!("## Use\n\n{}", code_block("sh", &commands))
}

/// Returns how the files were made.
pub(super) fn making(card: &Card) -> String {
    let files: Vec<&CardFile> = card.models.iter().flat_map(|model| &model.files).collect();
    let mut lines = String::new();
    let conversions = files.iter().filter(|file| file.made.settings.is_some());
    for made in distinct(conversions.map(|file| conversion_of(&file.made))) {
        lines += &made;
    }
    let matrices = files.iter().filter_map(|file| file.made.imatrix.as_deref());
    for matrix in distinct(matrices) {
        let of = |file: &&&CardFile| file.made.imatrix.as_deref() == Some(matrix);
        let used: Vec<&&CardFile> = files.iter().filter(of).collect();
        lines += &format!("- Quantized with the importance matrix {}", code(matrix));
        let made = &used[0].made;
        if let Some(dataset) = &made.dataset {
            lines += &format!(" of the text {}", code(dataset));
        }
        if let Some(chunks) = made.chunks {
            lines += &format!(" ({chunks} chunks)");
        }
        lines += &format!(": {}.\n", types_of(used.into_iter().copied()));
    }
    let calibrated: Vec<_> = files.iter().copied().filter(|file| file.made.calibrated).collect();
    if !calibrated.is_empty() {
        lines += &format!("- Weights calibrated with GPTQ: {}.\n", types_of(calibrated));
    }
    let matrices: String = card.imatrices.iter().map(imatrix).collect();
    match (lines.is_empty(), matrices.is_empty()) {
        (true, true) => String::new(),
        (_, true) => format!("## How the files were made\n\n{lines}"),
        (true, _) => format!("## Importance matrix\n\n{matrices}"),
        _ => format!("## How the files were made\n\n{lines}\n### Importance matrix\n\n{matrices}"),
    }
}

fn types_of<'f>(files: impl IntoIterator<Item = &'f CardFile>) -> String {
    let types = distinct(files.into_iter().map(|file| code(&file.file_type)));
    listed(&types)
}

fn conversion_of(made: &Making) -> String {
    let source = made.source.as_deref().unwrap_or("CHECKPOINT");
    let settings = made.settings.as_deref().unwrap_or_default();
    let by = made.tool.as_deref().map(|tool| format!(" by {}", text(tool))).unwrap_or_default();
    let command = format!("gguf convert {source} {settings}");
    let digest = made.source_digest.as_deref();
    let digest = digest.map(|digest| format!(" Digest of the source: {}.", code(digest)));
    format!("- Converted{by}: {}.{}\n", code(command.trim()), digest.unwrap_or_default())
}

fn imatrix(matrix: &CardImatrix) -> String {
    let name = match &matrix.file {
        Some(file) => format!("[{}]({})", code(file), link_target(file)),
        None => code(&matrix.name),
    };
    let mut line = format!("- {name}, SHA-256 {}", code(&matrix.sha256));
    if matrix.dataset.is_some() || matrix.dataset_sha256.is_some() {
        let dataset = matrix.dataset.as_deref().map(|name| format!(" {}", code(name)));
        line += &format!(", of the text{}", dataset.unwrap_or_default());
    }
    if let Some(digest) = &matrix.dataset_sha256 {
        line += &format!(" with SHA-256 {}", code(digest));
    }
    line += &format!(", {} chunks", matrix.chunks);
    if let Some(size) = matrix.chunk_size {
        line += &format!(" of {size} tokens");
    }
    line + "\n"
}

/// Returns the license of each model.
pub(super) fn licenses(card: &Card) -> String {
    let licensed = |model: &CardModel| model.license.clone();
    let licenses = distinct(card.models.iter().map(licensed));
    match &licenses[..] {
        [] | [None] => String::new(),
        [Some(license)] => {
            format!("## License\n\n{}\n", license_text(license))
        }
        _ => {
            let line = |model: &CardModel| {
                let license = model.license.as_ref().map(license_text);
                let license = license.unwrap_or_else(|| "not stated".to_owned());
                format!("- {}: {license}\n", text(&model.name))
            };
            let lines: String = card.models.iter().map(line).collect();
            format!("## License\n\n{lines}")
        }
    }
}

fn license_text(license: &License) -> String {
    let name = text(license.name.as_deref().unwrap_or(&license.id));
    match license.link.as_deref().and_then(web_address) {
        Some(address) => format!("[{name}]({address})"),
        None => name,
    }
}

/// Returns the citation.
pub(super) fn citation(card: &Card) -> String {
    let mut section = String::new();
    if let Some(citation) = &card.citation {
        let language = if citation.trim_start().starts_with('@') { "bibtex" } else { "" };
        section += &code_block(language, citation);
    } else if let Some(doi) = &card.doi {
        let doi = doi.strip_prefix("https://doi.org/").unwrap_or(doi);
        section += &match web_address(&format!("https://doi.org/{doi}")) {
            Some(address) => format!("DOI: [{}]({address})\n", text(doi)),
            None => format!("DOI: {}\n", text(doi)),
        };
    } else if !card.base_models.is_empty() {
        let bases: Vec<_> = card.base_models.iter().map(|base| base_link(base)).collect();
        section += &format!("Cite {}, as its authors ask.\n", listed(&bases));
    }
    if section.is_empty() { section } else { format!("## Citation\n\n{section}") }
}

/// Returns a link to a base model.
fn base_link(base: &str) -> String {
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let is_repository = base.split('/').count() == 2 && base.split('/').all(is_part);
    let address = if is_repository { format!("{HUB}{base}") } else { base.to_owned() };
    match web_address(&address) {
        Some(address) => format!("[{}]({address})", text(base)),
        None => text(base),
    }
}

/// Joins items: `a`, `a and b`, `a, b and c`.
fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

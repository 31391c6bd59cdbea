//! HTML page of models: facts, heat maps, sizes, memory, quantization error, findings, metadata keys and tensor
//! statistics.

mod errors;
mod groups;
mod layers;
mod pictures;
mod png;

use gguf::units::{bytes, count};
use gguf::{Error, Finding, Value};
use gguf_inspect::summary::Summary;
use gguf_inspect::values::{Matrix, Statistics, statistics};
use gguf_models::schema;
use gguf_store::{Model, ModelTensor, Progress};
use minijinja::Environment;
use minijinja::value::Serde;
use serde::Serialize;
use serde_json::json;
use svg::Document;
use svg::node::element::Path;
use svg::node::element::path::Data;

/// Template of the page.
const TEMPLATE: &str = include_str!("model.html");

/// Name of the template. Its extension makes minijinja escape values.
const NAME: &str = "model.html";

/// Approximate number of weights read in total.
const SAMPLE_BUDGET: u64 = 1 << 28;
/// Minimum number of weights read per tensor.
const MIN_SAMPLE: u64 = 1 << 16;

/// Maximum number of characters of a value.
const MAX_CHARS: usize = 400;

/// A model of a page.
pub struct ModelReport<'m> {
    /// Name that the user gave it.
    pub source: &'m str,
    /// The model.
    pub model: &'m Model,
    /// Findings about it.
    pub findings: &'m [Finding],
    /// Memory to run it at several context sizes; may be empty.
    pub memory: Vec<MemoryRow>,
    /// The model that it was quantized from, and its name.
    pub reference: Option<(&'m Model, &'m str)>,
}

/// Estimated memory at a context size, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct MemoryRow {
    /// Context size in tokens.
    pub context: u64,
    /// All tensors.
    pub weights: u64,
    /// KV cache and recurrent states.
    pub cache: u64,
    /// Compute buffer.
    pub compute_buffer: u64,
}

/// Returns the page of one or several models. Statistics of large models are computed from a sample of the weights.
/// `version` names the program.
///
/// # Errors
/// If tensor data cannot be read, or `progress` stopped the work.
pub fn model_page(
    reports: &[ModelReport],
    version: &str,
    progress: &dyn Progress,
) -> Result<String, Error> {
    let is_single = reports.len() == 1;
    let sections = reports.iter().enumerate().map(|(number, report)| {
        // Anchors are unique in the page.
        let prefix = if is_single { String::new() } else { format!("m{}-", number + 1) };
        let mut section = section(report, &prefix, progress)?;
        // So are the names of its landmarks.
        if !is_single {
            let label =
                format!("{}, model {}", section["title"].as_str().unwrap_or_default(), number + 1);
            section["label"] = label.into();
        }
        Ok(section)
    });
    let sections = sections.collect::<Result<Vec<_>, Error>>()?;
    let summaries = || reports.iter().map(|report| Summary::of(report.model));
    let (title, description) = match (summaries().next(), &sections[..]) {
        (Some(summary), [one]) => (one["title"].clone(), description(&summary)),
        _ => {
            let names: Vec<_> = sections.iter().filter_map(|of| of["source"].as_str()).collect();
            (format!("{} GGUF models", reports.len()).into(), names.join(", "))
        }
    };
    let mut environment = Environment::new();
    let added = environment.add_template(NAME, TEMPLATE);
    let page = added.and_then(|()| environment.get_template(NAME)).and_then(|template| {
        template.render(Serde(json!({
            "title": title,
            "description": description,
            "version": version,
            "comparison": (!is_single).then(|| comparison(reports, &sections)),
            "models": sections,
        })))
    });
    Ok(page.expect("the template matches its values") + "\n")
}

/// Returns the values of the section of a model, whose anchors begin with `prefix`.
fn section(
    report: &ModelReport,
    prefix: &str,
    progress: &dyn Progress,
) -> Result<serde_json::Value, Error> {
    let model = report.model;
    let summary = Summary::of(model);
    let source = shown_source(report.source);
    let budget = SAMPLE_BUDGET / model.tensors().len().max(1) as u64;
    let mut ordered: Vec<_> = model.tensors().iter().collect();
    ordered.sort_by_cached_key(|tensor| natural_order(&tensor.info.name));
    let tensors =
        ordered.into_iter().map(|tensor| TensorRow::of(tensor, budget.max(MIN_SAMPLE), progress));
    let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
    let title = summary.name.as_deref().map_or_else(|| source.to_owned(), truncated);
    let errors = report.reference.map(|(reference, source)| {
        errors::errors(model, reference, shown_source(source), progress)
    });
    Ok(json!({
        "prefix": prefix,
        "title": title,
        "label": title,
        "source": source,
        "pictures": pictures::pictures(model, progress)?,
        "layers": layers::strips(model),
        "facts": facts(&summary),
        "groups": groups::groups(model),
        "types": types(&summary),
        "memory": report.memory.iter().map(MemoryCells::of).collect::<Vec<_>>(),
        "errors": errors.transpose()?,
        "findings": report.findings.iter().map(FindingRow::of).collect::<Vec<_>>(),
        "keys": keys(model),
        "sampled": tensors.iter().any(|row| row.sampled),
        "tensors": tensors,
    }))
}

/// A model as a row of the comparison of several.
#[derive(Serialize)]
struct ModelRow {
    anchor: String,
    title: String,
    source: String,
    architecture: String,
    parameters: String,
    file_type: String,
    size: String,
    bits: String,
    context: String,
    memory: String,
    findings: usize,
}

fn comparison(reports: &[ModelReport], sections: &[serde_json::Value]) -> Vec<ModelRow> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let row = |(report, section): (&ModelReport, &serde_json::Value)| {
        let summary = Summary::of(report.model);
        ModelRow {
            anchor: format!("{}top", text(&section["prefix"])),
            title: text(&section["title"]),
            source: text(&section["source"]),
            architecture: summary.architecture.as_deref().map_or_else(String::new, truncated),
            parameters: count(summary.parameters),
            file_type: summary.file_type.unwrap_or_default().to_owned(),
            size: bytes(summary.file_bytes),
            bits: format!("{:.2}", summary.bits_per_weight()),
            context: summary.layers.context_length.map_or_else(String::new, |of| of.to_string()),
            memory: report.memory.first().map_or_else(String::new, |row| {
                format!("{} at {}", MemoryCells::of(row).total, row.context)
            }),
            findings: report.findings.len(),
        }
    };
    reports.iter().zip(sections).map(row).collect()
}

/// Estimated memory, formatted.
#[derive(Serialize)]
struct MemoryCells {
    context: u64,
    weights: String,
    cache: String,
    compute_buffer: String,
    total: String,
}

impl MemoryCells {
    fn of(row: &MemoryRow) -> Self {
        let total = row.weights.saturating_add(row.cache).saturating_add(row.compute_buffer);
        Self {
            context: row.context,
            weights: bytes(row.weights),
            cache: bytes(row.cache),
            compute_buffer: bytes(row.compute_buffer),
            total: bytes(total),
        }
    }
}

/// Returns the name of a local file without its directories, which may name the user; other sources as they are.
fn shown_source(source: &str) -> &str {
    let is_remote = source.contains("://") || source.starts_with("hf:");
    if is_remote { source } else { source.rsplit(['/', '\\']).next().unwrap_or(source) }
}

/// Returns a key that sorts names with numbers by their values: `blk.2` before `blk.10`.
fn natural_order(name: &str) -> Vec<(u64, String)> {
    let part = |part: &str| match part.parse() {
        Ok(number) => (number, String::new()),
        Err(_) => (u64::MAX, part.to_owned()),
    };
    name.split('.').map(part).collect()
}

/// Returns one sentence about the model, which cards of shared links show.
fn description(summary: &Summary) -> String {
    let architecture =
        summary.architecture.as_deref().map_or("unknown architecture".into(), truncated);
    let file_type = summary.file_type.map_or(String::new(), |name| format!(", {name}"));
    format!(
        "{architecture}, {} parameters, {}, {:.2} bits per weight{file_type}",
        count(summary.parameters),
        bytes(summary.file_bytes),
        summary.bits_per_weight(),
    )
}

fn truncated(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{} ... {} characters", &text[..end], text.chars().count()),
        None => text.to_owned(),
    }
}

/// Returns labels and facts.
fn facts(summary: &Summary) -> Vec<(&'static str, String)> {
    let (layers, vocabulary, origin) = (&summary.layers, &summary.vocabulary, &summary.origin);
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let tokens = vocabulary.tokens.map(|tokens| {
        let model = vocabulary.model.as_deref().unwrap_or_default();
        format!("{tokens} tokens, {}", truncated(model))
    });
    let size = format!(
        "{}, {:.2} bits per weight{}",
        bytes(summary.file_bytes),
        summary.bits_per_weight(),
        summary.file_type.map_or(String::new(), |name| format!(", {name}"))
    );
    let all = [
        ("Architecture", summary.architecture.as_deref().map(truncated)),
        (
            "Parameters",
            Some(format!("{} in {} tensors", count(summary.parameters), summary.tensors)),
        ),
        ("Size", Some(size)),
        ("Files", Some(format!("{}, GGUF version {}", summary.files, summary.version))),
        ("Layers", number(layers.block_count)),
        ("Embedding size", number(layers.embedding_length)),
        ("Context size", layers.context_length.map(|tokens| format!("{tokens} tokens"))),
        ("Vocabulary", tokens),
        ("Chat template", vocabulary.template.as_ref().map(|of| bytes(of.bytes as u64))),
        ("Description", origin.description.as_deref().map(truncated)),
        ("License", origin.license.as_deref().map(truncated)),
        ("Author", origin.author.as_deref().map(truncated)),
        ("Quantized by", origin.quantized_by.as_deref().map(truncated)),
    ];
    all.into_iter().filter_map(|(label, fact)| Some((label, fact?))).collect()
}

/// Share of a tensor type in a model.
#[derive(Serialize)]
struct TypeShare {
    name: String,
    tensors: u64,
    size: String,
    percent: String,
}

/// Returns the tensor types, the one with most bytes first.
fn types(summary: &Summary) -> Vec<TypeShare> {
    let mut types: Vec<_> = summary.types.iter().collect();
    types.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
    let share = |(ty, (tensors, size)): (&gguf::TensorType, &(u64, u64))| TypeShare {
        name: ty.to_string(),
        tensors: *tensors,
        size: bytes(*size),
        percent: format!("{:.1}", *size as f64 * 100.0 / summary.data_bytes.max(1) as f64),
    };
    types.into_iter().map(share).collect()
}

/// A finding as a row.
#[derive(Serialize)]
struct FindingRow {
    code: &'static str,
    severity: &'static str,
    text: String,
    help: String,
}

impl FindingRow {
    fn of(finding: &Finding) -> Self {
        let place = finding.key.as_deref().or(finding.tensor.as_deref()).map(truncated);
        let place = place.map_or(String::new(), |place| format!("{place}: "));
        Self {
            code: finding.code,
            severity: finding.severity.name(),
            text: place + &truncated(&finding.message),
            help: finding.help.to_string(),
        }
    }
}

/// A metadata key as a row.
#[derive(Serialize)]
struct KeyRow {
    name: String,
    kind: String,
    value: String,
    meaning: &'static str,
}

fn keys(model: &Model) -> Vec<KeyRow> {
    let key = |(name, value): (&str, &Value)| KeyRow {
        name: truncated(name),
        kind: match value.as_array() {
            Some(array) => format!("{}[{}]", array.element_type(), array.len()).to_lowercase(),
            None => value.value_type().to_string().to_lowercase(),
        },
        value: match value.as_str() {
            Some(text) => truncated(text),
            None => truncated(&value.to_string()),
        },
        meaning: schema::key(name).map_or("", |key| key.meaning),
    };
    model.metadata().iter().map(key).collect()
}

/// A tensor as a row.
#[derive(Serialize)]
struct TensorRow {
    name: String,
    kind: String,
    shape: String,
    size: String,
    sampled: bool,
    figures: Option<StatisticsCells>,
    /// Why there are no statistics.
    reason: &'static str,
}

/// Statistics of a tensor, formatted.
#[derive(Serialize)]
struct StatisticsCells {
    mean: String,
    deviation: String,
    min: String,
    max: String,
    zeros: String,
    not_finite: u64,
    bars: Option<String>,
}

impl TensorRow {
    fn of(tensor: &ModelTensor, budget: u64, progress: &dyn Progress) -> Result<Self, Error> {
        let info = &tensor.info;
        let end = tensor.offset.saturating_add(info.byte_len().unwrap_or(0));
        let is_missing = end > tensor.source.byte_len();
        let found = match Matrix::of(tensor) {
            Ok(matrix) if !is_missing => Some(statistics(&matrix, budget, progress)?),
            _ => None,
        };
        Ok(Self {
            name: truncated(&info.name),
            kind: info.tensor_type.to_string(),
            shape: info.shape.to_string(),
            size: info.byte_len().map_or_else(|| "?".to_owned(), bytes),
            sampled: found.as_ref().is_some_and(|found| !found.exact),
            figures: found.as_ref().map(StatisticsCells::of),
            reason: if is_missing { "data is missing" } else { "cannot be decoded" },
        })
    }
}

impl StatisticsCells {
    fn of(found: &Statistics) -> Self {
        let figures = &found.figures;
        let zeros = figures.zeros as f64 * 100.0 / figures.count.max(1) as f64;
        Self {
            mean: significant(figures.mean),
            deviation: significant(figures.deviation),
            min: significant(figures.min.into()),
            max: significant(figures.max.into()),
            zeros: format!("{zeros:.1}"),
            not_finite: figures.nan + figures.infinite,
            bars: bars(&figures.histogram),
        }
    }
}

/// Formats a number with three significant digits.
fn significant(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        size if (1e-3..1e4).contains(&size) => {
            let decimals = (2 - size.log10().floor() as i32).clamp(0, 5);
            format!("{number:.*}", decimals as usize)
        }
        _ => format!("{number:.2e}"),
    }
}

/// Draws a small histogram with bars of the square roots of the counts, so that the tails are visible.
fn bars(counts: &[u64]) -> Option<String> {
    const HEIGHT: f64 = 20.0;
    const BINS_PER_BAR: usize = 4;
    let counts: Vec<u64> = counts.chunks(BINS_PER_BAR).map(|bins| bins.iter().sum()).collect();
    let max = counts.iter().copied().max().filter(|max| *max > 0)? as f64;
    let mut line = Data::new().move_to((0.0, HEIGHT));
    for (i, count) in counts.iter().enumerate() {
        let top = (HEIGHT * (1.0 - (*count as f64 / max).sqrt()) * 10.0).round() / 10.0;
        line = line.vertical_line_to(top).horizontal_line_to(2 * (i + 1));
    }
    let line = line.vertical_line_to(HEIGHT).close();
    let picture = Document::new()
        .set("viewBox", (0, 0, 2 * counts.len(), HEIGHT))
        .set("width", 2 * counts.len())
        .set("height", HEIGHT)
        .set("aria-hidden", "true")
        .add(Path::new().set("d", line));
    Some(picture.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of keys and tensors are escaped, and the page loads nothing.
    #[test]
    fn untrusted_names_are_escaped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.gguf");
        let evil = "<script>alert(1)</script><img src=http://example.org onerror=alert(1)>\"'";
        let mut draft = gguf::RawHeader::default();
        draft.metadata.set("general.architecture", evil);
        draft.metadata.set("general.name", evil);
        draft.metadata.set(evil, evil.repeat(1000));
        for (name, tensor_type) in [(evil, gguf::TensorType::F32), ("b", gguf::TensorType::F32)] {
            let shape = gguf::Shape::new(&[8]).unwrap();
            let name = name.to_owned();
            draft.tensors.push(gguf::TensorInfo {
                name,
                shape,
                tensor_type,
                offset: 0,
                opaque_len: None,
            });
        }
        draft.lay_out().unwrap();
        let mut bytes = gguf::write_header(&gguf::Header::new(draft).unwrap()).unwrap();
        bytes.extend((0..16).flat_map(|i| (i as f32).to_le_bytes()));
        std::fs::write(&path, bytes).unwrap();
        let model = Model::open(&path).unwrap();
        let findings = [Finding::error("magic", evil).key(evil)];
        let source = path.to_str().unwrap();
        let report = ModelReport {
            source,
            model: &model,
            findings: &findings,
            memory: Vec::new(),
            reference: Some((&model, source)),
        };
        let page = model_page(&[report], "gguf <1>", &()).unwrap();
        for tag in ["<script", "<img src=h", "<link", "<iframe", "href=\"h", " src=\"h", "url("] {
            assert!(!page.contains(tag), "{tag}");
        }
        // Pictures are within the page.
        assert!(
            page.split(" src=\"").skip(1).all(|rest| rest.starts_with("data:image/png;base64,"))
        );
        assert!(page.contains("All weights are identical."), "{page}");
        assert!(page.contains("&lt;script&gt;alert(1)") && page.contains("gguf &lt;1&gt;"));
        // Mean and standard deviation of 0 to 7.
        assert!(page.contains(">3.50<") && page.contains(">2.29<"), "{page}");
        assert!(page.len() < 100_000);
        // A page that is published does not name the folders of its author.
        assert!(page.contains("m.gguf") && !page.contains(dir.path().to_str().unwrap()), "{page}");
        assert!(page.contains("property=\"og:title\"") && page.contains("name=\"description\""));
    }

    #[test]
    fn sources_and_order() {
        assert_eq!(shown_source("/home/user/models/a.gguf"), "a.gguf");
        assert_eq!(shown_source("C:\\models\\a.gguf"), "a.gguf");
        assert_eq!(shown_source("hf:org/repo:Q4_K_M"), "hf:org/repo:Q4_K_M");
        assert_eq!(shown_source("https://host/a.gguf"), "https://host/a.gguf");
        let mut names = ["blk.10.a", "output", "blk.2.b", "blk.2.a"];
        names.sort_by_cached_key(|name| natural_order(name));
        assert_eq!(names, ["blk.2.a", "blk.2.b", "blk.10.a", "output"]);
    }

    #[test]
    fn significant_digits() {
        for (number, said) in [
            (0.0, "0"),
            (0.5, "0.500"),
            (-12.3456, "-12.3"),
            (1234.5, "1234"),
            (0.00001234, "1.23e-5"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(significant(number), said);
        }
    }
}

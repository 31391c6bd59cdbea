//! What is in a model as one page that needs nothing but itself: for publishing beside it.

use gguf::{Finding, Severity, Value};
use gguf_models::schema;
use gguf_store::{Model, ModelTensor};
use gguf_tokenizer::template::Renderer;
use minijinja::Environment;
use minijinja::value::Serde;
use serde::Serialize;
use serde_json::json;
use svg::Document;
use svg::node::element::Path;
use svg::node::element::path::Data;

use crate::summary::Summary;
use crate::values::{Matrix, Statistics, statistics};
use crate::{Error, Files, Progress};
use gguf::units::{bytes, count};

/// The page, to be filled in.
const TEMPLATE: &str = include_str!("report.html");

/// Numbers that are read of all tensors together, about; of each at least [`LEAST`].
const BUDGET: u64 = 1 << 28;
const LEAST: u64 = 1 << 16;

/// Characters of a value that are shown.
const SHOWN: usize = 400;

/// The page of a model: what it is, what is wrong with it, its keys, its tensors with figures of their weights. Of
/// large models figures are of a sample of weights. `version` is what the program says of itself.
///
/// # Errors
/// If the model breaks the format or cannot be read; if templates cannot be tried; or `progress` ended the work.
pub fn html(
    source: &str,
    files: &Files,
    renderer: &Renderer,
    version: &str,
    progress: &dyn Progress,
) -> Result<String, Error> {
    let model = files.model()?;
    let summary = Summary::of(&model);
    let findings = files.findings(renderer)?;
    let budget = BUDGET / model.tensors().len().max(1) as u64;
    let tensors = model.tensors().iter().map(|tensor| Row::of(tensor, budget.max(LEAST), progress));
    let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
    let mut environment = Environment::new();
    // The ending says that what is filled in is escaped.
    let added = environment.add_template("report.html", TEMPLATE);
    let page = added.and_then(|()| environment.get_template("report.html")).and_then(|template| {
        template.render(Serde(json!({
            "title": summary.name.as_deref().map_or_else(|| source.to_owned(), shortened),
            "version": version,
            "source": source,
            "facts": facts(&summary),
            "types": types(&summary),
            "findings": findings.iter().map(Found::of).collect::<Vec<_>>(),
            "keys": keys(&model),
            "sampled": tensors.iter().any(|row| row.sampled),
            "tensors": tensors,
        })))
    });
    Ok(page.expect("the template goes with what it gets") + "\n")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{} ... {} characters", &text[..end], text.chars().count()),
        None => text.to_owned(),
    }
}

/// Facts by label.
fn facts(summary: &Summary) -> Vec<(&'static str, String)> {
    let (layers, vocabulary, origin) = (&summary.layers, &summary.vocabulary, &summary.origin);
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let tokens = vocabulary.tokens.map(|tokens| {
        let model = vocabulary.model.as_deref().unwrap_or_default();
        format!("{tokens} tokens, {}", shortened(model))
    });
    let size = format!(
        "{}, {:.2} bits per weight{}",
        bytes(summary.file_bytes),
        summary.bits_per_weight(),
        summary.file_type.map_or(String::new(), |name| format!(", {name}"))
    );
    let all = [
        ("Architecture", summary.architecture.as_deref().map(shortened)),
        (
            "Parameters",
            Some(format!("{} in {} tensors", count(summary.parameters), summary.tensors)),
        ),
        ("Size", Some(size)),
        ("Files", Some(format!("{}, GGUF version {}", summary.files, summary.version))),
        ("Blocks", number(layers.block_count)),
        ("Width", number(layers.embedding_length)),
        ("Context", layers.context_length.map(|tokens| format!("{tokens} tokens"))),
        ("Vocabulary", tokens),
        ("Chat template", vocabulary.template.as_ref().map(|of| bytes(of.bytes as u64))),
        ("Description", origin.description.as_deref().map(shortened)),
        ("Licence", origin.licence.as_deref().map(shortened)),
        ("Made by", origin.maker.as_deref().map(shortened)),
        ("Quantized by", origin.quantized_by.as_deref().map(shortened)),
    ];
    all.into_iter().filter_map(|(label, fact)| Some((label, fact?))).collect()
}

/// What a type has of a model.
#[derive(Serialize)]
struct Share {
    name: String,
    tensors: u64,
    size: String,
    percent: String,
}

/// The type with most bytes first.
fn types(summary: &Summary) -> Vec<Share> {
    let mut types: Vec<_> = summary.types.iter().collect();
    types.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
    let share = |(ty, (tensors, size)): (&gguf::TensorType, &(u64, u64))| Share {
        name: ty.to_string(),
        tensors: *tensors,
        size: bytes(*size),
        percent: format!("{:.1}", *size as f64 * 100.0 / summary.data_bytes.max(1) as f64),
    };
    types.into_iter().map(share).collect()
}

/// What a rule found.
#[derive(Serialize)]
struct Found {
    code: &'static str,
    severity: &'static str,
    text: String,
    help: String,
}

impl Found {
    fn of(finding: &Finding) -> Self {
        let place = finding.key.as_deref().or(finding.tensor.as_deref()).map(shortened);
        let place = place.map_or(String::new(), |place| format!("{place}: "));
        Self {
            code: finding.code,
            severity: match finding.severity {
                Severity::Info => "info",
                Severity::Warning => "warning",
                Severity::Error => "error",
            },
            text: place + &shortened(&finding.message),
            help: finding.help.to_string(),
        }
    }
}

/// A key as a line.
#[derive(Serialize)]
struct Key {
    name: String,
    kind: String,
    value: String,
    meaning: &'static str,
}

fn keys(model: &Model) -> Vec<Key> {
    let key = |(name, value): (&str, &Value)| Key {
        name: shortened(name),
        kind: match value.as_array() {
            Some(array) => format!("{}[{}]", array.element_type(), array.len()).to_lowercase(),
            None => value.value_type().to_string().to_lowercase(),
        },
        value: match value.as_str() {
            Some(text) => shortened(text),
            None => shortened(&value.to_string()),
        },
        meaning: schema::key(name).map_or("", |key| key.meaning),
    };
    model.metadata().iter().map(key).collect()
}

/// A tensor as a line.
#[derive(Serialize)]
struct Row {
    name: String,
    kind: String,
    shape: String,
    size: String,
    sampled: bool,
    figures: Option<Shown>,
}

/// Figures of a tensor, for people.
#[derive(Serialize)]
struct Shown {
    mean: String,
    deviation: String,
    min: String,
    max: String,
    zeros: String,
    wrong: u64,
    bars: Option<String>,
}

impl Row {
    fn of(tensor: &ModelTensor, budget: u64, progress: &dyn Progress) -> Result<Self, Error> {
        let info = &tensor.info;
        let found = match Matrix::of(tensor) {
            Ok(matrix) => Some(statistics(&matrix, budget, progress)?),
            Err(_) => None,
        };
        Ok(Self {
            name: shortened(&info.name),
            kind: info.tensor_type.to_string(),
            shape: info.shape.to_string(),
            size: info.byte_len().map_or_else(|| "?".to_owned(), bytes),
            sampled: found.as_ref().is_some_and(|found| !found.exact),
            figures: found.as_ref().map(Shown::of),
        })
    }
}

impl Shown {
    fn of(found: &Statistics) -> Self {
        let figures = &found.figures;
        let zeros = figures.zeros as f64 * 100.0 / figures.count.max(1) as f64;
        Self {
            mean: significant(figures.mean),
            deviation: significant(figures.deviation),
            min: significant(figures.min.into()),
            max: significant(figures.max.into()),
            zeros: format!("{zeros:.1}"),
            wrong: figures.nan + figures.infinite,
            bars: bars(&figures.histogram),
        }
    }
}

/// Three digits that count.
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

/// A histogram as large as a word. Roots of counts, or the tails would not be seen.
fn bars(counts: &[u64]) -> Option<String> {
    const HEIGHT: f64 = 20.0;
    const EACH: usize = 4;
    let counts: Vec<u64> = counts.chunks(EACH).map(|some| some.iter().sum()).collect();
    let most = counts.iter().copied().max().filter(|most| *most > 0)? as f64;
    let mut line = Data::new().move_to((0.0, HEIGHT));
    for (i, count) in counts.iter().enumerate() {
        let top = (HEIGHT * (1.0 - (*count as f64 / most).sqrt()) * 10.0).round() / 10.0;
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

    /// Whatever keys and tensors are called, the page shows it as text, and asks nobody for anything.
    #[test]
    fn names_of_strangers_are_text() {
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
            draft.tensors.push(gguf::TensorInfo { name, shape, tensor_type, offset: 0 });
        }
        draft.lay_out().unwrap();
        let mut bytes = gguf::write_header(&gguf::Header::new(draft).unwrap()).unwrap();
        bytes.extend((0..16).flat_map(|i| (i as f32).to_le_bytes()));
        std::fs::write(&path, bytes).unwrap();
        let word = path.to_str().unwrap();
        let files = Files::open(word, None).unwrap();
        let page = html(word, &files, &Renderer::here(), "gguf <1>", &()).unwrap();
        for tag in ["<script", "<img", "<link", "<iframe", "href=", " src=\"", "url("] {
            assert!(!page.contains(tag), "{tag}");
        }
        assert!(page.contains("&lt;script&gt;alert(1)") && page.contains("gguf &lt;1&gt;"));
        // 0 to 7: mean and deviation.
        assert!(page.contains(">3.50<") && page.contains(">2.29<"), "{page}");
        assert!(page.len() < 100_000);
    }

    #[test]
    fn digits() {
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

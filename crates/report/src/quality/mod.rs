//! HTML page of a quality report.

mod axis;
mod heat_map;
mod plots;

use gguf::units::{bytes, count};
use gguf_eval::quality::{ModelCost, QualityReport, TypeQuality};
use gguf_eval::recommendation::Purpose;
use minijinja::Environment;
use minijinja::value::Serde;
use serde::Serialize;
use serde_json::json;

use crate::figures::significant;

/// Template of the page.
const TEMPLATE: &str = include_str!("quality.html");

/// Name of the template. Its extension makes minijinja escape values.
const NAME: &str = "quality.html";

/// Widths of plots for wide and narrow screens.
const WIDTHS: [f64; 2] = [960.0, 360.0];

/// A type as a row of the table.
#[derive(Serialize)]
struct Row {
    name: String,
    size: String,
    size_bytes: u64,
    /// Size in percent of the reference model.
    share: String,
    bits: String,
    perplexity: String,
    /// Increase of the perplexity in percent.
    increase: String,
    increase_number: f64,
    mean: String,
    mean_number: f64,
    /// Length of the bar beside the mean, in percent, on a log scale.
    bar: f64,
    error: String,
    median: String,
    max: String,
    top1_agreement: String,
    prompt: Option<String>,
    generation: Option<String>,
    memory: String,
    memory_number: u64,
    /// Typical change of a probability in percent: the square root of twice the KL divergence.
    probability_change: String,
    dominated_by: Option<String>,
    /// Class of the style of a recommended type.
    chosen: Option<&'static str>,
    /// Name of its purpose.
    purpose: Option<&'static str>,
    /// Meaning of its purpose.
    meaning: Option<&'static str>,
    blocks: Option<String>,
}

/// Returns the class of a purpose in the style of the page.
const fn class_of(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Faithful => "faithful",
        Purpose::Balanced => "balanced",
        Purpose::Small => "small",
    }
}

/// Returns the page of a quality report.
pub fn quality_page(report: &QualityReport) -> String {
    let mut environment = Environment::new();
    let added = environment.add_template(NAME, TEMPLATE);
    let rows: Vec<Row> = report.by_size().into_iter().map(|entry| row(report, entry)).collect();
    let choices: Vec<Row> =
        report.choices().into_iter().map(|(_, entry)| row(report, entry)).collect();
    let [wide, narrow] = WIDTHS;
    let original = &report.reference;
    let has_speed = rows.iter().any(|row| row.generation.is_some() || row.prompt.is_some());
    let page = added.and_then(|()| environment.get_template(NAME)).and_then(|template| {
        template.render(Serde(json!({
            "title": original.name.clone().unwrap_or_else(|| original.file.clone()),
            "original": {
                "file": original.file,
                "architecture": original.architecture,
                "file_type": original.file_type,
                "parameters": count(original.parameters),
                "size": bytes(original.cost.file_bytes),
                "bits": format!("{:.2}", original.cost.bits_per_weight),
                "perplexity": format!("{:.4}", original.ppl),
                "prompt": rate(original.cost.prompt_tokens_per_second),
                "generation": rate(original.cost.generation_tokens_per_second),
                "memory": bytes(original.cost.memory_bytes),
            },
            "conditions": report.conditions,
            "choices": choices,
            "dominated": rows.iter().filter(|row| row.dominated_by.is_some()).count(),
            "rows": rows,
            "has_speed": has_speed,
            "skipped": report.skipped,
            "over_size": [
                plots::over_size(report, wide, "size-wide"),
                plots::over_size(report, narrow, "size-narrow"),
            ],
            "by_position": [
                plots::by_position(report, wide, "position-wide"),
                plots::by_position(report, narrow, "position-narrow"),
            ],
            "by_role": [
                heat_map::by_role(report, wide, "role-wide"),
                heat_map::by_role(report, narrow, "role-narrow"),
            ],
        })))
    });
    page.expect("the template matches its values") + "\n"
}

fn rate(rate: Option<f64>) -> Option<String> {
    rate.map(|rate| if rate < 100.0 { significant(rate, 3) } else { format!("{rate:.0}") })
}

fn row(report: &QualityReport, entry: &TypeQuality) -> Row {
    let ModelCost { file_bytes, bits_per_weight, memory_bytes, .. } = entry.cost;
    let reference_bytes = report.reference.cost.file_bytes.max(1) as f64;
    let increase = 100.0 * (entry.ppl_ratio - 1.0);
    let logarithms = report.types.iter().map(|entry| entry.mean_kld.max(1e-9).log10());
    let [min, max] = logarithms
        .fold([f64::INFINITY, f64::NEG_INFINITY], |[min, max], x| [min.min(x), max.max(x)]);
    let bar = (entry.mean_kld.max(1e-9).log10() - min) / (max - min).max(1e-9);
    let chosen = report.choices().into_iter().find(|(_, chosen)| chosen.name == entry.name);
    let on_front = entry.dominated_by.is_none();
    Row {
        name: entry.name.clone(),
        size: bytes(file_bytes),
        size_bytes: file_bytes,
        share: format!("{:.0}", 100.0 * file_bytes as f64 / reference_bytes),
        bits: format!("{bits_per_weight:.2}"),
        perplexity: format!("{:.3}", entry.ppl_q),
        increase: format!("{increase:+.2}"),
        increase_number: increase,
        mean: significant(entry.mean_kld, 3),
        mean_number: entry.mean_kld,
        bar: (4.0 + 96.0 * bar).round(),
        error: significant(entry.mean_kld_error, 2),
        median: significant(entry.median_kld, 3),
        max: significant(entry.max_kld, 3),
        top1_agreement: format!("{:.2}", entry.top1_agreement),
        prompt: rate(entry.cost.prompt_tokens_per_second),
        generation: rate(entry.cost.generation_tokens_per_second),
        memory: bytes(memory_bytes),
        memory_number: memory_bytes,
        probability_change: significant(100.0 * (2.0 * entry.mean_kld).sqrt(), 2),
        dominated_by: entry.dominated_by.clone(),
        chosen: chosen.map(|(purpose, _)| class_of(purpose)),
        purpose: chosen.map(|(purpose, _)| purpose.name()),
        meaning: chosen.map(|(purpose, _)| purpose.meaning()),
        blocks: on_front
            .then(|| heat_map::by_block(entry, &format!("blocks-{}", entry.name)))
            .flatten(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gguf_eval::quality::{Conditions, ReferenceModel, TensorError};

    /// Names of models and files are escaped.
    #[test]
    fn untrusted_names_are_escaped() {
        let tensor = |name: &str| TensorError {
            name: name.to_owned(),
            tensor_type: "Q8_0".to_owned(),
            error: 0.01,
        };
        let hostile = "<script>\"&'";
        let entry = TypeQuality {
            name: hostile.to_owned(),
            mean_kld: 0.001,
            tensors: vec![tensor("blk.0.<b>.weight"), tensor("blk.7.a.weight"), tensor("<i>")],
            ..TypeQuality::default()
        };
        let mut report = QualityReport {
            version: gguf_eval::quality::VERSION,
            conditions: Conditions { text: hostile.to_owned(), ..Conditions::default() },
            reference: ReferenceModel {
                name: Some(hostile.to_owned()),
                ..ReferenceModel::default()
            },
            types: Vec::new(),
            skipped: Vec::new(),
        };
        let scripts = |page: &str| page.matches("<script>").count();
        assert_eq!(scripts(&quality_page(&report)), 1);
        report.types = vec![entry.clone(), TypeQuality { mean_kld: 0.0, ..entry }];
        let page = quality_page(&report);
        assert_eq!(scripts(&page), 1, "{page}");
        assert!(!page.contains("<b>:") && !page.contains("<i>,"));
        assert!(page.contains("&lt;script&gt;"));
    }
}

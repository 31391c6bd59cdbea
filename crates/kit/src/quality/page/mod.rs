//! A report as a page that needs nothing but itself.

mod heat;
mod numbers;
mod plots;
mod scale;

use gguf::units::{bytes, count};
use minijinja::Environment;
use minijinja::value::Serde;
use numbers::significant;
use serde::Serialize;
use serde_json::json;

use super::report::{Cost, Mix, Purpose, Report};

/// The page, to be filled in: words, colours, and the sorting of the table.
const TEMPLATE: &str = include_str!("report.html");

/// Widths of pictures: for screens, and for phones.
const WIDTHS: [f64; 2] = [960.0, 360.0];

/// What the page says of a mix.
#[derive(Serialize)]
struct Row {
    name: String,
    size: String,
    size_bytes: u64,
    /// Percent of the original.
    share: String,
    bits: String,
    perplexity: String,
    /// Percent that the perplexity is above that of the original.
    worse: String,
    worse_number: f64,
    mean: String,
    mean_number: f64,
    /// How long the bar beside the mean is, in percent: by the logarithm.
    bar: f64,
    error: String,
    median: String,
    max: String,
    same_top: String,
    prompt: Option<String>,
    generation: Option<String>,
    memory: String,
    memory_number: u64,
    /// How far probabilities are off, in percent: the root of twice the divergence.
    off: String,
    instead: Option<String>,
    chosen: Option<&'static str>,
    blocks: Option<String>,
}

const fn name_of(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Faithful => "faithful",
        Purpose::Balanced => "balanced",
        Purpose::Small => "small",
    }
}

/// The page.
pub fn html(report: &Report) -> String {
    let mut environment = Environment::new();
    // The ending says that what is filled in is escaped.
    let added = environment.add_template("report.html", TEMPLATE);
    let rows: Vec<Row> = report.by_size().into_iter().map(|mix| row(report, mix)).collect();
    let choices: Vec<Row> = report.choices().into_iter().map(|(_, mix)| row(report, mix)).collect();
    let [wide, narrow] = WIDTHS;
    let original = &report.original;
    let has_speed = rows.iter().any(|row| row.generation.is_some() || row.prompt.is_some());
    let page = added.and_then(|()| environment.get_template("report.html")).and_then(|template| {
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
                "prompt": speed(original.cost.prompt_tokens_per_second),
                "generation": speed(original.cost.generation_tokens_per_second),
                "memory": bytes(original.cost.memory_bytes),
            },
            "conditions": report.conditions,
            "choices": choices,
            "pointless": rows.iter().filter(|row| row.instead.is_some()).count(),
            "rows": rows,
            "has_speed": has_speed,
            "left_out": report.left_out,
            "over_size": [
                plots::over_size(report, wide, "size-wide"),
                plots::over_size(report, narrow, "size-narrow"),
            ],
            "by_position": [
                plots::by_position(report, wide, "position-wide"),
                plots::by_position(report, narrow, "position-narrow"),
            ],
            "by_role": [
                heat::by_role(report, wide, "role-wide"),
                heat::by_role(report, narrow, "role-narrow"),
            ],
        })))
    });
    page.expect("the template goes with what it gets") + "\n"
}

fn speed(speed: Option<f64>) -> Option<String> {
    speed.map(|speed| if speed < 100.0 { significant(speed, 3) } else { format!("{speed:.0}") })
}

fn row(report: &Report, mix: &Mix) -> Row {
    let Cost { file_bytes, bits_per_weight, memory_bytes, .. } = mix.cost;
    let of_original = report.original.cost.file_bytes.max(1) as f64;
    let worse = 100.0 * (mix.ppl_ratio - 1.0);
    let logarithms = report.mixes.iter().map(|mix| mix.mean_kld.max(1e-9).log10());
    let [least, most] = logarithms
        .fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], x| [least.min(x), most.max(x)]);
    let bar = (mix.mean_kld.max(1e-9).log10() - least) / (most - least).max(1e-9);
    let chosen = report.choices().into_iter().find(|(_, chosen)| chosen.name == mix.name);
    let on_line = mix.dominated_by.is_none();
    Row {
        name: mix.name.clone(),
        size: bytes(file_bytes),
        size_bytes: file_bytes,
        share: format!("{:.0}", 100.0 * file_bytes as f64 / of_original),
        bits: format!("{bits_per_weight:.2}"),
        perplexity: format!("{:.3}", mix.ppl_q),
        worse: format!("{worse:+.2}"),
        worse_number: worse,
        mean: significant(mix.mean_kld, 3),
        mean_number: mix.mean_kld,
        bar: (4.0 + 96.0 * bar).round(),
        error: significant(mix.mean_kld_error, 2),
        median: significant(mix.median_kld, 3),
        max: significant(mix.max_kld, 3),
        same_top: format!("{:.2}", mix.same_top),
        prompt: speed(mix.cost.prompt_tokens_per_second),
        generation: speed(mix.cost.generation_tokens_per_second),
        memory: bytes(memory_bytes),
        memory_number: memory_bytes,
        off: significant(100.0 * (2.0 * mix.mean_kld).sqrt(), 2),
        instead: mix.dominated_by.clone(),
        chosen: chosen.map(|(purpose, _)| name_of(purpose)),
        blocks: on_line.then(|| heat::by_block(mix, &format!("blocks-{}", mix.name))).flatten(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::{Conditions, Original, TensorError};

    /// Names of models and files are those of strangers.
    #[test]
    fn names_are_text_and_a_report_may_be_empty() {
        let tensor = |name: &str| TensorError {
            name: name.to_owned(),
            tensor_type: "Q8_0".to_owned(),
            error: 0.01,
        };
        let hostile = "<script>\"&'";
        let mix = Mix {
            name: hostile.to_owned(),
            mean_kld: 0.001,
            tensors: vec![tensor("blk.0.<b>.weight"), tensor("blk.7.a.weight"), tensor("<i>")],
            ..Mix::default()
        };
        let mut report = Report {
            version: 1,
            conditions: Conditions { text: hostile.to_owned(), ..Conditions::default() },
            original: Original { name: Some(hostile.to_owned()), ..Original::default() },
            mixes: Vec::new(),
            left_out: Vec::new(),
        };
        let scripts = |page: &str| page.matches("<script>").count();
        assert_eq!(scripts(&html(&report)), 1);
        report.mixes = vec![mix.clone(), Mix { mean_kld: 0.0, ..mix }];
        let page = html(&report);
        assert_eq!(scripts(&page), 1, "{page}");
        assert!(!page.contains("<b>:") && !page.contains("<i>,"));
        assert!(page.contains("&lt;script&gt;"));
    }
}

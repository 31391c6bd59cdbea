//! KL divergence reports, as text and JSON.

use std::io::Write;

use gguf_kit::eval::{Candidate, ComparisonReport, Divergence, Mean, Miss, Spread};
use serde_json::{Map, Value, json};

use crate::{document, listing, terminal};

/// Printed percentiles.
const PERCENTILES: [f64; 9] = [99.9, 99.0, 95.0, 90.0, 50.0, 10.0, 5.0, 1.0, 0.1];

/// Number of printed position ranges.
const RANGES: usize = 4;

/// Prints the report on all models.
pub fn print(
    out: &mut impl Write,
    reference: &str,
    models: &[String],
    found: &ComparisonReport,
    as_json: bool,
) -> std::io::Result<()> {
    let all = models.iter().zip(&found.models);
    if as_json {
        let models = all.zip(&found.tensor_digests).map(|((file, model), digest)| {
            let mut json = to_json(file, model, found);
            json["tensor_digest"] = json!(digest);
            json
        });
        let models: Vec<_> = models.collect();
        return document::print(
            out,
            "divergence/2",
            json!({ "reference": reference, "models": models }),
        );
    }
    for (number, (file, model)) in all.enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        print_model(out, file, model)?;
        print_worst(out, model, found)?;
    }
    Ok(())
}

fn print_model(out: &mut impl Write, file: &str, found: &Divergence) -> std::io::Result<()> {
    let (reference, model) = (found.reference, found.model);
    let evaluated = listing::evaluated(model.surprise.count as usize, model.chunks);
    writeln!(out, "{file} ({evaluated})")?;
    let mut line = |what: &str, value: f64, error: f64| {
        writeln!(out, "  {what:<34}{value:>12.6} ± {error:.6}")
    };
    line("perplexity", model.value(), model.error())?;
    line("perplexity of the reference", reference.value(), reference.error())?;
    let (ratio, ratio_error) = found.ratio();
    line("perplexity ratio", ratio, ratio_error)?;
    let (log, log_error) = found.log_ratio();
    line("ln(perplexity ratio)", log, log_error)?;
    let (difference, difference_error) = found.difference();
    line("perplexity difference", difference, difference_error)?;
    let mean = found.divergence;
    line("KLD, mean", mean.value(), mean.error())?;
    let (same, same_error) = found.top1_agreement();
    line("top-1 agreement, %", 100.0 * same, 100.0 * same_error)?;
    let change = found.more_likely;
    line("Δp, mean, %", 100.0 * change.value(), 100.0 * change.error())?;
    let (root, root_error) = found.change();
    line("Δp, RMS, %", 100.0 * root, 100.0 * root_error)?;
    writeln!(out, "  {:<34}{:>12.2}", "correlation of ln p, %", 100.0 * found.correlation())?;
    let (divergences, changes) = (Spread::new(&found.divergences), Spread::new(&found.changes));
    writeln!(out, "  {:<34}{:>12} {:>16}", "distribution over tokens", "KLD", "Δp, %")?;
    let mut spread = |what: &str, share: f64| {
        let (divergence, change) = (divergences.at(share), 100.0 * changes.at(share));
        writeln!(out, "  {what:<34}{divergence:>12.6} {change:>16.3}")
    };
    spread("max", 1.0)?;
    for share in PERCENTILES {
        let what =
            if share == 50.0 { "median".to_owned() } else { format!("{share}th percentile") };
        spread(&what, share / 100.0)?;
    }
    spread("min", 0.0)?;
    print_positions(out, found)
}

/// Prints the mean KLD by the number of preceding tokens.
fn print_positions(out: &mut impl Write, found: &Divergence) -> std::io::Result<()> {
    let means = found.by_position();
    writeln!(out, "  {:<34}{:>12}", "preceding tokens in the chunk", "KLD")?;
    let len = means.len().div_ceil(RANGES).max(1);
    for (number, range) in means.chunks(len).enumerate() {
        let first = found.first_position + number * len;
        let last = first + range.len() - 1;
        let name = if first == last { first.to_string() } else { format!("{first} to {last}") };
        let sum: f64 = range.iter().map(Mean::value).sum();
        writeln!(out, "  {name:<34}{:>12.6}", sum / range.len() as f64)?;
    }
    Ok(())
}

fn print_worst(
    out: &mut impl Write,
    model: &Divergence,
    found: &ComparisonReport,
) -> std::io::Result<()> {
    let misses = model.worst.misses();
    if !misses.is_empty() {
        writeln!(out, "  {:<34}{:>12}", "largest KLD", "KLD")?;
    }
    for miss in misses {
        let place = format!("chunk {}, token {}", miss.chunk + 1, miss.position);
        writeln!(out, "  {place:<34}{:>12.6}", miss.divergence)?;
        writeln!(out, "    after {:?}", found.text(&miss.before))?;
        let all = [
            ("actual token", &miss.actual),
            ("top token of the reference", &miss.by_reference),
            ("top token of the model", &miss.by_model),
        ];
        for (number, (_, one)) in all.iter().enumerate() {
            // Each token is printed once.
            if all[..number].iter().any(|(_, before)| before.id == one.id) {
                continue;
            }
            let same = all.iter().filter(|(_, other)| other.id == one.id);
            let what = same.map(|(what, _)| *what).collect::<Vec<_>>().join(", ");
            let (reference, model) = (100.0 * one.reference.exp(), 100.0 * one.model.exp());
            let text = format!("{:?}", found.text(&[one.id]));
            let figures =
                format!("    {text:<16} p(reference) {reference:7.3}%, p(model) {model:7.3}%:");
            let len = console::measure_text_width(&figures) + 1 + what.len();
            // Continues on the next line if the terminal is too narrow.
            let apart = terminal::width().is_some_and(|columns| len > columns);
            writeln!(out, "{figures}{}{what}", if apart { "\n      " } else { " " })?;
        }
    }
    Ok(())
}

fn to_json(file: &str, found: &Divergence, all: &ComparisonReport) -> Value {
    let (reference, model) = (found.reference, found.model);
    let (divergences, changes) = (Spread::new(&found.divergences), Spread::new(&found.changes));
    let percentiles = |spread: &Spread, factor: f64| -> Map<String, Value> {
        let entry = |share: &f64| (share.to_string(), json!(factor * spread.at(share / 100.0)));
        PERCENTILES.iter().map(entry).collect()
    };
    let (same, same_error) = found.top1_agreement();
    let (root, root_error) = found.change();
    json!({
        "file": file,
        "chunks": model.chunks,
        "tokens": model.surprise.count,
        "ppl_q": model.value(),
        "ppl_q_error": model.error(),
        "ppl_base": reference.value(),
        "ppl_base_error": reference.error(),
        "correlation": found.correlation(),
        "ppl_ratio": found.ratio().0,
        "ppl_ratio_error": found.ratio().1,
        "ln_ppl_ratio": found.log_ratio().0,
        "ln_ppl_ratio_error": found.log_ratio().1,
        "ppl_difference": found.difference().0,
        "ppl_difference_error": found.difference().1,
        "mean_kld": found.divergence.value(),
        "mean_kld_error": found.divergence.error(),
        "median_kld": divergences.at(0.5),
        "max_kld": divergences.at(1.0),
        "min_kld": divergences.at(0.0),
        "kld_percentiles": percentiles(&divergences, 1.0),
        "mean_delta_p": 100.0 * found.more_likely.value(),
        "mean_delta_p_error": 100.0 * found.more_likely.error(),
        "rms_delta_p": 100.0 * root,
        "rms_delta_p_error": 100.0 * root_error,
        "max_delta_p": 100.0 * changes.at(1.0),
        "min_delta_p": 100.0 * changes.at(0.0),
        "delta_p_percentiles": percentiles(&changes, 100.0),
        "top1_agreement": 100.0 * same,
        "top1_agreement_error": 100.0 * same_error,
        "by_position": by_position(found),
        "worst": found.worst.misses().iter().map(|miss| worst_to_json(miss, all)).collect::<Vec<_>>(),
    })
}

fn by_position(found: &Divergence) -> Vec<Value> {
    let means = found.by_position();
    let entry = |(number, mean): (usize, &Mean)| {
        json!({
            "tokens_before": found.first_position + number,
            "mean_kld": mean.value(),
            "mean_kld_error": mean.error(),
        })
    };
    means.iter().enumerate().map(entry).collect()
}

fn worst_to_json(miss: &Miss, all: &ComparisonReport) -> Value {
    let candidate = |one: &Candidate| {
        json!({
            "id": one.id,
            "text": all.text(&[one.id]),
            "probability_base": one.reference.exp(),
            "probability_q": one.model.exp(),
        })
    };
    json!({
        "chunk": miss.chunk + 1,
        "tokens_before": miss.position,
        "kld": miss.divergence,
        "context": all.text(&miss.before),
        "actual": candidate(&miss.actual),
        "top_base": candidate(&miss.by_reference),
        "top_q": candidate(&miss.by_model),
    })
}

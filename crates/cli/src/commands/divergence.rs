//! `gguf divergence`: how far models are from the one they were made of.

use std::io::Write;

use gguf_kit::eval::{Divergence, Spread, divergence};
use gguf_kit::on_threads;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::judging::JudgeArgs;
use crate::progress::Progress;

/// Say how far models are from the one they were made of: both read a text side by side, and what they
/// predict is compared. No file of logits is written.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  gguf divergence --reference f16.gguf q4_k_m.gguf -f text.txt\n  \
                        gguf divergence --reference f16.gguf q8_0.gguf q4_0.gguf -f text.txt --chunks 64 --json"
)]
pub struct Args {
    /// The original: file, directory, shard or far location.
    #[arg(short, long, value_name = "MODEL")]
    reference: String,
    /// Files, directories, shards or far locations of the models.
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<String>,
    #[command(flatten)]
    judge: JudgeArgs,
}

/// Shares of numbers that are told, in percent.
const SHARES: [f64; 9] = [99.9, 99.0, 95.0, 90.0, 50.0, 10.0, 5.0, 1.0, 0.1];

pub fn run(args: &Args) -> Result<(), Failure> {
    let task = args.judge.task()?;
    let options = args.judge.run.options(args.judge.arithmetic);
    let found = on_threads(args.judge.run.threads, || -> Result<Vec<Divergence>, Failure> {
        let progress = Progress::of_tokens();
        let mut each = |found: &[Divergence]| {
            let means = found.iter().map(|found| format!("{:.6}", found.divergence.value()));
            progress.say(format!("divergence {}", means.collect::<Vec<_>>().join(", ")));
        };
        let (reference, models) = (&args.reference, &args.models);
        let found = divergence(reference, models, &options, &task, &mut each, &progress)?;
        progress.finish();
        Ok(found)
    })?;
    let mut out = std::io::stdout().lock();
    let models = args.models.iter().zip(&found);
    if args.judge.json {
        let models: Vec<_> = models.map(|(file, found)| as_json(file, found)).collect();
        writeln!(out, "{:#}", json!({ "reference": args.reference, "models": models }))?;
    } else {
        for (number, (file, found)) in models.enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            print(&mut out, file, found)?;
        }
    }
    Ok(())
}

fn print(out: &mut impl Write, file: &str, found: &Divergence) -> std::io::Result<()> {
    let (reference, model) = (found.reference, found.model);
    writeln!(out, "{file} ({} predictions in {} windows)", model.surprise.count, model.windows)?;
    let mut line = |what: &str, value: f64, error: f64| {
        writeln!(out, "  {what:<34}{value:>12.6} ± {error:.6}")
    };
    line("perplexity", model.value(), model.error())?;
    line("perplexity of the reference", reference.value(), reference.error())?;
    let (ratio, ratio_error) = found.ratio();
    line("ratio of the perplexities", ratio, ratio_error)?;
    let (log, log_error) = found.log_ratio();
    line("its logarithm", log, log_error)?;
    let (difference, difference_error) = found.difference();
    line("difference of the perplexities", difference, difference_error)?;
    let mean = found.divergence;
    line("divergence, mean", mean.value(), mean.error())?;
    let (same, same_error) = found.same_top();
    line("same top token, %", 100.0 * same, 100.0 * same_error)?;
    let change = found.more_likely;
    line("change of probability, mean, %", 100.0 * change.value(), 100.0 * change.error())?;
    let (root, root_error) = found.change();
    line("change of probability, RMS, %", 100.0 * root, 100.0 * root_error)?;
    writeln!(out, "  {:<34}{:>12.2}", "correlation of ln p, %", 100.0 * found.correlation())?;
    let (divergences, changes) = (Spread::new(&found.divergences), Spread::new(&found.changes));
    writeln!(out, "  {:<34}{:>12} {:>16}", "of all predictions", "divergence", "change, %")?;
    let mut spread = |what: &str, share: f64| {
        let (divergence, change) = (divergences.at(share), 100.0 * changes.at(share));
        writeln!(out, "  {what:<34}{divergence:>12.6} {change:>16.3}")
    };
    spread("greatest", 1.0)?;
    for share in SHARES {
        let what = if share == 50.0 { "median".to_owned() } else { format!("{share}% are below") };
        spread(&what, share / 100.0)?;
    }
    spread("least", 0.0)
}

fn as_json(file: &str, found: &Divergence) -> Value {
    let (reference, model) = (found.reference, found.model);
    let (divergences, changes) = (Spread::new(&found.divergences), Spread::new(&found.changes));
    let percentiles = |spread: &Spread, factor: f64| -> Map<String, Value> {
        let entry = |share: &f64| (share.to_string(), json!(factor * spread.at(share / 100.0)));
        SHARES.iter().map(entry).collect()
    };
    let (same, same_error) = found.same_top();
    let (root, root_error) = found.change();
    json!({
        "file": file,
        "windows": model.windows,
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
        "mean_change": 100.0 * found.more_likely.value(),
        "mean_change_error": 100.0 * found.more_likely.error(),
        "rms_change": 100.0 * root,
        "rms_change_error": 100.0 * root_error,
        "max_change": 100.0 * changes.at(1.0),
        "min_change": 100.0 * changes.at(0.0),
        "change_percentiles": percentiles(&changes, 100.0),
        "same_top": 100.0 * same,
        "same_top_error": 100.0 * same_error,
    })
}

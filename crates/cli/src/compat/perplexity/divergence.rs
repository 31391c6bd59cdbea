//! `llama-perplexity --kl-divergence`.

use std::io::Write;
use std::path::Path;

use gguf_kit::eval::{
    Against, CompareOptions, ComparisonReport, Divergence, PartWriter, Spread, divergence,
};

use crate::commands::divergence::Args;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::threads::on_threads;

/// Printed percentiles.
const PERCENTILES: [f64; 8] = [99.9, 99.0, 95.0, 90.0, 10.0, 5.0, 1.0, 0.1];

/// Minimum number of tokens for which the original prints statistics.
const MIN_TOKENS: usize = 100;

pub fn run(args: &Args) -> Result<(), Failure> {
    let task = args.eval.task()?;
    let options = args.eval.run.options(args.eval.precision);
    let against = Against::Logits(args.reference_logits.as_deref().unwrap_or(Path::new("")));
    let models = &args.models[..];
    let compare =
        CompareOptions { against, models, options: &options, task: &task, worst: 0, save: None };
    let found = on_threads(args.eval.run.threads, || -> Result<ComparisonReport, Failure> {
        let progress = Progress::of_tokens();
        let mut out = std::io::stdout().lock();
        let mut written = writeln!(
            out,
            "\nchunk             PPL               ln(PPL(Q)/PPL(base))          KL Divergence              \
             Δp RMS            Same top p"
        );
        let mut each = |found: &[&Divergence]| {
            let line = found.iter().try_for_each(|found| chunk(&mut out, found));
            if written.is_ok() {
                written = line;
            }
        };
        let found = divergence(&compare, &mut PartWriter::default(), &mut each, &progress)?;
        progress.finish();
        written?;
        writeln!(out)?;
        Ok(found)
    })?;
    let mut out = std::io::stdout().lock();
    for found in &found.models {
        if found.divergences.len() >= MIN_TOKENS {
            statistics(&mut out, found)?;
        }
    }
    writeln!(out)?;
    Ok(())
}

/// Prints the running result after a chunk.
fn chunk(out: &mut impl Write, found: &Divergence) -> std::io::Result<()> {
    let (ppl, ppl_error) = (found.model.value(), found.model.error());
    let (ratio, ratio_error) = found.log_ratio();
    let (mean, mean_error) = (found.divergence.value(), found.divergence.error());
    let (change, change_error) = found.change();
    let (same, same_error) = found.top1_agreement();
    let [change, change_error, same, same_error] =
        [change, change_error, same, same_error].map(|share| 100.0 * share);
    write!(out, "{:4}    {ppl:9.4} ± {ppl_error:9.4}", found.model.chunks)?;
    write!(out, "    {ratio:10.5} ± {ratio_error:10.5}    {mean:10.5} ± {mean_error:10.5}")?;
    writeln!(out, "    {change:6.3} ± {change_error:6.3} %    {same:6.3} ± {same_error:6.3} %")?;
    out.flush()
}

fn statistics(out: &mut impl Write, found: &Divergence) -> std::io::Result<()> {
    writeln!(out, "====== Perplexity statistics ======")?;
    line(out, "Mean PPL(Q)", (found.model.value(), found.model.error()))?;
    line(out, "Mean PPL(base)", (found.reference.value(), found.reference.error()))?;
    let correlation = 100.0 * found.correlation();
    writeln!(out, "Cor(ln(PPL(Q)), ln(PPL(base))): {correlation:6.2}%")?;
    line(out, "Mean ln(PPL(Q)/PPL(base))", found.log_ratio())?;
    line(out, "Mean PPL(Q)/PPL(base)", found.ratio())?;
    line(out, "Mean PPL(Q)-PPL(base)", found.difference())?;

    writeln!(out, "\n====== KL divergence statistics ======")?;
    let mean = found.divergence;
    writeln!(out, "Mean    KLD: {:10.6} ± {:10.6}", mean.value(), mean.error())?;
    let divergences = Spread::new(&found.divergences);
    for (name, share) in names(&PERCENTILES) {
        writeln!(out, "{name} KLD: {:10.6}", divergences.at(share))?;
    }

    writeln!(out, "\n====== Token probability statistics ======")?;
    let mean = found.more_likely;
    let (value, error) = (100.0 * mean.value(), 100.0 * mean.error());
    writeln!(out, "Mean    Δp: {value:6.3} ± {error:5.3} %")?;
    let changes = Spread::new(&found.changes);
    // Δp also has quartiles.
    let [first @ .., _, _, _, _] = PERCENTILES;
    let [.., a, b, c, d] = PERCENTILES;
    let shares = [&first[..], &[75.0, 25.0, a, b, c, d]].concat();
    for (name, share) in names(&shares) {
        writeln!(out, "{name} Δp: {:6.3}%", 100.0 * changes.at(share))?;
    }
    let (value, error) = found.change();
    writeln!(out, "RMS Δp    : {:6.3} ± {:5.3} %", 100.0 * value, 100.0 * error)?;
    let (value, error) = found.top1_agreement();
    writeln!(out, "Same top p: {:6.3} ± {:5.3} %", 100.0 * value, 100.0 * error)
}

fn line(out: &mut impl Write, what: &str, (value, error): (f64, f64)) -> std::io::Result<()> {
    writeln!(out, "{what:<30}: {value:10.6} ± {error:10.6}")
}

/// Returns labels and percentiles, from maximum to minimum, with the median.
fn names(shares: &[f64]) -> Vec<(String, f64)> {
    let mut named = vec![("Maximum".to_owned(), 1.0)];
    let (above, below): (Vec<_>, Vec<_>) = shares.iter().partition(|share| **share > 50.0);
    let name = |share: &f64| (format!("{share:4.1}%  "), share / 100.0);
    named.extend(above.iter().map(name));
    named.push(("Median ".to_owned(), 0.5));
    named.extend(below.iter().map(name));
    named.push(("Minimum".to_owned(), 0.0));
    named
}

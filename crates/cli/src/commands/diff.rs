//! `gguf diff`: compares two models.

use std::io::Write;

use gguf::{Value, file_type};
use gguf_inspect::{Change, Detail, Diff, KeyChange, TensorChange, Verdict, diff};
use gguf_kit::open;
use gguf_quant::Difference;

use crate::document;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{listing, terminal};

/// Compare the metadata and tensors of two models.
///
/// For tensors that differ, shows RMSE, relative error, cosine similarity and maximum error.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 1 if the models differ.\n\nExample:\n  gguf diff model-f16.gguf model-q4_k_m.gguf"
)]
pub struct Args {
    /// Reference model.
    a: String,
    /// Model to compare.
    b: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let (a, b) = (open(&args.a)?, open(&args.b)?);
    let (model_a, model_b) = (a.model(), b.model());
    let progress = Progress::new();
    let diff = diff(model_a, model_b, &progress)?;
    progress.finish();
    let mut out = std::io::stdout().lock();
    if args.json {
        document::print(&mut out, "diff/2", gguf_kit::json::diff(&diff))?;
    } else {
        print(&mut out, args, &diff)?;
    }
    if diff.verdict == Verdict::Same { Ok(()) } else { Err(Failure::Findings) }
}

/// Number of tensors shown without --verbose, by largest error.
const WORST: usize = 10;

fn print(out: &mut impl Write, args: &Args, diff: &Diff) -> Result<(), Failure> {
    let shown = |source: &str| terminal::plain(&gguf_kit::redact(source));
    let (a, b) = (shown(&args.a), shown(&args.b));
    let wrapped = |line: &str| terminal::wrap(line, "  ");
    writeln!(out, "{}", terminal::wrap(&terminal::strong(&diff.verdict), ""))?;
    writeln!(out, "  A  {a}\n  B  {b}")?;
    let (same, differ) = (diff.same, diff.tensors.len());
    let keys = match diff.keys.len() {
        0 => "all keys are equal".into(),
        1 => "1 key differs".into(),
        keys => format!("{keys} keys differ"),
    };
    let tensors = match (same, differ) {
        (same, 0) => format!("{} equal", count_are(same)),
        (0, differ) => format!("{} different", count_are(differ)),
        (same, differ) => format!("{} equal, {differ} differ", count_are(same)),
    };
    writeln!(out, "{}", wrapped(&format!("{keys}, {tensors}")))?;
    if diff.total.elements > 0 {
        writeln!(out, "{}", wrapped(&format!("total: {}", difference_text(&diff.total))))?;
    }
    if !diff.keys.is_empty() {
        writeln!(out, "\n{}", terminal::strong("Keys"))?;
    }
    for change in &diff.keys {
        print_key(out, change)?;
    }
    if diff.tensors.is_empty() {
        return Ok(());
    }
    let worst = worst(&diff.tensors);
    let (shown, rest) = match terminal::is_verbose() {
        true => (diff.tensors.iter().collect(), 0),
        false => (
            worst.iter().take(WORST).copied().collect::<Vec<_>>(),
            worst.len().saturating_sub(WORST),
        ),
    };
    let title = if rest > 0 { "Tensors with the largest error" } else { "Tensors" };
    writeln!(out, "\n{}", terminal::strong(title))?;
    let widest = shown.iter().map(|tensor| console::measure_text_width(&tensor.name)).max();
    let widest = widest.unwrap_or(0).min(40);
    if shown.iter().any(|tensor| matches!(tensor.change, Change::Data { .. })) {
        let figures = format!("{:>8} {:>9} {:>8} {:>8}", "relative", "cosine", "rmse", "max");
        let head = format!("    {:widest$}  {:<15} {figures}", "", "types");
        writeln!(out, "{}", terminal::fit(&terminal::faint(head)))?;
    }
    for tensor in shown {
        print_tensor(out, tensor, widest)?;
    }
    if rest > 0 {
        writeln!(out, "{}", terminal::faint(format!("  and {rest} more (-v shows them)")))?;
    }
    Ok(())
}

/// Formats a number of tensors with a verb: "1 tensor is", "39 tensors are".
fn count_are(count: usize) -> String {
    format!("{} {}", listing::plural(count, "tensor"), if count == 1 { "is" } else { "are" })
}

/// Sorts tensors: those in one model only first, then by decreasing error.
fn worst(tensors: &[TensorChange]) -> Vec<&TensorChange> {
    let error = |tensor: &TensorChange| match &tensor.change {
        Change::Data { figures: Some(figures), .. } => figures.relative(),
        _ => f64::INFINITY,
    };
    let mut worst: Vec<_> = tensors.iter().collect();
    worst.sort_by(|a, b| error(b).total_cmp(&error(a)));
    worst
}

fn print_tensor(out: &mut impl Write, tensor: &TensorChange, widest: usize) -> Result<(), Failure> {
    let name = terminal::plain(&tensor.name);
    let line = match &tensor.change {
        Change::Added(ty, shape) => terminal::added(format!("+ {name} {ty} {shape}")),
        Change::Removed(ty, shape) => terminal::removed(format!("- {name} {ty} {shape}")),
        Change::Reshaped { a, b } => {
            terminal::changed(format!("~ {name} {} {} -> {} {}", a.0, a.1, b.0, b.1))
        }
        Change::Data { a, b, figures } => {
            let types = if a == b { a.to_string() } else { format!("{a} -> {b}") };
            let figures = figures.as_ref().map_or("cannot be decoded".into(), |figures| {
                let (relative, cosine) = (figures.relative() * 100.0, figures.cosine());
                format!(
                    "{relative:>7.3}% {cosine:>9.6} {:>8.1e} {:>8.1e}",
                    figures.rmse(),
                    figures.max
                )
            });
            format!("{} {name:<widest$}  {types:<15} {figures}", terminal::changed("~"))
        }
    };
    writeln!(out, "{}", terminal::fit(&format!("  {line}")))?;
    Ok(())
}

fn print_key(out: &mut impl Write, change: &KeyChange) -> Result<(), Failure> {
    let key = terminal::plain(&change.key);
    let shown = |value: &Value| terminal::plain(&listing::shortened(&value.to_string()));
    let value = |value: &Value| match value.to_u64().and_then(file_type) {
        Some(known) if change.key == "general.file_type" => known.name.to_owned(),
        _ => shown(value),
    };
    let mut line = |line: String| writeln!(out, "{}", terminal::fit(&format!("  {line}")));
    match (&change.detail, &change.a, &change.b) {
        (Detail::None, Some(a), Some(b)) => {
            line(format!("{} {key}: {} -> {}", terminal::changed("~"), value(a), value(b)))?;
        }
        (Detail::None, Some(a), None) => {
            line(terminal::removed(format!("- {key}: {}", value(a))))?;
        }
        (Detail::None, _, b) => {
            let b = b.as_ref().map(value).unwrap_or_default();
            line(terminal::added(format!("+ {key}: {b}")))?;
        }
        (Detail::Elements { lengths, differing, first }, ..) => {
            let (a, b) = lengths;
            let of = if a == b { a.to_string() } else { format!("{a} and {b}") };
            let sign = terminal::changed("~");
            let elements = listing::plural(*differing as usize, "element");
            line(format!("{sign} {key}: {elements} of {of} changed"))?;
            let shown = |side: &Option<Value>| side.as_ref().map_or("(none)".into(), shown);
            for element in first {
                let (a, b) = (shown(&element.a), shown(&element.b));
                line(format!("    [{}] {a} -> {b}", element.index))?;
            }
        }
        (Detail::Line { number, a, b }, ..) => {
            line(format!("{} {key}: line {number}", terminal::changed("~")))?;
            line(terminal::removed(format!("    - {}", terminal::plain(a))))?;
            line(terminal::added(format!("    + {}", terminal::plain(b))))?;
        }
    }
    Ok(())
}

fn difference_text(figures: &Difference) -> String {
    format!(
        "rmse {:.2e}, relative {:.3}%, cosine {:.6}, max {:.2e}",
        figures.rmse(),
        figures.relative() * 100.0,
        figures.cosine(),
        figures.max
    )
}

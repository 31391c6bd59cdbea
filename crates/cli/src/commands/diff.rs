//! `gguf diff`: how two models differ.

use std::io::Write;

use gguf_compare::{Change, Detail, Diff, KeyChange, Verdict, diff};
use gguf_kit::open;
use gguf_quant::Difference;
use serde_json::{Value as Json, json};

use crate::document;
use crate::failure::Failure;
use crate::progress::Progress;

/// Compare two models: keys, tensors, and a verdict in words.
///
/// Tensors that differ have error figures.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 1 if they differ.\n\nExample:\n  gguf diff model-f16.gguf model-q4_k_m.gguf"
)]
pub struct Args {
    /// The original.
    a: String,
    /// The other.
    b: String,
    /// As JSON.
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
        document::print(&mut out, "diff/1", to_json(&diff))?;
    } else {
        print(&mut out, &diff)?;
    }
    if diff.verdict == Verdict::Same { Ok(()) } else { Err(Failure::Findings) }
}

fn print(out: &mut impl Write, diff: &Diff) -> Result<(), Failure> {
    for change in &diff.keys {
        let sign = match (&change.a, &change.b) {
            (None, _) => '+',
            (_, None) => '-',
            _ => '~',
        };
        writeln!(out, "{sign} {}", change.key)?;
        print_key(out, change)?;
    }
    for tensor in &diff.tensors {
        let name = &tensor.name;
        match &tensor.change {
            Change::Added(ty, shape) => writeln!(out, "+ {name} {ty} {shape}")?,
            Change::Removed(ty, shape) => writeln!(out, "- {name} {ty} {shape}")?,
            Change::Reshaped { a, b } => {
                writeln!(out, "~ {name} {} {} -> {} {}", a.0, a.1, b.0, b.1)?;
            }
            Change::Data { a, b, figures } => {
                let types = if a == b { a.to_string() } else { format!("{a} -> {b}") };
                writeln!(out, "~ {name:<36} {types:<16} {}", shown(figures.as_ref()))?;
            }
        }
    }
    writeln!(out, "{} tensors are the same, {} differ", diff.same, diff.tensors.len())?;
    if diff.total.elements > 0 {
        writeln!(out, "together: {}", shown(Some(&diff.total)))?;
    }
    writeln!(out, "{}", diff.verdict)?;
    Ok(())
}

fn print_key(out: &mut impl Write, change: &KeyChange) -> Result<(), Failure> {
    match &change.detail {
        Detail::None => {
            for (side, value) in [("a", &change.a), ("b", &change.b)] {
                if let Some(value) = value {
                    writeln!(out, "    {side}: {value}")?;
                }
            }
        }
        Detail::Elements { lengths, differing, first } => {
            writeln!(out, "    {differing} elements differ, of {} and {}", lengths.0, lengths.1)?;
            for element in first {
                let shown = |side: &Option<String>| side.clone().unwrap_or_else(|| "(none)".into());
                writeln!(
                    out,
                    "    [{}] {} -> {}",
                    element.index,
                    shown(&element.a),
                    shown(&element.b)
                )?;
            }
        }
        Detail::Line { number, a, b } => {
            writeln!(out, "    line {number}\n    a: {a}\n    b: {b}")?;
        }
    }
    Ok(())
}

fn shown(figures: Option<&Difference>) -> String {
    match figures {
        None => "cannot be decoded".into(),
        Some(figures) => format!(
            "rmse {:.3e}  relative {:.4}%  cosine {:.8}  max {:.3e}",
            figures.rmse(),
            figures.relative() * 100.0,
            figures.cosine(),
            figures.max
        ),
    }
}

fn to_json(diff: &Diff) -> Json {
    let keys: Vec<_> = diff
        .keys
        .iter()
        .map(|change| {
            let detail = match &change.detail {
                Detail::None => Json::Null,
                Detail::Elements { lengths, differing, first } => json!({
                    "lengths": [lengths.0, lengths.1],
                    "differing": differing,
                    "first": first.iter().map(|e| json!([e.index, e.a, e.b])).collect::<Json>(),
                }),
                Detail::Line { number, a, b } => json!({ "line": number, "a": a, "b": b }),
            };
            json!({ "key": change.key, "a": change.a, "b": change.b, "detail": detail })
        })
        .collect();
    let tensors: Vec<_> = diff
        .tensors
        .iter()
        .map(|tensor| {
            let side = |ty: gguf::TensorType, shape: Option<gguf::Shape>| {
                json!({ "type": ty.name(), "shape": shape.map(|shape| shape.to_vec()) })
            };
            let (change, a, b, figures) = match tensor.change {
                Change::Added(ty, shape) => ("added", None, Some(side(ty, Some(shape))), None),
                Change::Removed(ty, shape) => ("removed", Some(side(ty, Some(shape))), None, None),
                Change::Reshaped { a, b } => {
                    ("reshaped", Some(side(a.0, Some(a.1))), Some(side(b.0, Some(b.1))), None)
                }
                Change::Data { a, b, figures } => {
                    ("data", Some(side(a, None)), Some(side(b, None)), figures)
                }
            };
            json!({
                "name": tensor.name, "change": change, "a": a, "b": b,
                "figures": figures.as_ref().map(figures_json),
            })
        })
        .collect();
    json!({
        "keys": keys,
        "tensors": tensors,
        "same_tensors": diff.same,
        "total": (diff.total.elements > 0).then(|| figures_json(&diff.total)),
        "verdict": diff.verdict.to_string(),
    })
}

fn figures_json(figures: &Difference) -> Json {
    json!({
        "elements": figures.elements,
        "rmse": figures.rmse(),
        "relative": figures.relative(),
        "cosine": figures.cosine(),
        "max": figures.max,
    })
}

//! `gguf verify`: a file held against what it was made from.

use std::io::Write;
use std::path::PathBuf;

use gguf_kit::open;
use gguf_kit::quantize::{Calibration, CalibrationText};
use gguf_kit::verify::against;
use gguf_quantize::verify::{ConversionPath, Outcome, VerifiedTensor};
use regex::Regex;
use serde_json::json;

use crate::commands;
use crate::commands::quantize::importance;
use crate::document;
use crate::failure::Failure;
use crate::progress::Progress;

/// Derive a model again from its source, and compare.
#[derive(clap::Args)]
#[command(after_help = "Exit code 1 if a tensor differs or is missing.\n\nExamples:\n  \
    gguf verify llama-q4.gguf --source Llama-3.2-1B\n  \
    gguf verify llama-q4.gguf --source llama-f16.gguf --imatrix imatrix.gguf --tensor 'blk\\.0\\.'\n  \
    gguf verify llama-q4.gguf --source llama-f16.gguf --calibrate text.txt")]
pub struct Args {
    /// The model to verify.
    model: String,
    /// What it was made from: a checkpoint directory, or a GGUF.
    #[arg(long, value_name = "DIR|FILE")]
    source: String,
    /// Only tensors whose name the pattern is found in; may be repeated.
    #[arg(long, value_name = "REGEX")]
    tensor: Vec<Regex>,
    #[command(flatten)]
    importance: importance::Args,
    /// The text that its weights were rounded by with `gguf quantize --calibrate`.
    #[arg(long, value_name = "TEXT")]
    calibrate: Option<PathBuf>,
    /// What was saved of such a text, if they were rounded by that.
    #[arg(long, value_name = "FILE", conflicts_with = "calibrate")]
    calibration_data: Option<PathBuf>,
    /// It was made with `gguf quantize --effort`.
    #[arg(long, conflicts_with_all = ["calibrate", "calibration_data"])]
    effort: bool,
    /// What came of each tensor, as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let opened = open(&args.model)?;
    let importance = args.importance.choice().map(|choice| choice.read()).transpose()?;
    let importance = importance.as_ref().map(|(importance, _)| importance);
    let is_chosen =
        |name: &str| args.tensor.is_empty() || args.tensor.iter().any(|re| re.is_match(name));
    let progress = Progress::new();
    let text = args.calibrate.as_ref().map(|text| Calibration::Text(CalibrationText::new(text)));
    let data = args.calibration_data.clone().map(Calibration::Data);
    let calibration = text.or(data).or(args.effort.then_some(Calibration::Weights));
    let calibration = calibration.as_ref();
    let (model, source) = (opened.model(), &args.source);
    let report = against(model, source, importance, calibration, &is_chosen, &progress)?;
    progress.finish();
    commands::print_notes(&report.notes);
    let (verified, missing) = (report.tensors, report.missing);
    if verified.is_empty() {
        return Err(Failure::Usage("no tensor has a name that --tensor finds".into()));
    }
    let same = verified.iter().filter(|one| matches!(one.outcome, Outcome::Identical(_))).count();
    let mut out = std::io::stdout().lock();
    if args.json {
        let tensors: Vec<_> = verified.iter().map(as_json).collect();
        let report = json!({ "same": same, "tensors": tensors, "missing": missing });
        document::print(&mut out, "verify/1", report)?;
    } else {
        for one in &verified {
            if let Some(fault) = fault(one) {
                writeln!(out, "{}: {fault}", one.name)?;
            }
        }
        for name in &missing {
            writeln!(out, "{name}: is in the source only")?;
        }
        writeln!(out, "{same} of {} tensors are what the source gives", verified.len())?;
        if let Some(half) = verified.iter().find_map(|one| match one.outcome {
            Outcome::Identical(ConversionPath::Via(half)) => Some(half),
            _ => None,
        }) {
            writeln!(out, "(some by way of {half})")?;
        }
    }
    if same == verified.len() && missing.is_empty() { Ok(()) } else { Err(Failure::Findings) }
}

/// What is wrong with a tensor, for people.
fn fault(one: &VerifiedTensor) -> Option<String> {
    match &one.outcome {
        Outcome::Identical(_) => None,
        Outcome::Differs { row } => Some(format!("differs from row {row} on")),
        Outcome::NotDerivable(why) => Some(format!("cannot be derived: {why}")),
        Outcome::NotInSource => Some("is not in the source".into()),
    }
}

fn as_json(one: &VerifiedTensor) -> serde_json::Value {
    let (outcome, way) = match &one.outcome {
        Outcome::Identical(ConversionPath::Direct) => ("same", None),
        Outcome::Identical(ConversionPath::Via(half)) => ("same", Some(half.name())),
        Outcome::Differs { .. } => ("differs", None),
        Outcome::NotDerivable(_) => ("underivable", None),
        Outcome::NotInSource => ("not in source", None),
    };
    json!({ "name": one.name, "outcome": outcome, "by_way_of": way, "message": fault(one) })
}

//! `gguf verify`: reproduces a model from its source, and verifies its signature.

mod signature;

use std::io::Write;
use std::path::PathBuf;

use gguf_kit::open;
use gguf_kit::quantize::{Calibration, CalibrationText};
use gguf_kit::verify::against;
use gguf_quantize::verify::{ConversionPath, Outcome, VerifiedTensor};
use regex::Regex;
use serde_json::json;

use crate::commands::quantize::calibration::{BUNDLED, parse_text, text_source};
use crate::commands::quantize::imatrix;
use crate::document;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::terminal;

/// Verify a signature, or reproduce a model from its source.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 1 if a tensor differs or is missing, or a signature or a signed file is not valid.\n\nExamples:\n  \
    gguf verify model.gguf --signature model.gguf.sig --public-key key.pub\n  \
    gguf verify llama-q4.gguf --source Llama-3.2-1B\n  \
    gguf verify llama-q4.gguf --source llama-f16.gguf --imatrix imatrix.gguf --tensor 'blk\\.0\\.'\n  \
    gguf verify llama-q4.gguf --source llama-f16.gguf --calibrate text.txt"
)]
pub struct Args {
    /// Model to verify.
    model: String,
    /// Source of the model: a checkpoint directory or a GGUF.
    #[arg(long, value_name = "DIR|FILE", required_unless_present = "signature")]
    source: Option<String>,
    #[command(flatten)]
    signature: signature::Args,
    /// Verify only tensors whose name matches the regex. May be repeated.
    #[arg(long, value_name = "REGEX")]
    tensor: Vec<Regex>,
    #[command(flatten)]
    importance: imatrix::Args,
    /// Calibration text, for a model quantized with --calibrate; `bundled`, or no value at the end of the line: the text
    /// of gguf-kit. Several in the order of `gguf quantize`.
    #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = BUNDLED,
        value_parser = parse_text)]
    calibrate: Vec<PathBuf>,
    /// Saved Hessians, for a model quantized with --calibration-data.
    #[arg(long, value_name = "FILE", conflicts_with = "calibrate")]
    calibration_data: Option<PathBuf>,
    /// The model was quantized with --effort.
    #[arg(long, conflicts_with_all = ["calibrate", "calibration_data"])]
    effort: bool,
    /// Print the result for each tensor as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let signed = args.signature.check(&args.model, args.json)?;
    let is_intact = signed.as_ref().is_none_or(|signed| signed.is_intact);
    let signature = signed.map(|signed| signed.json);
    let Some(source) = &args.source else {
        if args.json {
            let report = json!({ "same": 0, "tensors": [], "missing": [], "signature": signature });
            document::print(&mut std::io::stdout().lock(), "verify/2", report)?;
        }
        return if is_intact { Ok(()) } else { Err(Failure::Findings) };
    };
    let opened = open(&args.model)?;
    let importance = args.importance.choice().map(|choice| choice.read()).transpose()?;
    let importance = importance.as_ref().map(|(importance, _)| importance);
    let is_chosen =
        |name: &str| args.tensor.is_empty() || args.tensor.iter().any(|re| re.is_match(name));
    let progress = Progress::new();
    let texts = args.calibrate.iter().map(|text| text_source(text));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let text = (!texts.is_empty()).then(|| Calibration::Text(CalibrationText::new(texts)));
    let data = args.calibration_data.clone().map(Calibration::Data);
    let calibration = text.or(data).or(args.effort.then_some(Calibration::Weights));
    let calibration = calibration.as_ref();
    let model = opened.model();
    let report = against(model, source, importance, calibration, &is_chosen, &progress)?;
    progress.finish();
    terminal::notes(&report.notes);
    let (verified, missing) = (report.tensors, report.missing);
    if verified.is_empty() {
        return Err(Failure::Usage("--tensor matches no tensor".into()));
    }
    let same = verified.iter().filter(|one| matches!(one.outcome, Outcome::Identical(_))).count();
    let mut out = std::io::stdout().lock();
    if args.json {
        let tensors: Vec<_> = verified.iter().map(as_json).collect();
        let report =
            json!({ "same": same, "tensors": tensors, "missing": missing, "signature": signature });
        document::print(&mut out, "verify/2", report)?;
    } else {
        for one in &verified {
            if let Some(fault) = fault(one) {
                writeln!(out, "{}: {fault}", one.name)?;
            }
        }
        for name in &missing {
            writeln!(out, "{name}: missing; the source has it")?;
        }
        writeln!(out, "{same} of {} tensors match the source", verified.len())?;
        if let Some(via) = verified.iter().find_map(|one| match one.outcome {
            Outcome::Identical(ConversionPath::Via(via)) => Some(via),
            _ => None,
        }) {
            writeln!(out, "(some via {via})")?;
        }
    }
    if same == verified.len() && missing.is_empty() && is_intact {
        Ok(())
    } else {
        Err(Failure::Findings)
    }
}

/// Returns the problem of a tensor as text.
fn fault(one: &VerifiedTensor) -> Option<String> {
    match &one.outcome {
        Outcome::Identical(_) => None,
        Outcome::Differs { row } => Some(format!("differs, first in row {row}")),
        Outcome::NotDerivable(why) => Some(format!("cannot be reproduced: {why}")),
        Outcome::NotInSource => Some("missing in the source".into()),
    }
}

fn as_json(one: &VerifiedTensor) -> serde_json::Value {
    let (outcome, via) = match &one.outcome {
        Outcome::Identical(ConversionPath::Direct) => ("same", None),
        Outcome::Identical(ConversionPath::Via(half)) => ("same", Some(half.name())),
        Outcome::Differs { .. } => ("differs", None),
        Outcome::NotDerivable(_) => ("not_reproducible", None),
        Outcome::NotInSource => ("not_in_source", None),
    };
    json!({ "name": one.name, "outcome": outcome, "via": via, "message": fault(one) })
}

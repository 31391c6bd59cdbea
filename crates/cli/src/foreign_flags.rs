//! Tips for flags of other programs.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Unknown flags, the commands for which a tip holds (empty for all), and the tip.
const TIPS: [(&[&str], &[&str], &str); 4] = [
    (&["-m", "--model"], &[], "the model is a positional argument, as in `gguf bench model.gguf`"),
    (
        &["-o", "--output", "--outfile"],
        &["quantize"],
        "the output is the second argument, as in `gguf quantize in.gguf out.gguf Q4_K_M`",
    ),
    (&["-ngl", "--n-gpu-layers", "--gpu-layers"], &[], "models run on the CPU; omit it"),
    (&["-i", "--input", "--infile"], &[], "the input is the first argument, without a flag"),
];

/// Replaces clap's tip by one of [`TIPS`] if the unknown flag is one of another program.
pub fn explain(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let typed = |known: &str| words.iter().any(|word| word == known);
    let at_fault = |flag: &&str| match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(unknown))) => flag == unknown,
        // `-ngl 99` is `-n gl` to clap.
        (ErrorKind::InvalidValue | ErrorKind::ValueValidation, _) => {
            flag.len() > 2 && !flag.starts_with("--") && typed(flag)
        }
        _ => false,
    };
    let tip = TIPS.iter().find(|(flags, commands, _)| {
        let goes = commands.is_empty() || commands.iter().any(|name| typed(name));
        goes && flags.iter().any(at_fault)
    });
    if let Some((_, _, tip)) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*tip).into()]));
    }
    error
}

//! Flags that people bring along from other programs, and what to type here.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Flags that are unknown here, and a tip for each; some mean so much only with some commands.
const TIPS: [(&[&str], &[&str], &str); 4] = [
    (&["-m", "--model"], &[], "the model is named without a flag, as in `gguf bench model.gguf`"),
    (
        &["-o", "--output", "--outfile"],
        &["quantize"],
        "the output is the second word, as in `gguf quantize in.gguf out.gguf Q4_K_M`",
    ),
    (&["-ngl", "--n-gpu-layers", "--gpu-layers"], &[], "models run on the CPU here: leave it out"),
    (&["-i", "--input", "--infile"], &[], "the input is the first word, without a flag"),
];

/// Gives an error about a flag a tip in the place of clap's, if somebody's habit is behind it.
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

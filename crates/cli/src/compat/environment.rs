//! Environment variables that llama.cpp's programs accept instead of flags.

use super::flag::{Flag, Handling};
use super::{Program, shared_flags};
use crate::failure::Failure;

/// Flags and their variables. Ignored flags have none.
const VARIABLES: &[(&str, &str)] = &[
    ("--model", "LLAMA_ARG_MODEL"),
    ("--model-url", "LLAMA_ARG_MODEL_URL"),
    ("--docker-repo", "LLAMA_ARG_DOCKER_REPO"),
    ("--hf-repo", "LLAMA_ARG_HF_REPO"),
    ("--hf-file", "LLAMA_ARG_HF_FILE"),
    ("--threads", "LLAMA_ARG_THREADS"),
    ("--ctx-size", "LLAMA_ARG_CTX_SIZE"),
    ("--batch-size", "LLAMA_ARG_BATCH"),
    ("--cache-type-k", "LLAMA_ARG_CACHE_TYPE_K"),
    ("--cache-type-v", "LLAMA_ARG_CACHE_TYPE_V"),
    ("--rope-scaling", "LLAMA_ARG_ROPE_SCALING_TYPE"),
    ("--rope-scale", "LLAMA_ARG_ROPE_SCALE"),
    ("--rope-freq-base", "LLAMA_ARG_ROPE_FREQ_BASE"),
    ("--rope-freq-scale", "LLAMA_ARG_ROPE_FREQ_SCALE"),
    ("--yarn-orig-ctx", "LLAMA_ARG_YARN_ORIG_CTX"),
    ("--yarn-ext-factor", "LLAMA_ARG_YARN_EXT_FACTOR"),
    ("--yarn-attn-factor", "LLAMA_ARG_YARN_ATTN_FACTOR"),
    ("--yarn-beta-slow", "LLAMA_ARG_YARN_BETA_SLOW"),
    ("--yarn-beta-fast", "LLAMA_ARG_YARN_BETA_FAST"),
];

/// Returns flags set by variables, with their values. Flags on the command line take precedence; variables for
/// the model location are ignored if any flag sets the location.
///
/// # Errors
///
/// If a flag is refused.
pub fn flags(
    program: &'static Program,
    command_line: &[(&'static Flag, Vec<String>)],
) -> Result<Vec<(&'static Flag, Vec<String>)>, Failure> {
    // Only programs with llama.cpp's common argument parser read variables.
    let reads = program.rows().any(|row| row.names().any(|name| name == shared_flags::SHARED));
    let is_location =
        |flag: &Flag| shared_flags::MODEL.iter().any(|location| location.names == flag.names);
    let has_location = command_line.iter().any(|(flag, _)| is_location(flag));
    let mut found = Vec::new();
    for (name, variable) in VARIABLES.iter().filter(|_| reads) {
        let row = program.rows().find(|row| row.names().any(|own| own == *name));
        let value = std::env::var(variable).ok().filter(|value| !value.is_empty());
        let (Some(row), Some(value)) = (row, value) else { continue };
        if command_line.iter().any(|(flag, _)| flag.names == row.names)
            || (has_location && is_location(row))
        {
            continue;
        }
        match row.handling {
            Handling::Refused(why) => return Err(Failure::Usage(format!("{variable}: {why}"))),
            Handling::Flag(_) | Handling::Translated(_) => found.push((row, vec![value])),
            Handling::Ignored(_) | Handling::Help | Handling::Version => {}
        }
    }
    Ok(found)
}

/// Returns the table of variables, for the documentation.
pub fn page() -> String {
    let row = |(flag, variable): &(&str, &str)| format!("| `{variable}` | `{flag}` |\n");
    let rows: String = VARIABLES.iter().map(row).collect();
    format!("| variable | flag |\n|---|---|\n{rows}\n")
}

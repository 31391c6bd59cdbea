//! Variables of the environment that llama.cpp's programs take for flags.

use super::flag::{Becomes, Flag};
use super::{Program, common};
use crate::failure::Failure;

/// A flag, and the variable that stands for it. Those of flags that do nothing here are not read.
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

/// The flags of a program that variables stand for, with their values: none that was given, and nothing about
/// where the model is if a flag says it.
///
/// # Errors
/// If a flag is refused.
pub fn flags(
    program: &'static Program,
    given: &[(&'static Flag, Vec<String>)],
) -> Result<Vec<(&'static Flag, Vec<String>)>, Failure> {
    // llama.cpp has one reader of arguments for the programs that share these flags.
    let reads = program.rows().any(|row| row.names().any(|name| name == common::SHARED));
    let is_place = |flag: &Flag| common::MODEL.iter().any(|place| place.names == flag.names);
    let has_place = given.iter().any(|(flag, _)| is_place(flag));
    let mut found = Vec::new();
    for (name, variable) in VARIABLES.iter().filter(|_| reads) {
        let row = program.rows().find(|row| row.names().any(|own| own == *name));
        let value = std::env::var(variable).ok().filter(|value| !value.is_empty());
        let (Some(row), Some(value)) = (row, value) else { continue };
        if given.iter().any(|(flag, _)| flag.names == row.names) || (has_place && is_place(row)) {
            continue;
        }
        match row.becomes {
            Becomes::Refused(why) => return Err(Failure::Usage(format!("{variable}: {why}"))),
            Becomes::Ours(_) | Becomes::Read(_) => found.push((row, vec![value])),
            Becomes::Nothing(_) | Becomes::Help | Becomes::Version => {}
        }
    }
    Ok(found)
}

/// The variables, for the documentation.
pub fn page() -> String {
    let row = |(flag, variable): &(&str, &str)| format!("| `{variable}` | `{flag}` |\n");
    let rows: String = VARIABLES.iter().map(row).collect();
    format!("| variable | flag |\n|---|---|\n{rows}\n")
}

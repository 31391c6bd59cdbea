//! Help topics, generated from the program's own tables.

use std::fmt::Write;

use gguf::{Status, TensorType};

use crate::failure::EXIT_CODES;
use crate::outtype;

/// Name and text of a topic.
pub type Topic = (&'static str, fn() -> String);

/// All topics.
pub const TOPICS: &[Topic] = &[
    ("types", types),
    ("quantization", quantization),
    ("exit-codes", exit_codes),
    ("locations", locations),
    ("environment", environment),
    ("json", json),
];

/// Lists the current tensor types.
fn types() -> String {
    let mut text = "Tensor types, for --tensor-type and --pure (case-insensitive):\n\n\
                    type        bits per weight   block\n"
        .to_owned();
    let current = TensorType::all().filter_map(TensorType::traits);
    for row in current.filter(|row| row.status == Status::Current) {
        let bits = row.block_bytes as f64 * 8.0 / row.block_len as f64;
        let block = match row.block_len {
            1 => "-".to_owned(),
            len => format!("{len} weights in {} bytes", row.block_bytes),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<10} {bits:>16.4}   {block}", row.name);
    }
    text + "\nA quantization type of a file assigns one of these to each tensor: gguf help quantization\n"
}

/// Lists the quantization presets, with a recommendation.
fn quantization() -> String {
    format!(
        "{}\n\
         Q4_K_M is the usual choice. Q8_0 is practically lossless, Q6_K nearly so.\n\
         Below 4 bits an importance matrix helps (gguf imatrix); the smallest types\n\
         require one. Compare types on your own model: gguf quality MODEL -f TEXT\n\n\
         `auto` (convert) keeps the types of the checkpoint, `COPY` (quantize) those of\n\
         the GGUF.\n",
        outtype::table()
    )
}

fn exit_codes() -> String {
    let mut text = "Exit codes:\n\n".to_owned();
    for (code, meaning) in EXIT_CODES {
        let _ = writeln!(text, "{code:>5}  {meaning}");
    }
    text + "\n`gguf check --explain CODE` explains the code of an error or a finding.\n"
}

/// Lists the forms of model locations.
fn locations() -> String {
    const FORMS: &[(&str, &str)] = &[
        ("model.gguf", "a file"),
        ("model-00001-of-00003.gguf", "a model in shards, by any shard"),
        ("DIR", "the only model in a directory, or a checkpoint"),
        ("https://host/model.gguf", "a file on a server, read with HTTP range requests"),
        ("hf:org/repo", "the only model of a Hugging Face repository"),
        ("hf:org/repo:Q4_K_M", "a model of a repository, by type or file name"),
        ("hf:org/repo@revision", "at a branch, tag or commit"),
        ("ollama:model:tag", "a model in the store of Ollama"),
        ("s3://bucket/key", "an object (also gs:// and az://), as input or output"),
    ];
    rows("Locations of models:\n\n", FORMS)
        + "\nCommands that run a model download it from the Hub once (`gguf pull`, `gguf list`); other commands read\nonly what they need. Credentials are read from the\nenvironment: gguf help environment\n"
}

/// Lists environment variables.
fn environment() -> String {
    const VARIABLES: &[(&str, &str)] = &[
        ("HF_TOKEN", "Hugging Face token, sent to the Hub only"),
        ("OLLAMA_MODELS", "directory of Ollama's store [default: ~/.ollama/models]"),
        ("HF_HOME, HF_HUB_CACHE", "directories in which models of the Hub are stored"),
        ("HF_ENDPOINT", "URL of the Hub [default: https://huggingface.co]"),
        ("SSL_CERT_FILE", "CA certificates to use instead of the built-in ones"),
        ("AWS_*, GOOGLE_*, AZURE_*", "credentials and regions of object stores"),
        ("RAYON_NUM_THREADS", "number of threads without --threads"),
        ("TMPDIR", "directory for small temporary files of remote checkpoints"),
        ("NO_COLOR", "disables colors if set"),
        ("FORCE_COLOR", "enables colors in files and pipes if set"),
    ];
    rows("Environment variables:\n\n", VARIABLES)
}

/// Describes the output of `--json`.
fn json() -> String {
    "With --json, standard output is always JSON: the document of the command or, on failure,\n\
     {\"error\": {...}} with code, fault, message, file, offset, key, tensor, help and exit_code.\n\
     The field \"schema\" of each document names its schema and version, such as\n\
     gguf-kit/inspect/2. Notes, progress and error messages go to standard error; --quiet\n\
     suppresses all but errors. docs/json.md describes the documents, docs/json/ has their JSON\n\
     Schemas.\n"
        .to_owned()
}

fn rows(heading: &str, rows: &[(&str, &str)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let line = |(name, meaning): &(&str, &str)| format!("  {name:<width$}  {meaning}\n");
    heading.to_owned() + &rows.iter().map(line).collect::<String>()
}

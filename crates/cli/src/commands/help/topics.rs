//! What `gguf help TOPIC` prints, from the tables that the program itself goes by.

use std::fmt::Write;

use gguf::{Status, TensorType};

use crate::failure::EXIT_CODES;
use crate::target;

/// A topic's name, and its text.
pub type Topic = (&'static str, fn() -> String);

/// All topics.
pub const TOPICS: &[Topic] = &[
    ("types", types),
    ("mixes", mixes),
    ("exit-codes", exit_codes),
    ("locations", locations),
    ("environment", environment),
    ("json", json),
];

/// Every type that files of today have.
fn types() -> String {
    let mut text = "Types of tensors, as --tensor-type and --pure take them, in any case:\n\n\
                    type        bits per weight   block\n"
        .to_owned();
    let current = TensorType::all().filter_map(TensorType::traits);
    for row in current.filter(|row| row.status == Status::Current) {
        let bits = row.block_bytes as f64 * 8.0 / row.block_len as f64;
        let block = match row.block_len {
            1 => "-".to_owned(),
            len => format!("{len} weights in {} bytes", row.block_bytes),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:<10} {bits:>16.4}   {block}", row.name);
    }
    text + "\nFiles are made by mixes, which give each tensor one of these: gguf help mixes\n"
}

/// Every mix, and which to take.
fn mixes() -> String {
    format!(
        "{}\nQ4_K_M is what most people take: a good deal smaller, little worse. Q8_0 loses\nnext to \
         nothing, Q6_K little; below 4 bits an importance matrix helps\n(gguf imatrix), and the smallest \
         need one.\nWhat each costs a model of yours: gguf quality MODEL -f TEXT\n\n\
         `auto` (convert) keeps what a checkpoint has, `COPY` (quantize) what a GGUF has.\n",
        target::table()
    )
}

fn exit_codes() -> String {
    let mut text = "The exit code says whose fault it is:\n\n".to_owned();
    for (code, meaning) in EXIT_CODES {
        let _ = writeln!(text, "{code:>5}  {meaning}");
    }
    text + "\n`check`, `diff`, `verify` and `name` end with 1 if they found something.\n\
            What a failure is called, and what to do: gguf check --explain CODE\n"
}

/// Where a model can be, and how to name it.
fn locations() -> String {
    const FORMS: &[(&str, &str)] = &[
        ("model.gguf", "a file"),
        ("model-00001-of-00003.gguf", "any shard of a model"),
        ("DIR", "the one model in a directory; a checkpoint to convert or to judge"),
        ("https://host/model.gguf", "a file on a server, read by ranges"),
        ("hf:org/repo", "the one model of a repository on the hub"),
        ("hf:org/repo:Q4_K_M", "the model of this name among several"),
        ("hf:org/repo@revision", "as of a branch, tag or commit"),
        ("s3://bucket/key", "an object; also gs:// and az://, also for new models"),
    ];
    rows("Where a command takes a model, it takes:\n\n", FORMS)
        + "\nNothing far is kept on the disk. Keys come from the environment: gguf help environment\n"
}

/// What the environment can say.
fn environment() -> String {
    const VARIABLES: &[(&str, &str)] = &[
        ("HF_TOKEN", "key for the hub, sent to its host only"),
        ("HF_ENDPOINT", "another hub than https://huggingface.co"),
        ("SSL_CERT_FILE", "certificates to trust instead of those built in"),
        ("AWS_*, GOOGLE_*, AZURE_*", "keys and regions of object stores"),
        ("RAYON_NUM_THREADS", "threads, where --threads does not say"),
        ("TMPDIR", "where small files of far checkpoints are kept meanwhile"),
        ("NO_COLOR", "no colours, if set to anything"),
    ];
    rows("Variables of the environment:\n\n", VARIABLES)
}

/// What `--json` promises.
fn json() -> String {
    "With --json, standard output is JSON whatever happens: the document that the command makes, or,\n\
     if it fails, {\"error\": {...}} with code, fault, message, file, offset, key, tensor, help and\n\
     exit_code. Each document names its schema and version in the field \"schema\", such as\n\
     gguf-kit/inspect/1. What people read (notes, progress, errors in words) goes to standard error;\n\
     --quiet leaves out all of it but errors. docs/json.md describes the documents, docs/json/ has a\n\
     JSON Schema for each.\n"
        .to_owned()
}

fn rows(heading: &str, rows: &[(&str, &str)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let line = |(name, meaning): &(&str, &str)| format!("  {name:<width$}  {meaning}\n");
    heading.to_owned() + &rows.iter().map(line).collect::<String>()
}

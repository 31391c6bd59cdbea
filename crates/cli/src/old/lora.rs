//! `llama-export-lora`.

use std::num::NonZeroUsize;
use std::path::Path;

use gguf::TensorType;
use gguf_convert::lora::{Adapter, merge::Merge};
use gguf_kit::{on_threads, open};
use gguf_quantize::recipe::Target;
use gguf_store::{Existing, Overwrite};

use super::common::{self, IDLE, LOG, MACHINE, MODEL, SAMPLING};
use super::flag::{Flag, nothing, read};
use super::given::Given;
use super::{Family, Program};
use crate::commands;
use crate::failure::Failure;
use crate::progress::Progress;

pub const PROGRAM: Program = Program {
    name: "llama-export-lora",
    ours: "gguf lora merge",
    words: "",
    family: Family::LlamaCpp,
    example: "-m base-f16.gguf --lora adapter.gguf -o merged-f16.gguf",
    flags: &[common::PROGRAM, FLAGS, MODEL, IDLE, MACHINE, SAMPLING, LOG],
    run,
};

const FLAGS: &[Flag] = &[
    read("--lora", 1, "the adapters, with commas between them"),
    read("--lora-scaled", 1, "the same with how strongly each counts: `FILE:SCALE`"),
    read(
        "-o --output --output-file",
        1,
        "`-o`, which is `ggml-lora-merged-f16.gguf` if there is none",
    ),
    read("-t --threads", 1, "threads; all if it is not above 0"),
    nothing("-p --prompt", 1, "no model is run"),
    nothing("-f --file", 1, "no model is run"),
    nothing("-bf --binary-file", 1, "no model is run"),
    nothing("-e --escape", 0, "no model is run"),
    nothing("--no-escape", 0, "no model is run"),
];

/// What the original calls the file: most matrices are F16.
const MOSTLY_F16: u32 = 1;

fn run(given: &Given) -> Result<u8, Failure> {
    if let Some(word) = given.words.first() {
        return Err(Failure::Usage(format!("`{word}` is no flag: name the model with -m")));
    }
    let mut adapters = Vec::new();
    for names in given.all("--lora").map(|values| &values[0]) {
        adapters.extend(names.split(',').map(|name| (name.to_owned(), 1.0)));
    }
    for names in given.all("--lora-scaled").map(|values| &values[0]) {
        for one in names.split(',') {
            let scaled = one.rsplit_once(':');
            let scaled = scaled.and_then(|(name, scale)| Some((name, scale.parse::<f32>().ok()?)));
            let Some((name, scale)) = scaled.filter(|(_, scale)| scale.is_finite()) else {
                return Err(Failure::Usage(format!("--lora-scaled {one}: write FILE:SCALE")));
            };
            adapters.push((name.to_owned(), scale));
        }
    }
    if adapters.is_empty() {
        return Err(Failure::Usage("which adapter? Name it with --lora".to_owned()));
    }
    let base = common::model(given)?;
    let output = given.value("--output").unwrap_or("ggml-lora-merged-f16.gguf");
    let threads = given.number::<i64>("--threads")?;
    let threads = threads.and_then(|n| usize::try_from(n).ok()).and_then(NonZeroUsize::new);
    on_threads(threads, || export(&base, &adapters, Path::new(output)))?;
    println!("done, output file is {output}");
    Ok(0)
}

/// Writes the model with the adapters merged into its matrices: these become F16 unless they are F32,
/// all else stays as it is.
fn export(base: &str, adapters: &[(String, f32)], output: &Path) -> Result<(), Failure> {
    let base = open(base)?;
    let opened = adapters.iter().map(|(word, scale)| Ok::<_, Failure>((open(word)?, *scale)));
    let opened = opened.collect::<Result<Vec<_>, _>>()?;
    let adapters = opened
        .iter()
        .map(|(opened, scale)| Ok((Adapter::of_model(opened.model())?, *scale)))
        .collect::<Result<Vec<_>, Failure>>()?;
    let merge = Merge::new(base.model(), &adapters)?;
    let options = gguf_quantize::QuantizeOptions { allow_requantize: true, ..Default::default() };
    let mut planned = merge.plan(Target::Copy, &options)?;
    for item in &mut planned.job.items {
        let adapted = |(adapter, _): &(Adapter, f32)| adapter.pairs.contains_key(&item.tensor.name);
        if item.target != TensorType::F32 && adapters.iter().any(adapted) {
            item.target = TensorType::F16;
        }
    }
    planned.job.metadata.set("general.file_type", MOSTLY_F16);
    commands::print_notes(&planned.notes);
    let files = opened.iter().flat_map(|(opened, _)| opened.files());
    let overwrite = Overwrite::new(Existing::Replace).protecting(base.files().chain(files));
    let progress = Progress::new();
    planned.job.write(output, &overwrite, &progress)?;
    progress.finish();
    Ok(())
}

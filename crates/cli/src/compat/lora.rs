//! `llama-export-lora`.

use std::num::NonZeroUsize;
use std::path::Path;

use gguf::TensorType;
use gguf_convert::lora::{Adapter, merge::Merge};
use gguf_kit::open;
use gguf_quantize::recipe::Target;
use gguf_store::{Existing, Overwrite};

use super::arguments::Arguments;
use super::flag::{Flag, ignored, translated};
use super::shared_arguments;
use super::shared_flags::{self, LOG, MACHINE, MODEL, NO_RUN, SAMPLING};
use super::{ArgumentStyle, Program};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::terminal;
use crate::threads::on_threads;

pub const PROGRAM: Program = Program {
    name: "llama-export-lora",
    command: "gguf lora merge",
    positionals: "",
    style: ArgumentStyle::LlamaCpp,
    example: "-m base-f16.gguf --lora adapter.gguf -o merged-f16.gguf",
    flags: &[shared_flags::PROGRAM, FLAGS, MODEL, NO_RUN, MACHINE, SAMPLING, LOG],
    run,
};

const FLAGS: &[Flag] = &[
    translated("--lora", 1, "adapters, separated by commas"),
    translated("--lora-scaled", 1, "adapters with scales: `FILE:SCALE`, separated by commas"),
    translated("-o --output --output-file", 1, "`-o`, `ggml-lora-merged-f16.gguf` by default"),
    translated("-t --threads", 1, "number of threads; all cores if not positive"),
    ignored("-p --prompt", 1, "the program runs no model"),
    ignored("-f --file", 1, "the program runs no model"),
    ignored("-bf --binary-file", 1, "the program runs no model"),
    ignored("-e --escape", 0, "the program runs no model"),
    ignored("--no-escape", 0, "the program runs no model"),
];

/// File type that the original writes: mostly F16.
const MOSTLY_F16: u32 = 1;

fn run(arguments: &Arguments) -> Result<u8, Failure> {
    if let Some(word) = arguments.positionals.first() {
        return Err(Failure::Usage(format!("unexpected argument `{word}`: use -m for the model")));
    }
    let mut adapters = Vec::new();
    for names in arguments.all("--lora").map(|values| &values[0]) {
        adapters.extend(names.split(',').map(|name| (name.to_owned(), 1.0)));
    }
    for names in arguments.all("--lora-scaled").map(|values| &values[0]) {
        for one in names.split(',') {
            let scaled = one.rsplit_once(':');
            let scaled = scaled.and_then(|(name, scale)| Some((name, scale.parse::<f32>().ok()?)));
            let Some((name, scale)) = scaled.filter(|(_, scale)| scale.is_finite()) else {
                return Err(Failure::Usage(format!("--lora-scaled {one}: expected FILE:SCALE")));
            };
            adapters.push((name.to_owned(), scale));
        }
    }
    if adapters.is_empty() {
        return Err(Failure::Usage("the adapter is missing: use --lora".to_owned()));
    }
    let base = shared_arguments::model(arguments)?;
    let output = arguments.value("--output").unwrap_or("ggml-lora-merged-f16.gguf");
    let threads = arguments.number::<i64>("--threads")?;
    let threads = threads.and_then(|n| usize::try_from(n).ok()).and_then(NonZeroUsize::new);
    on_threads(threads, || export(&base, &adapters, Path::new(output)))?;
    println!("done, output file is {output}");
    Ok(0)
}

/// Writes the model with merged adapters. Adapted matrices become F16 unless they are F32.
fn export(base: &str, adapters: &[(String, f32)], output: &Path) -> Result<(), Failure> {
    let base = open(base)?;
    let opened = adapters.iter().map(|(word, scale)| Ok::<_, Failure>((open(word)?, *scale)));
    let opened = opened.collect::<Result<Vec<_>, _>>()?;
    let adapters = opened
        .iter()
        .map(|(opened, scale)| Ok((Adapter::read(opened.model())?, *scale)))
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
    terminal::notes(&planned.notes);
    let files = opened.iter().flat_map(|(opened, _)| opened.files());
    let overwrite = Overwrite::new(Existing::Replace).protecting(base.files().chain(files));
    let progress = Progress::new();
    planned.job.write(output, &overwrite, &progress)?;
    progress.finish();
    Ok(())
}

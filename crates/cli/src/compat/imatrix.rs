//! `llama-imatrix`.

use super::arguments::{Arguments, parse_args};
use super::flag::{Flag, ignored, renamed, translated};
use super::shared_arguments;
use super::shared_flags::{self, LOG, MACHINE, MODEL, RUN, SAMPLING};
use super::{ArgumentStyle, Program};
use crate::commands::imatrix;
use crate::failure::Failure;

pub const PROGRAM: Program = Program {
    name: "llama-imatrix",
    command: "gguf imatrix",
    positionals: "",
    style: ArgumentStyle::LlamaCpp,
    example: "-m model-f16.gguf -f calibration.txt -o imatrix.gguf",
    flags: &[shared_flags::PROGRAM, FLAGS, MODEL, RUN, MACHINE, SAMPLING, LOG],
    run,
};

const FLAGS: &[Flag] = &[
    translated("--chunks", 1, "`--chunks`; all if not positive"),
    translated("--chunk --from-chunk", 1, "`--chunk`"),
    translated("--in-file", 1, "`--in-file`, once per comma-separated name"),
    translated("-o --output --output-file", 1, "`--output-file`, `imatrix.gguf` by default"),
    translated("--output-format", 1, "`--output-format`, gguf by default"),
    translated("-ofreq --output-frequency", 1, "`--output-frequency`"),
    translated("--save-frequency", 1, "`--save-frequency`; 0 disables"),
    renamed("--process-output", 0, "--process-output"),
    translated("--no-ppl", 0, "without `--ppl`, which is the default here as in the original"),
    translated("--ppl", 0, "`--ppl`, the default"),
    ignored("--context-shift --no-context-shift", 0, shared_flags::NO_SAMPLING),
    translated("--show-statistics", 0, "`--show-statistics`, for one file of `--in-file`"),
    renamed("--parse-special", 0, "--parse-special"),
];

fn run(arguments: &Arguments) -> Result<u8, Failure> {
    if let Some(word) = arguments.positionals.first() {
        return Err(Failure::Usage(format!("unexpected argument `{word}`: use -m for the model")));
    }
    let files = arguments.all("--in-file").flat_map(|values| values[0].split(','));
    let mut flags: Vec<_> = files.map(|file| format!("--in-file={file}")).collect();
    if arguments.has("--show-statistics") {
        if flags.len() != 1 {
            let what = "--show-statistics requires one importance matrix: use --in-file";
            return Err(Failure::Usage(what.to_owned()));
        }
        flags.push("--show-statistics".to_owned());
        let none: [&str; 0] = [];
        imatrix::run(&parse_args(arguments.translate(flags, none))?)?;
        return Ok(0);
    }
    if flags.is_empty() && shared_arguments::text(arguments).is_none() {
        let what = "the text is missing: use -f, or --in-file for importance matrices to merge";
        return Err(Failure::Usage(what.to_owned()));
    }
    flags.push("--force".to_owned());
    flags.push(format!("--output-file={}", arguments.value("--output").unwrap_or("imatrix.gguf")));
    flags.push(format!("--output-format={}", arguments.value("--output-format").unwrap_or("gguf")));
    // Overrides the chunk size of the files, as the original does.
    flags.push(format!("--ctx-size={}", arguments.number::<u32>("--ctx-size")?.unwrap_or(512)));
    let model = shared_arguments::text(arguments)
        .map(|text| Ok::<_, Failure>((shared_arguments::model(arguments)?, text)));
    let model = model.transpose()?;
    if let Some((_, text)) = &model {
        if !arguments.has("--no-ppl") {
            flags.push("--ppl".to_owned());
        }
        flags.push(format!("--file={text}"));
        flags.extend(shared_arguments::run_flags(arguments)?);
        for (name, flag) in NUMBERS {
            let number = arguments.number::<i64>(name)?.filter(|number| *number > 0);
            flags.extend(number.map(|number| format!("{flag}={number}")));
        }
    }
    imatrix::run(&parse_args(arguments.translate(flags, model.map(|(model, _)| model)))?)?;
    Ok(0)
}

/// Flags that take effect only with a positive number.
const NUMBERS: &[(&str, &str)] = &[
    ("--chunks", "--chunks"),
    ("--chunk", "--chunk"),
    ("--output-frequency", "--output-frequency"),
    ("--save-frequency", "--save-frequency"),
];

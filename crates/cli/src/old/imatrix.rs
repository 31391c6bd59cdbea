//! `llama-imatrix`.

use super::common::{self, LOG, MACHINE, MODEL, RUN, SAMPLING};
use super::flag::{Flag, nothing, ours, read};
use super::given::{Given, args_of};
use super::{Family, Program};
use crate::commands::imatrix;
use crate::failure::Failure;

pub const PROGRAM: Program = Program {
    name: "llama-imatrix",
    ours: "gguf imatrix",
    words: "",
    family: Family::LlamaCpp,
    example: "-m model-f16.gguf -f calibration.txt -o imatrix.gguf",
    flags: &[common::PROGRAM, FLAGS, MODEL, RUN, MACHINE, SAMPLING, LOG],
    run,
};

const FLAGS: &[Flag] = &[
    read("--chunks", 1, "`--chunks`; all if it is not above 0"),
    read("--chunk --from-chunk", 1, "`--chunk`"),
    read("--in-file", 1, "`--in-file`, once for each of the names between commas"),
    read(
        "-o --output --output-file",
        1,
        "`--output-file`, which is `imatrix.gguf` if there is none",
    ),
    read("--output-format", 1, "`--output-format`, which is gguf if there is none"),
    read("-ofreq --output-frequency", 1, "`--output-frequency`"),
    read("--save-frequency", 1, "`--save-frequency`; 0 is never"),
    ours("--process-output", 0, "--process-output"),
    nothing("--no-ppl", 0, "perplexities are never computed with an importance matrix"),
    read("--ppl", 0, "says that `gguf perplexity` computes it"),
    nothing("--context-shift --no-context-shift", 0, common::NO_SAMPLING),
    read("--show-statistics", 0, "`--show-statistics`, of one file of `--in-file`"),
    ours("--parse-special", 0, "--parse-special"),
];

fn run(given: &Given) -> Result<u8, Failure> {
    if let Some(word) = given.words.first() {
        return Err(Failure::Usage(format!("`{word}` is no flag: name the model with -m")));
    }
    let files = given.all("--in-file").flat_map(|values| values[0].split(','));
    let mut flags: Vec<_> = files.map(|file| format!("--in-file={file}")).collect();
    if given.has("--show-statistics") {
        if flags.len() != 1 {
            let what = "--show-statistics wants one importance matrix: name it with --in-file";
            return Err(Failure::Usage(what.to_owned()));
        }
        flags.push("--show-statistics".to_owned());
        let none: [&str; 0] = [];
        imatrix::run(&args_of(given.ours(flags, none))?)?;
        return Ok(0);
    }
    if flags.is_empty() && common::text(given).is_none() {
        let what = "which text? Name it with -f, or importance matrices to combine with --in-file";
        return Err(Failure::Usage(what.to_owned()));
    }
    flags.push("--force".to_owned());
    flags.push(format!("--output-file={}", given.value("--output").unwrap_or("imatrix.gguf")));
    flags.push(format!("--output-format={}", given.value("--output-format").unwrap_or("gguf")));
    // Also where files say other numbers, as in the original.
    flags.push(format!("--ctx-size={}", given.number::<u32>("--ctx-size")?.unwrap_or(512)));
    let model = common::text(given).map(|text| Ok::<_, Failure>((common::model(given)?, text)));
    let model = model.transpose()?;
    if let Some((_, text)) = &model {
        if !given.has("--no-ppl") {
            let what = "no perplexities are computed with an importance matrix";
            eprintln!("note: {what}: `gguf perplexity` does that");
        }
        flags.push(format!("--file={text}"));
        flags.extend(common::run_flags(given)?);
        for (name, flag) in NUMBERS {
            let number = given.number::<i64>(name)?.filter(|number| *number > 0);
            flags.extend(number.map(|number| format!("{flag}={number}")));
        }
    }
    imatrix::run(&args_of(given.ours(flags, model.map(|(model, _)| model)))?)?;
    Ok(0)
}

/// Flags of which a number above 0 counts only.
const NUMBERS: &[(&str, &str)] = &[
    ("--chunks", "--chunks"),
    ("--chunk", "--chunk"),
    ("--output-frequency", "--output-frequency"),
    ("--save-frequency", "--save-frequency"),
];

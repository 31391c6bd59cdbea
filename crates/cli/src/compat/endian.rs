//! `gguf-convert-endian`.

use super::arguments::{Arguments, parse_args};
use super::flag::{Flag, help, ignored, translated};
use super::prompt::{confirm, log};
use super::{ArgumentStyle, Program};
use crate::commands::endian;
use crate::failure::Failure;

pub const PROGRAM: Program = Program {
    name: "gguf-convert-endian",
    command: "gguf convert-endian --in-place",
    positionals: "model {big,little,native}",
    style: ArgumentStyle::Package,
    example: "model.gguf big",
    flags: &[FLAGS],
    run,
};

const FLAGS: &[Flag] = &[
    help("-h --help"),
    translated("--dry-run", 0, "`--dry-run`"),
    ignored("--verbose", 0, "there is no further output"),
];

const LOGGER: &str = "gguf-convert-endian";

fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let [model, order] = arguments.positions(["model", "order"])?;
    log("INFO", LOGGER, &format!("* Loading: {model}"));
    let dry_run = arguments.has("--dry-run");
    if !dry_run {
        let warnings = ["* The file will be replaced. Ensure you have a backup.".to_owned()];
        if !confirm(LOGGER, &warnings)? {
            return Ok(0);
        }
    }
    let flag = if dry_run { "--dry-run" } else { "--in-place" };
    endian::run(&parse_args(arguments.translate([flag], [model, order]))?)?;
    if !dry_run {
        log("INFO", LOGGER, "* Completion");
    }
    Ok(0)
}

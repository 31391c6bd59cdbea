//! `gguf-convert-endian`.

use super::confirm::{log, sure};
use super::flag::{Flag, help, nothing, read};
use super::given::{Given, args_of};
use super::{Family, Program};
use crate::commands::endian;
use crate::failure::Failure;

pub const PROGRAM: Program = Program {
    name: "gguf-convert-endian",
    ours: "gguf convert-endian --in-place",
    words: "model {big,little,native}",
    family: Family::Package,
    example: "model.gguf big",
    flags: &[FLAGS],
    run,
};

const FLAGS: &[Flag] = &[
    help("-h --help"),
    read("--dry-run", 0, "`--dry-run`"),
    nothing("--verbose", 0, "there is nothing more to say"),
];

const LOGGER: &str = "gguf-convert-endian";

fn run(given: &Given) -> Result<u8, Failure> {
    let [model, order] = given.positions(["model", "order"])?;
    log("INFO", LOGGER, &format!("* Loading: {model}"));
    let dry_run = given.has("--dry-run");
    if !dry_run {
        let warnings = ["* The file will be replaced. Ensure you have a backup.".to_owned()];
        if !sure(LOGGER, &warnings)? {
            return Ok(0);
        }
    }
    let flag = if dry_run { "--dry-run" } else { "--in-place" };
    endian::run(&args_of(given.ours([flag], [model, order]))?)?;
    if !dry_run {
        log("INFO", LOGGER, "* Completion");
    }
    Ok(0)
}

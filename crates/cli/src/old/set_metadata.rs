//! `gguf-set-metadata`.

use gguf::Value;
use gguf_kit::open;

use super::confirm::{log, sure};
use super::dump::python;
use super::flag::{Flag, help, nothing, read};
use super::given::{Given, args_of};
use super::{Family, Program};
use crate::commands::edit;
use crate::failure::Failure;

pub const PROGRAM: Program = Program {
    name: "gguf-set-metadata",
    ours: "gguf edit --set",
    words: "model key value",
    family: Family::Package,
    example: "--force model.gguf tokenizer.ggml.bos_token_id 2",
    flags: &[FLAGS],
    run,
};

const FLAGS: &[Flag] = &[
    help("-h --help"),
    read("--dry-run", 0, "says what would change and changes nothing"),
    read("--force", 0, "does not ask"),
    nothing("--verbose", 0, "there is nothing more to say"),
];

const LOGGER: &str = "gguf-set-metadata";

fn run(given: &Given) -> Result<u8, Failure> {
    let [model, key, value] = given.positions(["model", "key", "value"])?;
    let say = |what: &str| log("INFO", LOGGER, what);
    say(&format!("* Loading: {model}"));
    let opened = open(model)?;
    let Some(old) = opened.model().metadata().get(key).cloned() else {
        return Err(Failure::Input(format!(
            "{model}: there is no key `{key}`; `gguf edit --set` sets new ones"
        )));
    };
    drop(opened);
    if matches!(old, Value::String(_) | Value::Array(_)) {
        return Err(Failure::Input(format!(
            "{model}: `{key}` is {}, and this program sets numbers and flags only: \
             `gguf edit {model} --set` sets any",
            old.value_type()
        )));
    }
    let Some(new) = parse(&old, value) else {
        let ty = old.value_type();
        return Err(Failure::Input(format!("{model}: `{key}` is {ty}, and `{value}` is none")));
    };
    let (from, to) = (python::value(&old), python::value(&new));
    say(&format!("* Preparing to change field '{key}' from {from} to {to}"));
    let dry_run = given.has("--dry-run");
    if old == new {
        say(&format!("- Key '{key}' already set to requested value {from}"));
        return Ok(0);
    }
    if !dry_run && !given.has("--force") {
        let what =
            "* Changing fields in a GGUF file can make it unusable. Proceed at your own risk.";
        if !sure(LOGGER, &[what.to_owned()])? {
            return Ok(0);
        }
    }
    let value = match new {
        Value::Bool(flag) => flag.to_string(),
        _ => value.to_owned(),
    };
    let flags = [format!("--set={key}={value}")].into_iter();
    let flags = flags.chain(dry_run.then(|| "--dry-run".to_owned()));
    edit::run(&args_of(given.ours(flags, [model]))?)?;
    if !dry_run {
        say("* Field changed. Successful completion.");
    }
    Ok(0)
}

/// A text as a value of the type that a key has.
fn parse(old: &Value, text: &str) -> Option<Value> {
    Some(match old {
        Value::U8(_) => Value::U8(text.parse().ok()?),
        Value::I8(_) => Value::I8(text.parse().ok()?),
        Value::U16(_) => Value::U16(text.parse().ok()?),
        Value::I16(_) => Value::I16(text.parse().ok()?),
        Value::U32(_) => Value::U32(text.parse().ok()?),
        Value::I32(_) => Value::I32(text.parse().ok()?),
        Value::U64(_) => Value::U64(text.parse().ok()?),
        Value::I64(_) => Value::I64(text.parse().ok()?),
        Value::F32(_) => Value::F32(text.parse().ok()?),
        Value::F64(_) => Value::F64(text.parse().ok()?),
        // The original takes every word for true, `False` too.
        Value::Bool(_) => Value::Bool(match text {
            "True" | "true" | "1" => true,
            "False" | "false" | "0" => false,
            _ => return None,
        }),
        Value::String(_) | Value::Array(_) => return None,
    })
}

//! Which flags of `gguf convert` go with which kind of source: none is passed over without a word.

use Kind::{Adapter, Checkpoint, Legacy, SingleFile};
pub use gguf_kit::convert::Kind;
use gguf_kit::convert::OutputOptions;
use gguf_quantize::recipe::Target;

use crate::commands::given::Given;
use crate::commands::quantize::{calibration, types};
use crate::failure::Failure;

fn name(kind: Kind) -> &'static str {
    match kind {
        Checkpoint => "checkpoints",
        Adapter => "adapters",
        SingleFile => "lone files of weights",
        Legacy => "files from before GGUF",
    }
}

/// Flags that go with some kinds only, and what to do with another one. All others go with all.
const SOME: &[(&[&str], &[Kind], &str)] = &[
    (&["--architecture"], &[SingleFile, Legacy], "--like takes a model for one of another class"),
    (&["--pre"], &[Checkpoint, Legacy], "leave it out: no tokenizer is converted"),
    (&["--metadata"], &[Checkpoint, Adapter], "set single keys with --override-kv"),
    (&["--provenance"], &[Checkpoint], "set a key of your own with --override-kv"),
    (&["--like"], &[Checkpoint, Adapter], "name the program with --architecture"),
    (&["--base"], &[Adapter], "leave it out"),
    (&["--target-model-dir"], &[Checkpoint], "leave it out: only drafts are for another model"),
    (&["--vocab-only"], &[Checkpoint], "there is no tokenizer to convert alone"),
    (&["--mmproj"], &[Checkpoint], "there is nothing that sees or hears"),
    (
        &["--metadata-dir", "--context-length", "--eps", "--rope-base", "--gqa", "--head-count"],
        &[Legacy],
        "leave it out, or correct keys with --override-kv",
    ),
    (calibration::FLAGS, &[Checkpoint], "convert first, and calibrate with `gguf quantize`"),
    (
        types::FLAGS,
        &[Checkpoint, SingleFile, Legacy],
        "an adapter has one type: name it by --outtype",
    ),
];

/// Refuses flags that do nothing for a source of this kind, or for outputs of these types.
pub fn check(given: &Given, kind: Kind, outputs: &[OutputOptions]) -> Result<(), Failure> {
    for flag in given.flags() {
        let row = SOME.iter().find(|(flags, ..)| flags.contains(&flag));
        if let Some((_, kinds, help)) = row.filter(|(_, kinds, _)| !kinds.contains(&kind)) {
            let kinds: Vec<_> = kinds.iter().map(|kind| name(*kind)).collect();
            let (kinds, kind) = (kinds.join(", "), name(kind));
            return Err(Failure::Usage(format!(
                "{flag} goes with {kinds}, and not with {kind}: {help}"
            )));
        }
    }
    match given.find(types::FLAGS).or_else(|| given.find(calibration::FLAGS)) {
        Some(flag) if !outputs.iter().any(|output| makes_blocks(output.outtype)) => {
            Err(Failure::Usage(format!(
                "{flag} says how weights become blocks, and here they do not: name a type with blocks \
             by --outtype, such as q8_0"
            )))
        }
        _ => Ok(()),
    }
}

/// Whether a type makes blocks of weights that are floats.
fn makes_blocks(outtype: Option<Target>) -> bool {
    match outtype {
        None | Some(Target::Copy) => false,
        Some(Target::Preset(mix)) => mix.default_type().is_quantized(),
        Some(Target::Type(ty)) => ty.is_quantized(),
    }
}

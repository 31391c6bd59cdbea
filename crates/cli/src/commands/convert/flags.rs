//! Which flags of `gguf convert` apply to which kind of source. Inapplicable flags are refused.

use Kind::{Adapter, Checkpoint, Legacy, SingleFile};
pub use gguf_kit::convert::Kind;
use gguf_kit::convert::OutputOptions;
use gguf_quantize::recipe::Target;

use crate::commands::given_flags::GivenFlags;
use crate::commands::quantize::{calibration, types};
use crate::failure::Failure;

fn name(kind: Kind) -> &'static str {
    match kind {
        Checkpoint => "checkpoints",
        Adapter => "adapters",
        SingleFile => "single weight files",
        Legacy => "legacy GGML files",
    }
}

/// Flags that apply to some kinds only, and advice for the others. All other flags apply to all kinds.
const SOME: &[(&[&str], &[Kind], &str)] = &[
    (&["--architecture"], &[SingleFile, Legacy], "use --like to convert a model as another class"),
    (&["--pre"], &[Checkpoint, Legacy], "omit it: no tokenizer is converted"),
    (&["--metadata"], &[Checkpoint, Adapter], "set single keys with --override-kv"),
    (&["--provenance"], &[Checkpoint], "set a key of your own with --override-kv"),
    (&["--like"], &[Checkpoint, Adapter], "use --architecture"),
    (&["--base"], &[Adapter], "omit it"),
    (&["--target-model-dir"], &[Checkpoint], "omit it: only draft models have a target model"),
    (&["--vocab-only"], &[Checkpoint], "the source has no tokenizer"),
    (&["--mmproj"], &[Checkpoint], "the source has no vision or audio encoder"),
    (
        &["--metadata-dir", "--context-length", "--eps", "--rope-base", "--gqa", "--head-count"],
        &[Legacy],
        "omit it, or correct keys with --override-kv",
    ),
    (calibration::FLAGS, &[Checkpoint], "convert first, then calibrate with `gguf quantize`"),
    (types::FLAGS, &[Checkpoint, SingleFile, Legacy], "an adapter has one type: use --outtype"),
];

/// Refuses flags that have no effect for this kind of source or these output types.
pub fn check(given: &GivenFlags, kind: Kind, outputs: &[OutputOptions]) -> Result<(), Failure> {
    for flag in given.flags() {
        let row = SOME.iter().find(|(flags, ..)| flags.contains(&flag));
        if let Some((_, kinds, help)) = row.filter(|(_, kinds, _)| !kinds.contains(&kind)) {
            let kinds: Vec<_> = kinds.iter().map(|kind| name(*kind)).collect();
            let (kinds, kind) = (kinds.join(", "), name(kind));
            return Err(Failure::Usage(format!(
                "{flag} applies to {kinds}, not to {kind}: {help}"
            )));
        }
    }
    match given.find(types::FLAGS).or_else(|| given.find(calibration::FLAGS)) {
        Some(flag) if !outputs.iter().any(|output| is_quantizing(output.outtype)) => {
            Err(Failure::Usage(format!(
                "{flag} needs a quantized output type: use --outtype, such as q8_0"
            )))
        }
        _ => Ok(()),
    }
}

/// Whether a type quantizes float weights.
fn is_quantizing(outtype: Option<Target>) -> bool {
    match outtype {
        None | Some(Target::Copy) => false,
        Some(Target::Preset(mix)) => mix.default_type().is_quantized(),
        Some(Target::Type(ty)) => ty.is_quantized(),
    }
}

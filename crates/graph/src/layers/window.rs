//! Which layers see only the last tokens.

use gguf::Finding;

use crate::build::Builder;

/// Tokens that those of a layer see; `None` for all.
///
/// Of `period` layers all but the last are windowed, of 0 all are, unless the model says which.
pub(crate) fn window(
    builder: &Builder<'_>,
    layer: u64,
    period: u64,
) -> Result<Option<u32>, Finding> {
    let len = match builder.size("attention.sliding_window") {
        Err(absent) if absent.code == "key-missing" => 0,
        found => found?,
    };
    let is_windowed = len > 0 && is_windowed(builder, layer, period)?;
    Ok(is_windowed.then_some(len))
}

fn is_windowed(builder: &Builder<'_>, layer: u64, period: u64) -> Result<bool, Finding> {
    const PATTERN: &str = "attention.sliding_window_pattern";
    let hyper = &builder.hyper;
    match hyper.stated(PATTERN) {
        // A flag for each layer, as a truth value or as a number.
        Some(stated) if stated.as_array().is_some() => {
            let flags = stated.as_array().and_then(|flags| {
                flags.iter().nth(usize::try_from(layer).ok()?).and_then(|flag| flag.to_bool())
            });
            flags.map_or_else(|| Ok(hyper.u64_in(PATTERN, layer)? != 0), Ok)
        }
        stated => {
            let period = if stated.is_some() { hyper.u64(PATTERN)? } else { period };
            Ok(period == 0 || layer % period < period - 1)
        }
    }
}

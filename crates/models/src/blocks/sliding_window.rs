//! Sliding-window pattern of the layers.

use gguf::Finding;

use crate::graph::Builder;
use crate::schema::key;

/// Default sliding-window pattern, where the metadata states a window and no pattern.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WindowPattern {
    /// All layers have the window.
    All,
    /// In each period of this many layers, all but the first have the window.
    AllButFirst(u64),
    /// In each period of this many layers, all but the last have the window.
    AllButLast(u64),
}

/// Returns the window size of a layer in tokens; `None` for full attention.
pub(crate) fn window(
    builder: &Builder<'_>,
    layer: u64,
    usual: WindowPattern,
) -> Result<Option<u32>, Finding> {
    let len = match builder.size(key::ATTENTION_SLIDING_WINDOW) {
        Err(absent) if absent.code == "key-missing" => 0,
        found => found?,
    };
    let has_window = len > 0 && has_window(builder, layer, usual)?;
    Ok(has_window.then_some(len))
}

fn has_window(builder: &Builder<'_>, layer: u64, usual: WindowPattern) -> Result<bool, Finding> {
    const PATTERN: &str = "attention.sliding_window_pattern";
    let hyper = &builder.hparams;
    match hyper.value(PATTERN) {
        // One flag per layer, as booleans or integers.
        Some(stated) if stated.as_array().is_some() => {
            let flags = stated.as_array().and_then(|flags| {
                flags.iter().nth(usize::try_from(layer).ok()?).and_then(|flag| flag.to_bool())
            });
            flags.map_or_else(|| Ok(hyper.u64_in_layer(PATTERN, layer)? != 0), Ok)
        }
        stated => {
            let stated = stated.map(|_| hyper.u64(PATTERN)).transpose()?;
            Ok(match (usual, stated) {
                (_, Some(0)) | (WindowPattern::All, None) => true,
                (WindowPattern::AllButFirst(usual), stated) => {
                    !layer.is_multiple_of(stated.unwrap_or(usual))
                }
                (WindowPattern::AllButLast(usual), None) => layer % usual != usual - 1,
                (_, Some(stated)) => layer % stated != stated - 1,
            })
        }
    }
}

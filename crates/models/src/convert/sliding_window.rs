//! Layers with sliding-window attention.
//!
//! llama.cpp's converter writes the keys for few architectures, and runtimes otherwise use the architecture's default.
//! This module writes them if a model differs from the default.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::{Exported, hparams};

const LENGTH: &str = "attention.sliding_window";

const PATTERN: &str = "attention.sliding_window_pattern";

/// Returns a flag for each layer: from the list in the configuration, or from `usual`.
fn listed(config: &Config, usual: impl Fn(u32) -> bool) -> Result<Vec<bool>, Error> {
    if let Some((_, kinds)) = config.find(&["layer_types"]) {
        let kinds = kinds.as_array().into_iter().flatten();
        return Ok(kinds.map(|kind| kind == "sliding_attention").collect());
    }
    Ok((0..hparams::block_count(config)?).map(usual).collect())
}

/// Returns a function that is true for all but the last of `period` layers.
fn of_period(period: u32) -> impl Fn(u32) -> bool {
    move |layer| period == 0 || layer % period < period - 1
}

/// Returns a flag for each layer: from the list in the configuration, or true for all but the last of `period` layers.
pub fn layers(config: &Config, period: u32) -> Result<Vec<bool>, Error> {
    let period =
        config.u32(&["sliding_window_pattern", "_sliding_window_pattern"])?.unwrap_or(period);
    listed(config, of_period(period))
}

/// Writes the layers with a sliding window, unless they are all but the last of `period` layers, the runtimes' default.
pub fn unusual_pattern(keys: &mut Keys, config: &Config, period: u32) -> Result<(), Error> {
    let layers = layers(config, period)?;
    let usual = (0..hparams::block_count(config)?).map(of_period(period));
    if !layers.iter().copied().eq(usual) {
        keys.set(PATTERN, Array::from(&layers[..]));
    }
    Ok(())
}

/// Writes a window of all layers, for an architecture without a default window, if it is shorter than the context.
pub fn unexpected(keys: &mut Keys, config: &Config, len: Option<u32>) -> Result<(), Error> {
    unexpected_in(keys, config, len, of_period(0))
}

/// Writes a window of the listed layers, or of those for which `usual` is true.
fn unexpected_in(
    keys: &mut Keys,
    config: &Config,
    len: Option<u32>,
    usual: impl Fn(u32) -> bool,
) -> Result<(), Error> {
    let context = hparams::context_length(config)?;
    let Some(len) = len.filter(|len| (1..context).contains(len)) else { return Ok(()) };
    let layers = listed(config, usual)?;
    if layers.contains(&true) {
        keys.set(LENGTH, len);
        if layers.contains(&false) {
            keys.set(PATTERN, Array::from(&layers[..]));
        }
    }
    Ok(())
}

/// That of Qwen's classes, which have none unless `use_sliding_window` is true: `usual` says of which
/// layers, given the number of one and `max_window_layers`.
pub fn qwen(
    keys: &mut Keys,
    config: &Config,
    usual: impl Fn(u32, u32) -> bool,
) -> Result<(), Error> {
    if config.bool("use_sliding_window")? != Some(true) {
        return Ok(());
    }
    // Null disables the window. A missing field has the default of the class.
    let len = match config.json().get("sliding_window") {
        None => Some(4096),
        Some(_) => config.u32(&["sliding_window"])?,
    };
    let first = config.u32(&["max_window_layers"])?.unwrap_or(28);
    unexpected_in(keys, config, len, |layer| usual(layer, first))
}

/// Returns the fields of a window for an architecture without a default window.
pub fn export_of_qwen(model: &Model, exported: Exported) -> Exported {
    let metadata = model.metadata();
    let architecture = metadata.architecture().unwrap_or_default();
    if metadata.get(&format!("{architecture}.{LENGTH}")).is_none() {
        return exported;
    }
    let exported = exported.set("use_sliding_window", true).set("max_window_layers", 0);
    export_of_pattern(model, exported)
}

/// Returns the field that lists the layers with a window, if a key does.
pub fn export_of_pattern(model: &Model, exported: Exported) -> Exported {
    let metadata = model.metadata();
    let architecture = metadata.architecture().unwrap_or_default();
    let Some(windows) = metadata.array(&format!("{architecture}.{PATTERN}")) else {
        return exported;
    };
    let kind = |has_window: gguf::Value| match has_window.to_bool() {
        Some(false) => "full_attention",
        _ => "sliding_attention",
    };
    exported.set("layer_types", windows.iter().map(kind).collect::<Vec<_>>())
}

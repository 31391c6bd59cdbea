//! Which layers see a window only.
//!
//! llama.cpp's converter writes this of few families; programs then take it from the architecture. What
//! a model has otherwise is written, so that it computes what it was trained for.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::{Exported, hparams};

const LENGTH: &str = "attention.sliding_window";

const PATTERN: &str = "attention.sliding_window_pattern";

/// A flag for each layer: as listed, or as `usual` says of its number.
fn listed(config: &Config, usual: impl Fn(u32) -> bool) -> Result<Vec<bool>, Error> {
    if let Some((_, kinds)) = config.find(&["layer_types"]) {
        let kinds = kinds.as_array().into_iter().flatten();
        return Ok(kinds.map(|kind| kind == "sliding_attention").collect());
    }
    Ok((0..hparams::block_count(config)?).map(usual).collect())
}

/// Of so many layers all but the last.
fn of_period(period: u32) -> impl Fn(u32) -> bool {
    move |layer| period == 0 || layer % period < period - 1
}

/// A flag for each layer. Of `period` layers all but the last are windowed, unless the configuration says
/// which.
pub fn layers(config: &Config, period: u32) -> Result<Vec<bool>, Error> {
    let period =
        config.u32(&["sliding_window_pattern", "_sliding_window_pattern"])?.unwrap_or(period);
    listed(config, of_period(period))
}

/// Writes which layers have the window that is written, if it is not what programs know: of `period`
/// layers all but the last.
pub fn unusual_pattern(keys: &mut Keys, config: &Config, period: u32) -> Result<(), Error> {
    let layers = layers(config, period)?;
    let usual = (0..hparams::block_count(config)?).map(of_period(period));
    if !layers.iter().copied().eq(usual) {
        keys.set(PATTERN, Array::from(&layers[..]));
    }
    Ok(())
}

/// Writes a window of all layers, which programs do not expect of the architecture, if it is shorter than
/// the context.
pub fn unexpected(keys: &mut Keys, config: &Config, len: Option<u32>) -> Result<(), Error> {
    unexpected_in(keys, config, len, of_period(0))
}

/// The same of the layers that are listed, or of which `usual` says so.
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
    // A window that is null is none; one that is not stated is that of the class.
    let len = match config.json().get("sliding_window") {
        None => Some(4096),
        Some(_) => config.u32(&["sliding_window"])?,
    };
    let first = config.u32(&["max_window_layers"])?.unwrap_or(28);
    unexpected_in(keys, config, len, |layer| usual(layer, first))
}

/// The fields that lead to a window which programs do not expect.
pub fn export_of_qwen(model: &Model, exported: Exported) -> Exported {
    let metadata = model.metadata();
    let architecture = metadata.architecture().unwrap_or_default();
    if metadata.get(&format!("{architecture}.{LENGTH}")).is_none() {
        return exported;
    }
    let exported = exported.set("use_sliding_window", true).set("max_window_layers", 0);
    export_of_pattern(model, exported)
}

/// The field that lists which layers have a window, where a key does.
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

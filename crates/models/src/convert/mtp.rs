//! Layers that guess further tokens, where checkpoints call them `mtp`: they stand behind the others.

use std::borrow::Cow;

use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::export;
use crate::convert::export::Exported;
use crate::convert::tensor_names::Table;
use crate::schema::key;

/// The field that counts them.
pub const COUNT: &str = "num_nextn_predict_layers";

/// What such layers have beside those of any layer, by the names of other checkpoints.
pub const NAMES: Table = &[
    ("model.layers.{}.eh_proj", "blk.{}.nextn.eh_proj"),
    ("model.layers.{}.enorm", "blk.{}.nextn.enorm"),
    ("model.layers.{}.hnorm", "blk.{}.nextn.hnorm"),
    ("model.layers.{}.embed_tokens", "blk.{}.nextn.embed_tokens"),
    ("model.layers.{}.shared_head.head", "blk.{}.nextn.shared_head_head"),
    ("model.layers.{}.shared_head.norm", "blk.{}.nextn.shared_head_norm"),
];

/// What stands beside the layers, and its name in the first of them.
const BESIDE: Table = &[
    ("mtp.fc.weight", "eh_proj.weight"),
    ("mtp.pre_fc_norm_embedding.weight", "enorm.weight"),
    ("mtp.pre_fc_norm_hidden.weight", "hnorm.weight"),
    ("mtp.norm.weight", "shared_head.norm.weight"),
];

const LAYERS: &str = "mtp.layers.";

/// How many such layers the checkpoint has, set as `field`: configurations do not say it, or say it of
/// weights that were left out.
pub fn survey(config: &mut Config, names: &mut dyn Iterator<Item = Cow<'_, str>>, field: &str) {
    let number = |name: Cow<'_, str>| {
        let name = name.strip_prefix("model.").unwrap_or(&name);
        name.strip_prefix(LAYERS)?.split('.').next()?.parse::<u32>().ok()
    };
    let count = names.filter_map(number).max().map_or(0, |last| last.saturating_add(1));
    config.set(field, count);
}

/// The name in a layer behind the last of `blocks`; `None` for what belongs to no such layer.
pub fn name_in_layer(name: &str, blocks: u32) -> Option<String> {
    let name = name.strip_prefix("model.").unwrap_or(name);
    if let Some((_, of_layer)) = BESIDE.iter().find(|(further, _)| *further == name) {
        return Some(format!("model.layers.{blocks}.{of_layer}"));
    }
    let (number, rest) = name.strip_prefix(LAYERS)?.split_once('.')?;
    let block = blocks.checked_add(number.parse().ok()?)?;
    Some(format!("model.layers.{block}.{rest}"))
}

/// What leads back to such names, where layers have the names of these tables and patterns, and `field`
/// counts them.
pub fn export(
    model: &Model,
    exported: Exported,
    tables: &[Table],
    patterns: &[&str],
    field: &str,
) -> Option<Exported> {
    let further = export::count(model, key::NEXTN_PREDICT_LAYERS).unwrap_or(0);
    let blocks = export::count(model, key::BLOCK_COUNT)?.checked_sub(further)?;
    let names = tables.iter().copied().flatten().map(|(name, _)| format!("{name}.weight"));
    let in_layers = names.chain(patterns.iter().map(|name| (*name).to_owned()));
    let in_layers: Vec<String> = in_layers
        .filter_map(|name| Some(format!("{LAYERS}{}", name.strip_prefix("model.layers.")?)))
        .collect();
    Some(
        exported
            .patterns(BESIDE.iter().map(|(name, _)| *name))
            .patterns(in_layers.iter().map(String::as_str))
            .without(&[key::BLOCK_COUNT])
            .set("num_hidden_layers", blocks)
            .set(field, further),
    )
}

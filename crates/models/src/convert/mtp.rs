//! Multi-token prediction (MTP) layers of checkpoints that name them `mtp`. They follow the other layers.

use std::borrow::Cow;

use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::export;
use crate::convert::export::Exported;
use crate::convert::tensor_names::Table;
use crate::schema::key;

/// Field with the number of MTP layers.
pub const COUNT: &str = "num_nextn_predict_layers";

/// Tensors that only MTP layers have, with the names of other checkpoints.
pub const NAMES: Table = &[
    ("model.layers.{}.eh_proj", "blk.{}.nextn.eh_proj"),
    ("model.layers.{}.enorm", "blk.{}.nextn.enorm"),
    ("model.layers.{}.hnorm", "blk.{}.nextn.hnorm"),
    ("model.layers.{}.embed_tokens", "blk.{}.nextn.embed_tokens"),
    ("model.layers.{}.shared_head.head", "blk.{}.nextn.shared_head_head"),
    ("model.layers.{}.shared_head.norm", "blk.{}.nextn.shared_head_norm"),
];

/// MTP tensors outside of layers, and their names in the first MTP layer.
const BESIDE: Table = &[
    ("mtp.fc.weight", "eh_proj.weight"),
    ("mtp.pre_fc_norm_embedding.weight", "enorm.weight"),
    ("mtp.pre_fc_norm_hidden.weight", "hnorm.weight"),
    ("mtp.norm.weight", "shared_head.norm.weight"),
];

const LAYERS: &str = "mtp.layers.";

/// Sets `field` to the number of MTP layers in the checkpoint. Configurations lack it, or count layers that the
/// checkpoint lacks.
pub fn survey(config: &mut Config, names: &mut dyn Iterator<Item = Cow<'_, str>>, field: &str) {
    let number = |name: Cow<'_, str>| {
        let name = name.strip_prefix("model.").unwrap_or(&name);
        name.strip_prefix(LAYERS)?.split('.').next()?.parse::<u32>().ok()
    };
    let count = names.filter_map(number).max().map_or(0, |last| last.saturating_add(1));
    config.set(field, count);
}

/// Returns the name of an MTP tensor in a layer behind the `blocks` others; `None` for other tensors.
pub fn name_in_layer(name: &str, blocks: u32) -> Option<String> {
    let name = name.strip_prefix("model.").unwrap_or(name);
    if let Some((_, of_layer)) = BESIDE.iter().find(|(further, _)| *further == name) {
        return Some(format!("model.layers.{blocks}.{of_layer}"));
    }
    let (number, rest) = name.strip_prefix(LAYERS)?.split_once('.')?;
    let block = blocks.checked_add(number.parse().ok()?)?;
    Some(format!("model.layers.{block}.{rest}"))
}

/// Adds the MTP names to an export, whose layers have the names of these tables and patterns. `field` counts the layers.
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

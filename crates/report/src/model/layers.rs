//! Strip of the layers: a bar for each, with the bytes of each tensor type.

use std::collections::BTreeMap;

use gguf::TensorType;
use gguf::units::bytes;
use gguf_store::Model;
use serde::Serialize;
use svg::Document;
use svg::node::element::{Rectangle, Title};

/// Most layers of a strip: far above real models, and a bound for malicious files.
const MAX_LAYERS: usize = 512;

/// The layers of a part of the model, such as the decoder.
#[derive(Serialize)]
pub struct Strip {
    /// Prefix of its tensor names; empty for the model itself.
    pub part: String,
    /// Numbers of the first and the last layer.
    pub first: u64,
    /// Number of the last layer.
    pub last: u64,
    /// Picture of the strip.
    pub picture: String,
}

/// Returns the strips of all parts that have at least two layers.
pub fn strips(model: &Model) -> Vec<Strip> {
    let mut parts: BTreeMap<&str, BTreeMap<u64, BTreeMap<TensorType, u64>>> = BTreeMap::new();
    for tensor in model.tensors() {
        let Some((part, layer)) = layer_of(&tensor.info.name) else { continue };
        let layers = parts.entry(part).or_default();
        if layers.len() >= MAX_LAYERS && !layers.contains_key(&layer) {
            continue;
        }
        let size = layers.entry(layer).or_default().entry(tensor.info.tensor_type).or_default();
        *size = size.saturating_add(tensor.info.byte_len().unwrap_or(0));
    }
    let several = parts.into_iter().filter(|(_, layers)| layers.len() > 1).take(8);
    several.filter_map(|(part, layers)| strip(part, &layers)).collect()
}

/// Splits `PART.blk.N.` from a tensor name.
pub(super) fn layer_of(name: &str) -> Option<(&str, u64)> {
    let (part, rest) = match name.strip_prefix("blk.") {
        Some(rest) => ("", rest),
        None => name.split_once(".blk.")?,
    };
    Some((part, rest.split('.').next()?.parse().ok()?))
}

fn strip(part: &str, layers: &BTreeMap<u64, BTreeMap<TensorType, u64>>) -> Option<Strip> {
    const WIDTH: f64 = 1100.0;
    const HEIGHT: f64 = 110.0;
    let total = |types: &BTreeMap<TensorType, u64>| types.values().sum::<u64>();
    let largest = layers.values().map(total).max().filter(|largest| *largest > 0)? as f64;
    let step = WIDTH / layers.len() as f64;
    let mut picture = Document::new()
        .set("viewBox", (0, 0, WIDTH, HEIGHT))
        .set("role", "img")
        .set("aria-label", format!("Sizes of {} layers by tensor type", layers.len()))
        .set("preserveAspectRatio", "none");
    for (i, (layer, types)) in layers.iter().enumerate() {
        let mut bottom = HEIGHT;
        for (tensor_type, size) in types {
            let height = *size as f64 / largest * HEIGHT;
            bottom -= height;
            let title = Title::new(format!("layer {layer}: {tensor_type} {}", bytes(*size)));
            let bar = Rectangle::new()
                .set("x", round(i as f64 * step))
                .set("y", round(bottom))
                .set("width", round((step - 2.0).max(step * 0.7)))
                .set("height", round(height))
                .set("class", colour(*tensor_type))
                .add(title);
            picture = picture.add(bar);
        }
    }
    let (first, last) = (*layers.keys().next()?, *layers.keys().next_back()?);
    Some(Strip { part: part.chars().take(40).collect(), first, last, picture: picture.to_string() })
}

fn round(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// Returns the CSS class of the color of a type: few bits per weight are warm, many are cool.
fn colour(tensor_type: TensorType) -> &'static str {
    let bits =
        tensor_type.block().map_or(32.0, |(weights, bytes)| bytes as f64 * 8.0 / weights as f64);
    match bits {
        bits if bits <= 2.2 => "b1",
        bits if bits <= 3.3 => "b2",
        bits if bits <= 3.9 => "b3",
        bits if bits <= 5.05 => "b4",
        bits if bits <= 6.2 => "b5",
        bits if bits <= 7.5 => "b6",
        bits if bits <= 9.5 => "b7",
        bits if bits <= 17.0 => "b8",
        _ => "b9",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_of_tensor_names() {
        assert_eq!(layer_of("blk.3.attn_q.weight"), Some(("", 3)));
        assert_eq!(layer_of("dec.blk.12.ffn_up.weight"), Some(("dec", 12)));
        assert_eq!(layer_of("token_embd.weight"), None);
        assert_eq!(layer_of("blk.x.y"), None);
    }
}

//! Granite 4 Vision: SigLIP, several of whose layers have projectors into layers of the text model.

use gguf::{Array, Error};
use serde_json::Value;

use super::configs::EncoderConfigs;
use super::encoder::{Encoder, EncoderMapping, Foreign, common};
use super::tensor_names::{CLIP, captured_whole};
use crate::convert::keys::Keys;
use crate::schema::key;

pub static GRANITE4_VISION: Encoder = Encoder {
    classes: &["Granite4VisionForConditionalGeneration"],
    keys,
    places: &[
        ("vision_tower.vision_model.", CLIP),
        ("vision_tower.", CLIP),
        ("image_newline", &[("", "v.image_newline")]),
    ],
    ignored: &["vision_model.head"],
    special,
    ..Encoder::VISION
};

/// Projector: its encoder layer, its text model layer, and its index among projectors of its kind.
struct Projector {
    from: i64,
    to: i64,
    kind: &'static str,
    place: u32,
}

/// Returns the projectors, in the order of the text model's layers.
fn projectors(parts: &EncoderConfigs) -> Result<Vec<Projector>, Error> {
    let encoder = i64::from(EncoderConfigs::layers(&parts.vision)?);
    let text = i64::from(EncoderConfigs::layers(&parts.text)?);
    let counted = |layer: i64, layers: i64| if layer < 0 { layers + layer } else { layer };
    const PAIRS: &str = "deepstack_layer_map";
    let stated = parts.model.find(&[PAIRS]).map(|(_, pairs)| pairs.clone()).unwrap_or_default();
    let pair = |pair: &Value| Some((pair.get(0)?.as_i64()?, pair.get(1)?.as_i64()?));
    let pairs = stated.as_array().map_or(&[][..], |pairs| pairs);
    let pairs: Option<Vec<_>> = pairs.iter().map(pair).collect();
    let mut pairs = pairs.ok_or_else(|| parts.model.wrong(PAIRS, &stated, "a list of pairs"))?;
    pairs.sort_unstable();
    let mut found: Vec<_> = (0..)
        .zip(pairs)
        .map(|(place, (from, to))| Projector {
            from: counted(from, encoder),
            to: counted(to, text),
            kind: "layerwise",
            place,
        })
        .collect();
    let spatial = parts.model.find(&["spatial_vision_layer"]).and_then(|(_, layer)| layer.as_i64());
    let from = counted(spatial.unwrap_or(-1), encoder);
    let layers = parts.model.u32s("spatial_target_layers")?.unwrap_or_default();
    found.extend((0..).zip(layers).map(|(place, to)| Projector {
        from,
        to: to.into(),
        kind: "spatial",
        place,
    }));
    found.sort_by_key(|projector| projector.to);
    Ok(found)
}

fn keys(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    let (model, vision) = (&parts.model, &parts.vision);
    common(parts, keys)?;
    keys.set(key::PROJECTOR_TYPE, "granite4_vision");
    let epsilon = vision.f32(&["layer_norm_eps"])?.unwrap_or(1e-6);
    keys.set(key::VISION_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    keys.set(key::USE_GELU, true);
    keys.set(key::VISION_PREPROC_IMAGE_SIZE, vision.u32(&["image_size"])?.unwrap_or(384));
    const RATE: &str = "downsample_rate";
    let rate = model.find(&[RATE]).map(|(_, rate)| rate.clone()).unwrap_or_default();
    let sides = rate.as_str().and_then(|rate| {
        let (query, window) = rate.split_once('/')?;
        Some((query.parse::<u32>().ok()?, window.parse::<u32>().ok()?))
    });
    let (query, window) =
        sides.ok_or_else(|| model.wrong(RATE, &rate, "two numbers with a slash"))?;
    keys.set(key::VISION_PROJECTOR_QUERY_SIDE, query);
    keys.set(key::VISION_PROJECTOR_WINDOW_SIDE, window);
    let projectors = projectors(parts)?;
    let layers: Vec<i32> = projectors.iter().map(|projector| projector.from as i32).collect();
    keys.set(key::VISION_FEATURE_LAYER, Array::from(&layers[..]));
    let offset = |projector: &Projector| match projector.kind {
        "spatial" => projector.place as i32,
        _ => -1,
    };
    let offsets: Vec<i32> = projectors.iter().map(offset).collect();
    keys.set(key::VISION_PROJECTOR_SPATIAL_OFFSETS, Array::from(&offsets[..]));
    const SIZES: &str = "image_grid_pinpoints";
    let stated = model.find(&[SIZES]).and_then(|(_, sizes)| sizes.as_array());
    let sides = stated.into_iter().flatten().filter_map(|size| {
        let side = |place| size.get(place)?.as_i64()?.try_into().ok();
        Some([side(1)?, side(0)?])
    });
    let sides: Vec<i32> = sides.flatten().collect();
    if !sides.is_empty() {
        keys.set(key::VISION_IMAGE_GRID_PINPOINTS, Array::from(&sides[..]));
    }
    Ok(())
}

fn special(parts: &EncoderConfigs, tensor: &Foreign) -> Result<Option<EncoderMapping>, Error> {
    const LAYER: &str = "encoder.layer.{}.";
    const NAMES: &[(&str, &str)] = &[
        ("image_positions", "img_pos"),
        ("query", "query"),
        ("norm", "norm"),
        ("out_linear", "linear"),
        ("qformer.layernorm", "post_norm"),
        ("attention.attention.query", "self_attn_q"),
        ("attention.attention.key", "self_attn_k"),
        ("attention.attention.value", "self_attn_v"),
        ("attention.output.dense", "self_attn_out"),
        ("attention.output.LayerNorm", "self_attn_norm"),
        ("crossattention.attention.query", "cross_attn_q"),
        ("crossattention.attention.key", "cross_attn_k"),
        ("crossattention.attention.value", "cross_attn_v"),
        ("crossattention.output.dense", "cross_attn_out"),
        ("crossattention.output.LayerNorm", "cross_attn_norm"),
        ("intermediate_query.dense", "ffn_up"),
        ("output_query.dense", "ffn_down"),
        ("output_query.LayerNorm", "ffn_norm"),
    ];
    let kinds = ["layerwise", "spatial"].into_iter();
    let mut found = kinds.filter_map(|kind| {
        let rest = tensor.name.strip_prefix(kind)?.strip_prefix("_projectors.")?;
        let (place, rest) = rest.split_once('.')?;
        Some((kind, place.parse::<u32>().ok()?, rest))
    });
    let Some((kind, place, rest)) = found.next() else { return Ok(None) };
    // Each has one layer.
    let rest = rest
        .strip_prefix("qformer.")
        .map_or(rest, |inner| inner.strip_prefix(&LAYER.replace("{}", "0")).unwrap_or(rest));
    let projectors = projectors(parts)?;
    let mut places = projectors.iter();
    let index = places.position(|one| one.kind == kind && one.place == place);
    Ok(index
        .zip(captured_whole(rest, NAMES))
        .map(|(index, ours)| EncoderMapping::one(format!("v.proj_blk.{index}.{ours}"), [])))
}

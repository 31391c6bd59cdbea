//! Whether a file that encodes images or sound goes with a model.

use gguf::{Finding, Metadata};
use gguf_models::schema::HyperParameters;

/// What is wrong with `sidecar` as a file that programs load beside `model`: an encoder with its projector,
/// of the architecture `clip`.
///
/// Of both only the metadata are looked at: what each is by itself is found by checking it.
pub fn check_sidecar(model: &Metadata, sidecar: &Metadata) -> Vec<Finding> {
    if sidecar.architecture() != Some("clip") {
        let stated = sidecar.architecture().unwrap_or("none");
        let finding =
            Finding::error("sidecar-kind", format!("has the architecture {stated}; expected clip"));
        return vec![finding.key("general.architecture")];
    }
    if model.architecture() == Some("clip") {
        let what = "is an mmproj file (architecture clip); expected a text model";
        return vec![Finding::error("sidecar-kind", what).key("general.architecture")];
    }
    let mut findings: Vec<_> = ["clip.vision.projection_dim", "clip.audio.projection_dim"]
        .into_iter()
        .filter_map(|key| wrong_width(model, sidecar, key))
        .collect();
    findings.extend(wrong_layers(model, sidecar));
    findings
}

/// What comes out of the projector stands where embeddings of tokens do.
fn wrong_width(model: &Metadata, sidecar: &Metadata, key: &'static str) -> Option<Finding> {
    let architecture = model.architecture()?;
    let wanted = HyperParameters::new(model, architecture).u64("embedding_length").ok()?;
    let width = sidecar.u64(key).filter(|width| *width != wanted)?;
    let what = format!("is {width}, but {architecture}.embedding_length of the model is {wanted}");
    Some(Finding::error("sidecar-width", what).key(key))
}

/// Some models take images into several layers, as many as the encoder has outputs for them.
fn wrong_layers(model: &Metadata, sidecar: &Metadata) -> Option<Finding> {
    const KEY: &str = "clip.vision.is_deepstack_layers";
    let architecture = model.architecture()?;
    let wanted = model.u64(&format!("{architecture}.n_deepstack_layers"))?;
    let flags = sidecar.get(KEY).and_then(|value| value.as_array());
    let made =
        flags.map_or(0, |flags| flags.iter().filter(|flag| flag.to_bool() == Some(true)).count());
    let what =
        format!("has {made} deepstack outputs, but {architecture}.n_deepstack_layers is {wanted}");
    (made as u64 != wanted).then(|| Finding::error("sidecar-layers", what).key(KEY))
}

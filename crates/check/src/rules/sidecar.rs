//! Rules on an mmproj file together with its model.

use gguf::{Finding, Metadata};
use gguf_models::schema::HyperParameters;

/// Checks that `sidecar` is an mmproj file (architecture `clip`) for `model`.
///
/// Compares only the metadata; [`check`](crate::check) examines each file separately.
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

/// Checks that the projector has the embedding size of the model.
fn wrong_width(model: &Metadata, sidecar: &Metadata, key: &'static str) -> Option<Finding> {
    let architecture = model.architecture()?;
    let expected = HyperParameters::new(model, architecture).u64("embedding_length").ok()?;
    let width = sidecar.u64(key).filter(|width| *width != expected)?;
    let what =
        format!("is {width}, but {architecture}.embedding_length of the model is {expected}");
    Some(Finding::error("sidecar-width", what).key(key))
}

/// Checks that the encoder has one DeepStack output per DeepStack layer of the model.
fn wrong_layers(model: &Metadata, sidecar: &Metadata) -> Option<Finding> {
    const KEY: &str = "clip.vision.is_deepstack_layers";
    let architecture = model.architecture()?;
    let expected = model.u64(&format!("{architecture}.n_deepstack_layers"))?;
    let flags = sidecar.get(KEY).and_then(|value| value.as_array());
    let outputs =
        flags.map_or(0, |flags| flags.iter().filter(|flag| flag.to_bool() == Some(true)).count());
    let what = format!(
        "has {outputs} DeepStack outputs, but {architecture}.n_deepstack_layers is {expected}"
    );
    (outputs as u64 != expected).then(|| Finding::error("sidecar-layers", what).key(KEY))
}

//! Whether encoders fit their models.

use gguf::{Array, Metadata, check_sidecar};

fn codes(model: &Metadata, sidecar: &Metadata) -> Vec<(&'static str, Option<String>)> {
    let findings = check_sidecar(model, sidecar);
    findings.into_iter().map(|one| (one.code, one.key.map(Into::into))).collect()
}

#[test]
fn widths_and_layers_are_compared() {
    let mut model = Metadata::new();
    model.set("general.architecture", "qwen3vl");
    model.set("qwen3vl.embedding_length", 64u32);
    model.set("qwen3vl.n_deepstack_layers", 1u32);
    let mut sidecar = Metadata::new();
    sidecar.set("general.architecture", "clip");
    sidecar.set("clip.vision.projection_dim", 64u32);
    sidecar.set("clip.vision.is_deepstack_layers", Array::from(&[false, true][..]));
    assert_eq!(codes(&model, &sidecar), []);
    sidecar.set("clip.audio.projection_dim", 32u32);
    model.set("qwen3vl.n_deepstack_layers", 3u32);
    let expected = [
        ("sidecar-width", Some("clip.audio.projection_dim".to_owned())),
        ("sidecar-layers", Some("clip.vision.is_deepstack_layers".to_owned())),
    ];
    assert_eq!(codes(&model, &sidecar), expected);
    let kind = [("sidecar-kind", Some("general.architecture".to_owned()))];
    assert_eq!(codes(&model, &model), kind);
    assert_eq!(codes(&sidecar, &sidecar), kind);
}

//! Whether encoders fit their models.

use gguf::{Array, Metadata, RawHeader, Severity, Shape, TensorInfo, TensorType};
use gguf_check::{check_raw_header, check_sidecar};

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

#[test]
fn tensors_that_no_encoder_has_are_found() {
    let mut header = RawHeader::default();
    header.metadata.set("general.architecture", "clip");
    header.metadata.set("general.type", "mmproj");
    for (i, name) in
        ["v.patch_embd.weight", "v.blk.0.attn_qq.weight", "v.blk.1.attn_qq.weight", "mm.0.bias"]
            .into_iter()
            .enumerate()
    {
        header.tensors.push(TensorInfo {
            name: name.into(),
            shape: Shape::new(&[8]).unwrap(),
            tensor_type: TensorType::F32,
            offset: i as u64 * 32,
            opaque_len: None,
        });
    }
    let findings = check_raw_header(&header);
    let unexpected: Vec<_> = findings.iter().filter(|one| one.severity != Severity::Note).collect();
    let [one] = unexpected[..] else { panic!("{unexpected:?}") };
    assert_eq!(
        (one.code, one.tensor.as_deref()),
        ("tensor-unexpected", Some("v.blk.0.attn_qq.weight"))
    );
    assert!(one.message.contains("`v.blk.1.attn_qq.weight`"), "{}", one.message);
}

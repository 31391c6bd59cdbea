//! Common parts of audio encoders, most of which derive from Whisper.

use gguf::{Error, Shape, TensorType};
use gguf_pipeline::{Content, Tensor};

use super::configs::EncoderConfigs;
use super::encoder::Foreign;
use super::tensor_names::layer_of;
use super::tensor_types::TypeOverride;
use crate::convert::keys::Keys;
use crate::schema::key;

/// Types of convolutions: F16 for all matrix types.
pub const CONVOLUTIONS: &[(&str, TypeOverride)] = &[
    ("a.conv1d.", TypeOverride::F16),
    ("a.conv2d.", TypeOverride::F16),
    ("a.conv_out.weight", TypeOverride::F16),
];

/// Renames Whisper's fields, unless the configuration has the usual ones.
pub fn whisper_fields(parts: &mut EncoderConfigs) {
    let audio = &mut parts.audio;
    if audio.find(&["hidden_size", "intermediate_size"]).is_some() {
        return;
    }
    for (field, stated) in [
        ("hidden_size", "d_model"),
        ("intermediate_size", "encoder_ffn_dim"),
        ("num_attention_heads", "encoder_attention_heads"),
    ] {
        if let Some(value) = audio.find(&[stated]).map(|(_, value)| value.clone()) {
            audio.set(field, value);
        }
    }
}

/// Writes the number of mel bins and the epsilon of the layer norms.
pub fn spectrogram(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    let bins = EncoderConfigs::number(&parts.audio, &["num_mel_bins"], "of the spectrogram")?;
    keys.set(key::AUDIO_NUM_MEL_BINS, bins);
    let epsilon = parts.audio.f32(&["layer_norm_eps"])?.unwrap_or(1e-5);
    keys.set(key::AUDIO_ATTENTION_LAYER_NORM_EPSILON, epsilon);
    Ok(())
}

/// Returns sinusoidal position embeddings for the 1500 frames of 30 seconds.
///
/// Computed in F64 and rounded once.
pub fn positions(parts: &EncoderConfigs) -> Result<Vec<Tensor>, Error> {
    const FRAMES: u32 = 1500;
    let width = EncoderConfigs::number(
        &parts.audio,
        &["hidden_size"],
        "the embedding size of the encoder",
    )?;
    let half = width / 2;
    if !(2..=1 << 16).contains(&half) {
        let expected = "an even number from 4 to 131072";
        return Err(parts.audio.wrong("hidden_size", &width.into(), expected));
    }
    let step = 10000f64.ln() / f64::from(half - 1);
    let mut values = Vec::with_capacity((FRAMES * width) as usize);
    for frame in 0..FRAMES {
        let angle = |channel: u32| f64::from(frame) * (-step * f64::from(channel)).exp();
        values.extend((0..half).map(|channel| angle(channel).sin() as f32));
        values.extend((0..half).map(|channel| angle(channel).cos() as f32));
    }
    let shape = Shape::new(&[u64::from(half) * 2, u64::from(FRAMES)])
        .unwrap_or_else(|| unreachable!("two dimensions are no more than four"));
    Ok(vec![Tensor {
        name: "a.position_embd.weight".to_owned(),
        shape,
        stored_type: TensorType::F32,
        content: Content::Values(values),
    }])
}

/// Layer, scale and shift of a folded batch norm.
pub type Folded = (Option<u32>, Vec<f32>, Vec<f32>);

/// Folds a batch norm into scale and shift. Of the tensors under `pattern`, the weight returns both, and the others return
/// empty vectors. `None` if the tensor does not belong to such a norm.
pub fn folded_norm(tensor: &Foreign, pattern: &str) -> Result<Option<Folded>, Error> {
    const EPSILON: f32 = 1e-5;
    let Some((layer, end)) = layer_of(tensor.name, pattern) else { return Ok(None) };
    if end != "weight" {
        return Ok(Some((None, Vec::new(), Vec::new())));
    }
    let stem = tensor.name.trim_end_matches("weight");
    let vector = |end: &str| tensor.vector(&format!("{stem}{end}"));
    let (weight, bias) = (vector("weight")?, vector("bias")?);
    let (mean, variance) = (vector("running_mean")?, vector("running_var")?);
    let scale: Vec<f32> =
        weight.iter().zip(&variance).map(|(weight, var)| weight / (var + EPSILON).sqrt()).collect();
    let shift = bias.iter().zip(&mean).zip(&scale).map(|((bias, mean), scale)| bias - mean * scale);
    let shift = shift.collect();
    Ok(Some((Some(layer), scale, shift)))
}

//! Table of an encoder, with functions for its differences.

use std::collections::BTreeMap;

use gguf::{Array, Error, Metadata, Shape, TensorType};
use gguf_checkpoint::{Checkpoint, Entry};
use gguf_pipeline::{Step, Tensor};

use super::configs::{EncoderConfigs, LAYERS};
use super::tensor_names::{PrefixedTables, renamed};
use super::tensor_types::{TypeOverride, float_type};
use crate::convert::keys::Keys;
use crate::convert::{MappedTensor, Mapping, assembly};
use crate::schema::key;

/// Function that returns the steps for a tensor, from its GGUF name and stored shape.
type Change = fn(&EncoderConfigs, &str, &[u64]) -> Result<Vec<Step>, Error>;

/// Description of an encoder.
pub struct Encoder {
    /// Class names in `architectures` of the model, or of its `vision_config`.
    pub classes: &'static [&'static str],
    /// Path of the vision configuration; empty without a vision encoder.
    pub vision: &'static [&'static str],
    /// Path of the audio configuration; empty without an audio encoder.
    pub audio: &'static [&'static str],
    /// Folder of the checkpoint with additional weights, which come first in the file. Their names start with the folder
    /// and a slash.
    pub folder: Option<&'static str>,
    /// Returns the tensors of that folder in order; an empty list stands for all of them, sorted by name.
    pub(crate) wanted: fn(&EncoderConfigs) -> Result<Vec<String>, Error>,
    /// Sets fields that a configuration may lack or name differently.
    pub(crate) complete: fn(&mut EncoderConfigs) -> Result<(), Error>,
    /// Sets fields that only the tensors of the checkpoint determine.
    pub(crate) survey: fn(&mut EncoderConfigs, &Checkpoint) -> Result<(), Error>,
    /// Writes the hyper-parameters.
    pub(crate) keys: fn(&EncoderConfigs, &mut Keys) -> Result<(), Error>,
    /// Prefixes of the encoder's tensor names, without `model.`, each with a table of the names behind it and their GGUF
    /// names. Tensors with other names belong to the text model.
    pub(crate) places: PrefixedTables,
    /// EncoderConfigs of names, without `model.`, of tensors that no runtime needs.
    pub(crate) ignored: &'static [&'static str],
    /// Maps a tensor that the tables do not cover. It is called before them.
    pub(crate) special: fn(&EncoderConfigs, &Foreign) -> Result<Option<EncoderMapping>, Error>,
    /// Returns the steps for a tensor that the tables map, from its GGUF name and stored shape.
    pub(crate) steps: Change,
    /// EncoderConfigs of GGUF tensor names, and the types of these tensors instead of the matrix type.
    pub(crate) kept: &'static [(&'static str, TypeOverride)],
    /// Returns tensors that no checkpoint file holds.
    pub(crate) computed: fn(&EncoderConfigs) -> Result<Vec<Tensor>, Error>,
}

/// A tensor of the checkpoint.
pub struct Foreign<'a> {
    /// Name without `model.`
    pub name: &'a str,
    /// Shape, fastest dimension first.
    pub shape: &'a [u64],
    /// Checkpoint with the other tensors.
    pub checkpoint: &'a Checkpoint,
}

impl Foreign<'_> {
    /// Returns an error about the tensor.
    pub fn misfit(&self, what: &str) -> Error {
        assembly::misfit(&self.checkpoint.path(), format!("tensor `{}` {what}", self.name))
    }

    /// Returns the elements of a vector of the checkpoint, by its name without `model.`
    pub fn vector(&self, name: &str) -> Result<Vec<f32>, Error> {
        let bare =
            |entry: &&Entry| entry.name.strip_prefix("model.").unwrap_or(&entry.name) == name;
        let entry = self.checkpoint.entries.iter().find(bare).ok_or_else(|| {
            let what = format!("has no tensor `{name}`, which `{}` requires", self.name);
            assembly::misfit(&self.checkpoint.path(), what)
        })?;
        assembly::elements(self.checkpoint, entry)
    }
}

/// The tensors of an `mmproj` file that a checkpoint tensor maps to.
pub enum EncoderMapping {
    /// As with text models.
    Mapped(Mapping),
    /// A tensor of concatenated parts of it.
    Concatenated(String, Vec<Vec<Step>>),
    /// Vectors that are computed from it and other tensors.
    Vectors(Vec<(String, Vec<f32>)>),
    /// A tensor of this shape that is computed from it.
    Tensor(String, Shape, Vec<f32>),
}

impl EncoderMapping {
    /// Maps to one tensor, after these steps.
    pub fn one(name: impl Into<String>, steps: impl Into<Vec<Step>>) -> Self {
        Self::Mapped(Mapping::one(name, steps))
    }

    /// Maps to several tensors, each after its steps.
    pub fn several(made: impl IntoIterator<Item = (String, Vec<Step>)>) -> Self {
        let made = made.into_iter().map(|(name, steps)| MappedTensor { name, steps, slot: None });
        Self::Mapped(Mapping::Tensors(made.collect()))
    }

    /// Maps to no tensor.
    pub const DROPPED: Self = Self::Mapped(Mapping::Dropped);
}

impl Encoder {
    /// A vision encoder whose configuration is `vision_config`, and whose tensors have no steps.
    pub const VISION: Self = Self {
        classes: &[],
        vision: &["vision_config"],
        audio: &[],
        folder: None,
        wanted: |_| Ok(Vec::new()),
        complete: |_| Ok(()),
        survey: |_, _| Ok(()),
        keys: common,
        places: &[],
        ignored: &[],
        special: |_, _| Ok(None),
        steps: |_, _, _| Ok(Vec::new()),
        kept: &[],
        computed: |_| Ok(Vec::new()),
    };

    /// An audio encoder whose configuration is `audio_config`.
    pub const AUDIO: Self = Self { vision: &[], audio: &["audio_config"], ..Self::VISION };

    /// Writes the hyper-parameters, with `file_type` as `general.file_type` among them.
    pub fn metadata(
        &self,
        parts: &EncoderConfigs,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let mut keys = Keys::new("clip", file_type, metadata);
        (self.keys)(parts, &mut keys)?;
        keys.finish(&parts.model)
    }

    /// Returns the tensors of a checkpoint in the order of the conversion.
    ///
    /// # Errors
    /// If a tensor of the folder is missing.
    pub fn entries<'c>(
        &self,
        parts: &EncoderConfigs,
        checkpoint: &'c Checkpoint,
    ) -> Result<Vec<&'c Entry>, Error> {
        let wanted = (self.wanted)(parts)?;
        let (Some(folder), false) = (self.folder, wanted.is_empty()) else {
            return Ok(checkpoint.entries.iter().collect());
        };
        let is_of_folder = |entry: &&Entry| {
            entry.name.strip_prefix(folder).is_some_and(|name| name.starts_with('/'))
        };
        let (of_folder, others): (Vec<_>, Vec<_>) =
            checkpoint.entries.iter().partition(is_of_folder);
        let by_name: BTreeMap<&str, &Entry> =
            of_folder.into_iter().map(|entry| (&*entry.name, entry)).collect();
        let find = |name: &String| {
            by_name.get(&**name).copied().ok_or_else(|| {
                let what =
                    format!("has no tensor `{name}`, which the class {} requires", self.classes[0]);
                let dir = parts.model.path().with_file_name(folder);
                assembly::misfit(&dir, what)
            })
        };
        let wanted = wanted.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        Ok(wanted.into_iter().chain(others).collect())
    }

    /// Maps a tensor of the checkpoint.
    pub fn mapping(
        &self,
        parts: &EncoderConfigs,
        checkpoint: &Checkpoint,
        name: &str,
        shape: &[u64],
    ) -> Result<EncoderMapping, Error> {
        let name = name.strip_prefix("thinker.").unwrap_or(name);
        let name = name.strip_prefix("model.").unwrap_or(name);
        let is_of_text = !self.places.iter().any(|(prefix, _)| name.starts_with(prefix));
        if self.ignored.iter().any(|part| name.contains(part)) {
            return Ok(EncoderMapping::DROPPED);
        }
        if let Some(made) = (self.special)(parts, &Foreign { name, shape, checkpoint })? {
            return Ok(made);
        }
        if is_of_text {
            return Ok(EncoderMapping::DROPPED);
        }
        Ok(EncoderMapping::Mapped(match renamed(name, self.places) {
            Some(ours) => {
                let steps = (self.steps)(parts, &ours, shape)?;
                Mapping::one(ours, steps)
            }
            None => Mapping::Unknown,
        }))
    }

    /// Returns the type of a tensor where matrices have the type `matrices`.
    pub fn float_type(&self, name: &str, shape: &Shape, matrices: TensorType) -> TensorType {
        float_type(name, shape, matrices, self.kept)
    }

    /// Returns tensors that no checkpoint file holds.
    pub fn computed(&self, parts: &EncoderConfigs) -> Result<Vec<Tensor>, Error> {
        (self.computed)(parts)
    }
}

/// Writes the keys of all encoders, in the order of llama.cpp's converter.
pub fn common(parts: &EncoderConfigs, keys: &mut Keys) -> Result<(), Error> {
    const WIDTH: &str = "the embedding size of the encoder";
    const FEED_FORWARD: &str = "the FFN size of the encoder";
    const HEADS: &str = "the number of attention heads";
    keys.file_type();
    if parts.has_vision {
        let vision = &parts.vision;
        let number = |names: &[&str], meaning| EncoderConfigs::number(vision, names, meaning);
        keys.set(key::HAS_VISION_ENCODER, true);
        keys.set(key::VISION_PROJECTION_DIM, parts.text_width()?);
        keys.set(
            key::VISION_IMAGE_SIZE,
            number(&["image_size"], "the side of an image in pixels")?,
        );
        keys.set(key::VISION_PATCH_SIZE, number(&["patch_size"], "the side of a patch in pixels")?);
        let width = number(&["hidden_size", "width", "vt_hidden_size"], WIDTH)?;
        keys.set(key::VISION_EMBEDDING_LENGTH, width);
        let wide = number(&["intermediate_size", "vt_intermediate_size"], FEED_FORWARD)?;
        keys.set(key::VISION_FEED_FORWARD_LENGTH, wide);
        keys.set(key::VISION_BLOCK_COUNT, EncoderConfigs::layers(vision)?);
        let heads = &["num_attention_heads", "num_heads", "heads", "vt_num_attention_heads"];
        keys.set(key::VISION_ATTENTION_HEAD_COUNT, number(heads, HEADS)?);
        for (key, field) in [("vision.image_mean", "image_mean"), ("vision.image_std", "image_std")]
        {
            let values = parts.image.f32s(field)?;
            let values = values.ok_or_else(|| parts.image.missing(field, "of each colour"))?;
            keys.set(key, Array::from(&values[..]));
        }
    }
    if parts.has_audio {
        let audio = &parts.audio;
        let number = |names: &[&str], meaning| EncoderConfigs::number(audio, names, meaning);
        keys.set(key::HAS_AUDIO_ENCODER, true);
        keys.set(key::AUDIO_PROJECTION_DIM, parts.text_width()?);
        keys.set(key::AUDIO_EMBEDDING_LENGTH, number(&["hidden_size"], WIDTH)?);
        keys.set(key::AUDIO_FEED_FORWARD_LENGTH, number(&["intermediate_size"], FEED_FORWARD)?);
        keys.set(key::AUDIO_BLOCK_COUNT, number(LAYERS, "the number of layers of the encoder")?);
        keys.set(key::AUDIO_ATTENTION_HEAD_COUNT, number(&["num_attention_heads"], HEADS)?);
    }
    Ok(())
}

/// Returns the steps that reshape a tensor.
pub fn reshaped(from: &[u64], to: &[u64]) -> Vec<Step> {
    match (Shape::new(from), Shape::new(to)) {
        (Some(from), Some(to)) => vec![Step::Reshape { from, to }],
        // Tensors with too many dimensions have already failed.
        _ => Vec::new(),
    }
}

/// Splits the rows of a fused tensor into equal parts with these names.
pub fn divided<const N: usize>(names: [String; N], shape: &[u64]) -> EncoderMapping {
    let rows = if shape.len() > 1 { shape[1] } else { shape.first().copied().unwrap_or(0) };
    let len = rows / N as u64;
    EncoderMapping::several(
        names
            .into_iter()
            .zip(0..)
            .map(|(name, part)| (name, vec![Step::Pick { groups: 1, start: part * len, len }])),
    )
}

/// Splits a 3D convolution over two frames into one 2D convolution per frame: `v.patch_embd.weight` and
/// `v.patch_embd.weight.1`. The five dimensions are width, height, time, channels, outputs.
pub fn frames(shape: &[u64]) -> Option<EncoderMapping> {
    let [width, height, frames @ 2, colours, outputs] = *shape else { return None };
    let of_frame = |frame| {
        let groups = colours * outputs;
        let mut steps = vec![Step::Pick { groups, start: frame, len: 1 }];
        steps.extend(reshaped(
            &[width * height, 1, colours, outputs],
            &[width, height, colours, outputs],
        ));
        steps
    };
    let name = |frame| match frame {
        0 => "v.patch_embd.weight".to_owned(),
        frame => format!("v.patch_embd.weight.{frame}"),
    };
    Some(EncoderMapping::several((0..frames).map(|frame| (name(frame), of_frame(frame)))))
}

/// Returns the steps that turn a channel-last patch embedding, with rows of `side * side * channels`, into a channel-first
/// convolution with four dimensions.
pub fn patches(shape: &[u64], colours: u64) -> Vec<Step> {
    let (columns, rows) = (shape.first().copied().unwrap_or(0), shape.get(1).copied().unwrap_or(0));
    let pixels = columns / colours.max(1);
    let side = pixels.isqrt();
    let mut steps = reshaped(shape, &[colours, pixels, rows]);
    steps.push(Step::Transpose);
    steps.extend(reshaped(&[pixels, colours, rows], &[side, side, colours, rows]));
    steps
}

//! What an encoder is: a table with functions for what differs.

use std::collections::BTreeMap;

use gguf::{Array, Error, Metadata, Shape, TensorType};
use gguf_checkpoint::{Checkpoint, Entry};
use gguf_pipeline::{Step, Tensor};

use super::parts::{LAYERS, Parts};
use super::tensor_names::{Places, renamed};
use super::tensor_types::{Kept, float_type};
use crate::convert::assembly::{self, CONFIG_OF_ANOTHER};
use crate::convert::hparams::Keys;
use crate::convert::{MappedTensor, Mapping};
use crate::schema::key;

/// What is done to a tensor, by our name and the shape that it is stored in.
type Change = fn(&Parts, &str, &[u64]) -> Result<Vec<Step>, Error>;

/// What an encoder is: data, and functions for what differs from most.
pub struct Encoder {
    /// The class names in `architectures` of the model, or of its `vision_config`.
    pub classes: &'static [&'static str],
    /// Where in the configuration that of images stands; empty if it sees none.
    pub vision: &'static [&'static str],
    /// Where that of sound stands; empty if it hears none.
    pub audio: &'static [&'static str],
    /// A folder of the checkpoint with further weights, which stand in front of the others in a file: their
    /// names begin with it and a slash.
    pub folder: Option<&'static str>,
    /// The tensors of that folder in the order in which they are taken; all, by name, if this is empty.
    pub(crate) wanted: fn(&Parts) -> Result<Vec<String>, Error>,
    /// Sets fields that a configuration may leave out, or calls otherwise.
    pub(crate) complete: fn(&mut Parts) -> Result<(), Error>,
    /// Sets fields that only the tensors of the checkpoint tell.
    pub(crate) survey: fn(&mut Parts, &Checkpoint) -> Result<(), Error>,
    /// The hyper-parameters.
    pub(crate) keys: fn(&Parts, &mut Keys) -> Result<(), Error>,
    /// What foreign tensor names of the encoder begin with, without `model.`, and names behind that with
    /// ours. Tensors of other names are those of the text model.
    pub(crate) places: Places,
    /// Parts of names of tensors, without `model.`, that no program needs.
    pub(crate) ignored: &'static [&'static str],
    /// What becomes of a tensor if `places` do not tell; asked before them.
    pub(crate) special: fn(&Parts, &Foreign) -> Result<Option<Made>, Error>,
    /// What is done to a tensor that `places` have, by our name and the shape that it is stored in.
    pub(crate) steps: Change,
    /// Parts of our names of tensors, and which type these have instead of that of matrices.
    pub(crate) kept: &'static [(&'static str, Kept)],
    /// Tensors that no file holds.
    pub(crate) computed: fn(&Parts) -> Result<Vec<Tensor>, Error>,
}

/// A tensor of the checkpoint.
pub struct Foreign<'a> {
    /// Its name without `model.`
    pub name: &'a str,
    /// Its shape, fastest dimension first.
    pub shape: &'a [u64],
    /// Where other tensors are.
    pub checkpoint: &'a Checkpoint,
}

impl Foreign<'_> {
    /// That the tensor is not as it must be.
    pub fn misfit(&self, what: &str) -> Error {
        let path = self.checkpoint.files.first().map(|file| file.path.clone()).unwrap_or_default();
        let what = format!("tensor `{}` {what}", self.name);
        Error::input("checkpoint-misfit", &path, what, CONFIG_OF_ANOTHER)
    }

    /// The elements of a vector of the checkpoint, by its name without `model.`
    pub fn vector(&self, name: &str) -> Result<Vec<f32>, Error> {
        let bare =
            |entry: &&Entry| entry.name.strip_prefix("model.").unwrap_or(&entry.name) == name;
        let path =
            || self.checkpoint.files.first().map(|file| file.path.clone()).unwrap_or_default();
        let entry = self.checkpoint.entries.iter().find(bare).ok_or_else(|| {
            let what = format!("has no tensor `{name}`, which belongs to `{}`", self.name);
            Error::input("checkpoint-misfit", &path(), what, CONFIG_OF_ANOTHER)
        })?;
        assembly::elements(self.checkpoint, entry)
    }
}

/// What becomes of a tensor of the checkpoint.
pub enum Made {
    /// As with text models.
    Mapped(Mapping),
    /// One tensor of parts of it, one after the other.
    Rejoined(String, Vec<Vec<Step>>),
    /// Vectors that are computed of it and others.
    Computed(Vec<(String, Vec<f32>)>),
    /// One tensor of this shape that is computed of it.
    Whole(String, Shape, Vec<f32>),
}

impl Made {
    /// One tensor, after these steps.
    pub fn one(name: impl Into<String>, steps: impl Into<Vec<Step>>) -> Self {
        Self::Mapped(Mapping::one(name, steps))
    }

    /// Several tensors, each after its steps.
    pub fn several(made: impl IntoIterator<Item = (String, Vec<Step>)>) -> Self {
        let made = made.into_iter().map(|(name, steps)| MappedTensor { name, steps, slot: None });
        Self::Mapped(Mapping::Made(made.collect()))
    }

    /// Nothing.
    pub const DROPPED: Self = Self::Mapped(Mapping::Dropped);
}

impl Encoder {
    /// An encoder of images whose configuration is `vision_config`, and whose tensors are as they are stored.
    pub const DEFAULT: Self = Self {
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

    /// One of sound whose configuration is `audio_config`.
    pub const OF_SOUND: Self = Self { vision: &[], audio: &["audio_config"], ..Self::DEFAULT };

    /// The hyper-parameters; `file_type` is the number of the mix, which stands among them.
    pub fn metadata(
        &self,
        parts: &Parts,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let mut keys = Keys::new("clip", file_type, metadata);
        (self.keys)(parts, &mut keys)?;
        keys.finish(&parts.model)
    }

    /// The tensors of a checkpoint in the order in which they are taken.
    ///
    /// # Errors
    /// If one of those of the folder is missing.
    pub fn entries<'c>(
        &self,
        parts: &Parts,
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
                    format!("has no tensor `{name}`, which the class {} needs", self.classes[0]);
                let dir = parts.model.path().with_file_name(folder);
                Error::input("checkpoint-misfit", &dir, what, CONFIG_OF_ANOTHER)
            })
        };
        let wanted = wanted.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        Ok(wanted.into_iter().chain(others).collect())
    }

    /// What becomes of a tensor of the checkpoint.
    pub fn made(
        &self,
        parts: &Parts,
        checkpoint: &Checkpoint,
        name: &str,
        shape: &[u64],
    ) -> Result<Made, Error> {
        let name = name.strip_prefix("thinker.").unwrap_or(name);
        let name = name.strip_prefix("model.").unwrap_or(name);
        let is_of_text = !self.places.iter().any(|(prefix, _)| name.starts_with(prefix));
        if self.ignored.iter().any(|part| name.contains(part)) {
            return Ok(Made::DROPPED);
        }
        if let Some(made) = (self.special)(parts, &Foreign { name, shape, checkpoint })? {
            return Ok(made);
        }
        if is_of_text {
            return Ok(Made::DROPPED);
        }
        Ok(Made::Mapped(match renamed(name, self.places) {
            Some(ours) => {
                let steps = (self.steps)(parts, &ours, shape)?;
                Mapping::one(ours, steps)
            }
            None => Mapping::Unknown,
        }))
    }

    /// The type of a tensor where matrices have type `matrices`.
    pub fn float_type(&self, name: &str, shape: &Shape, matrices: TensorType) -> TensorType {
        float_type(name, shape, matrices, self.kept)
    }

    /// Tensors that no file holds.
    pub fn computed(&self, parts: &Parts) -> Result<Vec<Tensor>, Error> {
        (self.computed)(parts)
    }
}

/// What all files state, in the order of llama.cpp's converter.
pub fn common(parts: &Parts, keys: &mut Keys) -> Result<(), Error> {
    const WIDTH: &str = "the width of the encoder";
    const FEED_FORWARD: &str = "the width of the feed-forward layers";
    const HEADS: &str = "the number of attention heads";
    keys.file_type();
    if parts.sees {
        let vision = &parts.vision;
        let number = |names: &[&str], meaning| Parts::number(vision, names, meaning);
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
        keys.set(key::VISION_BLOCK_COUNT, Parts::layers(vision)?);
        let heads = &["num_attention_heads", "num_heads", "heads", "vt_num_attention_heads"];
        keys.set(key::VISION_ATTENTION_HEAD_COUNT, number(heads, HEADS)?);
        for (key, field) in [("vision.image_mean", "image_mean"), ("vision.image_std", "image_std")]
        {
            let values = parts.image.f32s(field)?;
            let values = values.ok_or_else(|| parts.image.missing(field, "of each colour"))?;
            keys.set(key, Array::from(&values[..]));
        }
    }
    if parts.hears {
        let audio = &parts.audio;
        let number = |names: &[&str], meaning| Parts::number(audio, names, meaning);
        keys.set(key::HAS_AUDIO_ENCODER, true);
        keys.set(key::AUDIO_PROJECTION_DIM, parts.text_width()?);
        keys.set(key::AUDIO_EMBEDDING_LENGTH, number(&["hidden_size"], WIDTH)?);
        keys.set(key::AUDIO_FEED_FORWARD_LENGTH, number(&["intermediate_size"], FEED_FORWARD)?);
        keys.set(key::AUDIO_BLOCK_COUNT, number(LAYERS, "the number of layers of the encoder")?);
        keys.set(key::AUDIO_ATTENTION_HEAD_COUNT, number(&["num_attention_heads"], HEADS)?);
    }
    Ok(())
}

/// The same elements in another shape.
pub fn reshaped(from: &[u64], to: &[u64]) -> Vec<Step> {
    match (Shape::new(from), Shape::new(to)) {
        (Some(from), Some(to)) => vec![Step::Reshape { from, to }],
        // What has more dimensions than any tensor is refused before it comes to this.
        _ => Vec::new(),
    }
}

/// The parts of `count` that rows of a tensor are divided into, each under its name.
pub fn divided<const N: usize>(names: [String; N], shape: &[u64]) -> Made {
    let rows = if shape.len() > 1 { shape[1] } else { shape.first().copied().unwrap_or(0) };
    let len = rows / N as u64;
    Made::several(
        names
            .into_iter()
            .zip(0..)
            .map(|(name, part)| (name, vec![Step::Pick { groups: 1, start: part * len, len }])),
    )
}

/// A convolution over two images one after the other, as one over each: `v.patch_embd.weight` and
/// `v.patch_embd.weight.1`. The shape is that of five dimensions: width, height, time, colours, outputs.
pub fn frames(shape: &[u64]) -> Option<Made> {
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
    Some(Made::several((0..frames).map(|frame| (name(frame), of_frame(frame)))))
}

/// Patches that are stored colour by colour of each pixel become images of each colour: from rows of
/// `side * side * colours` to four dimensions.
pub fn patches(shape: &[u64], colours: u64) -> Vec<Step> {
    let (columns, rows) = (shape.first().copied().unwrap_or(0), shape.get(1).copied().unwrap_or(0));
    let pixels = columns / colours.max(1);
    let side = pixels.isqrt();
    let mut steps = reshaped(shape, &[colours, pixels, rows]);
    steps.push(Step::Transpose);
    steps.extend(reshaped(&[pixels, colours, rows], &[side, side, colours, rows]));
    steps
}

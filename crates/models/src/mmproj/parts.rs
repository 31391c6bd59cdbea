//! The configuration of a model that sees or hears, taken apart.

use gguf::Error;
use gguf_checkpoint::Checkpoint;
use gguf_checkpoint::config::Config;
use serde_json::{Map, Value};

use super::Encoder;
use crate::convert::hparams::Keys;
use crate::schema::key;

/// The configurations that say what an encoder is.
pub struct Parts {
    /// All of `config.json`, as it stands there.
    pub model: Config,
    /// That of the text model, with the fields of the whole.
    pub text: Config,
    /// That of the encoder of images; empty if there is none.
    pub vision: Config,
    /// That of the encoder of sound; empty if there is none.
    pub audio: Config,
    /// How images are prepared: `preprocessor_config.json` and `processor_config.json`.
    pub image: Config,
    /// Whether the file encodes images.
    pub sees: bool,
    /// Whether the file encodes sound.
    pub hears: bool,
}

impl Parts {
    /// Takes the configuration of a model apart, of which `encoder` knows where things stand.
    ///
    /// # Errors
    /// If a file beside it is no JSON, or if the configuration has no part for the encoder.
    pub fn read(model: Config, encoder: &Encoder, checkpoint: &Checkpoint) -> Result<Self, Error> {
        let part =
            |path: &[&str]| path.iter().fold(model.clone(), |config, name| config.part(name));
        let mut parts = Self {
            text: model.text(),
            vision: part(encoder.vision),
            audio: part(encoder.audio),
            image: model.sibling("preprocessor_config.json", preparation(&model)?),
            sees: !encoder.vision.is_empty(),
            hears: !encoder.audio.is_empty(),
            model,
        };
        parts.require(&parts.vision, encoder.vision, parts.sees)?;
        (encoder.complete)(&mut parts)?;
        parts.require(&parts.audio, encoder.audio, parts.hears)?;
        (encoder.survey)(&mut parts, checkpoint)?;
        Ok(parts)
    }

    /// That the configuration of an encoder, which stands under these names, is there.
    fn require(&self, config: &Config, path: &[&str], is_wanted: bool) -> Result<(), Error> {
        match is_wanted && config.json().as_object().is_none_or(Map::is_empty) {
            true => Err(self.model.missing(&path.join("."), "the configuration of the encoder")),
            false => Ok(()),
        }
    }

    /// The configuration in a folder beside that of the model.
    pub fn of_folder(&self, folder: &str) -> Result<Config, Error> {
        let name = format!("{folder}/config.json");
        match self.model.file(&name)? {
            Some(Value::Object(fields)) => Ok(self.model.sibling(&name, fields)),
            _ => {
                let dir = self.model.path().with_file_name(folder);
                let what = "holds no `config.json` of a part of the model";
                let help = "fetch all folders of the model's repository";
                Err(Error::input("config-missing", &dir, what, help))
            }
        }
    }

    /// A number that must be there, and may be 0.
    pub fn number(config: &Config, names: &[&str], meaning: &str) -> Result<u32, Error> {
        config.u32(names)?.ok_or_else(|| config.missing(names[0], meaning))
    }

    /// How many layers an encoder has.
    pub fn layers(config: &Config) -> Result<u32, Error> {
        Self::number(config, LAYERS, "the number of layers of the encoder")
    }

    /// How many pixels an image has at least and at most.
    pub fn pixels(&self, keys: &mut Keys, least: &str, most: &str) -> Result<(), Error> {
        for (key, field) in [("vision.image_min_pixels", least), ("vision.image_max_pixels", most)]
        {
            keys.set(key, Self::number(&self.image, &[field], "the pixels of an image")?);
        }
        Ok(())
    }

    /// How many patches a side are pooled into one so that an image becomes as many tokens as its
    /// preparation says; `None` where that is 4, which programs take, or cannot be.
    pub fn pooled(&self) -> Result<Option<u32>, Error> {
        let side = |field| Self::number(&self.vision, &[field], "of an image, in pixels");
        let tokens = self.image.u32(&["image_seq_length"])?.unwrap_or(256);
        let patches = side("image_size")?.checked_div(side("patch_size")?).unwrap_or(0);
        Ok(patches.checked_div(tokens.isqrt()).filter(|factor| ![0, 4].contains(factor)))
    }

    /// Which activation function the encoder of images has: `hidden_act`.
    pub fn activation(&self, keys: &mut Keys) -> Result<(), Error> {
        match self.vision.find(&["hidden_act"]).and_then(|(_, name)| name.as_str()) {
            Some("gelu") => keys.set(key::USE_GELU, true),
            Some("silu") => keys.set(key::USE_SILU, true),
            other => {
                let stated = other.map_or(Value::Null, Value::from);
                return Err(self.vision.wrong("hidden_act", &stated, "gelu or silu"));
            }
        }
        Ok(())
    }

    /// How wide the text model is, which the projector leads to.
    pub fn text_width(&self) -> Result<u32, Error> {
        self.text.require_u32(&["hidden_size", "n_embd"], "the width of the text model")
    }
}

/// Mean and deviation of the colours of CLIP's images, which other encoders have taken over.
pub const CLIP_MEAN: [f64; 3] = [0.48145466, 0.4578275, 0.40821073];
pub const CLIP_DEVIATION: [f64; 3] = [0.26862954, 0.26130258, 0.27577711];

/// Names of the number of layers.
pub const LAYERS: &[&str] = &[
    "n_layers",
    "num_hidden_layers",
    "n_layer",
    "num_layers",
    "depth",
    "layers",
    "encoder_layers",
    "vt_num_hidden_layers",
];

/// How images are prepared, of both files; what is nested for images counts as if it stood at the top.
fn preparation(model: &Config) -> Result<Map<String, Value>, Error> {
    const FILES: [(&str, &str); 2] = [
        ("preprocessor_config.json", "media_proc_cfg"),
        ("processor_config.json", "image_processor"),
    ];
    let mut fields = Map::new();
    for (file, nested) in FILES {
        if let Some(Value::Object(mut stated)) = model.file(file)? {
            if let Some(Value::Object(inner)) = stated.get(nested).cloned() {
                stated.extend(inner);
            }
            fields.extend(stated);
        }
    }
    Ok(fields)
}

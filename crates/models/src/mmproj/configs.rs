//! Configurations of a multimodal model.

use gguf::Error;
use gguf_checkpoint::Checkpoint;
use gguf_checkpoint::config::Config;
use serde_json::{Map, Value};

use super::Encoder;
use crate::convert::keys::Keys;
use crate::schema::key;

/// The configurations that say what an encoder is.
pub struct EncoderConfigs {
    /// All of `config.json`, as it stands there.
    pub model: Config,
    /// Configuration of the text model, with the fields of the whole.
    pub text: Config,
    /// Configuration of the vision encoder; empty if there is none.
    pub vision: Config,
    /// Configuration of the audio encoder; empty if there is none.
    pub audio: Config,
    /// Image preprocessing: `preprocessor_config.json` and `processor_config.json`.
    pub image: Config,
    /// Whether the file has a vision encoder.
    pub has_vision: bool,
    /// Whether the file has an audio encoder.
    pub has_audio: bool,
}

impl EncoderConfigs {
    /// Reads the configurations at the paths that `encoder` has.
    ///
    /// # Errors
    /// If a file is not valid JSON, or if the configuration lacks the encoder's section.
    pub fn read(model: Config, encoder: &Encoder, checkpoint: &Checkpoint) -> Result<Self, Error> {
        let part =
            |path: &[&str]| path.iter().fold(model.clone(), |config, name| config.part(name));
        let mut parts = Self {
            text: model.text(),
            vision: part(encoder.vision),
            audio: part(encoder.audio),
            image: model.sibling("preprocessor_config.json", preparation(&model)?),
            has_vision: !encoder.vision.is_empty(),
            has_audio: !encoder.audio.is_empty(),
            model,
        };
        parts.require(&parts.vision, encoder.vision, parts.has_vision)?;
        (encoder.complete)(&mut parts)?;
        parts.require(&parts.audio, encoder.audio, parts.has_audio)?;
        (encoder.survey)(&mut parts, checkpoint)?;
        Ok(parts)
    }

    /// Fails if a required configuration is missing.
    fn require(&self, config: &Config, path: &[&str], is_wanted: bool) -> Result<(), Error> {
        match is_wanted && config.json().as_object().is_none_or(Map::is_empty) {
            true => Err(self.model.missing(&path.join("."), "the configuration of the encoder")),
            false => Ok(()),
        }
    }

    /// Reads the configuration in a folder of the checkpoint.
    pub fn of_folder(&self, folder: &str) -> Result<Config, Error> {
        let name = format!("{folder}/config.json");
        match self.model.file(&name)? {
            Some(Value::Object(fields)) => Ok(self.model.sibling(&name, fields)),
            _ => {
                let dir = self.model.path().with_file_name(folder);
                let what = "has no `config.json`";
                let help = "download all folders of the model's repository";
                Err(Error::input("config-missing", &dir, what, help))
            }
        }
    }

    /// Returns a required number, which may be 0.
    pub fn number(config: &Config, names: &[&str], meaning: &str) -> Result<u32, Error> {
        config.u32(names)?.ok_or_else(|| config.missing(names[0], meaning))
    }

    /// Returns the number of layers of an encoder.
    pub fn layers(config: &Config) -> Result<u32, Error> {
        Self::number(config, LAYERS, "the number of layers of the encoder")
    }

    /// Writes the minimum and maximum number of pixels of an image.
    pub fn pixels(&self, keys: &mut Keys, least: &str, most: &str) -> Result<(), Error> {
        for (key, field) in [("vision.image_min_pixels", least), ("vision.image_max_pixels", most)]
        {
            keys.set(key, Self::number(&self.image, &[field], "the number of pixels of an image")?);
        }
        Ok(())
    }

    /// Returns the pooling factor per side that turns an image into the number of tokens in the preprocessor
    /// configuration; `None` if it is 4, the default of runtimes, or invalid.
    pub fn pooled(&self) -> Result<Option<u32>, Error> {
        let side = |field| Self::number(&self.vision, &[field], "of an image, in pixels");
        let tokens = self.image.u32(&["image_seq_length"])?.unwrap_or(256);
        let patches = side("image_size")?.checked_div(side("patch_size")?).unwrap_or(0);
        Ok(patches.checked_div(tokens.isqrt()).filter(|factor| ![0, 4].contains(factor)))
    }

    /// Writes the activation function of the vision encoder: `hidden_act`.
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

    /// Returns the width of the text model, which is the projector's output width.
    pub fn text_width(&self) -> Result<u32, Error> {
        self.text.require_u32(&["hidden_size", "n_embd"], "the embedding size of the text model")
    }
}

/// Mean and standard deviation per channel of CLIP's images, which other encoders also use.
pub const CLIP_MEAN: [f64; 3] = [0.48145466, 0.4578275, 0.40821073];
pub const CLIP_DEVIATION: [f64; 3] = [0.26862954, 0.26130258, 0.27577711];

/// Field names of the number of layers.
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

/// Reads the image preprocessing of both files. Nested image fields move to the top level.
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

//! Conversion of the text model of Hunyuan vision-language models: XD-RoPE sections become
//! `rope.dimension_sections`, and `alpha` is kept as a key.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::export::number;
use crate::convert::keys::Keys;
use crate::convert::rope::Rope;
use crate::convert::{Converter, Description, Exported, hparams, rope};
use crate::hunyuan_dense;
use crate::hunyuan_dense::convert::{HUNYUAN_DENSE, HunyuanDense, export};
use crate::schema::key;

pub(crate) struct HunyuanVl;

/// Description of [`HunyuanVl`].
pub(crate) static HUNYUAN_VL: Description = Description {
    classes: &["HunYuanVLForConditionalGeneration"],
    architecture: "hunyuan_vl",
    model_type: "hunyuan_vl",
    ..HUNYUAN_DENSE
};

impl Converter for HunyuanVl {
    fn description(&self) -> &'static Description {
        &HUNYUAN_VL
    }

    fn base(&self) -> &'static dyn Converter {
        &HunyuanDense
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let fields = config.find(&["rope_parameters", "rope_scaling"]).map(|(_, fields)| fields);
        let sections = SECTIONS.iter().find_map(|field| fields?.get(field)?.as_array());
        let Some(sections) = sections else { return hunyuan_dense::convert::keys(config, keys) };
        let rope = Rope::of(config)?;
        let mut unscaled = config.clone();
        let mut fields = fields.cloned().unwrap_or_default();
        fields["rope_type"] = "default".into();
        fields[SECTIONS[1]] = sections.clone().into();
        unscaled.set("rope_scaling", fields);
        unscaled.set("rope_parameters", Value::Null);
        unscaled.set("rope_theta", rope.base.unwrap_or(rope::DEFAULT_BASE));
        hunyuan_dense::convert::keys(&unscaled, keys)?;
        let context = hparams::context_length(config)?;
        keys.set(key::ROPE_SCALING_TYPE, "none");
        keys.set(key::ROPE_SCALING_FACTOR, rope.f64("factor")?.unwrap_or(1.0) as f32);
        keys.set_f32(key::ROPE_SCALING_ALPHA, rope.f64("alpha")?.map(|alpha| alpha as f32));
        keys.set(key::ROPE_SCALING_ORIGINAL_CONTEXT_LENGTH, context);
        Ok(())
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let Some(sections) = model.metadata().array("hunyuan_vl.rope.dimension_sections") else {
            return export(model, exported);
        };
        let sections: Vec<_> = sections.iter().filter_map(|number| number.to_u64()).collect();
        let scaling = json!({"type": "xdrope", "alpha": number(model, key::ROPE_SCALING_ALPHA),
        "factor": number(model, key::ROPE_SCALING_FACTOR), SECTIONS[0]: sections});
        Some(exported.set("use_qk_norm", true).set("rope_scaling", scaling))
    }
}

/// Names of the RoPE sections in checkpoints and in `transformers`.
const SECTIONS: [&str; 2] = ["xdrope_section", "mrope_section"];

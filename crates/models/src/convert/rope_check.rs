//! Refusal of RoPE parameters that keys and tensors of the converted model do not hold.

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use serde_json::Value;

use crate::convert::configuration;
use crate::convert::converter::{Converter, ExtraTensors};
use crate::convert::hparams;
use crate::convert::rope::{LONG_FACTORS, ROPE_FREQS, Rope, yarn_magnitude};
use crate::schema::{self, key};

/// Largest relative difference of two factors that count as equal: a factor is stored in single precision.
const TOLERANCE: f64 = 1e-5;

/// Fails if a program that loads `metadata` and `tensors` would compute another RoPE than the class in `transformers`
/// (`modeling_rope_utils.py`). Returns a note for scaling that begins beyond the context length.
///
/// # Errors
/// If a parameter is lost, or has a wrong type.
pub fn check(
    config: &Config,
    converter: &'static dyn Converter,
    metadata: &Metadata,
    tensors: &ExtraTensors,
) -> Result<Vec<String>, Error> {
    if !configuration::is_known_class(config) {
        return Ok(Vec::new());
    }
    let rope = Rope::of(config)?;
    let written = Written { architecture: converter.architecture(), metadata, tensors };
    let kind = rope.kind.as_deref().unwrap_or("default");
    check_window(config, &rope)?;
    let is_scaled = !matches!(kind, "default" | "none" | "mrope");
    if !is_scaled {
        return Ok(Vec::new());
    }
    if !configuration::has_rope_scaling(config, kind) {
        return Err(lost(config, "rope_type", &kind));
    }
    let is_partial = rope.f64("partial_rotary_factor")?.is_some_and(|share| share != 1.0);
    let field = "rope_parameters.partial_rotary_factor";
    if is_partial
        && kind != "proportional"
        && configuration::mark(config, field) == Some("irrelevant")
    {
        // The class reads the share of rotary dimensions with RoPE scaling only.
        return Err(lost(
            config,
            "partial_rotary_factor",
            &rope.f64("partial_rotary_factor")?.unwrap_or(1.0),
        ));
    }
    match kind {
        "linear" => written.require_kind(config, &rope, kind)?,
        "yarn" => {
            written.require_kind(config, &rope, kind)?;
            check_yarn(config, &rope, &written)?;
        }
        "longrope" | "su" => {
            let factor = rope.longrope_attention_factor()?;
            if !written.has_tensor(LONG_FACTORS) {
                return Err(lost(config, "rope_type", &kind));
            }
            if !is_near(written.number(key::ROPE_SCALING_ATTN_FACTOR).unwrap_or(1.0), factor) {
                return Err(lost(config, "attention_factor", &factor));
            }
        }
        "llama3" | "proportional" => {
            if !written.has_tensor(ROPE_FREQS) {
                return Err(lost(config, "rope_type", &kind));
            }
        }
        // HunYuan's classes scale by a field of their own, which its converters write.
        "dynamic" | "xdrope" if rope.value("alpha").is_some() => {}
        "dynamic" => {
            let context = hparams::context_length(config)?;
            return Ok(vec![format!(
                "RoPE scaling `dynamic` changes the base frequency beyond {context} tokens, for which GGUF has no key: longer texts \
                 get other results than in `transformers`"
            )]);
        }
        _ => return Err(lost(config, "rope_type", &kind)),
    }
    Ok(Vec::new())
}

/// Fails if sliding-window layers have RoPE scaling of their own.
fn check_window(config: &Config, rope: &Rope) -> Result<(), Error> {
    let Some(window) = rope.window() else { return Ok(()) };
    let kind = window.get("rope_type").or_else(|| window.get("type")).and_then(Value::as_str);
    match kind {
        None | Some("default" | "none" | "dynamic") => Ok(()),
        Some(kind)
            if configuration::has_rope_scaling(config, &format!("sliding_attention.{kind}")) =>
        {
            Ok(())
        }
        Some(kind) => Err(lost(config, "rope_parameters.sliding_attention.rope_type", &kind)),
    }
}

/// Fails if a parameter of YaRN is lost.
fn check_yarn(config: &Config, rope: &Rope, written: &Written) -> Result<(), Error> {
    let truncate = rope.value("truncate").and_then(Value::as_bool).unwrap_or(true);
    if truncate == configuration::has_rope_scaling(config, "yarn.truncate=false") {
        return Err(lost(config, "truncate", &truncate));
    }
    for (field, name, default) in [
        ("beta_fast", key::ROPE_SCALING_YARN_BETA_FAST, 32.0),
        ("beta_slow", key::ROPE_SCALING_YARN_BETA_SLOW, 1.0),
    ] {
        let stated = rope.f64(field)?.filter(|&stated| stated != 0.0).unwrap_or(default);
        if !is_near(written.number(name).unwrap_or(default), stated) {
            return Err(lost(config, field, &stated));
        }
    }
    let number = |field| Ok::<_, Error>(rope.f64(field)?.filter(|&stated| stated != 0.0));
    let (scale, all) = (number("mscale")?, number("mscale_all_dim")?);
    let multiplier = written.number(key::ROPE_SCALING_YARN_LOG_MULTIPLIER);
    let is_tenth = multiplier.is_some_and(|by| is_near(10.0 * by, all.unwrap_or(0.0)));
    if is_tenth && all.is_some() {
        // DeepSeek's attention: llama.cpp takes `mscale` and `mscale_all_dim` as equal.
        return match scale == all {
            true => Ok(()),
            false => Err(lost(
                config,
                "mscale",
                &scale.map_or_else(|| "missing".to_owned(), |x| x.to_string()),
            )),
        };
    }
    let expected = rope.yarn_attention_factor()?;
    let factor = rope.f64("factor")?.unwrap_or(1.0);
    let stated = written.number(key::ROPE_SCALING_YARN_ATTN_FACTOR);
    let computed = stated.unwrap_or_else(|| {
        yarn_magnitude(factor, 1.0) / yarn_magnitude(factor, multiplier.unwrap_or(0.0))
    }) * written.number(key::ROPE_SCALING_ATTN_FACTOR).unwrap_or(1.0);
    if is_near(computed, expected) {
        return Ok(());
    }
    let field = if scale.is_some() {
        "mscale"
    } else if all.is_some() {
        "mscale_all_dim"
    } else {
        "attention_factor"
    };
    let value = number(field)?;
    Err(lost(config, field, &value.unwrap_or(expected)))
}

/// Keys and computed tensors of the converted model.
struct Written<'w> {
    architecture: &'static str,
    metadata: &'w Metadata,
    tensors: &'w ExtraTensors,
}

impl Written<'_> {
    fn get(&self, name: &str) -> Option<gguf::Value> {
        self.metadata.get(&format!("{}.{name}", self.architecture)).cloned()
    }

    fn number(&self, name: &str) -> Option<f64> {
        match self.get(name) {
            Some(gguf::Value::F32(number)) => Some(f64::from(number)),
            _ => None,
        }
    }

    /// Returns whether the tensor is computed and the architecture has it.
    fn has_tensor(&self, name: &str) -> bool {
        let schema = schema::architecture(self.architecture);
        self.tensors.iter().any(|(computed, _)| computed == name)
            && schema.is_some_and(|schema| schema.tensor_names().any(|(listed, _)| listed == name))
    }

    /// Fails unless type and factor of the scaling are written.
    fn require_kind(&self, config: &Config, rope: &Rope, kind: &str) -> Result<(), Error> {
        let factor = rope.f64("factor")?.unwrap_or(1.0);
        if factor == 1.0 {
            return Ok(());
        }
        if self.get(key::ROPE_SCALING_TYPE) != Some(kind.into()) {
            return Err(lost(config, "rope_type", &kind));
        }
        match self.number(key::ROPE_SCALING_FACTOR) {
            Some(written) if is_near(written, factor) => Ok(()),
            _ => Err(lost(config, "factor", &factor)),
        }
    }
}

fn is_near(written: f64, expected: f64) -> bool {
    (written - expected).abs() <= TOLERANCE * expected.abs()
}

/// Returns the error of a parameter that neither a key nor a tensor holds.
fn lost(config: &Config, field: &str, value: &dyn std::fmt::Display) -> Error {
    let what = format!(
        "`{field}` is {value}, which llama.cpp does not support: GGUF has no key for it in this architecture, and every \
         program that loads the converted model would compute another RoPE"
    );
    let help = "a conversion would change the results of this model; remove the field from config.json if it is wrong";
    Error::input("config-unsupported", config.path(), what, help)
}

//! RoPE parameters of config.json: base, scaling, rotary dimensions, and factors per frequency.

use gguf::Error;
use gguf_checkpoint::config::Config;
use serde_json::Value;

use crate::convert::hparams::{context_length, head_dim, not_computed, possible};

/// RoPE base if config.json states none, as in `transformers`.
pub const DEFAULT_BASE: f32 = 10000.0;

const BASE: &[&str] = &["global_rope_theta", "rope_theta", "rotary_emb_base"];

/// Returns the number of rotary dimensions of a head: the stated share of them, else the share `default`.
pub fn rotated_dims(config: &Config, head_dim: u32, default: f64) -> Result<u32, Error> {
    Ok((rotated_share(config, default)? * f64::from(head_dim)) as u32)
}

/// Returns the number of rotary dimensions of a head; `None` if config.json states no share.
pub fn stated_rotated_dims(config: &Config) -> Result<Option<u32>, Error> {
    let Some(share) = stated_share(config)? else { return Ok(None) };
    Ok(Some((share * f64::from(head_dim(config)?)) as u32))
}

/// Returns the share of rotary dimensions of a head, which is `default` if config.json states none.
pub fn rotated_share(config: &Config, default: f64) -> Result<f64, Error> {
    Ok(stated_share(config)?.unwrap_or(default))
}

fn stated_share(config: &Config) -> Result<Option<f64>, Error> {
    const FIELDS: &[&str] = &["partial_rotary_factor", "rope_pct", "rope_percent", "rotary_pct"];
    let nested = Rope::of(config)?.f64(FIELDS[0])?;
    Ok(nested.or(config.f64(FIELDS)?))
}

/// RoPE parameters of a config.json: in the older form (`rope_theta`, `rope_scaling`) or the newer one
/// (`rope_parameters`, which has a section per layer type in models with sliding-window layers).
pub struct Rope<'c> {
    config: &'c Config,
    all: Option<&'c Value>,
    /// Fields for layers with full attention.
    fields: Option<&'c Value>,
    /// `rope_type`, or `type` in older files.
    pub(super) kind: Option<String>,
    /// RoPE base (`rope_theta`).
    pub(crate) base: Option<f32>,
}

impl<'c> Rope<'c> {
    /// Returns the RoPE parameters of a config.json.
    ///
    /// # Errors
    /// If `rope_theta` is not a number.
    pub fn of(config: &'c Config) -> Result<Self, Error> {
        let all = config.find(&["rope_parameters", "rope_scaling"]).map(|(_, fields)| fields);
        let fields = all.map(|all| all.get("full_attention").unwrap_or(all));
        let kind = fields.and_then(|f| f.get("rope_type").or_else(|| f.get("type")));
        let kind = kind.and_then(Value::as_str).map(str::to_lowercase);
        let mut rope = Self { config, all, fields, kind, base: None };
        if let Some(factor) =
            rope.f64("factor")?.filter(|factor| *factor <= 0.0 || !factor.is_finite())
        {
            let what = format!("`factor` of RoPE is {factor}");
            let help = "give a number above 0, or take the file from the model's repository";
            return Err(Error::input("config-field", config.path(), what, help));
        }
        let base = rope.number("rope_theta")?;
        rope.base = base.or(config.f32(BASE)?);
        Ok(rope)
    }

    /// Returns the RoPE base of sliding-window layers, if it is stated.
    pub(super) fn window_base(&self, config: &Config) -> Result<Option<f32>, Error> {
        const FIELDS: &[&str] =
            &["rope_local_base_freq", "local_rope_theta", "rope_local_theta", "swa_rope_theta"];
        let window = self.all.and_then(|all| all.get("sliding_attention"));
        match window.and_then(|window| window.get("rope_theta")).and_then(Value::as_f64) {
            Some(base) => Ok(Some(base as f32)),
            None => config.f32(FIELDS),
        }
    }

    /// Returns the fields for sliding-window layers, if they have their own.
    pub(super) fn window(&self) -> Option<&'c Value> {
        self.all?.get("sliding_attention")
    }

    /// Returns a field for layers with full attention.
    pub(super) fn value(&self, field: &str) -> Option<&'c Value> {
        self.fields?.get(field)
    }

    /// Returns the attention factor of LongRoPE, by which queries and keys are scaled: the stated one, else
    /// `sqrt(1 + ln(factor) / ln(original context))`, where the factor is that of both context lengths unless it is
    /// stated (`_compute_longrope_parameters` in `transformers`).
    ///
    /// # Errors
    /// If a field has an invalid value.
    pub fn longrope_attention_factor(&self) -> Result<f64, Error> {
        if let Some(stated) = self.f64("attention_factor")? {
            return Ok(stated);
        }
        let original = f64::from(self.original_context()?);
        let factor = match self.f64("factor")? {
            Some(factor) => factor,
            None => f64::from(context_length(self.config)?) / original,
        };
        Ok(if factor > 1.0 { (1.0 + factor.ln() / original.ln()).sqrt() } else { 1.0 })
    }

    /// Returns the attention factor of YaRN, by which queries and keys are scaled (`_compute_yarn_parameters` in
    /// `transformers`).
    ///
    /// # Errors
    /// If a field has an invalid value.
    pub fn yarn_attention_factor(&self) -> Result<f64, Error> {
        let number = |field| Ok::<_, Error>(self.f64(field)?.filter(|&number| number != 0.0));
        if let Some(stated) = self.stated_yarn_attention_factor()? {
            return Ok(stated);
        }
        let factor = self.f64("factor")?.unwrap_or(1.0);
        match (number("mscale")?, number("mscale_all_dim")?) {
            (Some(scale), Some(all)) => {
                Ok(yarn_magnitude(factor, scale) / yarn_magnitude(factor, all))
            }
            _ => self.usual_yarn_attention_factor(),
        }
    }

    /// Returns the attention factor of YaRN that config.json states.
    ///
    /// # Errors
    /// If it is not a number.
    pub fn stated_yarn_attention_factor(&self) -> Result<Option<f64>, Error> {
        Ok(self.f64("attention_factor")?.or(self.f64("attn_factor")?))
    }

    /// Returns the attention factor of YaRN that follows from its factor alone.
    ///
    /// # Errors
    /// If the factor is not a number.
    pub fn usual_yarn_attention_factor(&self) -> Result<f64, Error> {
        Ok(yarn_magnitude(self.f64("factor")?.unwrap_or(1.0), 1.0))
    }

    /// Returns whether this is the type of RoPE scaling.
    pub fn is(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }

    /// Returns a field; `None` if it is missing or null.
    ///
    /// # Errors
    /// If it is not a number.
    pub fn f64(&self, field: &str) -> Result<Option<f64>, Error> {
        match self.fields.and_then(|fields| fields.get(field)) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_f64().map(Some).ok_or_else(|| {
                let what = format!("`{field}` of RoPE is {value}");
                Error::input("config-field", self.config.path(), what, "give a number")
            }),
        }
    }

    /// Returns the M-RoPE sections of vision models: pairs of dimensions for time, height and width, and a
    /// fourth section.
    pub fn sections(&self) -> Result<Option<[i32; 4]>, Error> {
        const FIELD: &str = "mrope_section";
        let Some(value) = self.all.and_then(|all| all.get(FIELD)) else { return Ok(None) };
        let mut sections = [0; 4];
        let numbers = value.as_array().and_then(|list| {
            let numbers = list.iter().map(|number| i32::try_from(number.as_i64()?).ok());
            numbers.collect::<Option<Vec<_>>>()
        });
        let Some(numbers) = numbers else {
            let what = format!("`{FIELD}` of RoPE is {value}");
            let help = "give a list of up to four numbers";
            return Err(Error::input("config-field", self.config.path(), what, help));
        };
        sections.iter_mut().zip(numbers).for_each(|(section, number)| *section = number);
        Ok(Some(sections))
    }

    pub(super) fn number(&self, field: &str) -> Result<Option<f32>, Error> {
        Ok(self.f64(field)?.map(|number| number as f32))
    }

    /// Returns the context length before scaling: from the RoPE section, else from the top level, else the
    /// context length of the model, as in `transformers`.
    pub fn original_context(&self) -> Result<f32, Error> {
        const FIELD: &str = "original_max_position_embeddings";
        match self.number(FIELD)?.or(self.config.f32(&[FIELD])?) {
            Some(length) => Ok(length),
            None => Ok(context_length(self.config)? as f32),
        }
    }

    /// Returns a list of one factor per frequency, if there is one.
    ///
    /// # Errors
    /// If it does not have `count` numbers.
    fn factors(&self, field: &str, count: u32) -> Result<Option<Vec<f32>>, Error> {
        let Some(value) = self.fields.and_then(|fields| fields.get(field)) else { return Ok(None) };
        let list = value.as_array().filter(|list| list.len() == count as usize);
        let factors = list.and_then(|list| {
            list.iter().map(|factor| factor.as_f64().map(|factor| factor as f32)).collect()
        });
        factors.map(Some).ok_or_else(|| {
            let what = format!("`{field}` of RoPE is not a list of {count} numbers");
            Error::input(
                "config-field",
                self.config.path(),
                what,
                "take the file from the model's repository",
            )
        })
    }
}

/// Returns `0.1 * by * ln(factor) + 1`, and 1 for factors up to 1: `get_mscale` of `transformers`.
pub fn yarn_magnitude(factor: f64, by: f64) -> f64 {
    if factor > 1.0 { 0.1 * by * factor.ln() + 1.0 } else { 1.0 }
}

/// Returns the attention factor of YaRN or LongRoPE that follows from the other parameters; `None` for other scaling.
///
/// # Errors
/// If a field has an invalid value.
pub fn implied_attention_factor(config: &Config) -> Result<Option<f64>, Error> {
    let rope = Rope::of(config)?;
    match rope.kind.as_deref() {
        Some("yarn") => rope.usual_yarn_attention_factor().map(Some),
        Some("su" | "longrope") => rope.longrope_attention_factor().map(Some),
        _ => Ok(None),
    }
}

/// Name of the tensor of LongRoPE factors for long contexts.
pub const LONG_FACTORS: &str = "rope_factors_long.weight";

/// Returns the factors of LongRoPE scaling as two tensors: for long contexts and for short ones.
///
/// `dims` is the number of rotary dimensions.
pub fn longrope_factors(config: &Config, dims: u32) -> Result<Vec<(String, Vec<f32>)>, Error> {
    let rope = Rope::of(config)?;
    let long = rope.factors("long_factor", dims / 2)?;
    let short = rope.factors("short_factor", dims / 2)?;
    match (long, short) {
        (None, None) => Ok(Vec::new()),
        (Some(long), Some(short)) => Ok(vec![
            (LONG_FACTORS.to_owned(), long),
            ("rope_factors_short.weight".to_owned(), short),
        ]),
        _ => {
            let what = "RoPE has only one of `long_factor` and `short_factor`";
            Err(Error::input(
                "config-field",
                config.path(),
                what,
                "take the file from the model's repository",
            ))
        }
    }
}

/// Returns the factors of Llama 3 scaling as a tensor, if config.json has this scaling.
pub fn rope_freqs(config: &Config) -> Result<Vec<(String, Vec<f32>)>, Error> {
    let factors = llama3_factors(config)?;
    Ok(factors.map(|factors| (ROPE_FREQS.to_owned(), factors)).into_iter().collect())
}

/// Name of the tensor of factors by which RoPE frequencies are divided.
pub const ROPE_FREQS: &str = "rope_freqs.weight";

/// Fails if config.json has Llama 3 scaling and the converter computes no `rope_freqs`. Runtimes read
/// this tensor of some architectures only, and some refuse a file that has it: llama.cpp refuses SmolLM3
/// with it, although its converter writes it.
pub fn require_rope_freqs(config: &Config, computed: &[(String, Vec<f32>)]) -> Result<(), Error> {
    let is_llama3 = Rope::of(config)?.kind.as_deref() == Some("llama3");
    match is_llama3 && !computed.iter().any(|(name, _)| name == ROPE_FREQS) {
        true => Err(not_computed(config, "rope_type", "llama3")),
        false => Ok(()),
    }
}

/// Returns the factors by which Llama 3 scaling divides the frequencies, if config.json has this scaling:
/// 1 for short wavelengths, `factor` for long ones, and a smooth transition in between.
///
/// Formula: `_compute_llama3_parameters` in transformers' `modeling_rope_utils.py`, in the steps of
/// torch with single precision: a power is rounded once, and a number is divided by an element by
/// multiplying with its reciprocal. With other steps, the last bit of a factor can differ.
pub fn llama3_factors(config: &Config) -> Result<Option<Vec<f32>>, Error> {
    if !Rope::of(config)?.is("llama3") {
        return Ok(None);
    }
    llama3_factors_of(config, head_dim(config)?, Precision::Single)
}

/// Precision in which llama.cpp's converter computes factors.
#[derive(Clone, Copy, PartialEq)]
pub enum Precision {
    /// F32, as torch computes them: most architectures.
    Single,
    /// F64 from the frequencies on, as Python computes them: Step 3.5.
    Double,
}

/// Returns the factors of Llama 3 scaling for `dim` rotary dimensions, if config.json has this scaling.
pub fn llama3_factors_of(
    config: &Config,
    dim: u32,
    precision: Precision,
) -> Result<Option<Vec<f32>>, Error> {
    let rope = Rope::of(config)?;
    if !rope.is("llama3") {
        return Ok(None);
    }
    let factor = rope.number("factor")?.unwrap_or(8.0);
    let low = rope.number("low_freq_factor")?.unwrap_or(1.0);
    let high = rope.number("high_freq_factor")?.unwrap_or(4.0);
    let original = rope.original_context()?;
    let dim = possible(config, "dimensions of a head", dim)?;
    let base = rope.base.unwrap_or(DEFAULT_BASE);
    let turn = 2.0 * std::f32::consts::PI;
    let factors = (0..dim).step_by(2).map(|i| {
        let exponent = i as f32 / dim as f32;
        let frequency = 1.0 / f64::from(base).powf(f64::from(exponent)) as f32;
        if precision == Precision::Double {
            let [factor, low, high] = [factor, low, high].map(f64::from);
            let original = f64::from(original);
            let wavelength = 2.0 * std::f64::consts::PI / f64::from(frequency);
            return if wavelength < original / high {
                1.0
            } else if wavelength > original / low {
                factor as f32
            } else {
                let smooth = (original / wavelength - low) / (high - low);
                (1.0 / ((1.0 - smooth) / factor + smooth)) as f32
            };
        }
        let wavelength = (1.0 / frequency) * turn;
        if wavelength < original / high {
            1.0
        } else if wavelength > original / low {
            factor
        } else {
            let smooth = ((1.0 / wavelength) * original - low) / (high - low);
            1.0 / ((1.0 - smooth) / factor + smooth)
        }
    });
    Ok(Some(factors.collect()))
}

//! `adapter_config.json`.

use std::path::{Path, PathBuf};

use fancy_regex::Regex;
use gguf::Error;
use gguf_checkpoint::json;
use serde_json::Value;

use super::CONFIG;

/// Fields of adapters for which GGUF has no form, if they are set, with the reason.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("use_dora", "DoRA trains the magnitude of weights too"),
    ("use_qalora", "QA-LoRA averages groups of inputs before the first matrix"),
    ("use_bdlora", "block-diagonal matrices store their blocks only"),
    ("lora_bias", "the second matrices have biases"),
    ("target_parameters", "parameters are adapted instead of modules"),
    ("trainable_token_indices", "rows of the token embedding are trained"),
    ("layer_replication", "layers of the base model are repeated"),
    ("megatron_config", "the modules are those of Megatron"),
    ("enable_lora", "parts of fused projections are adapted, as in the first versions of PEFT"),
    ("arrow_config", "Arrow routes tokens to several adapters"),
    ("kasa_config", "KaSA changes the weights of the base model and scales each rank"),
    ("monteclora_config", "MonteCLoRA samples its matrices"),
];

/// Initializations that leave the weights of the base model as they are.
const PLAIN_INITIALIZATIONS: [&str; 4] = ["gaussian", "eva", "orthogonal", "mica"];

/// Advice for adapters for which GGUF has no form.
pub(super) const MERGE: &str = "merge it into the base model with PEFT's `merge_and_unload`, save the model with \
                     `save_pretrained`, and convert the result";

const RESTORE: &str = "save it as plain LoRA with PEFT's `save_pretrained(..., \
                       path_initial_model_for_weight_conversion=...)`, which needs the adapter as it was before \
                       training; or merge it with `merge_and_unload`, and convert the result";

/// Content of `adapter_config.json`.
pub(super) struct AdapterConfig {
    /// Path of the file.
    pub path: PathBuf,
    /// `lora_alpha`.
    alpha: f64,
    /// `r`.
    rank: Option<f64>,
    alpha_pattern: Patterns,
    rank_pattern: Patterns,
    /// Whether updates are divided by the square root of the rank instead of the rank.
    rank_stabilized: bool,
    /// Whether the output projection is adapted with the token embedding that it is tied to.
    pub ties_output: bool,
    /// Tokens after which an activated LoRA (aLoRA) takes effect.
    pub invocation_tokens: Option<Vec<u32>>,
}

impl AdapterConfig {
    /// Reads the configuration of the adapter in `dir`.
    ///
    /// # Errors
    /// If the file cannot be read or lacks a field, or if GGUF has no form for the kind of adapter.
    pub fn read(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(CONFIG);
        let root = json::read(&path)?;
        Self::new(path, &root)
    }

    fn new(path: PathBuf, root: &Value) -> Result<Self, Error> {
        let refuse =
            |what: String, help| Err(Error::input("adapter-unsupported", &path, what, help));
        let flag = |name: &str| root.get(name).and_then(Value::as_bool).unwrap_or(false);
        let text = |name: &str| root.get(name).and_then(Value::as_str);
        match text("peft_type") {
            Some("LORA") => {}
            Some(other) => return refuse(format!("`peft_type` is {other}; expected LORA"), MERGE),
            None => {
                let help = "specify a folder that PEFT wrote";
                return refuse("`peft_type` is missing; expected LORA".into(), help);
            }
        }
        let is_set = |name: &str| root.get(name).is_some_and(is_set);
        if let Some((field, why)) = UNSUPPORTED.iter().find(|(field, _)| is_set(field)) {
            let what = format!("`{field}` is set: {why}, for which GGUF adapters have no form");
            return refuse(what, MERGE);
        }
        if let Some(bias) = text("bias").filter(|bias| *bias != "none") {
            let what = format!(
                "`bias` is {bias}: biases are trained, for which GGUF adapters have no form"
            );
            return refuse(what, MERGE);
        }
        let initialization = root.get("init_lora_weights").unwrap_or(&Value::Null);
        let is_plain = match initialization {
            Value::String(name) => PLAIN_INITIALIZATIONS.contains(&&*name.to_lowercase()),
            other => other.is_boolean() || other.is_null(),
        };
        if !is_plain {
            let what = format!(
                "`init_lora_weights` is {initialization}: it changes the weights of the base model, to which the \
                 adapter belongs, and GGUF adapters are added to unchanged weights"
            );
            return refuse(what, RESTORE);
        }
        let Some(alpha) = root.get("lora_alpha").and_then(Value::as_f64) else {
            let help = "take the file from the adapter's repository";
            let what = "`lora_alpha` is missing; expected a number";
            return Err(Error::input("config-field-missing", &path, what, help));
        };
        if !(alpha as f32).is_finite() {
            return invalid(&path, format!("`lora_alpha` is {alpha}; expected a finite number"));
        }
        let invocation_tokens = match root.get("alora_invocation_tokens").unwrap_or(&Value::Null) {
            Value::Null => None,
            Value::Array(tokens) => {
                let ids = tokens.iter().map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok()));
                match ids.collect::<Option<Vec<u32>>>() {
                    Some(ids) if !ids.is_empty() => Some(ids),
                    Some(_) => None,
                    None => {
                        return invalid(
                            &path,
                            "`alora_invocation_tokens` has an entry that is no token id".into(),
                        );
                    }
                }
            }
            _ => return invalid(&path, "`alora_invocation_tokens` is no list of token ids".into()),
        };
        Ok(Self {
            alpha,
            rank: root.get("r").and_then(Value::as_f64),
            alpha_pattern: Patterns::read(&path, root, "alpha_pattern")?,
            rank_pattern: Patterns::read(&path, root, "rank_pattern")?,
            rank_stabilized: flag("use_rslora"),
            ties_output: flag("ensure_weight_tying"),
            invocation_tokens,
            path,
        })
    }

    /// Returns the alpha of the output: that of the configuration, or 1 if that is 0, which runtimes read as no alpha.
    pub fn written_alpha(&self) -> f32 {
        if self.alpha == 0.0 { 1.0 } else { self.alpha as f32 }
    }

    /// Returns the factor for the second matrix of a module, which corrects the scale `alpha / rank` that runtimes
    /// apply to all products.
    ///
    /// # Errors
    /// If the configuration states another rank, or the factor is not a finite number.
    pub fn correction(&self, module: &str, rank: u64) -> Result<f32, Error> {
        let alpha = self.alpha_pattern.value(&self.path, module)?.unwrap_or(self.alpha);
        let stated = self.rank_pattern.value(&self.path, module)?.or(self.rank);
        let rank = rank as f64;
        if let Some(stated) = stated.filter(|stated| *stated != rank) {
            let what = format!(
                "states the rank {stated} for `{module}`; its matrices have the rank {rank}"
            );
            return invalid(&self.path, what);
        }
        let divisor = if self.rank_stabilized { rank.sqrt() } else { rank };
        let factor = ((alpha / divisor) / (f64::from(self.written_alpha()) / rank)) as f32;
        if !factor.is_finite() {
            return invalid(
                &self.path,
                format!("has an alpha of {alpha} for `{module}`, which is too large"),
            );
        }
        Ok(factor)
    }
}

/// Values for modules by regular expressions of their names.
struct Patterns {
    field: &'static str,
    rows: Vec<(Regex, f64)>,
}

impl Patterns {
    fn read(path: &Path, root: &Value, field: &'static str) -> Result<Self, Error> {
        let mut rows = Vec::new();
        let Some(table) = root.get(field).filter(|table| !table.is_null()) else {
            return Ok(Self { field, rows });
        };
        let Some(table) = table.as_object() else {
            return invalid(path, format!("`{field}` is not an object"));
        };
        for (key, value) in table {
            // As `get_pattern_key` of PEFT.
            let Ok(regex) = Regex::new(&format!(r"^(.*\.)?({key})$")) else {
                return invalid(
                    path,
                    format!("`{field}` has the key `{key}`, which is no regular expression"),
                );
            };
            let Some(value) = value.as_f64() else {
                return invalid(path, format!("`{field}` has no number for `{key}`"));
            };
            rows.push((regex, value));
        }
        Ok(Self { field, rows })
    }

    /// Returns the value of the first expression that matches the name of a module.
    fn value(&self, path: &Path, module: &str) -> Result<Option<f64>, Error> {
        for (regex, value) in &self.rows {
            match regex.is_match(module) {
                Ok(true) => return Ok(Some(*value)),
                Ok(false) => {}
                Err(_) => {
                    let what = format!(
                        "`{}` has the key `{regex}`, which takes too long to match",
                        self.field
                    );
                    return invalid(path, what);
                }
            }
        }
        Ok(None)
    }
}

/// Whether a field has another value than null, false, zero, or an empty list or object.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Number(_) | Value::String(_) => true,
    }
}

fn invalid<T>(path: &Path, what: String) -> Result<T, Error> {
    Err(Error::input("adapter-damaged", path, what, "take the file from the adapter's repository"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const Q: &str = "model.layers.0.self_attn.q_proj";

    fn config(fields: Value) -> Result<AdapterConfig, Error> {
        let mut root = json!({"peft_type": "LORA", "lora_alpha": 8, "r": 4});
        root.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        AdapterConfig::new(CONFIG.into(), &root)
    }

    fn correction(fields: Value) -> f32 {
        config(fields).unwrap().correction(Q, 4).unwrap()
    }

    #[test]
    fn other_scales_than_alpha_by_rank_scale_the_second_matrix() {
        assert_eq!(correction(json!({})), 1.0);
        // 8 / sqrt(4) instead of 8 / 4.
        assert_eq!(correction(json!({"use_rslora": true})), 2.0);
        // Alpha is 0, so 1 is written, and the matrix becomes 0.
        assert_eq!(correction(json!({"lora_alpha": 0})), 0.0);
        let pattern = json!({"lora_alpha": 0, "alpha_pattern": {"q_proj": 4}});
        assert_eq!(correction(pattern), 4.0);
    }

    #[test]
    fn patterns_match_as_in_peft() {
        let with = |pattern: Value| correction(json!({ "alpha_pattern": pattern }));
        // The first expression that matches counts, not the longest one.
        assert_eq!(with(json!({"q_proj": 16, "layers.0.self_attn.q_proj": 4})), 2.0);
        assert_eq!(with(json!({"proj": 16})), 1.0);
        assert_eq!(with(json!({"^model.layers.0.self_attn.q_proj": 16})), 2.0);
        assert_eq!(with(json!({"^layers.0.self_attn.q_proj": 16})), 1.0);
        assert_eq!(with(json!({".*\\.layers\\.0\\..*(q_proj|v_proj)": 16})), 2.0);
        assert_eq!(with(json!({"self_attn\\.(?!k)[a-z]_proj": 16})), 2.0);
        assert_eq!(with(json!({"k_proj|q_proj": 16})), 2.0);
        assert_eq!(with(json!({"layers\\.[1-9]\\..*": 16, ".*": 4})), 0.5);
    }

    #[test]
    fn ranks_are_compared() {
        let damaged = |fields: Value| config(fields).unwrap().correction(Q, 4).unwrap_err().code();
        assert_eq!(damaged(json!({"r": 8})), "adapter-damaged");
        assert_eq!(damaged(json!({"rank_pattern": {"q_proj": 2}})), "adapter-damaged");
        assert_eq!(correction(json!({"r": 8, "rank_pattern": {"[qv]_proj": 4}})), 1.0);
    }

    #[test]
    fn kinds_without_a_form_are_refused() {
        let kinds = [
            json!({"peft_type": "ADALORA"}),
            json!({"use_dora": true}),
            json!({"use_qalora": true}),
            json!({"lora_bias": true}),
            json!({"bias": "all"}),
            json!({"bias": "lora_only"}),
            json!({"target_parameters": ["mlp.experts.gate_up_proj"]}),
            json!({"trainable_token_indices": [1, 2]}),
            json!({"layer_replication": [[0, 2], [1, 2]]}),
            json!({"megatron_config": {"x": 1}}),
            json!({"init_lora_weights": "pissa"}),
            json!({"init_lora_weights": "pissa_niter_4"}),
            json!({"init_lora_weights": "OLoRA"}),
            json!({"init_lora_weights": "corda"}),
            json!({"init_lora_weights": "loftq"}),
            json!({"init_lora_weights": "lora_ga"}),
        ];
        for kind in kinds {
            let error = config(kind.clone()).err().unwrap_or_else(|| panic!("{kind}"));
            assert_eq!(error.code(), "adapter-unsupported", "{kind}");
            let field = kind.as_object().unwrap().keys().next().unwrap();
            assert!(error.to_string().contains(field.as_str()), "{error}");
        }
        let plain = [
            json!({"init_lora_weights": "gaussian"}),
            json!({"init_lora_weights": "eva"}),
            json!({"init_lora_weights": false}),
            json!({"target_parameters": [], "megatron_config": null, "use_dora": false}),
            json!({"layers_to_transform": [0], "layers_pattern": "layers", "bias": "none"}),
        ];
        for kind in plain {
            assert!(config(kind.clone()).is_ok(), "{kind}");
        }
    }

    #[test]
    fn invalid_fields_are_refused() {
        let kinds = [
            json!({"alpha_pattern": {"(": 1}}),
            json!({"alpha_pattern": {"q_proj": "8"}}),
            json!({"alpha_pattern": []}),
            json!({"lora_alpha": 1e39}),
            json!({"alora_invocation_tokens": [1, -2]}),
        ];
        for kind in kinds {
            assert_eq!(config(kind.clone()).err().unwrap().code(), "adapter-damaged", "{kind}");
        }
    }
}

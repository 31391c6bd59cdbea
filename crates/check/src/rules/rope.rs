//! Rules on RoPE: base frequency, scaling and context length that fit each other.

use std::ops::ControlFlow;

use gguf::{FileKind, Finding, Severity, Sink, Subject};
use gguf_models::schema::HyperParameters;

use super::tokenizer::vocabulary_family::Family;

const BASE: &str = "rope.freq_base";
const TYPE: &str = "rope.scaling.type";
const FACTOR: &str = "rope.scaling.factor";
const ORIGINAL: &str = "rope.scaling.original_context_length";
/// Architectures whose files have no original context length: the context length stands for it.
const ORIGINAL_IS_CONTEXT: &[&str] = &["minicpm", "minicpm3"];
const ATTENTION: &str = "rope.scaling.attn_factor";
const CONTEXT: &str = "context_length";

/// Architectures whose configurations state the base frequency whenever it is not 10000.
const STATED: &[&str] = &["llama", "qwen2", "qwen2moe", "qwen3", "qwen3moe", "mistral3"];
/// Context length above which no published model of them has a base frequency of 10000 without scaling.
const LONG_CONTEXT: u64 = 8192;
/// Context length and tensor of Llama 3.1, 3.2 and 3.3, whose RoPE scaling is a tensor.
const LLAMA_31_CONTEXT: u64 = 131_072;
const ROPE_FACTORS: &str = "rope_freqs.weight";

pub(super) fn check(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let header = subject.header;
    let Some(architecture) = header.metadata.architecture() else {
        return ControlFlow::Continue(());
    };
    let kind = FileKind::detect(header);
    if !matches!(kind, FileKind::Model | FileKind::FirstShard) {
        return ControlFlow::Continue(());
    }
    let rope = Rope {
        subject,
        architecture,
        hparams: HyperParameters::new(&header.metadata, architecture),
        has_all_tensors: kind == FileKind::Model && !header.tensors.is_empty(),
    };
    let found = [rope.base(), rope.factors(), rope.scaling(), rope.attention(), rope.context()];
    found.into_iter().flatten().try_for_each(|(suffix, finding)| {
        let key = format!("{architecture}.{suffix}");
        let at = subject.value_at(&key);
        sink.report(finding.key(key).at(at))
    })
}

struct Rope<'s, 'd> {
    subject: &'s Subject<'d>,
    architecture: &'d str,
    hparams: HyperParameters<'d>,
    has_all_tensors: bool,
}

/// Name of a hyper-parameter, and the finding about it.
type Found = Option<(&'static str, Finding)>;

impl Rope<'_, '_> {
    fn number(&self, name: &str) -> Option<f64> {
        self.hparams.value(name)?.to_f64().or_else(|| self.integer(name).map(|value| value as f64))
    }

    fn integer(&self, name: &str) -> Option<u64> {
        self.hparams.value(name)?.to_u64()
    }

    /// Type of RoPE scaling; `None` without scaling.
    fn scaling_type(&self) -> Option<&str> {
        let stated = self.hparams.value(TYPE).and_then(|value| value.as_str());
        // A factor alone is that of linear scaling.
        stated
            .or(self.number(FACTOR).filter(|factor| *factor != 1.0).map(|_| "linear"))
            .filter(|stated| *stated != "none")
    }

    /// Checks that the base frequency was not lost.
    fn base(&self) -> Found {
        let base = self.number(BASE);
        let family = Family::of(&self.subject.header.metadata)
            .and_then(|family| Some((family.name, family.rope_base?)))
            .filter(|(_, (architecture, _))| *architecture == self.architecture);
        if let Some((name, (_, right))) = family
            && base.is_none_or(|base| base == 10_000.0)
            && self.scaling_type().is_none()
        {
            let message = match base {
                None => format!(
                    "is missing, which means 10000; models with the vocabulary of {name} have {right}"
                ),
                Some(_) => format!(
                    "is 10000, the default; models with the vocabulary of {name} have {right}"
                ),
            };
            let finding = Finding::warning("rope-base-lost", message);
            return Some((BASE, finding.help(BASE_HELP)));
        }
        let context = self.integer(CONTEXT).filter(|context| *context > LONG_CONTEXT)?;
        if base.is_some() || !STATED.contains(&self.architecture) || self.scaling_type().is_some() {
            return None;
        }
        let message = format!(
            "is missing, which means 10000; models with a context of {context} tokens have a greater one"
        );
        Some((BASE, Finding::warning("rope-base-lost", message).help(BASE_HELP)))
    }

    /// Checks that a model with the keys of Llama 3.1 has the frequency factors of its RoPE.
    fn factors(&self) -> Found {
        let metadata = &self.subject.header.metadata;
        let is_llama_31 = self.has_all_tensors
            && self.architecture == "llama"
            && self.integer(CONTEXT) == Some(LLAMA_31_CONTEXT)
            && self.number(BASE) == Some(500_000.0)
            && self.scaling_type().is_none()
            && Family::of(metadata).is_some_and(|family| family.name == "Llama 3");
        let tensors = &self.subject.header.tensors;
        if !is_llama_31 || tensors.iter().any(|tensor| tensor.name == ROPE_FACTORS) {
            return None;
        }
        let finding = Finding::warning(
            "rope-factors-missing",
            format!(
                "is {LLAMA_31_CONTEXT}, but the frequency factors of Llama 3.1 ({ROPE_FACTORS}) are missing"
            ),
        );
        Some((CONTEXT, finding.help("long texts become worse; convert the model again")))
    }

    /// Checks that the scaling type has a factor, and YaRN the length that it scales.
    fn scaling(&self) -> Found {
        let kind = self.scaling_type()?;
        let factor = self.number(FACTOR);
        let wrong = |suffix, severity, message: String| {
            let finding = Finding { severity, ..Finding::error("rope-scaling", message) };
            Some((suffix, finding.help(SCALING_HELP)))
        };
        if let Some(factor) = factor
            && !(factor.is_finite() && factor > 0.0)
        {
            let message = format!("is {factor}; expected a factor above 0");
            return wrong(FACTOR, Severity::Error, message);
        }
        match kind {
            "linear" | "yarn" if factor.is_none() => {
                let message = format!("is missing, but the scaling type is {kind}");
                wrong(FACTOR, Severity::Warning, message)
            }
            "linear" | "yarn" if factor.is_some_and(|factor| factor < 1.0) => {
                let message = format!(
                    "is {}: it shortens the context instead of extending it",
                    factor.unwrap_or_default()
                );
                wrong(FACTOR, Severity::Warning, message)
            }
            "yarn" | "longrope"
                if self.integer(ORIGINAL).is_none_or(|length| length == 0)
                    && !ORIGINAL_IS_CONTEXT.contains(&self.architecture) =>
            {
                let message = format!("is missing or 0, but the scaling type is {kind}");
                wrong(ORIGINAL, Severity::Warning, message)
            }
            "longrope" if self.has_all_tensors && !self.has_long_factors() => {
                let message = "is longrope, but the file has no rope_factors_long.weight".into();
                wrong(TYPE, Severity::Warning, message)
            }
            _ => match (self.integer(ORIGINAL), self.integer(CONTEXT)) {
                (Some(original), Some(context)) if original > context && context > 0 => {
                    let message = format!("is {original}, more than the context of {context}");
                    wrong(ORIGINAL, Severity::Warning, message)
                }
                _ => None,
            },
        }
    }

    fn has_long_factors(&self) -> bool {
        let mut tensors = self.subject.header.tensors.iter();
        tensors.any(|tensor| tensor.name.ends_with("rope_factors_long.weight"))
    }

    /// Checks that the scale of attention scores is a positive number.
    fn attention(&self) -> Found {
        let factor = self.number(ATTENTION)?;
        if factor.is_finite() && factor > 0.0 {
            return None;
        }
        let message = format!("is {factor}; expected a number above 0");
        Some((ATTENTION, Finding::error("rope-scaling", message).help(SCALING_HELP)))
    }

    /// Checks that the context length is that of the scaled model.
    fn context(&self) -> Found {
        let factor = self.number(FACTOR).filter(|factor| *factor > 1.0)?;
        let (original, context) = (self.integer(ORIGINAL)?, self.integer(CONTEXT)?);
        if self.scaling_type() != Some("yarn") || original == 0 || context != original {
            return None;
        }
        let message = format!(
            "is {context}, the length before scaling; with the factor of {factor} it is {}",
            (original as f64 * factor) as u64
        );
        let finding = Finding::warning("context-length-unscaled", message);
        Some((
            CONTEXT,
            finding.help(
                "programs do not use the context that the scaling allows: set the scaled length",
            ),
        ))
    }
}

const BASE_HELP: &str = "long and short texts become worse; set rope_theta of the original model's config.json with `gguf edit --set`";
const SCALING_HELP: &str =
    "set the values of rope_scaling in the original model's config.json with `gguf edit --set`";

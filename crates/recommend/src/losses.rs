//! Measured losses of quantization types.

/// Mean KL divergence of a quantized model from the original.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Nats per token.
    pub kl_divergence: f64,
    /// Origin of the number.
    pub origin: LossOrigin,
}

/// Origin of a loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LossOrigin {
    /// Measured with this file.
    Measured,
    /// Measured with another model, which is named.
    OtherModel(&'static str),
}

/// A model whose quantization types were measured.
struct MeasuredModel {
    name: &'static str,
    parameters: f64,
    /// Mean KL divergence by type, with an importance matrix for types below 5 bits.
    losses: &'static [(&'static str, f64)],
}

/// Llama 3 8B on Wikitext-2, of the table in `tools/perplexity/README.md` of llama.cpp. It has no entry for types that
/// were added later.
const LLAMA_3_8B: MeasuredModel = MeasuredModel {
    name: "Llama 3 8B",
    parameters: 8.03e9,
    losses: &[
        ("Q8_0", 0.001355),
        ("Q6_K", 0.005452),
        ("Q5_K_M", 0.010762),
        ("Q5_K_S", 0.016595),
        ("Q5_1", 0.018045),
        ("Q5_0", 0.022239),
        ("Q4_K_M", 0.028152),
        ("Q4_K_S", 0.031951),
        ("IQ4_NL", 0.035742),
        ("IQ4_XS", 0.036334),
        ("Q4_1", 0.071683),
        ("Q4_0", 0.071940),
        ("Q3_K_L", 0.073077),
        ("Q3_K_M", 0.084358),
        ("IQ3_M", 0.102534),
        ("IQ3_S", 0.111278),
        ("IQ3_XS", 0.138693),
        ("IQ3_XXS", 0.183625),
        ("Q3_K_S", 0.199821),
        ("IQ2_M", 0.325989),
        ("Q2_K", 0.332223),
        ("Q2_K_S", 0.403360),
        ("IQ2_S", 0.439197),
        ("IQ2_XS", 0.546290),
        ("IQ2_XXS", 0.812022),
        ("IQ1_M", 1.393084),
        ("IQ1_S", 2.254554),
    ],
};

/// All measured models.
const MODELS: &[MeasuredModel] = &[LLAMA_3_8B];

/// Returns the loss of a quantization type for a model of nearly this size. Unquantized types have none.
pub(crate) fn expected(type_name: &str, parameters: u64) -> Option<Loss> {
    if matches!(type_name, "F32" | "F16" | "BF16") {
        return Some(Loss { kl_divergence: 0.0, origin: LossOrigin::Measured });
    }
    let known = MODELS.iter().filter_map(|model| {
        let (_, loss) = model.losses.iter().find(|(name, _)| *name == type_name)?;
        Some((model, *loss))
    });
    let distance = |model: &MeasuredModel| (model.parameters / parameters.max(1) as f64).ln().abs();
    let (model, kl_divergence) = known.min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)))?;
    Some(Loss { kl_divergence, origin: LossOrigin::OtherModel(model.name) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_grow_as_types_shrink() {
        for model in MODELS {
            assert!(model.losses.is_sorted_by(|a, b| a.1 <= b.1), "{}", model.name);
        }
        let of = |name| expected(name, 8_000_000_000).map(|loss| loss.kl_divergence);
        assert_eq!(of("Q4_K_M"), Some(0.028152));
        assert_eq!(of("BF16"), Some(0.0));
        assert_eq!(of("Q1_0"), None);
    }
}

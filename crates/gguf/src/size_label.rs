//! Size of a model: exact parameter counts, and the human-readable label (`7B`, `8x22B`).

/// Parameter count of a model, computed from its tensors.
///
/// ```
/// use gguf::ParameterCount;
/// let tensors = [
///     ("token_embd.weight", &[4096, 32000][..]),
///     ("blk.0.ffn_up_exps.weight", &[4096, 14336, 8]),
/// ];
/// let count = ParameterCount::from_tensors(tensors);
/// assert_eq!(count.total, 4096 * 32000 + 4096 * 14336 * 8);
/// assert_eq!(count.expert_count, 8);
/// assert_eq!(count.size_label().as_deref(), Some("8x190M"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParameterCount {
    /// Total; 0 if unknown. For an adapter: parameters of the layers that it adapts.
    pub total: u64,
    /// Parameters that every token uses.
    pub shared: u64,
    /// Parameters of one expert.
    pub expert: u64,
    /// Average number of experts per layer; 0 for a dense model.
    pub expert_count: u64,
    /// True if the tensors are a LoRA adapter for another model.
    pub adapter: bool,
}

impl ParameterCount {
    /// Counts the elements of tensors given by GGUF name and shape (fastest dimension first).
    ///
    /// The pair `x.lora_a`, `x.lora_b` of an adapter counts as the matrix it changes. If the two
    /// are not consecutive, the result is the default.
    ///
    /// Counts saturate; another rule rejects shapes that overflow 64 bits.
    pub fn from_tensors<'a>(tensors: impl IntoIterator<Item = (&'a str, &'a [u64])>) -> Self {
        let mut count = Self::default();
        let (mut expert_sum, mut expert_tensors) = (0u64, 0u64);
        let mut lora_a: Option<(&str, &[u64])> = None;
        for (name, shape) in tensors {
            if let Some(target) = name.strip_suffix(".lora_a") {
                lora_a = Some((target, shape));
                continue;
            }
            // The rank is the first dimension of `lora_b`; the matrix has the first dimension of
            // `lora_a` instead.
            let mut row = shape.first().copied();
            if let Some(target) = name.strip_suffix(".lora_b") {
                match lora_a {
                    Some((of, shape)) if of == target => row = shape.first().copied(),
                    _ => return Self::default(),
                }
            }
            let size = row.into_iter().chain(shape.iter().skip(1).copied());
            let size = size.fold(1, u64::saturating_mul);
            // Biases of experts have one dimension less.
            let experts = if name.contains(".bias") { shape.get(1) } else { shape.get(2) };
            match experts {
                Some(&experts) if experts > 0 && shape.len() >= 3 && name.contains("_exps.") => {
                    count.expert = count.expert.saturating_add(size / experts);
                    expert_sum = expert_sum.saturating_add(experts);
                    expert_tensors += 1;
                }
                _ => count.shared = count.shared.saturating_add(size),
            }
            count.total = count.total.saturating_add(size);
        }
        count.adapter = lora_a.is_some();
        count.expert_count = expert_sum.checked_div(expert_tensors).unwrap_or(0);
        count
    }

    /// Returns the label for `general.size_label` and file names: the number of parameters rounded
    /// to two digits or more, or for a mixture of experts `<experts>x<shared plus one expert>`.
    ///
    /// `None` if the total is unknown, or for an adapter, whose count is not the model's size.
    pub fn size_label(&self) -> Option<String> {
        if self.adapter || self.total == 0 {
            return None;
        }
        Some(match self.expert_count {
            0 => rounded(self.total),
            experts => format!("{experts}x{}", rounded(self.shared.saturating_add(self.expert))),
        })
    }
}

/// Formats `count` in thousands, millions and so on, with one or two decimals if the integer part
/// has fewer than two digits.
fn rounded(count: u64) -> String {
    let count = count as f64;
    // A unit starts above its power of ten: exactly a million is 1000K.
    let (scale, suffix) = match count {
        c if c > 1e12 => (1e-12, 'T'),
        c if c > 1e9 => (1e-9, 'B'),
        c if c > 1e6 => (1e-6, 'M'),
        _ => (1e-3, 'K'),
    };
    let scaled = count * scale;
    let decimals = match scaled.round_ties_even() {
        whole if whole >= 10.0 => 0,
        whole if whole >= 1.0 => 1,
        _ => 2,
    };
    format!("{scaled:.decimals$}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values: `gguf.utility.size_label` of the Python package `gguf`.
    #[test]
    fn labels_round_as_in_the_python_package() {
        let cases = [
            (1, "0.00K"),
            (5, "0.01K"),
            (15, "0.01K"),
            (25, "0.03K"),
            (125, "0.12K"),
            (499, "0.50K"),
            (500, "0.50K"),
            (501, "0.5K"),
            (1_250, "1.2K"),
            (1_350, "1.4K"),
            (9_499, "9.5K"),
            (9_500, "10K"),
            (9_501, "10K"),
            (10_500, "10K"),
            (11_500, "12K"),
            (999_999, "1000K"),
            (1_000_000, "1000K"),
            (1_000_001, "1.0M"),
            (4_223_232, "4.2M"),
            (124_439_808, "124M"),
            (8_030_261_248, "8.0B"),
            (1_000_000_000_000, "1000B"),
            (1_000_000_000_001, "1.0T"),
            (u64::MAX, "18446744T"),
        ];
        for (total, label) in cases {
            let count = ParameterCount { total, ..Default::default() };
            assert_eq!(count.size_label().as_deref(), Some(label), "{total}");
        }
    }

    #[test]
    fn experts_are_counted_separately() {
        let count = ParameterCount::from_tensors([
            ("output.weight", &[10, 10][..]),
            ("blk.0.ffn_up_exps.weight", &[10, 20, 4]),
            ("blk.0.ffn_up_exps.bias", &[20, 4]),
            ("blk.1.ffn_up_exps.bias", &[1, 20, 4]),
            ("blk.1.ffn_up_exps.weight", &[10, 20, 0]),
        ]);
        // A tensor of two dimensions looks like a plain matrix and counts as shared, as in the
        // Python package.
        assert_eq!((count.total, count.shared), (100 + 800 + 80 + 80, 100 + 80));
        assert_eq!((count.expert, count.expert_count), (200 + 80 / 20, (4 + 20) / 2));
        assert_eq!(count.size_label().as_deref(), Some("12x0.38K"));
    }

    #[test]
    fn adapters_count_as_the_adapted_matrix() {
        let pair = [("a.lora_a", &[64, 4][..]), ("a.lora_b", &[4, 32])];
        let count = ParameterCount::from_tensors(pair);
        assert_eq!((count.total, count.adapter), (64 * 32, true));
        assert_eq!(count.size_label(), None);
        let count = ParameterCount::from_tensors(pair.into_iter().rev());
        assert_eq!(count, ParameterCount::default());
    }

    #[test]
    fn forged_shapes_saturate() {
        let count = ParameterCount::from_tensors([("a", &[u64::MAX, u64::MAX][..]), ("b", &[9])]);
        assert_eq!(count.total, u64::MAX);
    }
}

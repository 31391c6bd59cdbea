//! Recommended models among several of different size and loss.

/// Size and loss of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeAndLoss {
    /// File size in bytes.
    pub file_bytes: u64,
    /// Mean KL divergence from the reference model, in nats.
    pub mean_kld: f64,
    /// Standard error of the mean.
    pub mean_kld_error: f64,
}

impl SizeAndLoss {
    /// Whether this model is no larger than `other` and its divergence is lower by at least the standard error of the
    /// difference. The error is that of independent measurements; measurements on the same text differ by less.
    pub fn dominates(&self, other: &Self) -> bool {
        let error = libm::hypot(self.mean_kld_error, other.mean_kld_error);
        let is_better = self.file_bytes < other.file_bytes || self.mean_kld < other.mean_kld;
        is_better
            && self.file_bytes <= other.file_bytes
            && self.mean_kld <= other.mean_kld
            && other.mean_kld - self.mean_kld >= error
    }

    /// Whether both models have the same size and loss.
    fn equals(&self, other: &Self) -> bool {
        self.file_bytes == other.file_bytes && self.mean_kld == other.mean_kld
    }
}

/// Use that accepts a certain loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Nearly lossless.
    Faithful,
    /// The usual compromise.
    Balanced,
    /// The smallest size without obvious damage.
    Small,
}

impl Purpose {
    /// All purposes, the one with the largest files first.
    pub const ALL: [Self; 3] = [Self::Faithful, Self::Balanced, Self::Small];

    /// Returns the greatest accepted mean KL divergence, in nats.
    pub const fn limit(self) -> f64 {
        match self {
            Self::Faithful => 0.001,
            Self::Balanced => 0.01,
            Self::Small => 0.05,
        }
    }

    /// Returns the name of the purpose: `nearly lossless`, `balanced` or `small`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Faithful => "nearly lossless",
            Self::Balanced => "balanced",
            Self::Small => "small",
        }
    }

    /// Returns what the recommended model is, as a sentence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Faithful => {
                "The smallest type with a mean KL divergence of at most 0.001: hard to distinguish from the reference."
            }
            Self::Balanced => {
                "The smallest type with a mean KL divergence of at most 0.01: a good compromise for most uses."
            }
            Self::Small => {
                "The smallest type with a mean KL divergence of at most 0.05: for little memory. Answers begin to differ."
            }
        }
    }
}

/// Returns the number of the recommended model for each purpose: the smallest one whose divergence the purpose accepts. Each
/// model is recommended once.
pub fn recommended(models: &[SizeAndLoss]) -> Vec<(Purpose, usize)> {
    let mut all: Vec<(Purpose, usize)> = Vec::new();
    for purpose in Purpose::ALL {
        let fit = (0..models.len()).filter(|&model| models[model].mean_kld <= purpose.limit());
        let choice = fit.min_by(|&a, &b| {
            let (a, b) = (&models[a], &models[b]);
            a.file_bytes.cmp(&b.file_bytes).then(a.mean_kld.total_cmp(&b.mean_kld))
        });
        let is_new = |model: &usize| all.iter().all(|(_, other)| other != model);
        all.extend(choice.filter(is_new).map(|model| (purpose, model)));
    }
    all
}

/// Returns, for each model, the number of the best model that dominates it. The first of equal models is not dominated,
/// the others are.
pub fn dominating(models: &[SizeAndLoss]) -> Vec<Option<usize>> {
    let dominating = |this: usize| {
        let better = (0..models.len()).filter(|&other| {
            models[other].dominates(&models[this])
                || other < this && models[other].equals(&models[this])
        });
        better.min_by(|&a, &b| models[a].mean_kld.total_cmp(&models[b].mean_kld).then(a.cmp(&b)))
    };
    (0..models.len()).map(dominating).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(all: &[(u64, f64, f64)]) -> Vec<SizeAndLoss> {
        let model = |&(file_bytes, mean_kld, mean_kld_error): &(u64, f64, f64)| SizeAndLoss {
            file_bytes,
            mean_kld,
            mean_kld_error,
        };
        all.iter().map(model).collect()
    }

    /// Mean KL divergences of two types that public reports compare: the difference is less than the error.
    #[test]
    fn a_difference_within_the_error_is_none() {
        let close = models(&[(267, 0.006569, 0.000211), (255, 0.006418, 0.000186)]);
        assert_eq!(dominating(&close), [None, None]);
        let apart = models(&[(267, 0.006569, 0.000021), (255, 0.006418, 0.000019)]);
        assert_eq!(dominating(&apart), [Some(1), None]);
        // Lossless types have no error: the larger one is dominated.
        assert_eq!(dominating(&models(&[(200, 0.0, 0.0), (100, 0.0, 0.0)])), [Some(1), None]);
        assert_eq!(dominating(&models(&[(9, 0.1, 0.01), (9, 0.1, 0.01)])), [None, Some(0)]);
    }

    #[test]
    fn no_model_is_recommended_twice() {
        let one = models(&[(5, 0.0001, 0.0)]);
        assert_eq!(recommended(&one), [(Purpose::Faithful, 0)]);
        assert!(recommended(&models(&[(5, 0.1, 0.0)])).is_empty());
        assert!(recommended(&[]).is_empty());
        let three = models(&[(9, 0.0009, 0.0), (5, 0.01, 0.0), (4, 0.02, 0.0), (3, 0.05, 0.0)]);
        let expected = [(Purpose::Faithful, 0), (Purpose::Balanced, 1), (Purpose::Small, 3)];
        assert_eq!(recommended(&three), expected);
    }
}

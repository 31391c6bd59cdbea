//! What was found of an original and of what was made of it: the form in files, and what follows from it.

use std::path::Path;

use gguf::Finding;
use serde::{Deserialize, Serialize};

use crate::{Error, read_text};

/// The form of the file.
pub(super) const VERSION: u32 = 1;

/// A finished report, or one that lacks types yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The form of this file: 1.
    pub version: u32,
    /// What everything was measured with.
    pub conditions: Conditions,
    /// The original.
    pub original: Original,
    /// What was made of it, in the order of measuring.
    pub mixes: Vec<Mix>,
    /// Types that were left out, and why.
    pub left_out: Vec<LeftOut>,
}

/// What everything was measured with. Figures go together if these are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// The program that measured.
    pub program: String,
    /// A digest of the original: its header and some rows of each tensor.
    pub original_digest: String,
    /// The file with the text.
    pub text: String,
    /// The SHA-256 of the text.
    pub text_digest: String,
    /// Tokens of a window.
    pub window_tokens: usize,
    /// How far each window is from the one before, where they overlap.
    pub stride: Option<usize>,
    /// Windows that were read.
    pub windows: usize,
    /// Tokens that were predicted.
    pub predictions: usize,
    /// How products were computed for the figures: `exact` or `fast`.
    pub arithmetic: String,
    /// How caches stored keys and values.
    pub cache_type: String,
    /// Low-rank adapters that were added to all, as the user named them.
    pub adapters: Vec<String>,
    /// The importance matrix that guided the encoders.
    pub imatrix: Option<String>,
    /// The SHA-256 of that file.
    pub imatrix_digest: Option<String>,
    /// The method and the text by which weights of some mixes were rounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<String>,
    /// How speeds were measured, if they were: tokens of a prompt, tokens made, threads.
    pub trial: Option<[usize; 3]>,
    /// Tokens whose caches, in F16, count as memory.
    pub memory_tokens: usize,
}

/// Sizes and speeds of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bits of tensor data per element.
    pub bits_per_weight: f64,
    /// Bytes of all tensors and of full caches.
    pub memory_bytes: u64,
    /// Tokens of a prompt that are read per second.
    pub prompt_tokens_per_second: Option<f64>,
    /// Tokens that are made per second, one after the other.
    pub generation_tokens_per_second: Option<f64>,
}

/// The model that all others were made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Original {
    /// As the user named it.
    pub file: String,
    /// `general.name`.
    pub name: Option<String>,
    /// `general.architecture`.
    pub architecture: Option<String>,
    /// The type that `general.file_type` stands for.
    pub file_type: Option<String>,
    /// Elements of all tensors.
    pub parameters: u64,
    /// Its perplexity; 0 before the first window is read.
    pub ppl: f64,
    /// The standard error of it.
    pub ppl_error: f64,
    /// What it costs.
    #[serde(flatten)]
    pub cost: Cost,
}

/// What was found of one mix. The names of figures are those of `gguf divergence --json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// Its name.
    #[serde(rename = "type")]
    pub name: String,
    /// What it costs.
    #[serde(flatten)]
    pub cost: Cost,
    /// Its perplexity.
    pub ppl_q: f64,
    /// The standard error of it.
    pub ppl_q_error: f64,
    /// The ratio of its perplexity to that of the original.
    pub ppl_ratio: f64,
    /// The standard error of that: both read the same text, so it is small.
    pub ppl_ratio_error: f64,
    /// The mean divergence from the original, in nats.
    pub mean_kld: f64,
    /// The standard error of it.
    pub mean_kld_error: f64,
    /// The median of the divergences of all predictions.
    pub median_kld: f64,
    /// 99 % are below this one.
    pub kld_99: f64,
    /// The greatest of them.
    pub max_kld: f64,
    /// Percent of predictions with the most likely token of the original.
    pub same_top: f64,
    /// The standard error of it.
    pub same_top_error: f64,
    /// The mean divergence by the place in the window: runs of places of equal length.
    pub kld_by_position: Vec<Run>,
    /// What happened to each tensor that has another type than in the original.
    pub tensors: Vec<TensorError>,
    /// The mix that is no larger and no worse, and one of both better; `null` if there is none.
    pub dominated_by: Option<String>,
}

/// Places of a window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The first place, counted from 0.
    pub from: usize,
    /// The one after the last.
    pub to: usize,
    /// The mean divergence there.
    pub mean_kld: f64,
}

/// How far the weights of a tensor are from those of the original.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TensorError {
    /// Its name.
    pub name: String,
    /// The type that it has.
    #[serde(rename = "type")]
    pub tensor_type: String,
    /// The root of the sum of squared differences to that of squared weights: 0 is alike, 1 as if all
    /// weights were 0.
    pub error: f64,
}

/// A type that was not made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its name.
    #[serde(rename = "type")]
    pub name: String,
    /// Why.
    pub why: String,
}

/// How much divergence a reader accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Nearly nothing is to be lost.
    Faithful,
    /// The common trade.
    Balanced,
    /// As small as it gets before it shows.
    Small,
}

impl Purpose {
    /// All of them, the largest files first.
    pub const ALL: [Self; 3] = [Self::Faithful, Self::Balanced, Self::Small];

    /// The mean divergence that it accepts, in nats.
    pub const fn limit(self) -> f64 {
        match self {
            Self::Faithful => 0.001,
            Self::Balanced => 0.01,
            Self::Small => 0.05,
        }
    }
}

impl Report {
    /// Reads one from a file.
    ///
    /// # Errors
    /// `report-invalid` if the file is no report of this form; if it cannot be read.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = read_text(path)?;
        let invalid =
            |what: String| Error::from(Finding::error("report-invalid", what)).in_file(path);
        let report: Self = serde_json::from_str(&text)
            .map_err(|fault| invalid(format!("is no report of `gguf quality`: {fault}")))?;
        match report.version {
            VERSION => Ok(report),
            other => {
                Err(invalid(format!("is a report of form {other}, this program reads {VERSION}")))
            }
        }
    }

    /// The form for programs.
    pub fn to_json(&self) -> String {
        // Figures and names are always JSON.
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }

    /// The smallest mix whose mean divergence a purpose accepts.
    pub fn choice(&self, purpose: Purpose) -> Option<&Mix> {
        let fit = self.mixes.iter().filter(|mix| mix.mean_kld <= purpose.limit());
        fit.min_by(|a, b| {
            let size = |mix: &Mix| mix.cost.file_bytes;
            size(a).cmp(&size(b)).then(a.mean_kld.total_cmp(&b.mean_kld))
        })
    }

    /// The choice for each purpose that any mix fits; each mix once.
    pub fn choices(&self) -> Vec<(Purpose, &Mix)> {
        let mut all: Vec<(Purpose, &Mix)> = Vec::new();
        for purpose in Purpose::ALL {
            let choice = self.choice(purpose);
            let is_new = |mix: &&Mix| all.iter().all(|(_, other)| other.name != mix.name);
            all.extend(choice.filter(is_new).map(|mix| (purpose, mix)));
        }
        all
    }

    /// The mixes that no other one makes pointless, the smallest first: the Pareto line.
    pub fn front(&self) -> Vec<&Mix> {
        let mut front: Vec<_> =
            self.mixes.iter().filter(|mix| mix.dominated_by.is_none()).collect();
        front.sort_by_key(|mix| mix.cost.file_bytes);
        front
    }

    /// All mixes, the largest first.
    pub fn by_size(&self) -> Vec<&Mix> {
        let mut all: Vec<_> = self.mixes.iter().collect();
        all.sort_by(|a, b| {
            let size = |mix: &Mix| mix.cost.file_bytes;
            size(b).cmp(&size(a)).then(a.mean_kld.total_cmp(&b.mean_kld))
        });
        all
    }

    /// Says of every mix which other one makes it pointless: of those that are no larger and no worse,
    /// the
    /// best. Of two that are equal the first one stays.
    pub(super) fn find_dominated(&mut self) {
        let size_and_loss = |mix: &Mix| (mix.cost.file_bytes, mix.mean_kld);
        let all: Vec<_> = self.mixes.iter().map(size_and_loss).collect();
        let instead_of = |this: usize| {
            let (size, loss) = all[this];
            let better = (0..all.len()).filter(|&other| {
                let no_worse = all[other].0 <= size && all[other].1 <= loss;
                no_worse && (all[other] != all[this] || other < this)
            });
            let best = better.min_by(|&a, &b| all[a].1.total_cmp(&all[b].1).then(a.cmp(&b)))?;
            Some(self.mixes[best].name.clone())
        };
        let found: Vec<_> = (0..all.len()).map(instead_of).collect();
        for (mix, instead) in self.mixes.iter_mut().zip(found) {
            mix.dominated_by = instead;
        }
    }

    /// The table for spreadsheets: a line per mix, the largest first, after the original.
    pub fn to_csv(&self) -> String {
        const COLUMNS: &str = "type,file_bytes,bits_per_weight,ppl,ppl_error,mean_kld,mean_kld_error,median_kld,\
             kld_99,max_kld,same_top,same_top_error,prompt_tokens_per_second,\
             generation_tokens_per_second,memory_bytes,dominated_by\n";
        let speed = |speed: Option<f64>| speed.map_or(String::new(), |speed| speed.to_string());
        let line = |name: &str, cost: &Cost, figures: String, instead: &str| {
            let Cost { file_bytes, bits_per_weight, memory_bytes, .. } = cost;
            let prompt = speed(cost.prompt_tokens_per_second);
            let generation = speed(cost.generation_tokens_per_second);
            format!(
                "{name},{file_bytes},{bits_per_weight},{figures},{prompt},{generation},{memory_bytes},{instead}\n"
            )
        };
        let Original { ppl, ppl_error, cost, .. } = &self.original;
        let mut text = COLUMNS.to_owned();
        text += &line("original", cost, format!("{ppl},{ppl_error},0,0,0,0,0,100,0"), "");
        for mix in self.by_size() {
            let figures = [
                mix.ppl_q,
                mix.ppl_q_error,
                mix.mean_kld,
                mix.mean_kld_error,
                mix.median_kld,
                mix.kld_99,
                mix.max_kld,
                mix.same_top,
                mix.same_top_error,
            ];
            let figures = figures.map(|figure| figure.to_string()).join(",");
            let instead = mix.dominated_by.as_deref().unwrap_or_default();
            text += &line(&mix.name, &mix.cost, figures, instead);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report of mixes with these sizes and divergences.
    fn report(mixes: &[(&str, u64, f64)]) -> Report {
        let mix = |&(name, file_bytes, mean_kld): &(&str, u64, f64)| Mix {
            name: name.to_owned(),
            cost: Cost { file_bytes, ..Cost::default() },
            mean_kld,
            ..Mix::default()
        };
        let mut report = Report {
            version: VERSION,
            conditions: Conditions::default(),
            original: Original::default(),
            mixes: mixes.iter().map(mix).collect(),
            left_out: Vec::new(),
        };
        report.find_dominated();
        report
    }

    #[test]
    fn what_another_mix_makes_pointless() {
        let report = report(&[
            ("large", 90, 0.0001),
            ("like large", 90, 0.0001),
            ("worse", 60, 0.02),
            ("better", 60, 0.009),
            ("as good, larger", 70, 0.009),
            ("small", 30, 0.04),
            ("hopeless", 40, 2.0),
        ]);
        let instead: Vec<_> = report.mixes.iter().map(|mix| mix.dominated_by.as_deref()).collect();
        let wanted =
            [None, Some("large"), Some("better"), None, Some("better"), None, Some("small")];
        assert_eq!(instead, wanted);
        let names = |mixes: Vec<&Mix>| mixes.iter().map(|mix| mix.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(report.front()), ["small", "better", "large"]);
        assert_eq!(names(report.by_size())[..3], ["large", "like large", "as good, larger"]);
        let chosen = report.choices().into_iter().map(|(purpose, mix)| (purpose, &*mix.name));
        let wanted = [
            (Purpose::Faithful, "large"),
            (Purpose::Balanced, "better"),
            (Purpose::Small, "small"),
        ];
        assert_eq!(chosen.collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn a_mix_is_recommended_once_and_none_if_nothing_fits() {
        let names = |report: &Report| -> Vec<String> {
            report.choices().iter().map(|(_, mix)| mix.name.clone()).collect()
        };
        assert_eq!(names(&report(&[("one", 5, 0.0001)])), ["one"]);
        assert!(names(&report(&[("one", 5, 0.1)])).is_empty());
        assert!(names(&report(&[])).is_empty());
    }
}

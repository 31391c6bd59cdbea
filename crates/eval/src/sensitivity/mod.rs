//! Per-tensor quantization sensitivity: the KL divergence that each type of each tensor causes.
//!
//! The KL divergence of a group of tensors is measured with only that group quantized. Measuring every type would take
//! one run per type. Unless all types are measured, a group is measured in one type, and the others follow from the
//! weight errors: the divergence grows with the square of small changes of the logits, and these with the squared
//! errors of the weights, which are known for every type.

mod joint;
mod variants;

use std::collections::BTreeMap;

use gguf::{Error, TensorType};
use gguf_quantize::budget::{FreeTensor, free_tensors};
use gguf_quantize::sensitivity::{Group, Sensitivity, Tensor, VERSION};
use gguf_store::{Model, Progress};

pub use self::variants::{Variant, divergence_of_variants};
use crate::{Chunks, RunOptions, Subject};

/// Grouping of tensors that are quantized together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// Each tensor alone.
    #[default]
    Tensor,
    /// Tensors with the same role in all layers.
    Role,
    /// The tensors of a layer.
    Block,
}

/// Options of a sensitivity measurement.
pub struct SensitivityOptions<'h> {
    /// Types to measure; empty for all types that a budget may choose.
    pub types: &'h [TensorType],
    /// Grouping of tensors.
    pub grouping: Grouping,
    /// Measures every type instead of one type per group.
    pub exact: bool,
    /// Number of runs from which the effects are estimated, each with a random half of the groups, at least 8; `None` for a
    /// run per group.
    pub runs: Option<usize>,
    /// Maximum number of variants in memory.
    pub together: usize,
    /// Execution options.
    pub run: RunOptions,
}

/// Types in which a group is measured if not all types are: the first that fits the rows of a tensor. Types of medium
/// size give the smallest errors for all others.
const PROBE_TYPES: [TensorType; 2] = [TensorType::Q3_K, TensorType::Q4_0];

/// A measurement of a group.
struct Probe {
    /// Index and type of each tensor.
    members: Vec<(usize, TensorType)>,
    /// Sum of the weight errors.
    error: f64,
    /// Measured KL divergence.
    divergence: f64,
}

/// Measures the sensitivity of `model`, which `subject` runs, on chunks of text. File names in the result are empty.
///
/// # Errors
/// `sensitivity-lacks` if no tensor can have any of the types; as [`free_tensors`] and [`divergence_of_variants`].
pub fn measure_sensitivity(
    model: &Model,
    quantization: &gguf_quantize::QuantizeOptions,
    subject: &Subject,
    chunks: &Chunks,
    options: &SensitivityOptions<'_>,
    progress: &dyn Progress,
) -> Result<Sensitivity, Error> {
    progress.begin("measuring weights", model.byte_len());
    let mut tensors = free_tensors(model, quantization, progress)?;
    for tensor in &mut tensors {
        let stored = tensor.item.tensor.stored_type;
        let is_selected = |ty: TensorType| options.types.is_empty() || options.types.contains(&ty);
        tensor.losses.retain(|(ty, _)| *ty != stored && is_selected(*ty));
    }
    tensors.retain(|tensor| !tensor.losses.is_empty());
    let used = &subject.executor.graph().raw().weights;
    let is_used = |tensor: &FreeTensor| used.iter().any(|w| w.name == tensor.item.tensor.name);
    let (tensors, unused): (Vec<FreeTensor>, Vec<FreeTensor>) =
        tensors.into_iter().partition(is_used);
    if tensors.is_empty() {
        let what = format!("no tensor of {} can have any of the types", subject.name);
        return Err(Error::request("sensitivity-lacks", what, "name other types"));
    }
    let groups = groups(&tensors, options.grouping);
    let mut probes: Vec<Vec<Probe>> =
        groups.iter().map(|(_, members)| probes(&tensors, members, options.exact)).collect();
    let variant = |probe: &Probe| -> Variant<'_> {
        probe.members.iter().map(|(tensor, ty)| (&tensors[*tensor].item, *ty)).collect()
    };
    let variants: Vec<_> = probes.iter().flatten().map(variant).collect();
    let together = options.together;
    // A run per group is exact.
    let joint = options.runs.map(|runs| runs.max(8)).filter(|runs| *runs < variants.len());
    let runs = match joint {
        Some(runs) => runs + 1,
        None => variants.len() + variants.len().div_ceil(together.max(1)),
    };
    progress.begin("reading", (runs * chunks.count() * (chunks.chunk_len() - 1)) as u64);
    let found = match joint {
        Some(runs) => joint::estimate(subject, &variants, runs, chunks, options.run, progress)?,
        None => {
            divergence_of_variants(subject, &variants, together, chunks, options.run, progress)?
        }
    };
    for (probe, divergence) in probes.iter_mut().flatten().zip(found) {
        // Rounding can make sums of tiny values negative.
        probe.divergence = divergence.max(0.0);
    }
    let mut by_name = BTreeMap::new();
    for ((_, members), probes) in groups.iter().zip(&probes) {
        for &member in members {
            let estimate = |ty: TensorType| divergence(&tensors, probes, member, ty);
            by_name.extend([entry(&tensors[member], &estimate)]);
        }
    }
    // Tensors that the graph does not use may matter to other programs: they get the average divergence per error.
    let all = || probes.iter().filter_map(|probes| probes.first());
    let errors: f64 = all().map(|probe| probe.error).sum();
    let average = all().map(|probe| probe.divergence).sum::<f64>() / errors.max(f64::MIN_POSITIVE);
    by_name.extend(unused.iter().map(|free| entry(free, &|ty| average * free.loss(ty))));
    let name_of = |member: &usize| tensors[*member].item.tensor.name.clone();
    let groups = groups.iter().zip(&probes).map(|((name, members), probes)| Group {
        name: name.clone(),
        tensors: members.iter().map(name_of).collect(),
        measured: probes.iter().map(|probe| (probe.name(), probe.divergence)).collect(),
    });
    Ok(Sensitivity {
        version: VERSION,
        program: concat!("gguf ", env!("CARGO_PKG_VERSION")).to_owned(),
        model: String::new(),
        text: String::new(),
        chunk_size: chunks.chunk_len(),
        chunks: chunks.count(),
        tokens: chunks.predicted(),
        imatrix: None,
        groups: groups.collect(),
        tensors: by_name,
    })
}

/// Returns name and entry of a tensor in the result.
fn entry(free: &FreeTensor, divergence: &dyn Fn(TensorType) -> f64) -> (String, Tensor) {
    let FreeTensor { item, losses } = free;
    let by_type = |value: &dyn Fn(TensorType, f64) -> f64| {
        losses.iter().map(|(ty, loss)| (ty.name().into_owned(), value(*ty, *loss))).collect()
    };
    let tensor = Tensor {
        shape: item.tensor.shape.to_vec(),
        divergence: by_type(&|ty, _| divergence(ty)),
        error: by_type(&|_, loss| loss),
    };
    (item.tensor.name.clone(), tensor)
}

/// Groups tensors, in the order of the file.
fn groups(tensors: &[FreeTensor], grouping: Grouping) -> Vec<(String, Vec<usize>)> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for (number, tensor) in tensors.iter().enumerate() {
        let name = tensor.item.tensor.name.as_str();
        let in_block = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
        let group = match (grouping, in_block) {
            (Grouping::Role, Some((_, role))) => role.to_owned(),
            (Grouping::Block, Some((block, _))) => format!("blk.{block}"),
            _ => name.to_owned(),
        };
        match groups.iter_mut().find(|(name, _)| *name == group) {
            Some((_, members)) => members.push(number),
            None => groups.push((group, vec![number])),
        }
    }
    groups
}

/// Returns the measurements of a group.
fn probes(tensors: &[FreeTensor], members: &[usize], exact: bool) -> Vec<Probe> {
    let types = |member: &usize| tensors[*member].losses.iter().map(|(ty, _)| *ty);
    let probe = |type_of: &dyn Fn(&usize) -> Option<TensorType>| {
        let members = members.iter().filter_map(|member| Some((*member, type_of(member)?)));
        let members: Vec<_> = members.collect();
        let error = members.iter().map(|(member, ty)| tensors[*member].loss(*ty)).sum();
        Probe { members, error, divergence: 0.0 }
    };
    if !exact {
        let has = |member: &usize, ty: &TensorType| types(member).any(|other| other == *ty);
        let fits = |member: &usize| PROBE_TYPES.into_iter().find(|ty| has(member, ty));
        // If neither is among the selected types, the first selected one.
        return vec![probe(&|member| fits(member).or_else(|| types(member).next()))];
    }
    let mut all: Vec<TensorType> = Vec::new();
    for ty in members.iter().flat_map(types) {
        if !all.contains(&ty) {
            all.push(ty);
        }
    }
    let with_type = |ty: TensorType| probe(&|member| types(member).find(|other| *other == ty));
    all.into_iter().map(with_type).collect()
}

impl Probe {
    /// Returns the names of its types.
    fn name(&self) -> String {
        let mut names: Vec<_> = self.members.iter().map(|(_, ty)| ty.name()).collect();
        names.sort_unstable();
        names.dedup();
        names.join("+")
    }
}

/// Returns the KL divergence of a tensor in a type: the measured divergence of its group in that type, or else in
/// another type, scaled by the ratio of the weight errors.
fn divergence(tensors: &[FreeTensor], probes: &[Probe], member: usize, ty: TensorType) -> f64 {
    let measured = probes.iter().find(|probe| probe.members.contains(&(member, ty)));
    let Some(probe) = measured.or(probes.first()) else { return 0.0 };
    let error = tensors[member].loss(ty);
    if probe.error > 0.0 { probe.divergence * error / probe.error } else { 0.0 }
}

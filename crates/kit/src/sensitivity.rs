//! What each type of each tensor does to the predictions of a model, as an error model for a budget.
//!
//! A group of tensors is encoded, and nothing else: the divergence from the original is what the group
//! does alone. Measuring that for every type takes as many runs as there are types. So a group is measured
//! in one type only, unless it is to be exact: divergence grows with the squares of small changes of
//! logits, and these with the squared errors of the weights, which are known for every type.

use std::collections::BTreeMap;

use gguf::TensorType;
use gguf_eval::{RunOptions, Subject, Variant, Windows, sensitivity};
use gguf_quantize::budget::{Free, free};
use gguf_quantize::sensitivity::{Group, Sensitivity, Tensor, VERSION};
use gguf_store::{Model, Progress};

use crate::eval::{Opened, Task};
use crate::quantize::Choice;
use crate::{Error, run};

/// Which tensors are encoded together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Each alone.
    #[default]
    Tensor,
    /// Those that do the same in each block.
    Role,
    /// Those of a block.
    Block,
}

/// What is asked for.
#[derive(Clone)]
pub struct Options {
    /// The text, how it is cut, and how models read it.
    pub task: Task,
    /// What the file with the text is called.
    pub text: String,
    /// How models are run.
    pub run: run::Options,
    /// What guides the encoders.
    pub imatrix: Option<Choice>,
    /// Whether a model that is quantized already will do.
    pub allow_requantize: bool,
    /// The types that are told of; all that a budget may choose if there is none.
    pub types: Vec<TensorType>,
    /// Which tensors are encoded together.
    pub by: By,
    /// Measure every type.
    pub exact: bool,
    /// Variants that are in memory at a time.
    pub together: usize,
}

/// The type in which a group is measured where not every one is: the first that fits the rows of a tensor.
/// One in the middle, from which errors are near to all others.
const PROBE: [TensorType; 2] = [TensorType::Q3_K, TensorType::Q4_0];

/// A group in types in which it is measured.
struct Probe {
    /// The places of tensors, and their types.
    members: Vec<(usize, TensorType)>,
    /// What they lose in the weights together.
    error: f64,
    /// What was measured.
    divergence: f64,
}

/// Measures the model that `word` names.
///
/// # Errors
/// `sensitivity-lacks` if no tensor can have any of the types; as [`free`], [`crate::eval::divergence`].
pub fn measure(
    word: &str,
    options: &Options,
    progress: &dyn Progress,
) -> Result<Sensitivity, Error> {
    let opened = Opened::fetch(word, &options.run, progress)?;
    let mut quantization = gguf_quantize::Options {
        allow_requantize: options.allow_requantize,
        ..gguf_quantize::Options::default()
    };
    if let Some(imatrix) = &options.imatrix {
        imatrix.add_to(&mut quantization)?;
    }
    let windows = opened.windows(&options.task)?;
    let how = How {
        types: &options.types,
        by: options.by,
        exact: options.exact,
        together: options.together,
        run: options.task.run,
    };
    let (model, subject) = (opened.model(), opened.subject());
    let found = of_windows(model, &quantization, &subject, &windows, &how, progress)?;
    Ok(Sensitivity {
        model: word.to_owned(),
        text: options.text.clone(),
        imatrix: options.imatrix.as_ref().map(|imatrix| imatrix.file.display().to_string()),
        ..found
    })
}

/// What is measured in windows.
pub(crate) struct How<'h> {
    pub types: &'h [TensorType],
    pub by: By,
    pub exact: bool,
    pub together: usize,
    pub run: RunOptions,
}

/// The same of a model that is open, which `subject` computes; the names of files are left out.
pub(crate) fn of_windows(
    model: &Model,
    quantization: &gguf_quantize::Options,
    subject: &Subject,
    windows: &Windows,
    how: &How<'_>,
    progress: &dyn Progress,
) -> Result<Sensitivity, Error> {
    progress.begin("measuring weights", model.byte_len());
    let mut tensors = free(model, quantization, progress)?;
    for tensor in &mut tensors {
        let stored = tensor.item.tensor.stored_type;
        let wanted = |ty: TensorType| how.types.is_empty() || how.types.contains(&ty);
        tensor.losses.retain(|(ty, _)| *ty != stored && wanted(*ty));
    }
    tensors.retain(|tensor| !tensor.losses.is_empty());
    let used = &subject.executor.graph().raw().weights;
    let is_used = |tensor: &Free| used.iter().any(|w| w.name == tensor.item.tensor.name);
    let (tensors, unused): (Vec<Free>, Vec<Free>) = tensors.into_iter().partition(is_used);
    if tensors.is_empty() {
        let what = format!("no tensor of {} can have any of the types", subject.name);
        return Err(Error::request("sensitivity-lacks", what, "name other types"));
    }
    let groups = groups(&tensors, how.by);
    let mut probes: Vec<Vec<Probe>> =
        groups.iter().map(|(_, members)| probes(&tensors, members, how.exact)).collect();
    let variant = |probe: &Probe| -> Variant<'_> {
        probe.members.iter().map(|(tensor, ty)| (&tensors[*tensor].item, *ty)).collect()
    };
    let variants: Vec<_> = probes.iter().flatten().map(variant).collect();
    let runs = variants.len() + variants.len().div_ceil(how.together.max(1));
    progress.begin("reading", (runs * windows.count() * (windows.window_len() - 1)) as u64);
    let found = sensitivity(subject, &variants, how.together, windows, how.run, progress)?;
    for (probe, divergence) in probes.iter_mut().flatten().zip(found) {
        // Sums of nearly nothing may come out below 0.
        probe.divergence = divergence.max(0.0);
    }
    let mut by_name = BTreeMap::new();
    for ((_, members), probes) in groups.iter().zip(&probes) {
        for &member in members {
            let does = |ty: TensorType| divergence(&tensors, probes, member, ty);
            by_name.extend([entry(&tensors[member], &does)]);
        }
    }
    // What is not computed with here, other programs may compute with: it counts as all others do.
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
        window_tokens: windows.window_len(),
        windows: windows.count(),
        predictions: windows.predicted(),
        imatrix: None,
        groups: groups.collect(),
        tensors: by_name,
    })
}

/// What the file says of a tensor, under its name.
fn entry(free: &Free, does: &dyn Fn(TensorType) -> f64) -> (String, Tensor) {
    let Free { item, losses } = free;
    let by_type = |of: &dyn Fn(TensorType, f64) -> f64| {
        losses.iter().map(|(ty, loss)| (ty.name().into_owned(), of(*ty, *loss))).collect()
    };
    let tensor = Tensor {
        shape: item.tensor.shape.to_vec(),
        divergence: by_type(&|ty, _| does(ty)),
        error: by_type(&|_, loss| loss),
    };
    (item.tensor.name.clone(), tensor)
}

/// Tensors by what they have in common, in the order of the file.
fn groups(tensors: &[Free], by: By) -> Vec<(String, Vec<usize>)> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for (number, tensor) in tensors.iter().enumerate() {
        let name = tensor.item.tensor.name.as_str();
        let in_block = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
        let common = match (by, in_block) {
            (By::Role, Some((_, role))) => role.to_owned(),
            (By::Block, Some((block, _))) => format!("blk.{block}"),
            _ => name.to_owned(),
        };
        match groups.iter_mut().find(|(name, _)| *name == common) {
            Some((_, members)) => members.push(number),
            None => groups.push((common, vec![number])),
        }
    }
    groups
}

/// What is to be measured of a group.
fn probes(tensors: &[Free], members: &[usize], exact: bool) -> Vec<Probe> {
    let types = |member: &usize| tensors[*member].losses.iter().map(|(ty, _)| *ty);
    let probe = |type_of: &dyn Fn(&usize) -> Option<TensorType>| {
        let members = members.iter().filter_map(|member| Some((*member, type_of(member)?)));
        let members: Vec<_> = members.collect();
        let error = members.iter().map(|(member, ty)| tensors[*member].loss(*ty)).sum();
        Probe { members, error, divergence: 0.0 }
    };
    if !exact {
        let has = |member: &usize, ty: &TensorType| types(member).any(|other| other == *ty);
        let fits = |member: &usize| PROBE.into_iter().find(|ty| has(member, ty));
        // Where other types are asked for, the first of them.
        return vec![probe(&|member| fits(member).or_else(|| types(member).next()))];
    }
    let mut all: Vec<TensorType> = Vec::new();
    for ty in members.iter().flat_map(types) {
        if !all.contains(&ty) {
            all.push(ty);
        }
    }
    let of_type = |ty: TensorType| probe(&|member| types(member).find(|other| *other == ty));
    all.into_iter().map(of_type).collect()
}

impl Probe {
    /// The names of its types.
    fn name(&self) -> String {
        let mut names: Vec<_> = self.members.iter().map(|(_, ty)| ty.name()).collect();
        names.sort_unstable();
        names.dedup();
        names.join("+")
    }
}

/// What a type of a tensor does: of what was measured in that type or else in another, the part that its
/// error is of the errors there.
fn divergence(tensors: &[Free], probes: &[Probe], member: usize, ty: TensorType) -> f64 {
    let measured = probes.iter().find(|probe| probe.members.contains(&(member, ty)));
    let Some(probe) = measured.or(probes.first()) else { return 0.0 };
    let error = tensors[member].loss(ty);
    if probe.error > 0.0 { probe.divergence * error / probe.error } else { 0.0 }
}

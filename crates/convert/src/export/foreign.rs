//! Tensors under their foreign names, as the family's checkpoints have them.

use std::collections::{BTreeMap, BTreeSet};

use gguf::Model;

use crate::Error;
use crate::config::Config;
use crate::family::{Exported, Family, Made, Part, Target};
use crate::step::Step;
use crate::tensor::Tensor;

/// Blocks, or experts, that a pattern is filled in for at most: more than any model has.
const MOST: u64 = 10_000;

/// The tensors of `model` with what `family` did to them undone, in the order of the model.
///
/// # Errors
/// If a tensor has no foreign name, or a step cannot be undone.
pub(super) fn tensors<'a>(
    model: &Model<'a>,
    family: &dyn Family,
    exported: &Exported,
    config: &Config,
    notes: &mut Vec<String>,
) -> Result<Vec<Tensor<'a>>, Error> {
    let metadata = model.metadata();
    let architecture = family.architecture();
    let count = |key: &str| metadata.u64(&format!("{architecture}.{key}")).unwrap_or(0).min(MOST);
    let counts = [count("block_count"), count("expert_count")];
    // Our name to the foreign tensors that make it, in order of parts.
    let mut makers: BTreeMap<String, Vec<(String, Made)>> = BTreeMap::new();
    for name in exported.patterns.iter().flat_map(|pattern| filled(pattern, counts)) {
        let Target::Made(made) = family.tensor(config, &name)? else { continue };
        let [made] = &made[..] else { continue };
        let of_name = makers.entry(made.name.clone()).or_default();
        // The first of several spellings.
        if of_name.iter().all(|(_, other)| other.part != made.part) {
            of_name.push((name, made.clone()));
        }
    }
    let computed: BTreeSet<String> =
        family.computed(config)?.into_iter().map(|(name, _)| name).collect();
    let mut tensors = Vec::new();
    for tensor in model.tensors() {
        let name = &*tensor.info.name;
        if computed.contains(name) {
            continue;
        }
        let Some(makers) = makers.get(name) else {
            if name.starts_with("rope_") {
                notes.push(format!("left out `{name}`: the configuration cannot express it"));
                continue;
            }
            return Err(Error::Request {
                what: format!(
                    "tensor `{name}` has no name in checkpoints of {architecture} models"
                ),
                help: "export the tensors under their GGUF names: --to safetensors --keep-names"
                    .into(),
            });
        };
        for (foreign, made) in makers {
            let whole = Tensor::of_model(tensor);
            let undone = undo(whole, made).map_err(|what| Error::Request {
                what: format!("tensor `{name}` cannot become `{foreign}`: it {what}"),
                help: "export the tensors under their GGUF names: --to safetensors --keep-names"
                    .into(),
            })?;
            tensors.push(Tensor { name: foreign.clone(), ..undone });
        }
    }
    Ok(tensors)
}

/// The pattern with all numbers of blocks, and of experts, in it.
fn filled(pattern: &str, [blocks, experts]: [u64; 2]) -> Vec<String> {
    match pattern.matches("{}").count() {
        0 => vec![pattern.to_owned()],
        holes => {
            let blocks = (0..blocks).map(|block| pattern.replacen("{}", &block.to_string(), 1));
            if holes == 1 {
                return blocks.collect();
            }
            let with_experts = blocks.flat_map(|pattern| {
                (0..experts).map(move |expert| pattern.replacen("{}", &expert.to_string(), 1))
            });
            with_experts.collect()
        }
    }
}

/// The foreign tensor from which `made` makes (a part of) `whole`.
fn undo<'a>(whole: Tensor<'a>, made: &Made) -> Result<Tensor<'a>, String> {
    let mut tensor = match made.part {
        None => whole,
        Some(part) => part_of(whole, part)?,
    };
    for step in made.steps.iter().rev() {
        let inverse = step.inverse().ok_or_else(|| format!("was changed by {step:?}"))?;
        tensor = tensor.changed(inverse)?;
    }
    Ok(tensor)
}

/// One of the tensors that were joined along the slowest dimension.
fn part_of<'a>(whole: Tensor<'a>, Part { index, count }: Part) -> Result<Tensor<'a>, String> {
    let Some((&last, dims)) = whole.shape.split_last() else {
        return Err("has no dimensions".into());
    };
    if last != u64::from(count) || dims.is_empty() {
        return Err(format!("has {last} parts, not {count}"));
    }
    let rows: u64 = dims[1..].iter().product();
    let flat = gguf::Shape::new(&[dims[0], rows * last]);
    let shape = gguf::Shape::new(dims);
    let (Some(flat), Some(shape)) = (flat, shape) else { return Err("has no shape".into()) };
    whole
        .changed(Step::Reshape(flat))?
        .changed(Step::Pick { groups: 1, start: u64::from(index) * rows, len: rows })?
        .changed(Step::Reshape(shape))
}

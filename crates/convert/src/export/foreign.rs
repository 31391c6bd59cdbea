//! Tensors under their checkpoint names, with the steps of the conversion inverted.

use std::collections::{BTreeMap, BTreeSet};

use gguf::{Error, Shape, TensorType};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{RowSlice, Step, Tensor, TensorMismatch};
use gguf_store::{Model, ModelTensor};

use gguf_models::convert::{Converter, ExpertSlot, Exported, MappedTensor, Mapping};

/// Maximum number of experts for which a pattern is expanded, more than any model has.
const MOST: u64 = 10_000;

/// Checkpoint tensor to export.
struct SourceTensor {
    name: String,
    /// GGUF tensors that it maps to.
    made: Vec<MappedTensor>,
}

/// Returns the checkpoint tensors of `model`, in the order of the model, each with its stored type, which is a quantized
/// type if any of its parts is quantized.
///
/// # Errors
/// If a tensor has no checkpoint name, or a step has no inverse.
pub(super) fn tensors(
    model: &Model,
    converter: &'static dyn Converter,
    exported: &Exported,
    config: &Config,
    notes: &mut Vec<String>,
) -> Result<Vec<(Tensor, TensorType)>, Error> {
    let by_name: BTreeMap<&str, &ModelTensor> =
        model.tensors().iter().map(|tensor| (&*tensor.info.name, tensor)).collect();
    let architecture = converter.architecture();
    let refused = |what: String| {
        let help = "export the tensors under their GGUF names: --to safetensors --keep-names";
        Error::request("export-unsupported", what, help)
    };
    let (makers, vectors) = makers(model, converter, exported, config, &by_name)?;
    // GGUF tensor name to the number of parts that have a source, the number of all parts, and the sources whose first
    // tensor it is.
    let mut parts: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    let mut first_of: BTreeMap<&str, Vec<&SourceTensor>> = BTreeMap::new();
    for maker in &makers {
        for made in &maker.made {
            let count = made.slot.map_or(1, |part| part.count);
            parts.entry(&made.name).or_insert((0, count)).0 += 1;
        }
        if let Some(first) = maker.made.first() {
            first_of.entry(&first.name).or_default().push(maker);
        }
    }
    let computed = converter.computed_tensors(config)?.into_iter().map(|(name, _)| name);
    let computed: BTreeSet<String> = computed.chain(vectors).collect();
    let mut tensors = Vec::new();
    for tensor in model.tensors() {
        let name = &*tensor.info.name;
        if computed.contains(name) || exported.replaced.iter().any(|ours| ours == name) {
            continue;
        }
        let Some((found, count)) = parts.get(name) else {
            if name.starts_with("rope_") {
                notes.push(format!("skipped `{name}`: config.json cannot express it"));
                continue;
            }
            let what = format!(
                "tensor `{name}` has no name in checkpoints of the architecture {architecture}"
            );
            return Err(refused(what));
        };
        if found != count {
            let what = format!("only {found} of the {count} parts of tensor `{name}` have names");
            return Err(refused(what));
        }
        for maker in first_of.get(name).into_iter().flatten() {
            let whole = |made: &MappedTensor| {
                by_name.get(&*made.name).map(|tensor| Tensor::of_model(tensor))
            };
            let exported = source_tensor(converter, &maker.made, &whole).map_err(|what| {
                refused(format!("tensor `{name}` does not convert to `{}`: it {what}", maker.name))
            })?;
            let types = maker.made.iter().filter_map(whole).map(|tensor| tensor.stored_type);
            let blocks = types.into_iter().find(|ty| ty.is_quantized());
            let ty = blocks.unwrap_or(exported.stored_type);
            tensors.push((Tensor { name: maker.name.clone(), ..exported }, ty));
        }
    }
    let others = exported.tensors.iter().map(|tensor| (tensor.clone(), tensor.stored_type));
    tensors.extend(others);
    Ok(tensors)
}

/// Returns the checkpoint tensors of the model, the first of several spellings, if the model has all tensors that they
/// map to. Also returns the names of vectors that conversion adds to them.
fn makers(
    model: &Model,
    converter: &'static dyn Converter,
    exported: &Exported,
    config: &Config,
    by_name: &BTreeMap<&str, &ModelTensor>,
) -> Result<(Vec<SourceTensor>, Vec<String>), Error> {
    let prefix = format!("{}.", converter.architecture());
    let count = |is_counter: &dyn Fn(&str) -> bool| {
        let counters = model.metadata().iter().filter_map(|(key, value)| {
            value.to_u64().filter(|_| key.strip_prefix(&prefix).is_some_and(is_counter))
        });
        counters.max().unwrap_or(0)
    };
    // Encoders and decoders have separate layer counts. Names beyond the smaller one match nothing.
    let blocks = count(&|key| key.ends_with("block_count")).min(by_name.len() as u64);
    let experts = count(&|key| key == "expert_count").min(MOST);
    let (mut makers, mut vectors) = (Vec::new(), Vec::new());
    // Parts of each tensor that earlier sources provide; `None` for the whole tensor.
    let mut taken: BTreeMap<String, BTreeSet<Option<u32>>> = BTreeMap::new();
    // Returns whether the tensor of this name provides something that no earlier source provides.
    let mut take = |name: String| {
        let made = match converter.mapping(config, &name)? {
            Mapping::Tensors(made) => made,
            Mapping::WithVectors(beside, made) => {
                vectors.extend(beside.into_iter().map(|(name, _)| name));
                made
            }
            Mapping::Shared(ours) => {
                vec![MappedTensor { name: ours.into(), steps: vec![], slot: None }]
            }
            _ => return Ok::<bool, Error>(false),
        };
        let place = |made: &MappedTensor| made.slot.map(|part| part.index);
        let fits = |made: &MappedTensor| {
            let is_free = taken.get(&made.name).is_none_or(|taken| {
                made.slot.is_some() && !taken.contains(&None) && !taken.contains(&place(made))
            });
            is_free && by_name.contains_key(&*made.name)
        };
        let fits = !made.is_empty() && made.iter().all(fits);
        if fits {
            for made in &made {
                taken.entry(made.name.clone()).or_default().insert(place(made));
            }
            makers.push(SourceTensor { name, made });
        }
        Ok(fits)
    };
    for pattern in &exported.patterns {
        let filled = |pattern: &str, number: u64| pattern.replacen("{}", &number.to_string(), 1);
        match pattern.matches("{}").count() {
            0 => {
                take(pattern.clone())?;
            }
            1 => {
                for block in 0..blocks {
                    take(filled(pattern, block))?;
                }
            }
            _ => {
                for block in 0..blocks {
                    let pattern = filled(pattern, block);
                    // Either all experts of a layer match or none, so the first mismatch ends the loop.
                    for expert in 0..experts {
                        if !take(filled(&pattern, expert))? {
                            break;
                        }
                    }
                }
            }
        }
    }
    Ok((makers, vectors))
}

/// Returns the checkpoint tensor that maps to `made`. `whole` returns the GGUF tensors.
fn source_tensor(
    converter: &'static dyn Converter,
    made: &[MappedTensor],
    whole: &impl Fn(&MappedTensor) -> Option<Tensor>,
) -> Result<Tensor, TensorMismatch> {
    let tensors = || {
        let tensor = |made| whole(made).ok_or_else(|| TensorMismatch::from("is not there"));
        made.iter().map(tensor).collect::<Result<Vec<_>, _>>()
    };
    let is_float = |tensor: &Tensor| tensor.stored_type == TensorType::F32;
    match combine(converter, made, tensors()?) {
        // Quantized tensors cannot be transposed, and tensors of different types cannot be joined.
        Err(_) if !tensors()?.iter().all(is_float) => {
            let decoded = tensors()?.into_iter().map(|tensor| tensor.changed(Step::Decode));
            combine(converter, made, decoded.collect::<Result<_, _>>()?)
        }
        result => result,
    }
}

/// Combines GGUF tensors to the checkpoint tensor that maps to them as `made` describes.
fn combine(
    converter: &'static dyn Converter,
    made: &[MappedTensor],
    tensors: Vec<Tensor>,
) -> Result<Tensor, TensorMismatch> {
    let is_pick = |step: &Step| matches!(step, Step::Pick { .. });
    let mut pieces = made.iter().zip(tensors).map(|(made, whole)| {
        let tensor = match made.slot {
            None => whole,
            Some(part) if converter.is_row_stacked(&made.name) => {
                part_of(with_parts(whole, part.count)?, part)?
            }
            Some(part) => part_of(whole, part)?,
        };
        Ok::<_, TensorMismatch>((tensor, &made.steps[..]))
    });
    let Some((tensor, steps)) = pieces.next().transpose()? else {
        return Err("maps to no tensor".into());
    };
    let Some(at) = steps.iter().position(is_pick) else {
        return match pieces.next() {
            None => invert_steps(tensor, steps),
            // A tensor that is stored twice.
            Some(copy) if copy.as_ref().is_ok_and(|(_, others)| *others == steps) => {
                invert_steps(copy?.0, steps)
            }
            Some(_) => Err("is one of several tensors that are not slices of one tensor".into()),
        };
    };
    // The steps before the slicing are the same for all.
    let before = &steps[..at];
    let mut groups_of_all = None;
    let mut slices = Vec::new();
    for piece in std::iter::once(Ok((tensor, steps))).chain(pieces) {
        let (tensor, steps) = piece?;
        let [Step::Pick { groups, start, len }, after @ ..] =
            steps.strip_prefix(before).unwrap_or_default()
        else {
            return Err("is not sliced like the other parts".into());
        };
        if *groups_of_all.get_or_insert(*groups) != *groups {
            return Err("is not sliced like the other parts".into());
        }
        slices.push(RowSlice { start: *start, len: *len, tensor: invert_steps(tensor, after)? });
    }
    let interleaved = Tensor::interleaved("", groups_of_all.unwrap_or(1), slices)?;
    invert_steps(interleaved, before)
}

fn invert_steps(mut tensor: Tensor, steps: &[Step]) -> Result<Tensor, TensorMismatch> {
    for step in steps.iter().rev() {
        let inverse =
            step.inverse().ok_or_else(|| format!("has the step {step:?}, which has no inverse"))?;
        tensor = tensor.changed(inverse)?;
    }
    Ok(tensor)
}

/// Reshapes a tensor whose parts are stacked as rows to one with a dimension of parts.
fn with_parts(whole: Tensor, count: u32) -> Result<Tensor, TensorMismatch> {
    let (from, count) = (whole.shape, u64::from(count.max(1)));
    let dims = match from.split_last() {
        Some((last, dims)) if last % count == 0 => [dims, &[last / count, count]].concat(),
        _ => return Err(format!("has no {count} parts").into()),
    };
    let to = Shape::new(&dims).ok_or("has too many dimensions")?;
    whole.changed(Step::Reshape { from, to })
}

/// Returns one of the tensors that were joined along the slowest dimension.
fn part_of(
    whole: Tensor,
    ExpertSlot { index, count }: ExpertSlot,
) -> Result<Tensor, TensorMismatch> {
    let Some((&last, dims)) = whole.shape.split_last() else {
        return Err("has no dimensions".into());
    };
    let [row, others @ ..] = dims else { return Err("is not a matrix".into()) };
    if last != u64::from(count) {
        return Err(format!("has {last} parts, not {count}").into());
    }
    let rows: u64 = others.iter().product();
    let shapes = [&[*row, rows * last][..], &[*row, rows], dims].map(Shape::new);
    let [Some(flat), Some(after), Some(shape)] = shapes else { return Err("has no shape".into()) };
    let before = whole.shape;
    whole
        .changed(Step::Reshape { from: before, to: flat })?
        .changed(Step::Pick { groups: 1, start: u64::from(index) * rows, len: rows })?
        .changed(Step::Reshape { from: after, to: shape })
}

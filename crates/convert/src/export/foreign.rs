//! Tensors under their foreign names, as the family's checkpoints have them.

use std::collections::{BTreeMap, BTreeSet};

use gguf::{Error, Shape, TensorType};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{RowSlice, Step, Tensor, TensorMismatch};
use gguf_store::{Model, ModelTensor};

use gguf_models::convert::{Converter, ExpertSlot, Exported, MappedTensor, Mapping};

/// Experts that a pattern is filled in for at most: more than any model has.
const MOST: u64 = 10_000;

/// A foreign tensor to write.
struct SourceTensor {
    name: String,
    /// What is made of it.
    made: Vec<MappedTensor>,
}

/// The tensors of `model` with what `family` did to them undone, in the order of the model, each
/// with the type that its elements have there: a type of blocks if any of them are in blocks.
///
/// # Errors
/// If a tensor has no foreign name, or a step cannot be undone.
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
    // Our name to how many parts of how many have makers, and to the makers that it comes first of.
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
                notes.push(format!("left out `{name}`: the configuration cannot express it"));
                continue;
            }
            let what = format!("tensor `{name}` has no name in checkpoints of {architecture}");
            return Err(refused(what + " models"));
        };
        if found != count {
            let what = format!("only {found} of the {count} parts of tensor `{name}` have names");
            return Err(refused(what));
        }
        for maker in first_of.get(name).into_iter().flatten() {
            let whole = |made: &MappedTensor| {
                by_name.get(&*made.name).map(|tensor| Tensor::of_model(tensor))
            };
            let undone = undone(converter, &maker.made, &whole).map_err(|what| {
                refused(format!("tensor `{name}` cannot become `{}`: it {what}", maker.name))
            })?;
            let types = maker.made.iter().filter_map(whole).map(|tensor| tensor.stored_type);
            let blocks = types.into_iter().find(|ty| ty.is_quantized());
            let ty = blocks.unwrap_or(undone.stored_type);
            tensors.push((Tensor { name: maker.name.clone(), ..undone }, ty));
        }
    }
    let others = exported.tensors.iter().map(|tensor| (tensor.clone(), tensor.stored_type));
    tensors.extend(others);
    Ok(tensors)
}

/// The foreign tensors that the model's tensors are made of: of several spellings the first, and
/// only those of which the model has everything that is made of them. And the names of vectors that come with
/// these and are of no foreign tensor.
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
    // Encoders and decoders count their blocks apart: names beyond the shorter one fit nothing.
    let blocks = count(&|key| key.ends_with("block_count")).min(by_name.len() as u64);
    let experts = count(&|key| key == "expert_count").min(MOST);
    let (mut makers, mut vectors) = (Vec::new(), Vec::new());
    // The parts of each that something before makes already, and `None` for all of it.
    let mut taken: BTreeMap<String, BTreeSet<Option<u32>>> = BTreeMap::new();
    // Whether the tensor of this name makes what nothing before it makes.
    let mut take = |name: String| {
        let made = match converter.mapping(config, &name)? {
            Mapping::Made(made) => made,
            Mapping::Behind(beside, made) => {
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
                    // All experts of a block fit or none, so that the first that does not ends them.
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

/// The foreign tensor that `made` is made of, which `whole` finds.
fn undone(
    converter: &'static dyn Converter,
    made: &[MappedTensor],
    whole: &impl Fn(&MappedTensor) -> Option<Tensor>,
) -> Result<Tensor, TensorMismatch> {
    let tensors = || {
        let tensor = |made| whole(made).ok_or_else(|| TensorMismatch::from("is not there"));
        made.iter().map(tensor).collect::<Result<Vec<_>, _>>()
    };
    let is_float = |tensor: &Tensor| tensor.stored_type == TensorType::F32;
    match undo(converter, made, tensors()?) {
        // Of blocks columns cannot become rows, and tensors of different types none.
        Err(_) if !tensors()?.iter().all(is_float) => {
            let decoded = tensors()?.into_iter().map(|tensor| tensor.changed(Step::Decode));
            undo(converter, made, decoded.collect::<Result<_, _>>()?)
        }
        result => result,
    }
}

/// The foreign tensor that these are made of, each as `made` says.
fn undo(
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
        return Err("is made of nothing".into());
    };
    let Some(at) = steps.iter().position(is_pick) else {
        return match pieces.next() {
            None => undo_steps(tensor, steps),
            // One tensor that is stored twice.
            Some(copy) if copy.as_ref().is_ok_and(|(_, others)| *others == steps) => {
                undo_steps(copy?.0, steps)
            }
            Some(_) => Err("is one of several that do not divide a tensor among them".into()),
        };
    };
    // What is done before the rows are divided is the same for all.
    let before = &steps[..at];
    let mut groups_of_all = None;
    let mut slices = Vec::new();
    for piece in std::iter::once(Ok((tensor, steps))).chain(pieces) {
        let (tensor, steps) = piece?;
        let [Step::Pick { groups, start, len }, after @ ..] =
            steps.strip_prefix(before).unwrap_or_default()
        else {
            return Err("is not divided like the tensors beside it".into());
        };
        if *groups_of_all.get_or_insert(*groups) != *groups {
            return Err("is not divided like the tensors beside it".into());
        }
        slices.push(RowSlice { start: *start, len: *len, tensor: undo_steps(tensor, after)? });
    }
    let interleaved = Tensor::interleaved("", groups_of_all.unwrap_or(1), slices)?;
    undo_steps(interleaved, before)
}

fn undo_steps(mut tensor: Tensor, steps: &[Step]) -> Result<Tensor, TensorMismatch> {
    for step in steps.iter().rev() {
        let inverse = step.inverse().ok_or_else(|| format!("was changed by {step:?}"))?;
        tensor = tensor.changed(inverse)?;
    }
    Ok(tensor)
}

/// A tensor whose parts follow one another as rows, with a dimension of the parts.
fn with_parts(whole: Tensor, count: u32) -> Result<Tensor, TensorMismatch> {
    let (from, count) = (whole.shape, u64::from(count.max(1)));
    let dims = match from.split_last() {
        Some((last, dims)) if last % count == 0 => [dims, &[last / count, count]].concat(),
        _ => return Err(format!("has no {count} parts").into()),
    };
    let to = Shape::new(&dims).ok_or("has too many dimensions")?;
    whole.changed(Step::Reshape { from, to })
}

/// One of the tensors that were joined along the slowest dimension.
fn part_of(
    whole: Tensor,
    ExpertSlot { index, count }: ExpertSlot,
) -> Result<Tensor, TensorMismatch> {
    let Some((&last, dims)) = whole.shape.split_last() else {
        return Err("has no dimensions".into());
    };
    let [row, others @ ..] = dims else { return Err("is no matrix".into()) };
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

//! Which type each tensor becomes, and what that costs.

use std::collections::BTreeMap;

use gguf::{ByteOrder, Error, TensorType};
use gguf_pipeline::{Item, Job, Tensor};
use gguf_quantize::float_type;
use gguf_quantize::recipe::{Mix, Target};

use super::blocks::{StorageType, exact, near};
use super::header::Program;
use super::model::{Legacy, Options};
use super::tensor::OldTensor;

/// What becomes of the weights of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// The same bytes, or the same rows in another order.
    AsItIs,
    /// Other bytes of the very same weights.
    Exactly,
    /// The same levels, under scales that are rounded to half precision: each weight changes by
    /// one part in 2048 at most.
    RoundedScales,
    /// Other weights, as near as the type allows.
    Encoded,
}

/// What becomes of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its name in the output.
    pub name: String,
    /// How the old file stores it.
    pub from: String,
    /// Its type in the output.
    pub to: TensorType,
    /// At what cost.
    pub how: How,
}

impl std::fmt::Display for How {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Self::AsItIs => "as it is",
            Self::Exactly => "exactly",
            Self::RoundedScales => "same levels, scales rounded to half precision",
            Self::Encoded => "encoded anew",
        })
    }
}

/// One line for each kind of change; a word of advice if no type was asked for.
pub(super) fn summary(changes: &[Change], target: Option<Target>) -> Vec<String> {
    let mut kinds: BTreeMap<(&str, u32, How), usize> = BTreeMap::new();
    for change in changes.iter().filter(|change| change.how != How::AsItIs) {
        *kinds.entry((&change.from, change.to.id(), change.how)).or_default() += 1;
    }
    let line = |((from, to, how), count): ((&str, u32, How), usize)| {
        format!("{count} tensors from {from} to {}: {how}", TensorType::from_id(to))
    };
    let mut lines: Vec<String> = kinds.into_iter().map(line).collect();
    let widened = |change: &Change| change.how == How::Exactly && !change.to.is_quantized();
    if target.is_none() && changes.iter().any(widened) {
        lines.push(
            "no smaller type of today holds their weights exactly; with --outtype q4_0 and the \
             like, tensors of that type keep their levels, under scales of half precision"
                .to_owned(),
        );
    }
    lines
}

type Chosen = (Vec<Item>, Vec<Change>);

impl Legacy {
    /// Every tensor in the smallest type that has its very weights: its own if that still exists,
    /// half precision, single precision.
    pub(super) fn exact(&self, plain: Vec<Tensor>) -> Result<Chosen, Error> {
        let (mut items, mut changes) = (Vec::new(), Vec::new());
        for (tensor, plain) in self.tensors.iter().zip(plain) {
            let (item, how) = match tensor.whole.form {
                StorageType::Today(ty) => (Item::new(plain, ty), How::AsItIs),
                StorageType::Old(old) => {
                    let exact = exact(&*tensor.whole.bytes, old)?;
                    let item = match &tensor.today {
                        Some((ty, source)) if exact.today => {
                            Item::new(self.tensor(tensor, *ty, source.clone())?, *ty)
                        }
                        _ if exact.half => Item::new(plain, TensorType::F16),
                        _ => Item::new(plain, TensorType::F32),
                    };
                    (item, How::Exactly)
                }
            };
            changes.push(change(tensor, &item, how));
            items.push(item);
        }
        Ok((items, changes))
    }

    /// Every tensor in the type that a recipe gives it.
    pub(super) fn wanted(
        &self,
        plain: Vec<Tensor>,
        target: Target,
        options: &gguf_quantize::Options,
        notes: &mut Vec<String>,
    ) -> Result<Chosen, Error> {
        let float = match target {
            Target::Mix(Mix::F32) | Target::Type(TensorType::F32) => Some(TensorType::F32),
            Target::Mix(Mix::F16) | Target::Type(TensorType::F16) => Some(TensorType::F16),
            Target::Mix(Mix::BF16) | Target::Type(TensorType::BF16) => Some(TensorType::BF16),
            _ => None,
        };
        let mut items: Vec<Item> = match float {
            Some(float) => plain
                .into_iter()
                .map(|tensor| {
                    let target = float_type(&tensor.name, &tensor.shape, float);
                    Item::new(tensor, target)
                })
                .collect(),
            None => {
                let item = |tensor: Tensor| {
                    let stored = tensor.stored_type;
                    Item::new(tensor, stored)
                };
                let mut job = Job {
                    metadata: self.keys(0, &Options::default()),
                    items: plain.into_iter().map(item).collect(),
                    check_finite: true,
                    order: ByteOrder::Little,
                };
                notes.extend(gguf_quantize::give_types(&mut job, target, options)?);
                job.items
            }
        };
        let mut changes = Vec::new();
        for (tensor, item) in self.tensors.iter().zip(&mut items) {
            let how = self.carry_levels(tensor, item)?;
            changes.push(change(tensor, item, how));
        }
        Ok((items, changes))
    }

    /// Reads a tensor in today's blocks where they have the levels of the old ones and the type
    /// is the one wanted: encoding the decoded weights anew could only move them further. Says
    /// what the item costs.
    fn carry_levels(&self, tensor: &OldTensor, item: &mut Item) -> Result<How, Error> {
        let StorageType::Old(old) = tensor.whole.form else {
            return Ok(match item.tensor.stored_type {
                stored if stored == item.target => How::AsItIs,
                stored => cost(stored, item.target),
            });
        };
        let bytes = &*tensor.whole.bytes;
        if let Some((ty, source)) = &tensor.today
            && (*ty == item.target || gguf_quant::lossless::is_possible(*ty, item.target))
        {
            let exact = exact(bytes, old)?.today;
            if exact || (*ty == item.target && near(bytes, old)?) {
                item.tensor = self.tensor(tensor, *ty, source.clone())?;
                return Ok(if exact { How::Exactly } else { How::RoundedScales });
            }
        }
        let half = |target| Ok::<_, Error>(target == TensorType::F16 && exact(bytes, old)?.half);
        Ok(match item.target {
            TensorType::F32 => How::Exactly,
            target if half(target)? => How::Exactly,
            _ => How::Encoded,
        })
    }

    /// `general.file_type`: the mix that was asked for, the one of the old file if every tensor
    /// still has its type, or else what most of the weights are.
    pub(super) fn file_type(
        &self,
        target: Option<Target>,
        items: &[Item],
        changes: &[Change],
    ) -> Result<u32, Error> {
        if let Some(target) = target {
            let mix = target.file_type().ok_or_else(|| {
                let help = "ask for one of the mixes that `gguf convert --help` lists";
                Error::request("target-file-type", format!("{target} names no file type"), help)
            })?;
            return Ok(mix.number());
        }
        let stays = |change: &Change| {
            change.how == How::AsItIs || (change.how == How::Exactly && change.to.is_quantized())
        };
        if self.old.layout.program == Program::Llama && changes.iter().all(stays) {
            return Ok(self.old.header.file_type());
        }
        let mut weights: BTreeMap<u32, u64> = BTreeMap::new();
        for item in items {
            *weights.entry(item.target.id()).or_default() +=
                item.tensor.shape.elements().unwrap_or(0);
        }
        let most = weights.into_iter().max_by_key(|(_, count)| *count).map_or(0, |(id, _)| id);
        let row = gguf::FILE_TYPES.iter().find(|row| row.main.id() == most);
        Ok(row.map_or(0, |row| row.id))
    }
}

/// What going from one type of today to another costs.
fn cost(stored: TensorType, target: TensorType) -> How {
    if target == TensorType::F32 || gguf_quant::lossless::is_possible(stored, target) {
        How::Exactly
    } else {
        How::Encoded
    }
}

fn change(tensor: &OldTensor, item: &Item, how: How) -> Change {
    let from = tensor.whole.form.name();
    Change { name: tensor.name.clone(), from, to: item.target, how }
}

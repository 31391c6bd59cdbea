//! The output type of each tensor, and the precision that it loses.

use std::collections::BTreeMap;

use gguf::{ByteOrder, Error, TensorType};
use gguf_pipeline::{Item, Job, Tensor};
use gguf_quantize::float_type;
use gguf_quantize::recipe::{Preset, Target};

use super::blocks::{StorageType, lossless_types, scales_fit_half};
use super::header::ModelFamily;
use super::model::{LegacyModel, LegacyOptions};
use super::tensor::LegacyTensor;

/// Loss of a tensor by its conversion, from none to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fidelity {
    /// The bytes are kept, except that rows may be reordered.
    Unchanged,
    /// Different bytes that encode the same weights.
    Lossless,
    /// The quants are kept and scales are rounded to half precision: each weight changes by at most
    /// 1 part in 2048.
    RoundedScales,
    /// The weights are quantized again.
    Requantized,
}

/// The type conversion of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its name in the output.
    pub name: String,
    /// The type name in the legacy file.
    pub from: String,
    /// The type in the output.
    pub to: TensorType,
    /// The precision that is lost.
    pub fidelity: Fidelity,
}

impl std::fmt::Display for Fidelity {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unchanged => "unchanged",
            Self::Lossless => "lossless",
            Self::RoundedScales => "same quants, scales rounded to half precision",
            Self::Requantized => "requantized",
        })
    }
}

/// One line per kind of change, and a hint if no output type was requested.
pub(super) fn summary(changes: &[Change], target: Option<Target>) -> Vec<String> {
    let mut kinds: BTreeMap<(&str, u32, Fidelity), usize> = BTreeMap::new();
    for change in changes.iter().filter(|change| change.fidelity != Fidelity::Unchanged) {
        *kinds.entry((&change.from, change.to.id(), change.fidelity)).or_default() += 1;
    }
    let line = |((from, to, fidelity), count): ((&str, u32, Fidelity), usize)| {
        format!("{count} tensors from {from} to {}: {fidelity}", TensorType::from_id(to))
    };
    let mut lines: Vec<String> = kinds.into_iter().map(line).collect();
    let widened =
        |change: &Change| change.fidelity == Fidelity::Lossless && !change.to.is_quantized();
    if target.is_none() && changes.iter().any(widened) {
        lines.push(
            "no smaller current type stores these weights losslessly; --outtype q4_0 and other \
             legacy types keep the quants of tensors of that type and round the scales to half \
             precision"
                .to_owned(),
        );
    }
    lines
}

type TypedItems = (Vec<Item>, Vec<Change>);

impl LegacyModel {
    /// Assigns every tensor the smallest type that stores its weights losslessly: its stored type
    /// if that still exists, else half or single precision.
    pub(super) fn lossless_types(&self, plain: Vec<Tensor>) -> Result<TypedItems, Error> {
        let (mut items, mut changes) = (Vec::new(), Vec::new());
        for (tensor, plain) in self.tensors.iter().zip(plain) {
            let (item, fidelity) = match tensor.joined.storage {
                StorageType::Current(ty) => (Item::new(plain, ty), Fidelity::Unchanged),
                StorageType::Legacy(block) => {
                    let lossless = lossless_types(&*tensor.joined.bytes, block)?;
                    let item = match &tensor.repacked {
                        Some((ty, source)) if lossless.current => {
                            Item::new(self.tensor(tensor, *ty, source.clone())?, *ty)
                        }
                        _ if lossless.half => Item::new(plain, TensorType::F16),
                        _ => Item::new(plain, TensorType::F32),
                    };
                    (item, Fidelity::Lossless)
                }
            };
            changes.push(change(tensor, &item, fidelity));
            items.push(item);
        }
        Ok((items, changes))
    }

    /// Assigns every tensor the type that the requested recipe gives it.
    pub(super) fn requested_types(
        &self,
        plain: Vec<Tensor>,
        target: Target,
        options: &gguf_quantize::QuantizeOptions,
        notes: &mut Vec<String>,
    ) -> Result<TypedItems, Error> {
        let float = match target {
            Target::Preset(Preset::F32) | Target::Type(TensorType::F32) => Some(TensorType::F32),
            Target::Preset(Preset::F16) | Target::Type(TensorType::F16) => Some(TensorType::F16),
            Target::Preset(Preset::BF16) | Target::Type(TensorType::BF16) => Some(TensorType::BF16),
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
                    metadata: self.keys(0, &LegacyOptions::default()),
                    items: plain.into_iter().map(item).collect(),
                    check_finite: true,
                    order: ByteOrder::Little,
                };
                notes.extend(gguf_quantize::assign_types(&mut job, target, options)?);
                job.items
            }
        };
        let mut changes = Vec::new();
        for (tensor, item) in self.tensors.iter().zip(&mut items) {
            let fidelity = self.keep_quants(tensor, item)?;
            changes.push(change(tensor, item, fidelity));
        }
        Ok((items, changes))
    }

    /// Repacks a tensor into current blocks if these have the same quants and the requested type,
    /// since quantizing the decoded weights again could only add error. Returns the fidelity of the
    /// item.
    fn keep_quants(&self, tensor: &LegacyTensor, item: &mut Item) -> Result<Fidelity, Error> {
        let StorageType::Legacy(block) = tensor.joined.storage else {
            return Ok(match item.tensor.stored_type {
                stored if stored == item.target => Fidelity::Unchanged,
                stored => conversion_fidelity(stored, item.target),
            });
        };
        let bytes = &*tensor.joined.bytes;
        if let Some((ty, source)) = &tensor.repacked
            && (*ty == item.target || gguf_quant::lossless::is_possible(*ty, item.target))
        {
            let lossless = lossless_types(bytes, block)?.current;
            if lossless || (*ty == item.target && scales_fit_half(bytes, block)?) {
                item.tensor = self.tensor(tensor, *ty, source.clone())?;
                return Ok(if lossless { Fidelity::Lossless } else { Fidelity::RoundedScales });
            }
        }
        let half = |target| {
            Ok::<_, Error>(target == TensorType::F16 && lossless_types(bytes, block)?.half)
        };
        Ok(match item.target {
            TensorType::F32 => Fidelity::Lossless,
            target if half(target)? => Fidelity::Lossless,
            _ => Fidelity::Requantized,
        })
    }

    /// `general.file_type`: the requested mix; the file type of the legacy file if every tensor
    /// keeps its type; otherwise the type of most weights.
    pub(super) fn file_type(
        &self,
        target: Option<Target>,
        items: &[Item],
        changes: &[Change],
    ) -> Result<u32, Error> {
        if let Some(target) = target {
            let mix = target.file_type().ok_or_else(|| {
                let help = "choose one of the mixes that `gguf convert --help` lists";
                Error::request("target-file-type", format!("{target} has no file type"), help)
            })?;
            return Ok(mix.number());
        }
        let keeps_type = |change: &Change| {
            change.fidelity == Fidelity::Unchanged
                || (change.fidelity == Fidelity::Lossless && change.to.is_quantized())
        };
        if self.file.layout.family == ModelFamily::Llama && changes.iter().all(keeps_type) {
            return Ok(self.file.header.file_type());
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

/// Fidelity of a conversion between two current types.
fn conversion_fidelity(stored: TensorType, target: TensorType) -> Fidelity {
    if target == TensorType::F32 || gguf_quant::lossless::is_possible(stored, target) {
        Fidelity::Lossless
    } else {
        Fidelity::Requantized
    }
}

fn change(tensor: &LegacyTensor, item: &Item, fidelity: Fidelity) -> Change {
    let from = tensor.joined.storage.name();
    Change { name: tensor.name.clone(), from, to: item.target, fidelity }
}

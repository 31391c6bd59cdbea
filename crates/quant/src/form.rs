//! Blocks as scales and values: for those who choose levels by themselves.
//!
//! A weight of a block is `a * v + b`. Its value `v` is a level, or part of a point of a codebook, that the type
//! has. A group of weights shares the scale `a` and the offset `b`: products of a number of the block (`d`, `dmin`)
//! with one of the group (`s`, `m`).
//!
//! Which numbers there are is read off the [layout](crate::layout()) of the type, which is held against its decoder.

use gguf::TensorType;

use crate::by_type::codec;
use crate::halves;
use crate::layout::{Field, Kind, Layout, layout};

/// What may stand in blocks of a type.
pub struct Form {
    /// Weights of a block.
    pub len: usize,
    /// Bytes of a block.
    pub bytes: usize,
    /// Weights that share a scale, and an offset.
    pub group: usize,
    /// Weights whose values are chosen together: 1 for levels, 4 or 8 for points.
    pub unit: usize,
    /// What the scale of a group may be, in terms of that of its block: ascending. One of 1 if groups have none.
    pub scales: Vec<f32>,
    /// What the offset of a group may be, in terms of that of its block: ascending. Empty if the type has no offsets.
    pub offsets: Vec<f32>,
    /// The values of each choice, `unit` of them for each. Levels are ascending.
    pub values: Vec<f32>,
    /// Which signs the values of eight weights may have.
    pub signs: Signs,
    /// What may be added to all values of some weights; nothing but of IQ1.
    pub shift: Option<Shift>,
    ty: TensorType,
    layout: &'static Layout,
    slots: Slots,
    /// What stands for scales, offsets and values in the block.
    raw_scales: Vec<u16>,
    raw_offsets: Vec<u16>,
    raw_values: Vec<u16>,
}

/// Which signs the values of eight weights may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signs {
    /// Those that they have.
    Own,
    /// Any.
    Any,
    /// An even number of them negative.
    Even,
}

/// What is added to the values of some weights: up or down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// How much.
    pub by: f32,
    /// For how many weights it is the same.
    pub len: usize,
}

/// What stands in a block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    /// The scale of the block, which F16 can hold.
    pub d: f32,
    /// The scale of its offsets, likewise.
    pub dmin: f32,
    /// Of each group the number of its scale in [`Form::scales`].
    pub scales: Vec<u8>,
    /// Of each group the number of its offset in [`Form::offsets`].
    pub offsets: Vec<u8>,
    /// Of each unit the number of its values in [`Form::values`].
    pub values: Vec<u16>,
    /// Of each eight weights which values are negative, the first lowest.
    pub signs: Vec<u8>,
    /// Of weights that share a shift, whether it is down.
    pub down: Vec<bool>,
}

/// Where items of a field are: of each its runs of bits.
struct Slot(Vec<Vec<(usize, usize)>>);

/// Where all of it stands.
struct Slots {
    d: Option<Slot>,
    dmin: Option<Slot>,
    scale: Option<Slot>,
    offset: Option<Slot>,
    /// Missing of digits, several of which are one number.
    value: Option<Slot>,
    signs: Option<Slot>,
    down: Option<Slot>,
}

/// 1 in half precision.
const ONE: u16 = 0x3c00;

impl Slot {
    fn of(field: &Field) -> Self {
        Self((0..field.count).map(|i| field.runs(i)).collect())
    }

    /// How many numbers an item may be.
    fn states(&self) -> u32 {
        self.0.first().map_or(1, |runs| 1 << runs.iter().map(|(_, len)| len).sum::<usize>())
    }

    fn get(&self, block: &[u8], i: usize) -> u16 {
        let bits = self.0[i].iter().flat_map(|(first, len)| *first..first + len);
        bits.zip(0..)
            .fold(0, |raw, (bit, to)| raw | u16::from(block[bit / 8] >> (bit % 8) & 1) << to)
    }

    fn put(&self, block: &mut [u8], i: usize, raw: u16) {
        let bits = self.0[i].iter().flat_map(|(first, len)| *first..first + len);
        for (bit, from) in bits.zip(0..) {
            let (byte, to) = (&mut block[bit / 8], bit % 8);
            *byte = *byte & !(1 << to) | ((raw >> from & 1) as u8) << to;
        }
    }
}

/// What stands in so many items.
fn all_of(slot: &Option<Slot>, count: usize, block: &[u8]) -> impl Iterator<Item = u16> {
    (0..count).map(move |i| slot.as_ref().map_or(0, |slot| slot.get(block, i)))
}

/// Of each item the place of what stands there.
fn numbers_of(slot: &Option<Slot>, raws: &[u16], count: usize, block: &[u8]) -> Vec<usize> {
    let place = |raw| raws.iter().position(|other| *other == raw).unwrap_or(0);
    all_of(slot, count, block).map(place).collect()
}

/// Whether a type has a form: one of weights in blocks.
pub fn has_form(ty: TensorType) -> bool {
    ty.is_quantized() && !matches!(ty, TensorType::Q8_1 | TensorType::Q8_K) && layout(ty).is_some()
}

/// The form of blocks of a type; `None` of floats, integers, and what only activations are stored as.
///
/// ```
/// use gguf::TensorType;
/// let form = gguf_quant::form(TensorType::Q4_K).unwrap();
/// assert_eq!((form.len, form.group, form.scales.len(), form.offsets.len()), (256, 32, 64, 64));
/// assert_eq!((form.values[0], form.values[15]), (0.0, 15.0));
/// ```
pub fn form(ty: TensorType) -> Option<Form> {
    let layout = layout(ty).filter(|_| has_form(ty))?;
    let (len, bytes) = ty.block().map(|(len, bytes)| (len as usize, bytes as usize))?;
    let find = |name: &str| layout.fields.iter().find(|field| field.name == name);
    let half = |name: &str| find(name).filter(|field| field.kind == Kind::F16);
    let other = |name: &str| find(name).filter(|field| field.kind != Kind::F16);
    let (scale, offset) = (other("s").or(other("d")).or(other("e")), other("m"));
    let points = find("point");
    let value = points.or(find("q").filter(|field| field.count == len));
    let signs = find("signs");
    let down = find("down");
    let slot = |field: Option<&Field>| field.map(Slot::of);
    let slots = Slots {
        d: slot(half("d")),
        dmin: slot(half("dmin").or(half("m"))),
        scale: slot(scale),
        offset: slot(offset),
        value: slot(value),
        signs: slot(signs),
        down: slot(down),
    };
    let group = len / scale.or(offset).map_or(1, |field| field.count);
    let unit = points.map_or(1, |field| len / field.count);

    let mut block = vec![0; bytes];
    let put = |block: &mut [u8], slot: &Option<Slot>, raw: u16| {
        if let Some(slot) = slot {
            slot.put(block, 0, raw);
        }
    };
    put(&mut block, &slots.d, ONE);
    // What the scale is seen by: a point that is not 0, or two levels.
    let seen = |block: &mut [u8]| {
        let first = layout.weight(block, 0);
        if unit > 1 || slots.value.is_none() {
            return first;
        }
        put(block, &slots.value, 1);
        let second = layout.weight(block, 0);
        put(block, &slots.value, 0);
        second - first
    };
    let states = |slot: &Option<Slot>| slot.as_ref().map_or(1, Slot::states);
    let mut scales: Vec<(f32, u16)> = Vec::new();
    for raw in 0..states(&slots.scale) as u16 {
        put(&mut block, &slots.scale, raw);
        scales.push((seen(&mut block), raw));
    }
    // The one that counts as 1: the nearest to it, rather above 0.
    let distance = |seen: f32| (seen.abs().ln().abs(), seen < 0.0);
    let other = scales.iter().copied().filter(|(seen, _)| seen.is_finite() && *seen != 0.0);
    let (one, raw_one) = other.min_by(|a, b| {
        let ((a, a_below), (b, b_below)) = (distance(a.0), distance(b.0));
        a.total_cmp(&b).then(a_below.cmp(&b_below))
    })?;
    scales.iter_mut().for_each(|(scale, _)| *scale /= one);
    put(&mut block, &slots.scale, raw_one);
    let mut values = Vec::new();
    for raw in 0..states(&slots.value) {
        put(&mut block, &slots.value, raw as u16);
        values.push(((0..unit).map(|w| layout.weight(&block, w)).collect::<Vec<_>>(), raw as u16));
    }
    let mut offsets = Vec::new();
    if slots.dmin.is_some() {
        put(&mut block, &slots.d, 0);
        put(&mut block, &slots.dmin, ONE);
        for raw in 0..states(&slots.offset) as u16 {
            put(&mut block, &slots.offset, raw);
            offsets.push((layout.weight(&block, 0), raw));
        }
    }
    let mut shift = None;
    if let Some(down) = down {
        let by = 0.125;
        shift = Some(Shift { by, len: len / down.count });
        // Points were seen as they are shifted up.
        values.iter_mut().flat_map(|(values, _)| values).for_each(|value| *value -= by);
    }
    match ty {
        // Programs take magnitudes of 8 bits.
        TensorType::Q8_0 => values.retain(|(_, raw)| *raw != 128),
        // The last exponent is no number.
        TensorType::MXFP4 => scales.retain(|(_, raw)| *raw != 255),
        // Of two bits only three levels are in use.
        TensorType::TQ2_0 => values.truncate(3),
        TensorType::TQ1_0 => values = [-1.0, 0.0, 1.0].map(|level| (vec![level], 0)).into(),
        _ => {}
    }
    if unit == 1 {
        values.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]));
        values.dedup_by(|a, b| a.0[0] == b.0[0]);
    }
    let ascending = |mut all: Vec<(f32, u16)>| {
        all.retain(|(number, _)| number.is_finite());
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.dedup_by(|a, b| a.0 == b.0);
        all.into_iter().unzip()
    };
    let (scales, raw_scales) = ascending(scales);
    let (offsets, raw_offsets) = ascending(offsets);
    let raw_values = values.iter().map(|(_, raw)| *raw).collect();
    let signs = signs.map_or(Signs::Own, |field| match field.runs(0)[0].1 {
        7 => Signs::Even,
        _ => Signs::Any,
    });
    Some(Form {
        len,
        bytes,
        group,
        unit,
        scales,
        offsets,
        values: values.into_iter().flat_map(|(values, _)| values).collect(),
        signs,
        shift,
        ty,
        layout,
        slots,
        raw_scales,
        raw_offsets,
        raw_values,
    })
}

impl Form {
    /// How many choices a unit has.
    pub fn choices(&self) -> usize {
        self.raw_values.len()
    }

    /// Whether the block has a scale of its own, which may be any that F16 holds.
    pub fn scales_blocks(&self) -> bool {
        self.slots.d.is_some()
    }

    /// Whether groups have scales of their own.
    pub fn scales_groups(&self) -> bool {
        self.slots.scale.is_some()
    }

    /// Whether groups have offsets of their own.
    pub fn offsets_groups(&self) -> bool {
        self.slots.offset.is_some()
    }

    /// Scale and offset of a group.
    pub fn of_group(&self, numbers: &Numbers, group: usize) -> (f32, f32) {
        let offset = match self.offsets.is_empty() {
            true => 0.0,
            false => numbers.dmin * self.offsets[usize::from(numbers.offsets[group])],
        };
        (numbers.d * self.scales[usize::from(numbers.scales[group])], offset)
    }

    /// The value of a weight, before scale and offset.
    pub fn value(&self, numbers: &Numbers, w: usize) -> f32 {
        let choice = usize::from(numbers.values[w / self.unit]);
        let value = self.values[choice * self.unit + w % self.unit];
        if self.signs != Signs::Own {
            return if numbers.signs[w / 8] >> (w % 8) & 1 == 1 { -value } else { value };
        }
        match self.shift {
            Some(Shift { by, len }) if numbers.down[w / len] => value - by,
            Some(Shift { by, .. }) => value + by,
            None => value,
        }
    }

    /// What stands in a block of [`Form::bytes`].
    pub fn open(&self, block: &[u8]) -> Numbers {
        let mut numbers = self.open_scales(block);
        let values = match &self.slots.value {
            Some(_) => numbers_of(&self.slots.value, &self.raw_values, self.len / self.unit, block),
            None => (0..self.len)
                .map(|w| {
                    let level = self.layout.weight(block, w);
                    let d = numbers.d;
                    1 + usize::from(level * d > 0.0) - usize::from(level * d < 0.0)
                })
                .collect(),
        };
        numbers.values = values.into_iter().map(|number| number as u16).collect();
        let eights = if self.signs == Signs::Own { 0 } else { self.len / 8 };
        let signs = all_of(&self.slots.signs, eights, block).map(|signs| match self.signs {
            // The eighth follows from the others.
            Signs::Even => (signs | (signs.count_ones() as u16 & 1) << 7) as u8,
            _ => signs as u8,
        });
        numbers.signs = signs.collect();
        numbers
    }

    /// The same, but for values and their signs.
    pub fn open_scales(&self, block: &[u8]) -> Numbers {
        let half = |slot: &Option<Slot>| {
            slot.as_ref().map_or(1.0, |slot| halves::to_f32(slot.get(block, 0)))
        };
        let groups = self.len / self.group;
        let bytes = |slot: &Option<Slot>, raws: &[u16]| {
            numbers_of(slot, raws, groups, block).into_iter().map(|number| number as u8).collect()
        };
        let shifts = self.shift.map_or(0, |shift| self.len / shift.len);
        Numbers {
            d: half(&self.slots.d),
            dmin: half(&self.slots.dmin),
            scales: bytes(&self.slots.scale, &self.raw_scales),
            offsets: bytes(&self.slots.offset, &self.raw_offsets),
            values: Vec::new(),
            signs: Vec::new(),
            down: all_of(&self.slots.down, shifts, block).map(|down| down == 1).collect(),
        }
    }

    /// Writes a block of [`Form::bytes`].
    pub fn close(&self, numbers: &Numbers, block: &mut [u8]) {
        block.fill(0);
        let Some(values) = &self.slots.value else {
            // Digits: their own encoder finds the same again.
            let weights: Vec<f32> =
                (0..self.len).map(|w| numbers.d * self.value(numbers, w)).collect();
            let written = codec(self.ty).map(|codec| codec.encode_row(&weights, None, block));
            debug_assert_eq!(written, Some(Ok(())), "a block of levels and a scale");
            return;
        };
        let half = |slot: &Option<Slot>, block: &mut [u8], number: f32| {
            if let Some(slot) = slot {
                slot.put(block, 0, halves::from_f32(number));
            }
        };
        half(&self.slots.d, block, numbers.d);
        half(&self.slots.dmin, block, numbers.dmin);
        let mut all = |slot: &Option<Slot>, raws: &mut dyn Iterator<Item = u16>| {
            if let Some(slot) = slot {
                raws.enumerate().for_each(|(i, raw)| slot.put(block, i, raw));
            }
        };
        let of = |raws: &[u16], number: u8| raws[usize::from(number)];
        let scales = numbers.scales.iter().map(|scale| of(&self.raw_scales, *scale));
        all(&self.slots.scale, &mut { scales });
        let offsets = numbers.offsets.iter().map(|offset| of(&self.raw_offsets, *offset));
        all(&self.slots.offset, &mut { offsets });
        all(&self.slots.signs, &mut numbers.signs.iter().map(|signs| (*signs).into()));
        all(&self.slots.down, &mut numbers.down.iter().map(|down| (*down).into()));
        let raws = numbers.values.iter().map(|value| self.raw_values[usize::from(*value)]);
        raws.enumerate().for_each(|(i, raw)| values.put(block, i, raw));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode_row, encode_row};

    #[test]
    fn blocks_are_taken_apart_and_put_together() {
        for (ty, _) in crate::blocks::LAYOUTS {
            let Some(form) = form(*ty) else { continue };
            let x: Vec<f32> = (0..form.len).map(|i| (i as f32 * 0.7).sin() * 0.1 + 0.01).collect();
            let mut block = vec![0; form.bytes];
            encode_row(*ty, &x, Some(&vec![1.0; form.len]), &mut block).unwrap();
            let numbers = form.open(&block);
            let mut weights = vec![0.0; form.len];
            decode_row(*ty, &block, &mut weights).unwrap();
            for (w, weight) in weights.iter().enumerate() {
                let (a, b) = form.of_group(&numbers, w / form.group);
                let made = a * form.value(&numbers, w) + b;
                assert!(
                    (made - weight).abs() <= 1e-6 + 1e-5 * weight.abs(),
                    "{ty} {w}: {made} {weight}"
                );
            }
            let mut again = vec![0xff; form.bytes];
            form.close(&numbers, &mut again);
            let mut same = vec![0.0; form.len];
            decode_row(*ty, &again, &mut same).unwrap();
            assert_eq!(same, weights, "{ty}");
        }
    }

    #[test]
    fn every_type_of_blocks_has_a_form() {
        for (ty, _) in crate::blocks::LAYOUTS {
            let is_for_weights =
                ty.is_quantized() && !matches!(*ty, TensorType::Q8_1 | TensorType::Q8_K);
            assert_eq!(form(*ty).is_some(), is_for_weights, "{ty}");
        }
    }
}

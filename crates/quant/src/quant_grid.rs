//! The quantization grid of a block type: which scales, offsets and values its blocks can
//! represent. GPTQ and other optimizers use it to choose quantized values themselves.
//!
//! A weight is `a * v + b`. The value `v` is a quantization level or a component of a codebook
//! entry. A group of weights shares the scale `a` and the offset `b`, products of a number of the
//! block (`d`, `dmin`) and a number of the group (`s`, `m`).
//!
//! The grid is derived from the [layout](crate::block_layout()) of the type, which tests compare
//! with its decoder.

use gguf::TensorType;

use crate::fp16;
use crate::layout::{BlockLayout, Field, FieldKind};
use crate::registry::{block_layout, codec};

/// Everything that a block of one type can represent.
pub struct QuantGrid {
    /// Number of weights per block.
    pub len: usize,
    /// Number of bytes per block.
    pub bytes: usize,
    /// Number of weights that share a scale and an offset.
    pub group: usize,
    /// Number of weights that one codebook entry covers: 1 for levels, 4 or 8 for grid points.
    pub unit: usize,
    /// Representable group scales relative to the block scale, ascending. `[1.0]` if groups have no
    /// scale of their own.
    pub scales: Vec<f32>,
    /// Representable group offsets relative to the block's `dmin`, ascending. Empty if the type has
    /// no offsets.
    pub offsets: Vec<f32>,
    /// Codebook: the values of each entry, `unit` per entry. Levels are ascending.
    pub values: Vec<f32>,
    /// Sign patterns that eight weights can have.
    pub signs: SignPattern,
    /// Shift of all values of some weights; only IQ1 has one.
    pub shift: Option<GridShift>,
    ty: TensorType,
    layout: &'static BlockLayout,
    slots: Slots,
    /// Stored bits of each scale, offset and codebook entry.
    raw_scales: Vec<u16>,
    raw_offsets: Vec<u16>,
    raw_values: Vec<u16>,
}

/// Sign patterns that eight weights can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignPattern {
    /// Signs are part of the codebook entries.
    InCodebook,
    /// Any pattern.
    Any,
    /// Patterns with an even number of negative signs.
    Even,
}

/// Shift of the values of some weights, up or down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridShift {
    /// Magnitude of the shift.
    pub by: f32,
    /// Number of weights that share a shift.
    pub len: usize,
}

/// UnpackedBlock contents of a block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockParams {
    /// Block scale, representable in FP16.
    pub d: f32,
    /// Block scale of the offsets, representable in FP16.
    pub dmin: f32,
    /// For each group, the index of its scale in [`QuantGrid::scales`].
    pub scales: Vec<u8>,
    /// For each group, the index of its offset in [`QuantGrid::offsets`].
    pub offsets: Vec<u8>,
    /// For each unit, the index of its codebook entry in [`QuantGrid::values`].
    pub values: Vec<u16>,
    /// Signs of each eight weights: bit `i` is set if weight `i` is negative.
    pub signs: Vec<u8>,
    /// For each run of weights that shares a shift, whether the shift is down.
    pub down: Vec<bool>,
}

/// Bit runs of each item of a field.
struct Slot(Vec<Vec<(usize, usize)>>);

/// Positions of all fields.
struct Slots {
    d: Option<Slot>,
    dmin: Option<Slot>,
    scale: Option<Slot>,
    offset: Option<Slot>,
    /// `None` for packed ternary digits, where several weights share one number.
    value: Option<Slot>,
    signs: Option<Slot>,
    down: Option<Slot>,
}

/// 1.0 in FP16.
const ONE: u16 = 0x3c00;

impl Slot {
    fn new(field: &Field) -> Self {
        Self((0..field.count).map(|i| field.runs(i)).collect())
    }

    /// Number of values that an item can take.
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

/// Reads the first `count` items.
fn read_items(slot: &Option<Slot>, count: usize, block: &[u8]) -> impl Iterator<Item = u16> {
    (0..count).map(move |i| slot.as_ref().map_or(0, |slot| slot.get(block, i)))
}

/// Reads the first `count` items and returns the index of each in `raws`.
fn indices_of(slot: &Option<Slot>, raws: &[u16], count: usize, block: &[u8]) -> Vec<usize> {
    let place = |raw| raws.iter().position(|other| *other == raw).unwrap_or(0);
    read_items(slot, count, block).map(place).collect()
}

/// Whether a type has a quantization grid, that is, stores weights in blocks.
pub fn has_quant_grid(ty: TensorType) -> bool {
    ty.is_quantized()
        && !matches!(ty, TensorType::Q8_1 | TensorType::Q8_K)
        && block_layout(ty).is_some()
}

/// Returns the quantization grid of a type; `None` for floats, integers and activation-only types.
///
/// ```
/// use gguf::TensorType;
/// let grid = gguf_quant::quant_grid(TensorType::Q4_K).unwrap();
/// assert_eq!((grid.len, grid.group, grid.scales.len(), grid.offsets.len()), (256, 32, 64, 64));
/// assert_eq!((grid.values[0], grid.values[15]), (0.0, 15.0));
/// ```
pub fn quant_grid(ty: TensorType) -> Option<QuantGrid> {
    let layout = block_layout(ty).filter(|_| has_quant_grid(ty))?;
    let (len, bytes) = ty.block().map(|(len, bytes)| (len as usize, bytes as usize))?;
    let find = |name: &str| layout.fields.iter().find(|field| field.name == name);
    let fp16 = |name: &str| find(name).filter(|field| field.kind == FieldKind::F16);
    let other = |name: &str| find(name).filter(|field| field.kind != FieldKind::F16);
    let (scale, offset) = (other("s").or(other("d")).or(other("e")), other("m"));
    let points = find("point");
    let value = points.or(find("q").filter(|field| field.count == len));
    let signs = find("signs");
    let down = find("down");
    let slot = |field: Option<&Field>| field.map(Slot::new);
    let slots = Slots {
        d: slot(fp16("d")),
        dmin: slot(fp16("dmin").or(fp16("m"))),
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
    // Difference that exposes the scale: a codebook entry that is not 0, or two levels.
    let step = |block: &mut [u8]| {
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
        scales.push((step(&mut block), raw));
    }
    // The raw scale that counts as 1: the one that decodes closest to 1, preferring positive.
    let distance = |scale: f32| (scale.abs().ln().abs(), scale < 0.0);
    let other = scales.iter().copied().filter(|(scale, _)| scale.is_finite() && *scale != 0.0);
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
        shift = Some(GridShift { by, len: len / down.count });
        // The codebook entries were measured with the shift up.
        values.iter_mut().flat_map(|(values, _)| values).for_each(|value| *value -= by);
    }
    match ty {
        // Integer kernels need magnitudes that fit in 8 bits.
        TensorType::Q8_0 => values.retain(|(_, raw)| *raw != 128),
        // The last exponent encodes NaN.
        TensorType::MXFP4 => scales.retain(|(_, raw)| *raw != 255),
        // Only three of the four levels are in use.
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
    let signs = signs.map_or(SignPattern::InCodebook, |field| match field.runs(0)[0].1 {
        7 => SignPattern::Even,
        _ => SignPattern::Any,
    });
    Some(QuantGrid {
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

impl QuantGrid {
    /// Number of codebook entries.
    pub fn choices(&self) -> usize {
        self.raw_values.len()
    }

    /// Whether the block has an FP16 scale of its own.
    pub fn has_block_scale(&self) -> bool {
        self.slots.d.is_some()
    }

    /// Whether groups have scales of their own.
    pub fn has_group_scales(&self) -> bool {
        self.slots.scale.is_some()
    }

    /// Whether groups have offsets of their own.
    pub fn has_group_offsets(&self) -> bool {
        self.slots.offset.is_some()
    }

    /// Returns the scale and the offset of a group.
    pub fn group_scale(&self, params: &BlockParams, group: usize) -> (f32, f32) {
        let offset = match self.offsets.is_empty() {
            true => 0.0,
            false => params.dmin * self.offsets[usize::from(params.offsets[group])],
        };
        (params.d * self.scales[usize::from(params.scales[group])], offset)
    }

    /// Returns the value of weight `w` before scale and offset.
    pub fn value(&self, params: &BlockParams, w: usize) -> f32 {
        let choice = usize::from(params.values[w / self.unit]);
        let value = self.values[choice * self.unit + w % self.unit];
        if self.signs != SignPattern::InCodebook {
            return if params.signs[w / 8] >> (w % 8) & 1 == 1 { -value } else { value };
        }
        match self.shift {
            Some(GridShift { by, len }) if params.down[w / len] => value - by,
            Some(GridShift { by, .. }) => value + by,
            None => value,
        }
    }

    /// Unpacks a block of [`QuantGrid::bytes`] bytes.
    pub fn unpack(&self, block: &[u8]) -> BlockParams {
        let mut params = self.unpack_scales(block);
        let values = match &self.slots.value {
            Some(_) => indices_of(&self.slots.value, &self.raw_values, self.len / self.unit, block),
            None => (0..self.len)
                .map(|w| {
                    let level = self.layout.weight(block, w);
                    let d = params.d;
                    1 + usize::from(level * d > 0.0) - usize::from(level * d < 0.0)
                })
                .collect(),
        };
        params.values = values.into_iter().map(|number| number as u16).collect();
        let octets = if self.signs == SignPattern::InCodebook { 0 } else { self.len / 8 };
        let signs = read_items(&self.slots.signs, octets, block).map(|signs| match self.signs {
            // The eighth sign makes the number of negative signs even.
            SignPattern::Even => (signs | (signs.count_ones() as u16 & 1) << 7) as u8,
            _ => signs as u8,
        });
        params.signs = signs.collect();
        params
    }

    /// Unpacks the block without values and signs.
    pub fn unpack_scales(&self, block: &[u8]) -> BlockParams {
        let fp16 = |slot: &Option<Slot>| {
            slot.as_ref().map_or(1.0, |slot| fp16::to_f32(slot.get(block, 0)))
        };
        let groups = self.len / self.group;
        let bytes = |slot: &Option<Slot>, raws: &[u16]| {
            indices_of(slot, raws, groups, block).into_iter().map(|number| number as u8).collect()
        };
        let shifts = self.shift.map_or(0, |shift| self.len / shift.len);
        BlockParams {
            d: fp16(&self.slots.d),
            dmin: fp16(&self.slots.dmin),
            scales: bytes(&self.slots.scale, &self.raw_scales),
            offsets: bytes(&self.slots.offset, &self.raw_offsets),
            values: Vec::new(),
            signs: Vec::new(),
            down: read_items(&self.slots.down, shifts, block).map(|down| down == 1).collect(),
        }
    }

    /// Packs a block of [`QuantGrid::bytes`] bytes.
    pub fn pack(&self, params: &BlockParams, block: &mut [u8]) {
        block.fill(0);
        let Some(values) = &self.slots.value else {
            // Packed ternary digits: the encoder of the type reproduces them.
            let weights: Vec<f32> =
                (0..self.len).map(|w| params.d * self.value(params, w)).collect();
            let written = codec(self.ty).map(|codec| codec.encode_row(&weights, None, block));
            debug_assert_eq!(written, Some(Ok(())), "a valid block");
            return;
        };
        let fp16 = |slot: &Option<Slot>, block: &mut [u8], number: f32| {
            if let Some(slot) = slot {
                slot.put(block, 0, fp16::from_f32(number));
            }
        };
        fp16(&self.slots.d, block, params.d);
        fp16(&self.slots.dmin, block, params.dmin);
        let mut all = |slot: &Option<Slot>, raws: &mut dyn Iterator<Item = u16>| {
            if let Some(slot) = slot {
                raws.enumerate().for_each(|(i, raw)| slot.put(block, i, raw));
            }
        };
        let of = |raws: &[u16], number: u8| raws[usize::from(number)];
        let scales = params.scales.iter().map(|scale| of(&self.raw_scales, *scale));
        all(&self.slots.scale, &mut { scales });
        let offsets = params.offsets.iter().map(|offset| of(&self.raw_offsets, *offset));
        all(&self.slots.offset, &mut { offsets });
        all(&self.slots.signs, &mut params.signs.iter().map(|signs| (*signs).into()));
        all(&self.slots.down, &mut params.down.iter().map(|down| (*down).into()));
        let raws = params.values.iter().map(|value| self.raw_values[usize::from(*value)]);
        raws.enumerate().for_each(|(i, raw)| values.put(block, i, raw));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode_row, encode_row};

    #[test]
    fn blocks_round_trip() {
        for (ty, _) in crate::blocks::LAYOUTS {
            let Some(grid) = quant_grid(*ty) else { continue };
            let x: Vec<f32> = (0..grid.len).map(|i| (i as f32 * 0.7).sin() * 0.1 + 0.01).collect();
            let mut block = vec![0; grid.bytes];
            encode_row(*ty, &x, Some(&vec![1.0; grid.len]), &mut block).unwrap();
            let params = grid.unpack(&block);
            let mut weights = vec![0.0; grid.len];
            decode_row(*ty, &block, &mut weights).unwrap();
            for (w, weight) in weights.iter().enumerate() {
                let (a, b) = grid.group_scale(&params, w / grid.group);
                let made = a * grid.value(&params, w) + b;
                assert!(
                    (made - weight).abs() <= 1e-6 + 1e-5 * weight.abs(),
                    "{ty} {w}: {made} {weight}"
                );
            }
            let mut again = vec![0xff; grid.bytes];
            grid.pack(&params, &mut again);
            let mut same = vec![0.0; grid.len];
            decode_row(*ty, &again, &mut same).unwrap();
            assert_eq!(same, weights, "{ty}");
        }
    }

    #[test]
    fn every_weight_block_type_has_a_grid() {
        for (ty, _) in crate::blocks::LAYOUTS {
            let is_for_weights =
                ty.is_quantized() && !matches!(*ty, TensorType::Q8_1 | TensorType::Q8_K);
            assert_eq!(quant_grid(*ty).is_some(), is_for_weights, "{ty}");
        }
    }
}

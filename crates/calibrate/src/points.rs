//! Points of a codebook, chosen for eight columns at a time.

use gguf_quant::{Form, Signs};

use crate::factor::Factor;
use crate::lanes::{Lanes, ROWS, add_product, add_scaled, zip};

/// Columns that are chosen together.
const EIGHT: usize = 8;

/// What errors of eight columns cost together: a symmetric matrix.
pub(crate) struct Metric([[f32; EIGHT]; EIGHT]);

impl Metric {
    /// What errors of the columns from `start` on cost, if those after them make up for them.
    #[inline(always)]
    pub fn of_factor(factor: &Factor, start: usize) -> Self {
        let mut metric = [[0.0; EIGHT]; EIGHT];
        for k in start..start + EIGHT {
            let row = &factor.r[k * factor.n + start..][..EIGHT];
            for (out, a) in metric.iter_mut().zip(row) {
                let scaled = a * factor.d[k];
                out.iter_mut().zip(row).for_each(|(out, b)| *out = scaled.mul_add(*b, *out));
            }
        }
        Self(metric)
    }

    /// What they cost if all others stay as they are.
    #[inline(always)]
    pub fn of_squares(squares: &[f32], n: usize, start: usize) -> Self {
        let mut metric = [[0.0; EIGHT]; EIGHT];
        for (i, row) in metric.iter_mut().enumerate() {
            row.copy_from_slice(&squares[(start + i) * n + start..][..EIGHT]);
        }
        Self(metric)
    }

    /// The matrix times a value of each column.
    #[inline(always)]
    pub fn times(&self, x: &[Lanes; EIGHT]) -> [Lanes; EIGHT] {
        let mut out = [[0.0; ROWS]; EIGHT];
        for (out, row) in out.iter_mut().zip(&self.0) {
            for (a, x) in row.iter().zip(x) {
                add_scaled(out, *a, x);
            }
        }
        out
    }
}

/// The points of a type.
pub(crate) struct Points {
    /// Columns of a point: 4 or 8.
    unit: usize,
    signs: Signs,
    /// The values of each.
    values: Vec<f32>,
}

/// What was chosen for eight columns.
pub(crate) struct Chosen {
    pub values: [Lanes; EIGHT],
    /// The points: one, or two of four columns.
    pub choices: [[u16; ROWS]; 2],
    pub signs: [u8; ROWS],
    /// What they cost, less what no choice changes.
    cost: Lanes,
}

impl Chosen {
    /// The weights that they make.
    #[inline(always)]
    fn weights(&self, scale: &Lanes) -> [Lanes; EIGHT] {
        let mut weights = [[0.0; ROWS]; EIGHT];
        for (weight, value) in weights.iter_mut().zip(&self.values) {
            *weight = zip(value, scale, |value, scale| value * scale);
        }
        weights
    }

    /// Of each row the one that costs less.
    #[inline(always)]
    pub fn or(mut self, other: &Self) -> Self {
        for row in 0..ROWS {
            if other.cost[row] < self.cost[row] {
                self.cost[row] = other.cost[row];
                self.signs[row] = other.signs[row];
                let columns = self.values.iter_mut().zip(&other.values);
                columns.for_each(|(mine, other)| mine[row] = other[row]);
                let parts = self.choices.iter_mut().zip(&other.choices);
                parts.for_each(|(mine, other)| mine[row] = other[row]);
            }
        }
        self
    }
}

impl Points {
    /// `None` of a type with levels.
    pub fn new(form: &Form) -> Option<Self> {
        let Form { unit, signs, .. } = *form;
        (unit > 1).then(|| Self { unit, signs, values: form.values.clone() })
    }

    /// The points with the least of `u metric u - 2 slope u`, where `u` is scale times value, with these signs. `down`:
    /// by how much values are shifted, and in which rows down instead of up.
    #[inline(always)]
    fn nearest(
        &self,
        metric: &Metric,
        wanted: &[Lanes; EIGHT],
        slope: &[Lanes; EIGHT],
        scale: &Lanes,
        signs: [u8; ROWS],
        down: Option<(f32, [bool; ROWS])>,
    ) -> Chosen {
        let mut factor = [*scale; EIGHT];
        for (i, factor) in factor.iter_mut().enumerate() {
            for (factor, signs) in factor.iter_mut().zip(&signs) {
                *factor = if signs >> i & 1 == 1 { -*factor } else { *factor };
            }
        }
        // Weights begin as what is wanted, and become those of points part by part.
        let mut weights = *wanted;
        let (mut values, mut choices) = ([[0.0; ROWS]; EIGHT], [[0; ROWS]; 2]);
        let parts = EIGHT / self.unit;
        // Where there are two parts, the first one is chosen again once the second one stands.
        for part in (0..parts).chain(0..parts - 1) {
            let columns = part * self.unit..(part + 1) * self.unit;
            let mut pull = [[0.0; ROWS]; EIGHT];
            for i in columns.clone() {
                pull[i] = slope[i];
                for (j, weight) in weights.iter().enumerate() {
                    if !columns.contains(&j) {
                        add_scaled(&mut pull[i], -metric.0[i][j], weight);
                    }
                }
            }
            let chosen = self.least(metric, columns.clone(), &pull, &factor, down);
            choices[part] = chosen;
            for i in columns {
                for row in 0..ROWS {
                    let mut value =
                        self.values[usize::from(chosen[row]) * self.unit + i % self.unit];
                    if let Some((by, down)) = down {
                        value += if down[row] { -by } else { by };
                    }
                    weights[i][row] = factor[i][row] * value;
                    values[i][row] = if signs[row] >> i & 1 == 1 { -value } else { value };
                }
            }
        }
        let mut cost = [0.0; ROWS];
        for (weight, (inner, slope)) in weights.iter().zip(metric.times(&weights).iter().zip(slope))
        {
            add_product(&mut cost, weight, &zip(inner, slope, |inner, slope| inner - 2.0 * slope));
        }
        Chosen { values, choices, signs, cost }
    }

    /// Of each row the point with the least of `u metric u - 2 pull u`.
    #[inline(always)]
    fn least(
        &self,
        metric: &Metric,
        columns: std::ops::Range<usize>,
        pull: &[Lanes; EIGHT],
        factor: &[Lanes; EIGHT],
        down: Option<(f32, [bool; ROWS])>,
    ) -> [u16; ROWS] {
        // In terms of values: a sum of products of two, and of each alone.
        let unit = columns.len();
        let (mut pairs, mut alone) = ([[0.0; ROWS]; EIGHT * EIGHT], [[0.0; ROWS]; EIGHT]);
        for (i, column) in columns.clone().enumerate() {
            for (j, other) in columns.clone().enumerate().skip(i) {
                let both = if i == j { 1.0 } else { 2.0 } * metric.0[column][other];
                let pair = zip(&factor[column], &factor[other], |a, b| both * a * b);
                pairs[i * EIGHT + j] = pair;
            }
            alone[i] = zip(&pull[column], &factor[column], |pull, factor| -2.0 * pull * factor);
        }
        if let Some((by, down)) = down {
            // A shift of all values adds to what each counts alone.
            let by: Lanes = std::array::from_fn(|row| if down[row] { -by } else { by });
            for i in 0..unit {
                for j in i..unit {
                    let pair = zip(&pairs[i * EIGHT + j], &by, |pair, by| pair * by);
                    alone[i] = zip(&alone[i], &pair, |alone, pair| alone + pair);
                    alone[j] = zip(&alone[j], &pair, |alone, pair| alone + pair);
                }
            }
        }
        let (mut best, mut chosen) = ([f32::INFINITY; ROWS], [0.0; ROWS]);
        for (number, values) in self.values.chunks_exact(unit).enumerate() {
            let mut cost = [0.0; ROWS];
            for (i, a) in values.iter().enumerate() {
                let mut sum = alone[i];
                for (j, b) in values.iter().enumerate().skip(i) {
                    add_scaled(&mut sum, *b, &pairs[i * EIGHT + j]);
                }
                add_scaled(&mut cost, *a, &sum);
            }
            for ((best, chosen), cost) in best.iter_mut().zip(&mut chosen).zip(&cost) {
                *chosen = if cost < best { number as f32 } else { *chosen };
                *best = if cost < best { *cost } else { *best };
            }
        }
        chosen.map(|number| number as u16)
    }

    /// The least that is found from these signs on: points for them, signs for those points, and points for those.
    #[inline(always)]
    pub fn least_from(
        &self,
        metric: &Metric,
        wanted: &[Lanes; EIGHT],
        slope: &[Lanes; EIGHT],
        scale: &Lanes,
        signs: [u8; ROWS],
        down: Option<(f32, [bool; ROWS])>,
    ) -> Chosen {
        let found = self.nearest(metric, wanted, slope, scale, signs, down);
        if self.signs == Signs::Own {
            return found;
        }
        let better = std::array::from_fn(|row| {
            let of_row = |lanes: &[Lanes; EIGHT]| lanes.map(|lanes| lanes[row]);
            let weights = of_row(&found.values).map(|value| value * scale[row]);
            found.signs[row] ^ self.turned(metric, weights, of_row(slope))
        });
        if better == found.signs {
            return found;
        }
        let weights = found.weights(scale);
        let other = self.nearest(metric, &weights, slope, scale, better, down);
        found.or(&other)
    }

    /// Which weights are better with the other sign: one by one, or two by two where an even number is to be negative.
    fn turned(&self, metric: &Metric, mut u: [f32; EIGHT], slope: [f32; EIGHT]) -> u8 {
        let Metric(m) = metric;
        let mut turned = 0;
        for _ in 0..EIGHT {
            let inner = |i: usize| (0..EIGHT).fold(-slope[i], |sum, j| m[i][j].mul_add(u[j], sum));
            let alone: [f32; EIGHT] =
                std::array::from_fn(|i| 4.0 * u[i] * (u[i] * m[i][i] - inner(i)));
            let (mut least, mut which) = (0.0, 0);
            for i in 0..EIGHT {
                match self.signs {
                    Signs::Even => {
                        for j in 0..i {
                            let cost = alone[i] + alone[j] + 8.0 * m[i][j] * u[i] * u[j];
                            if cost < least {
                                (least, which) = (cost, 1 << i | 1 << j);
                            }
                        }
                    }
                    _ if alone[i] < least => (least, which) = (alone[i], 1 << i),
                    _ => {}
                }
            }
            if which == 0 {
                break;
            }
            for (i, u) in u.iter_mut().enumerate().filter(|(i, _)| which >> i & 1 == 1) {
                *u = -*u;
                turned ^= 1 << i;
            }
        }
        turned
    }

    /// Signs of what is wanted. Where an even number is asked for, the one that matters least changes.
    #[inline(always)]
    pub fn signs_of(&self, metric: &Metric, wanted: &[Lanes; EIGHT], scale: &Lanes) -> [u8; ROWS] {
        if self.signs == Signs::Own {
            return [0; ROWS];
        }
        std::array::from_fn(|row| {
            let below = |i: usize| (wanted[i][row] < 0.0) != (scale[row] < 0.0);
            let signs = (0..EIGHT).fold(0, |signs, i| signs | u8::from(below(i)) << i);
            if self.signs != Signs::Even || signs.count_ones().is_multiple_of(2) {
                return signs;
            }
            let cost = |i: &usize| metric.0[*i][*i] * wanted[*i][row] * wanted[*i][row];
            let least = (0..EIGHT).min_by(|i, j| cost(i).total_cmp(&cost(j)));
            signs ^ 1 << least.unwrap_or(0)
        })
    }
}

//! Choice of codebook entries, eight columns at a time.

use gguf_quant::{QuantGrid, SignPattern};

use crate::cholesky::CholeskyFactor;
use crate::lanes::{Lanes, ROWS, add_product, add_scaled, zip};

/// Number of columns that are chosen together.
const WIDTH: usize = 8;

/// Quadratic cost of the errors of eight columns: a symmetric matrix.
pub(crate) struct Metric([[f32; WIDTH]; WIDTH]);

impl Metric {
    /// Cost of the errors of the eight columns from `start` on, if the later columns compensate
    /// them.
    #[inline(always)]
    pub fn with_compensation(factor: &CholeskyFactor, start: usize) -> Self {
        let mut metric = [[0.0; WIDTH]; WIDTH];
        for k in start..start + WIDTH {
            let row = &factor.r[k * factor.n + start..][..WIDTH];
            for (out, a) in metric.iter_mut().zip(row) {
                let scaled = a * factor.d[k];
                out.iter_mut().zip(row).for_each(|(out, b)| *out = scaled.mul_add(*b, *out));
            }
        }
        Self(metric)
    }

    /// Cost of the errors of the eight columns from `start` on, if all other columns stay fixed.
    #[inline(always)]
    pub fn without_compensation(matrix: &[f32], n: usize, start: usize) -> Self {
        let mut metric = [[0.0; WIDTH]; WIDTH];
        for (i, row) in metric.iter_mut().enumerate() {
            row.copy_from_slice(&matrix[(start + i) * n + start..][..WIDTH]);
        }
        Self(metric)
    }

    /// Multiplies the matrix by a value per column.
    #[inline(always)]
    pub fn times(&self, x: &[Lanes; WIDTH]) -> [Lanes; WIDTH] {
        let mut out = [[0.0; ROWS]; WIDTH];
        for (out, row) in out.iter_mut().zip(&self.0) {
            for (a, x) in row.iter().zip(x) {
                add_scaled(out, *a, x);
            }
        }
        out
    }
}

/// Codebook of a type.
pub(crate) struct Codebook {
    /// Number of columns per entry: 4 or 8.
    unit: usize,
    signs: SignPattern,
    /// Values of all entries.
    values: Vec<f32>,
}

/// Codebook entries chosen for eight columns.
pub(crate) struct CodebookChoice {
    pub values: [Lanes; WIDTH],
    /// Entry indices: one, or two of four columns each.
    pub entries: [[u16; ROWS]; 2],
    pub signs: [u8; ROWS],
    /// Cost, without the constant term.
    cost: Lanes,
}

impl CodebookChoice {
    /// Returns the weights of the entries.
    #[inline(always)]
    fn weights(&self, scale: &Lanes) -> [Lanes; WIDTH] {
        let mut weights = [[0.0; ROWS]; WIDTH];
        for (weight, value) in weights.iter_mut().zip(&self.values) {
            *weight = zip(value, scale, |value, scale| value * scale);
        }
        weights
    }

    /// Takes for each row the choice with the lower cost.
    #[inline(always)]
    pub fn or(mut self, other: &Self) -> Self {
        for row in 0..ROWS {
            if other.cost[row] < self.cost[row] {
                self.cost[row] = other.cost[row];
                self.signs[row] = other.signs[row];
                let columns = self.values.iter_mut().zip(&other.values);
                columns.for_each(|(mine, other)| mine[row] = other[row]);
                let parts = self.entries.iter_mut().zip(&other.entries);
                parts.for_each(|(mine, other)| mine[row] = other[row]);
            }
        }
        self
    }
}

impl Codebook {
    /// Returns `None` for types whose grid has scalar levels.
    pub fn new(grid: &QuantGrid) -> Option<Self> {
        let QuantGrid { unit, signs, .. } = *grid;
        (unit > 1).then(|| Self { unit, signs, values: grid.values.clone() })
    }

    /// Returns the entries that minimize `u metric u - 2 slope u` with the given signs, where `u`
    /// is scale times value. `down` holds the shift of the values and the rows in which it is
    /// negative.
    #[inline(always)]
    fn nearest(
        &self,
        metric: &Metric,
        target: &[Lanes; WIDTH],
        slope: &[Lanes; WIDTH],
        scale: &Lanes,
        signs: [u8; ROWS],
        down: Option<(f32, [bool; ROWS])>,
    ) -> CodebookChoice {
        let mut factor = [*scale; WIDTH];
        for (i, factor) in factor.iter_mut().enumerate() {
            for (factor, signs) in factor.iter_mut().zip(&signs) {
                *factor = if signs >> i & 1 == 1 { -*factor } else { *factor };
            }
        }
        // Starts from the wanted weights and replaces them part by part.
        let mut weights = *target;
        let (mut values, mut entries) = ([[0.0; ROWS]; WIDTH], [[0; ROWS]; 2]);
        let parts = WIDTH / self.unit;
        // With two parts, the first is chosen again after the second.
        for part in (0..parts).chain(0..parts - 1) {
            let columns = part * self.unit..(part + 1) * self.unit;
            let mut pull = [[0.0; ROWS]; WIDTH];
            for i in columns.clone() {
                pull[i] = slope[i];
                for (j, weight) in weights.iter().enumerate() {
                    if !columns.contains(&j) {
                        add_scaled(&mut pull[i], -metric.0[i][j], weight);
                    }
                }
            }
            let best_entry = self.best_entries(metric, columns.clone(), &pull, &factor, down);
            entries[part] = best_entry;
            for i in columns {
                for row in 0..ROWS {
                    let mut value =
                        self.values[usize::from(best_entry[row]) * self.unit + i % self.unit];
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
        CodebookChoice { values, entries, signs, cost }
    }

    /// Returns for each row the entry that minimizes `u metric u - 2 pull u`.
    #[inline(always)]
    fn best_entries(
        &self,
        metric: &Metric,
        columns: std::ops::Range<usize>,
        pull: &[Lanes; WIDTH],
        factor: &[Lanes; WIDTH],
        down: Option<(f32, [bool; ROWS])>,
    ) -> [u16; ROWS] {
        // The cost in terms of values: quadratic and linear coefficients.
        let unit = columns.len();
        let (mut pairs, mut alone) = ([[0.0; ROWS]; WIDTH * WIDTH], [[0.0; ROWS]; WIDTH]);
        for (i, column) in columns.clone().enumerate() {
            for (j, other) in columns.clone().enumerate().skip(i) {
                let both = if i == j { 1.0 } else { 2.0 } * metric.0[column][other];
                let pair = zip(&factor[column], &factor[other], |a, b| both * a * b);
                pairs[i * WIDTH + j] = pair;
            }
            alone[i] = zip(&pull[column], &factor[column], |pull, factor| -2.0 * pull * factor);
        }
        if let Some((by, down)) = down {
            // A shift of all values changes the linear coefficients.
            let by: Lanes = std::array::from_fn(|row| if down[row] { -by } else { by });
            for i in 0..unit {
                for j in i..unit {
                    let pair = zip(&pairs[i * WIDTH + j], &by, |pair, by| pair * by);
                    alone[i] = zip(&alone[i], &pair, |alone, pair| alone + pair);
                    alone[j] = zip(&alone[j], &pair, |alone, pair| alone + pair);
                }
            }
        }
        let (mut best, mut best_entry) = ([f32::INFINITY; ROWS], [0.0; ROWS]);
        for (number, values) in self.values.chunks_exact(unit).enumerate() {
            let mut cost = [0.0; ROWS];
            for (i, a) in values.iter().enumerate() {
                let mut sum = alone[i];
                for (j, b) in values.iter().enumerate().skip(i) {
                    add_scaled(&mut sum, *b, &pairs[i * WIDTH + j]);
                }
                add_scaled(&mut cost, *a, &sum);
            }
            for ((best, best_entry), cost) in best.iter_mut().zip(&mut best_entry).zip(&cost) {
                *best_entry = if cost < best { number as f32 } else { *best_entry };
                *best = if cost < best { *cost } else { *best };
            }
        }
        best_entry.map(|number| number as u16)
    }

    /// Improves the choice from the given signs: entries for these signs, then signs for these
    /// entries, then entries again.
    #[inline(always)]
    pub fn best_from(
        &self,
        metric: &Metric,
        target: &[Lanes; WIDTH],
        slope: &[Lanes; WIDTH],
        scale: &Lanes,
        signs: [u8; ROWS],
        down: Option<(f32, [bool; ROWS])>,
    ) -> CodebookChoice {
        let found = self.nearest(metric, target, slope, scale, signs, down);
        if self.signs == SignPattern::InCodebook {
            return found;
        }
        let better = std::array::from_fn(|row| {
            let row_values = |lanes: &[Lanes; WIDTH]| lanes.map(|lanes| lanes[row]);
            let weights = row_values(&found.values).map(|value| value * scale[row]);
            found.signs[row] ^ self.flips(metric, weights, row_values(slope))
        });
        if better == found.signs {
            return found;
        }
        let weights = found.weights(scale);
        let other = self.nearest(metric, &weights, slope, scale, better, down);
        found.or(&other)
    }

    /// Returns the signs to flip to lower the cost: single flips, or pairs where the number of
    /// negative signs must stay even.
    fn flips(&self, metric: &Metric, mut u: [f32; WIDTH], slope: [f32; WIDTH]) -> u8 {
        let Metric(m) = metric;
        let mut flips = 0;
        for _ in 0..WIDTH {
            let inner = |i: usize| (0..WIDTH).fold(-slope[i], |sum, j| m[i][j].mul_add(u[j], sum));
            let alone: [f32; WIDTH] =
                std::array::from_fn(|i| 4.0 * u[i] * (u[i] * m[i][i] - inner(i)));
            let (mut least, mut which) = (0.0, 0);
            for i in 0..WIDTH {
                match self.signs {
                    SignPattern::Even => {
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
                flips ^= 1 << i;
            }
        }
        flips
    }

    /// Returns the signs of the wanted weights. If their number of negative signs must be even, the
    /// least costly sign is flipped.
    #[inline(always)]
    pub fn signs_of(&self, metric: &Metric, target: &[Lanes; WIDTH], scale: &Lanes) -> [u8; ROWS] {
        if self.signs == SignPattern::InCodebook {
            return [0; ROWS];
        }
        std::array::from_fn(|row| {
            let below = |i: usize| (target[i][row] < 0.0) != (scale[row] < 0.0);
            let signs = (0..WIDTH).fold(0, |signs, i| signs | u8::from(below(i)) << i);
            if self.signs != SignPattern::Even || signs.count_ones().is_multiple_of(2) {
                return signs;
            }
            let cost = |i: &usize| metric.0[*i][*i] * target[*i][row] * target[*i][row];
            let least = (0..WIDTH).min_by(|i, j| cost(i).total_cmp(&cost(j)));
            signs ^ 1 << least.unwrap_or(0)
        })
    }
}

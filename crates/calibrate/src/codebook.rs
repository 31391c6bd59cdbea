//! Choice of codebook entries, eight columns at a time.

use gguf_quant::{QuantGrid, SignPattern};
use pulp::Simd;

use crate::cholesky::CholeskyFactor;
use crate::lanes::{Lanes, ROWS, add_product, add_scaled, zip};

/// Number of columns that are chosen together.
const WIDTH: usize = 8;

/// Quadratic cost of the errors of eight columns: a symmetric matrix.
pub(crate) struct Metric<S> {
    simd: S,
    matrix: [[f32; WIDTH]; WIDTH],
}

impl<S: Simd> Metric<S> {
    /// Cost of the errors of the eight columns from `start` on, if the later columns compensate
    /// them.
    #[inline(always)]
    pub fn with_compensation(simd: S, factor: &CholeskyFactor, start: usize) -> Self {
        let mut metric = [[0.0; WIDTH]; WIDTH];
        for k in start..start + WIDTH {
            let row = &factor.r[k * factor.n + start..][..WIDTH];
            for (out, a) in metric.iter_mut().zip(row) {
                let scaled = a * factor.d[k];
                out.iter_mut().zip(row).for_each(|(out, b)| *out = scaled.mul_add(*b, *out));
            }
        }
        Self { simd, matrix: metric }
    }

    /// Cost of the errors of the eight columns from `start` on, if all other columns stay fixed.
    #[inline(always)]
    pub fn without_compensation(simd: S, matrix: &[f32], n: usize, start: usize) -> Self {
        let mut metric = [[0.0; WIDTH]; WIDTH];
        for (i, row) in metric.iter_mut().enumerate() {
            row.copy_from_slice(&matrix[(start + i) * n + start..][..WIDTH]);
        }
        Self { simd, matrix: metric }
    }

    /// Multiplies the matrix by a value per column.
    #[inline(always)]
    pub fn times(&self, x: &[Lanes; WIDTH]) -> [Lanes; WIDTH] {
        let mut out = [[0.0; ROWS]; WIDTH];
        for (out, row) in out.iter_mut().zip(&self.matrix) {
            for (a, x) in row.iter().zip(x) {
                add_scaled(self.simd, out, *a, x);
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
    /// Values of the distinct halves of entries.
    halves: Vec<f32>,
    /// Entries by their second half.
    groups: Vec<Group>,
}

/// Entries with a common second half.
struct Group {
    /// Index of the second half in [`Codebook::halves`].
    second: usize,
    /// Index of the first half, and of the entry.
    entries: Vec<(usize, usize)>,
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
        if unit <= 1 {
            return None;
        }
        let half = unit / 2;
        let mut halves: Vec<f32> = Vec::new();
        let mut number_of = |values: &[f32]| {
            halves.chunks_exact(half).position(|other| other == values).unwrap_or_else(|| {
                halves.extend(values);
                halves.len() / half - 1
            })
        };
        let mut groups: Vec<Group> = Vec::new();
        for (number, entry) in grid.values.chunks_exact(unit).enumerate() {
            let (first, second) = entry.split_at(half);
            let (first, second) = (number_of(first), number_of(second));
            match groups.iter_mut().find(|group| group.second == second) {
                Some(group) => group.entries.push((first, number)),
                None => groups.push(Group { second, entries: vec![(first, number)] }),
            }
        }
        Some(Self { unit, signs, values: grid.values.clone(), halves, groups })
    }

    /// Returns the entries that minimize `u metric u - 2 slope u` with the given signs, where `u`
    /// is scale times value. `down` holds the shift of the values and the rows in which it is
    /// negative.
    #[inline(always)]
    fn nearest<S: Simd>(
        &self,
        metric: &Metric<S>,
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
                        add_scaled(metric.simd, &mut pull[i], -metric.matrix[i][j], weight);
                    }
                }
            }
            let best_entry = match self.unit {
                4 => self.best_entries::<S, 4, 2>(metric, columns.start, &pull, &factor, down),
                _ => self.best_entries::<S, 8, 4>(metric, columns.start, &pull, &factor, down),
            };
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

    /// Returns for each row the entry that minimizes `u metric u - 2 pull u` over the `UNIT` columns
    /// from `start` on.
    #[inline(always)]
    fn best_entries<S: Simd, const UNIT: usize, const HALF: usize>(
        &self,
        metric: &Metric<S>,
        start: usize,
        pull: &[Lanes; WIDTH],
        factor: &[Lanes; WIDTH],
        down: Option<(f32, [bool; ROWS])>,
    ) -> [u16; ROWS] {
        let simd = metric.simd;
        // The cost in terms of values: quadratic and linear coefficients.
        let (mut pairs, mut alone) = ([[[0.0; ROWS]; UNIT]; UNIT], [[0.0; ROWS]; UNIT]);
        for i in 0..UNIT {
            for j in i..UNIT {
                let both = if i == j { 1.0 } else { 2.0 } * metric.matrix[start + i][start + j];
                pairs[i][j] = zip(&factor[start + i], &factor[start + j], |a, b| both * a * b);
            }
            let (pull, factor) = (&pull[start + i], &factor[start + i]);
            alone[i] = zip(pull, factor, |pull, factor| -2.0 * pull * factor);
        }
        if let Some((by, down)) = down {
            // A shift of all values changes the linear coefficients.
            let by: Lanes = std::array::from_fn(|row| if down[row] { -by } else { by });
            for i in 0..UNIT {
                for j in i..UNIT {
                    let pair = zip(&pairs[i][j], &by, |pair, by| pair * by);
                    alone[i] = zip(&alone[i], &pair, |alone, pair| alone + pair);
                    alone[j] = zip(&alone[j], &pair, |alone, pair| alone + pair);
                }
            }
        }
        let (mut best, mut best_entry) = ([f32::INFINITY; ROWS], [0.0; ROWS]);
        for vector in 0..ROWS / S::F32_LANES {
            let best = &mut S::as_mut_simd_f32s(&mut best).0[vector];
            let best_entry = &mut S::as_mut_simd_f32s(&mut best_entry).0[vector];
            let halves = self.halves.as_chunks::<HALF>().0;
            let mut first_costs = Vec::with_capacity(halves.len());
            for half in halves {
                let zero = [[0.0; ROWS]; HALF];
                first_costs.push(half_cost(simd, half, &pairs, 0, &zero, vector));
            }
            let (first_linear, second_linear) = alone.split_at(HALF);
            for Group { second, entries } in &self.groups {
                let second = &halves[*second];
                let second_cost = half_cost(simd, second, &pairs, HALF, second_linear, vector);
                let mut linear = [simd.splat_f32s(0.0); HALF];
                for (i, linear) in linear.iter_mut().enumerate() {
                    *linear = S::as_simd_f32s(&first_linear[i]).0[vector];
                    for (b, pair) in second.iter().zip(&pairs[i][HALF..]) {
                        let pair = S::as_simd_f32s(pair).0[vector];
                        *linear = simd.mul_add_f32s(simd.splat_f32s(*b), pair, *linear);
                    }
                }
                for (first, number) in entries {
                    let mut cost = simd.add_f32s(first_costs[*first], second_cost);
                    for (a, linear) in halves[*first].iter().zip(linear) {
                        cost = simd.mul_add_f32s(simd.splat_f32s(*a), linear, cost);
                    }
                    let is_less = simd.less_than_f32s(cost, *best);
                    *best = simd.select_f32s(is_less, cost, *best);
                    let number = simd.splat_f32s(*number as f32);
                    *best_entry = simd.select_f32s(is_less, number, *best_entry);
                }
            }
        }
        best_entry.map(|number| number as u16)
    }

    /// Improves the choice from the given signs: entries for these signs, then signs for these
    /// entries, then entries again.
    #[inline(always)]
    pub fn best_from<S: Simd>(
        &self,
        metric: &Metric<S>,
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
        let mut better = found.signs;
        for (row, better) in better.iter_mut().enumerate() {
            let (mut weights, mut slopes) = ([0.0; WIDTH], [0.0; WIDTH]);
            for i in 0..WIDTH {
                weights[i] = found.values[i][row] * scale[row];
                slopes[i] = slope[i][row];
            }
            *better ^= self.flips(metric, weights, slopes);
        }
        if better == found.signs {
            return found;
        }
        let weights = found.weights(scale);
        let other = self.nearest(metric, &weights, slope, scale, better, down);
        found.or(&other)
    }

    /// Returns the signs to flip to lower the cost: single flips, or pairs where the number of
    /// negative signs must stay even.
    #[inline(always)]
    fn flips<S: Simd>(&self, metric: &Metric<S>, mut u: [f32; WIDTH], slope: [f32; WIDTH]) -> u8 {
        let m = &metric.matrix;
        let mut flips = 0;
        for _ in 0..WIDTH {
            let mut inner = slope.map(|slope| -slope);
            for (u, row) in u.iter().zip(m) {
                for (inner, square) in inner.iter_mut().zip(row) {
                    *inner = square.mul_add(*u, *inner);
                }
            }
            let mut alone = [0.0; WIDTH];
            for i in 0..WIDTH {
                alone[i] = 4.0 * u[i] * (u[i] * m[i][i] - inner[i]);
            }
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
    pub fn signs_of<S: Simd>(
        &self,
        metric: &Metric<S>,
        target: &[Lanes; WIDTH],
        scale: &Lanes,
    ) -> [u8; ROWS] {
        if self.signs == SignPattern::InCodebook {
            return [0; ROWS];
        }
        std::array::from_fn(|row| {
            let below = |i: usize| (target[i][row] < 0.0) != (scale[row] < 0.0);
            let signs = (0..WIDTH).fold(0, |signs, i| signs | u8::from(below(i)) << i);
            if self.signs != SignPattern::Even || signs.count_ones().is_multiple_of(2) {
                return signs;
            }
            let cost = |i: &usize| metric.matrix[*i][*i] * target[*i][row] * target[*i][row];
            let least = (0..WIDTH).min_by(|i, j| cost(i).total_cmp(&cost(j)));
            signs ^ 1 << least.unwrap_or(0)
        })
    }
}

/// Returns the cost of the values of half an entry on their own: quadratic terms of the columns from
/// `start` on, and linear ones.
#[inline(always)]
fn half_cost<S: Simd, const UNIT: usize, const HALF: usize>(
    simd: S,
    half: &[f32; HALF],
    pairs: &[[Lanes; UNIT]; UNIT],
    start: usize,
    linear: &[Lanes],
    vector: usize,
) -> S::f32s {
    let mut cost = simd.splat_f32s(0.0);
    for i in 0..HALF {
        let mut sum = S::as_simd_f32s(&linear[i]).0[vector];
        for j in i..HALF {
            let pair = S::as_simd_f32s(&pairs[start + i][start + j]).0[vector];
            sum = simd.mul_add_f32s(simd.splat_f32s(half[j]), pair, sum);
        }
        cost = simd.mul_add_f32s(simd.splat_f32s(half[i]), sum, cost);
    }
    cost
}

#[cfg(test)]
mod tests {
    use gguf::TensorType;
    use gguf_quant::quant_grid;

    use super::*;

    /// Pseudo-random numbers between -1 and 1.
    fn numbers(seed: usize) -> impl Iterator<Item = f32> {
        (seed..).map(|i| ((i * i) as f32 * 0.37).sin())
    }

    #[test]
    fn the_best_entry_is_found() {
        for ty in [TensorType::IQ1_S, TensorType::IQ2_S, TensorType::IQ3_S, TensorType::IQ3_XXS] {
            let grid = quant_grid(ty).unwrap();
            let codebook = Codebook::new(&grid).unwrap();
            let mut metric = [[0.0; WIDTH]; WIDTH];
            for x in numbers(1).take(20 * WIDTH).collect::<Vec<_>>().as_chunks::<WIDTH>().0 {
                for (row, a) in metric.iter_mut().zip(x) {
                    row.iter_mut().zip(x).for_each(|(out, b)| *out += a * b);
                }
            }
            let lanes = |seed: usize| -> [Lanes; WIDTH] {
                let mut numbers = numbers(seed);
                [[0.0; ROWS]; WIDTH].map(|row| row.map(|_: f32| numbers.next().unwrap()))
            };
            let (pull, factor) = (lanes(500).map(|row| row.map(|x| 30.0 * x)), lanes(900));
            let metric = Metric { simd: pulp::Scalar::new(), matrix: metric };
            let (found, unit) = match codebook.unit {
                4 => (codebook.best_entries::<_, 4, 2>(&metric, 4, &pull, &factor, None), 4),
                _ => (codebook.best_entries::<_, 8, 4>(&metric, 0, &pull, &factor, None), 8),
            };
            let start = if unit == 4 { 4 } else { 0 };
            for row in 0..ROWS {
                let cost = |entry: &[f32]| -> f32 {
                    let u = |i: usize| factor[start + i][row] * entry[i];
                    (0..unit)
                        .map(|i| {
                            let inner: f32 =
                                (0..unit).map(|j| metric.matrix[start + i][start + j] * u(j)).sum();
                            u(i) * (inner - 2.0 * pull[start + i][row])
                        })
                        .sum()
                };
                let costs: Vec<f32> = codebook.values.chunks_exact(unit).map(cost).collect();
                let least = costs.iter().copied().fold(f32::INFINITY, f32::min);
                let excess = costs[usize::from(found[row])] - least;
                // Single precision, for sums of up to 64 terms.
                assert!(excess <= 1e-4 * least.abs(), "{ty} row {row}: {excess} of {least}");
            }
        }
    }
}

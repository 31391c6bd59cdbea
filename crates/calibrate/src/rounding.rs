//! Values chosen column by column.

use gguf_quant::{Codec, CodecError, Form, Numbers, Signs};

use crate::encode::Target;
use crate::factor::Factor;
use crate::lanes::{
    Lanes, ROWS, add_scaled, product, solve_from_the_end, solve_from_the_start, zip,
};
use crate::points::{Chosen, Metric, Points};
use crate::scales;

/// Columns whose errors are told to each other one by one; to those after them together.
const CHUNK: usize = 32;

/// The levels of a type.
pub(crate) struct Levels {
    /// The first and the step, if they are evenly spaced.
    even: Option<(f32, f32)>,
    /// Halfway between each and the next.
    halves: Vec<f32>,
    values: Vec<f32>,
}

impl Levels {
    pub fn new(form: &Form) -> Self {
        let values = if form.unit == 1 { form.values.clone() } else { Vec::new() };
        let step = values.get(1).map_or(0.0, |second| second - values[0]);
        let is_even = values.windows(2).all(|pair| pair[1] - pair[0] == step);
        let halves = values.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
        Self { even: (is_even && step > 0.0).then(|| (values[0], step)), halves, values }
    }

    /// The numbers of the levels that are nearest, and the levels.
    #[inline(always)]
    fn nearest(&self, x: &Lanes) -> (Lanes, Lanes) {
        let (mut number, mut value) = ([0.0; ROWS], [0.0; ROWS]);
        if let Some((first, step)) = self.even {
            let top = (self.values.len() - 1) as f32;
            for ((number, value), x) in number.iter_mut().zip(&mut value).zip(x) {
                *number = ((x - first) / step + 0.5).clamp(0.0, top + 0.5).floor().min(top);
                *value = first + step * *number;
            }
            return (number, value);
        }
        for half in &self.halves {
            for (number, x) in number.iter_mut().zip(x) {
                *number += if x > half { 1.0 } else { 0.0 };
            }
        }
        for (value, number) in value.iter_mut().zip(&number) {
            *value = self.values[*number as usize];
        }
        (number, value)
    }
}

/// Some rows on their way: of each column a number per row.
pub(crate) struct Tile<'t> {
    pub form: &'t Form,
    levels: &'t Levels,
    points: Option<&'t Points>,
    pub target: &'t Target,
    rows: usize,
    /// What the weights are to be.
    w: Vec<Lanes>,
    /// What they still differ by: what they are to be, less what they are.
    pub e: Vec<Lanes>,
    /// The values of all columns, before scale and offset.
    pub v: Vec<Lanes>,
    /// The choice of each unit.
    choices: Vec<[u16; ROWS]>,
    /// The signs of each eight columns.
    signs: Vec<[u8; ROWS]>,
    /// Of each block the scales of all rows.
    pub numbers: Vec<Vec<Numbers>>,
}

/// Scale, offset, and the inverse of the scale (0 of 0).
type Scaled = (Lanes, Lanes, Lanes);

impl<'t> Tile<'t> {
    #[inline(always)]
    pub fn new(
        form: &'t Form,
        levels: &'t Levels,
        points: Option<&'t Points>,
        target: &'t Target,
        rows: &[f32],
    ) -> Self {
        let n = target.n();
        let mut w = vec![[0.0; ROWS]; n];
        for (number, row) in rows.chunks_exact(n).enumerate() {
            w.iter_mut().zip(row).for_each(|(w, x)| w[number] = *x);
        }
        let zeros = vec![[0.0; ROWS]; n];
        Self {
            form,
            levels,
            points,
            target,
            rows: rows.len() / n,
            w,
            e: zeros.clone(),
            v: zeros,
            choices: vec![[0; ROWS]; n / form.unit],
            signs: vec![[0; ROWS]; if form.signs == Signs::Own { 0 } else { n / 8 }],
            numbers: Vec::new(),
        }
    }

    /// Changes weights to what they would best be before they are rounded, the tile's rows being those of the matrix from
    /// `first` on: adds `share (w drift + missing) / (RT D R)`.
    #[inline(always)]
    pub fn shift(&mut self, first: usize) {
        let Target { factor: Factor { n, r, d }, drift, missing, share, .. } = self.target;
        let n = *n;
        if drift.is_empty() {
            return;
        }
        let mut b = vec![[0.0; ROWS]; n];
        product((drift, n), 0..n, 0..n, &self.w, &mut b);
        for row in 0..self.rows {
            if let Some(missing) = missing.get((first + row) * n..(first + row + 1) * n) {
                b.iter_mut().zip(missing).for_each(|(b, missing)| b[row] += missing);
            }
        }
        // x RT D R = b: first u R = b, then x RT = u / D.
        solve_from_the_end(r, &mut b);
        for (b, d) in b.iter_mut().zip(d) {
            let inverse = share / d;
            b.iter_mut().for_each(|b| *b *= inverse);
        }
        solve_from_the_start(r, &mut b);
        for (w, b) in self.w.iter_mut().zip(&b) {
            *w = zip(w, b, |w, b| w + b);
        }
    }

    /// Chooses scales and values of a block, those before it being chosen.
    #[inline(always)]
    pub fn begin(&mut self, codec: &Codec, block: usize) -> Result<(), CodecError> {
        let (n, len) = (self.target.n(), self.form.len);
        let columns = block * len..(block + 1) * len;
        // What the columns before leave to be made up for.
        let mut owed = vec![[0.0; ROWS]; len];
        let before = 0..columns.start;
        product(
            (&self.target.factor.r, n),
            columns.clone(),
            before.clone(),
            &self.e[before],
            &mut owed,
        );
        let mut wanted = vec![0.0; ROWS * len];
        for (j, owed) in owed.iter().enumerate() {
            for row in 0..ROWS {
                wanted[row * len + j] = self.w[columns.start + j][row] + owed[row];
            }
        }
        // What an error of a column costs when those after it make up for it as well as they can.
        let weights = &self.target.factor.d[columns];
        let mut bytes = vec![0; ROWS * self.form.bytes];
        codec.encode_rows(&wanted, Some(weights), &mut bytes)?;
        let blocks = bytes.chunks_exact(self.form.bytes);
        self.numbers.push(blocks.map(|block| self.form.open_scales(block)).collect());
        self.feed(block, &owed);
        Ok(())
    }

    /// Column by column: what each is wrong by is left to those after it.
    #[inline(always)]
    fn feed(&mut self, block: usize, owed: &[Lanes]) {
        let (n, len) = (self.target.n(), self.form.len);
        let (start, step) = (block * len, if self.points.is_some() { 8 } else { 1 });
        let r = &self.target.factor.r;
        for first in (0..len).step_by(CHUNK) {
            let end = len.min(first + CHUNK);
            let mut sums = [[0.0; ROWS]; CHUNK];
            let (columns, before) = (start + first..start + end, start..start + first);
            let out = &mut sums[..end - first];
            product((r, n), columns, before.clone(), &self.e[before], out);
            for j in (first..end).step_by(step) {
                let scaled = self.scaled(block, j / self.form.group);
                let mut wanted = [[0.0; ROWS]; 8];
                // What is owed by columns that are chosen together is told one by one, too.
                let mut told = [[0.0; ROWS]; 8];
                for i in 0..step {
                    let column = start + j + i;
                    let row = &r[column * n + start + first..];
                    let mut sum = zip(&owed[j + i], &sums[j + i - first], |a, b| a + b);
                    for (e, r) in self.e[start + first..start + j].iter().zip(row) {
                        add_scaled(&mut sum, *r, e);
                    }
                    for (told, r) in told[..i].iter().zip(&row[j - first..]) {
                        add_scaled(&mut sum, -r, told);
                    }
                    told[i] = sum;
                    wanted[i] = zip(&self.w[column], &sum, |w, sum| w + sum);
                }
                match self.points {
                    None => self.set_level(start + j, &wanted[0], &scaled),
                    Some(points) => {
                        let metric = Metric::of_factor(&self.target.factor, start + j);
                        let slope = metric.times(&wanted);
                        let down = self.down(start + j);
                        let signs = points.signs_of(&metric, &wanted, &scaled.0);
                        let found =
                            points.least_from(&metric, &wanted, &slope, &scaled.0, signs, down);
                        self.set_points(start + j, &found, &scaled);
                    }
                }
            }
        }
    }

    /// Chooses values, scales, and values once more, all other blocks being as they are.
    #[inline(always)]
    pub fn improve(&mut self, block: usize) {
        let (n, len) = (self.target.n(), self.form.len);
        let mut slope = vec![[0.0; ROWS]; len];
        let squares = (&self.target.squares[..], n);
        product(squares, block * len..(block + 1) * len, 0..n, &self.e, &mut slope);
        self.sweep(block, &mut slope);
        scales::fit(self, block, &mut slope);
        self.sweep(block, &mut slope);
    }

    /// Each value of a block once more. `slope` is half of what the error falls by as each weight grows.
    #[inline(always)]
    fn sweep(&mut self, block: usize, slope: &mut [Lanes]) {
        let (n, len) = (self.target.n(), self.form.len);
        let (start, step) = (block * len, if self.points.is_some() { 8 } else { 1 });
        let squares = &self.target.squares;
        let mut scaled = self.scaled(block, 0);
        for j in (0..len).step_by(step) {
            if j > 0 && j % self.form.group == 0 {
                scaled = self.scaled(block, j / self.form.group);
            }
            let (mut old, mut weights) = ([[0.0; ROWS]; 8], [[0.0; ROWS]; 8]);
            for i in 0..step {
                old[i] = self.e[start + j + i];
                weights[i] = zip(&self.w[start + j + i], &old[i], |w, e| w - e);
            }
            match self.points {
                None => {
                    let inverse = 1.0 / squares[(start + j) * n + start + j];
                    let wanted = zip(&weights[0], &slope[j], |w, slope| w + slope * inverse);
                    self.set_level(start + j, &wanted, &scaled);
                }
                Some(points) => {
                    let metric = Metric::of_squares(squares, n, start + j);
                    let mut pull = metric.times(&weights);
                    for (pull, slope) in pull.iter_mut().zip(&slope[j..]) {
                        *pull = zip(pull, slope, |pull, slope| pull + slope);
                    }
                    let down = self.down(start + j);
                    // From the signs that there are it becomes no worse.
                    let signs = self.signs_at(start + j);
                    let found = points.least_from(&metric, &weights, &pull, &scaled.0, signs, down);
                    self.set_points(start + j, &found, &scaled);
                }
            }
            for (i, old) in old.iter().enumerate().take(step) {
                let column = start + j + i;
                let change = zip(&self.e[column], old, |new, old| new - old);
                if change.iter().any(|change| *change != 0.0) {
                    for (slope, square) in slope.iter_mut().zip(&squares[column * n + start..]) {
                        add_scaled(slope, *square, &change);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn scaled(&self, block: usize, group: usize) -> Scaled {
        let (mut scale, mut offset, mut inverse) = ([0.0; ROWS], [0.0; ROWS], [0.0; ROWS]);
        for (row, numbers) in self.numbers[block].iter().enumerate() {
            (scale[row], offset[row]) = self.form.of_group(numbers, group);
            // Of a scale that is as good as 0 there is none.
            let is_small = scale[row].abs() < f32::MIN_POSITIVE;
            inverse[row] = if is_small { 0.0 } else { 1.0 / scale[row] };
        }
        (scale, offset, inverse)
    }

    /// Gives a column the levels that are nearest to what is wanted.
    #[inline(always)]
    fn set_level(&mut self, column: usize, wanted: &Lanes, (scale, offset, inverse): &Scaled) {
        let x = zip(wanted, offset, |wanted, offset| wanted - offset);
        let (numbers, values) = self.levels.nearest(&zip(&x, inverse, |x, inverse| x * inverse));
        self.v[column] = values;
        self.set_error(column, scale, offset);
        self.choices[column] = numbers.map(|number| number as u16);
    }

    /// By how much the values of eight columns are shifted, and in which rows down.
    #[inline(always)]
    fn down(&self, column: usize) -> Option<(f32, [bool; ROWS])> {
        let shift = self.form.shift?;
        let numbers = &self.numbers[column / self.form.len];
        let place = column % self.form.len / shift.len;
        Some((shift.by, std::array::from_fn(|row| numbers[row].down[place])))
    }

    /// The signs of eight columns; none of types without.
    #[inline(always)]
    fn signs_at(&self, column: usize) -> [u8; ROWS] {
        self.signs.get(column / 8).copied().unwrap_or([0; ROWS])
    }

    /// Gives eight columns points.
    #[inline(always)]
    fn set_points(&mut self, column: usize, found: &Chosen, (scale, offset, _): &Scaled) {
        self.v[column..column + 8].copy_from_slice(&found.values);
        let choices = &mut self.choices[column / self.form.unit..(column + 8) / self.form.unit];
        choices.iter_mut().zip(&found.choices).for_each(|(choice, found)| *choice = *found);
        if let Some(signs) = self.signs.get_mut(column / 8) {
            *signs = found.signs;
        }
        for column in column..column + 8 {
            self.set_error(column, scale, offset);
        }
    }

    /// Says what a column differs by.
    #[inline(always)]
    pub fn set_error(&mut self, column: usize, scale: &Lanes, offset: &Lanes) {
        let weight = zip(&zip(scale, &self.v[column], |scale, v| scale * v), offset, |x, o| x + o);
        self.e[column] = zip(&self.w[column], &weight, |w, weight| w - weight);
    }

    /// Writes the rows.
    pub fn write(&self, out: &mut [u8]) {
        let Form { len, bytes, unit, .. } = *self.form;
        let blocks = self.numbers.len();
        for (row, out) in out.chunks_exact_mut(blocks * bytes).enumerate().take(self.rows) {
            for (block, out) in out.chunks_exact_mut(bytes).enumerate() {
                let mut numbers = self.numbers[block][row].clone();
                let choices = &self.choices[block * len / unit..(block + 1) * len / unit];
                numbers.values = choices.iter().map(|choice| choice[row]).collect();
                if !self.signs.is_empty() {
                    let signs = &self.signs[block * len / 8..(block + 1) * len / 8];
                    numbers.signs = signs.iter().map(|signs| signs[row]).collect();
                }
                self.form.close(&numbers, out);
            }
        }
    }
}

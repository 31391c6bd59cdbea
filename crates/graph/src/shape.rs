//! The shape of the value of an operation, and what the operation asks of its parts.

mod attention;
mod compress;
mod experts;
mod ngrams;
mod numbered;
mod recurrent;

use std::fmt;

use crate::graph::{Rows, Shape};
use crate::op::{GateFunction, Index, Op};
use crate::raw::{Program, RawGraph, State, StateId, ValueId, WeightId};
use crate::rotation::{Factors, Rotation, Stretch};

/// Widest row of a value: far beyond any model, and small enough that sums of a few do not overflow.
const MAX_WIDTH: u64 = 1 << 24;

/// More rounds than any matrix takes until its shares stay.
const MAX_ITERATIONS: u32 = 1000;

/// What is known where an operation stands.
pub(crate) struct Place<'g> {
    pub graph: &'g RawGraph,
    /// The shapes of the values before.
    pub shapes: &'g [Shape],
    /// Whether the program is that of the encoder.
    pub is_encoder: bool,
}

type Result<T> = std::result::Result<T, String>;

impl Place<'_> {
    /// The shape of the value that `op` makes.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn shape(&self, op: &Op) -> Result<Shape> {
        match op {
            Op::Features { width } => {
                require(self.is_encoder, "only an encoder has features")?;
                let first = self.features_width().unwrap_or(0) as u64;
                same("widths of the features", (*width).into(), first)?;
                Shape::new(Rows::Frames { stride: 1 }, u64::from(*width))
            }
            Op::Embed { table, index } => {
                let [width, count] = self.matrix(*table)?;
                if let Index::Replaced(tokens) = index {
                    numbered::ascending(tokens)?;
                    let has = |(_, instead): &(u32, u32)| u64::from(*instead) < count;
                    require(tokens.iter().all(has), "a token that stands in has no row")?;
                }
                let rows = match (index, self.shapes.last()) {
                    (Index::Row, Some(before)) => before.rows,
                    (Index::Row, None) => return Err("there are no rows to number yet".to_owned()),
                    _ => self.rows_of_tokens()?,
                };
                Shape::new(rows, width)
            }
            Op::Ngrams(ngrams) => self.ngrams(ngrams),
            Op::Product { x, weight, bias } => {
                let [input, output] = self.matrix(*weight)?;
                let x = self.value(*x)?;
                same("width of the value and rows of the matrix", x.width.into(), input)?;
                self.optional(*bias, &[output])?;
                Shape::new(x.rows, output)
            }
            Op::Mark(mark) => self.mark(mark),
            Op::NumberedProduct(product) => self.numbered_product(product),
            Op::HeadProduct { x, weight } => {
                let [input, output, matrices] = self.cube(*weight)?;
                let x = self.value(*x)?;
                let heads = u64::from(x.width) / input;
                let width = product(output, matrices)?;
                let folded = matrices == 1 && heads > 0 && width % heads == 0;
                let heads = if folded { heads } else { matrices };
                let found = u64::from(x.width);
                same("width of the value and of all heads", found, product(input, heads)?)?;
                Shape::new(x.rows, width)
            }
            Op::Norm { x, epsilon, groups, weight, bias, .. } => {
                let x = self.value(*x)?;
                require(*epsilon >= 0.0, "epsilon is below 0")?;
                let part = x.part(*groups)?;
                for weight in [weight, bias].into_iter().flatten() {
                    let len = self.elements(*weight)?;
                    require(
                        len == u64::from(x.width) || len == u64::from(part),
                        "the weight of the norm is neither for a row nor for a part of it",
                    )?;
                }
                Ok(x)
            }
            Op::Add { a, b } => self.alike(*a, *b),
            Op::Multiply { a, b } => {
                let (a, b) = (self.value(*a)?, self.value(*b)?);
                require(a.rows == b.rows, "the values have other rows")?;
                a.part(b.width)?;
                Ok(a)
            }
            Op::AddWeight { x, weight } => {
                let x = self.value(*x)?;
                self.vector(*weight, x.width.into())?;
                Ok(x)
            }
            Op::MultiplyWeight { x, weight } => {
                let x = self.value(*x)?;
                let factors = self.elements(*weight)?;
                if factors < x.width.into() {
                    x.part(u32::try_from(factors).unwrap_or(0))?;
                    return Ok(x);
                }
                let rows = factors / u64::from(x.width);
                same("numbers of the weight", factors, product(rows, x.width.into())?)?;
                Shape::new(x.rows, factors)
            }
            Op::Mix { a, b, weight } => {
                let shape = self.alike(*a, *b)?;
                self.vector(*weight, shape.width.into())?;
                Ok(shape)
            }
            Op::Scale { x, .. } | Op::AddNumber { x, .. } | Op::Activate { x, .. } => {
                self.value(*x)
            }
            Op::ScaleByPosition { x, offset, length, .. } => {
                require(*length > 0, "the length is 0")?;
                require(*offset <= 1, "positions are counted from neither 0 nor 1")?;
                self.tokens(*x)
            }
            Op::Clamp { x, bound } => {
                require(*bound >= 0.0, "the bound is below 0")?;
                self.value(*x)
            }
            Op::SoftCap { x, cap } => {
                require(*cap > 0.0, "the cap is not above 0")?;
                self.value(*x)
            }
            Op::Softmax { x, groups } => {
                let x = self.value(*x)?;
                x.part(*groups)?;
                Ok(x)
            }
            Op::Sinkhorn { x, iterations, epsilon } => {
                let x = self.value(*x)?;
                require(x.width.isqrt().pow(2) == x.width, "a row is no square matrix")?;
                require(
                    (1..=MAX_ITERATIONS).contains(iterations),
                    "too few or too many iterations",
                )?;
                require(*epsilon >= 0.0, "epsilon is below 0")?;
                Ok(x)
            }
            Op::Combine { x, shares, parts } => {
                let (x, shares) = (self.value(*x)?, self.value(*shares)?);
                require(x.rows == shares.rows, "the values have other rows")?;
                let made = shares.part(*parts)?;
                Shape::new(x.rows, product(x.part(*parts)?.into(), made.into())?)
            }
            Op::Gate { gate, up, function } => {
                gate_function(*function)?;
                self.alike(*gate, *up)
            }
            Op::Slice { x, groups, start, len } => {
                let x = self.value(*x)?;
                let end = u64::from(*start) + u64::from(*len);
                require(end <= x.part(*groups)?.into(), "the slice ends beyond the row")?;
                Shape::new(x.rows, product(u64::from(*len), (*groups).into())?)
            }
            Op::Join { a, b, groups, shared } => {
                let (a, b) = (self.value(*a)?, self.value(*b)?);
                require(a.rows == b.rows, "the values have other rows")?;
                let second = if *shared { b.width } else { b.part(*groups)? };
                let part = u64::from(a.part(*groups)?) + u64::from(second);
                Shape::new(a.rows, product(part, (*groups).into())?)
            }
            Op::Sum { x, groups } => {
                let x = self.value(*x)?;
                x.part(*groups)?;
                Shape::new(x.rows, u64::from(*groups))
            }
            Op::Rotate { x, heads, rotation } => {
                let x = self.tokens(*x)?;
                self.rotation(rotation, x.part(*heads)?)?;
                Ok(x)
            }
            Op::Attention(attention) => self.attention(attention),
            Op::Choose(choose) => self.choose(choose),
            Op::Compress(compress) => self.compress(compress),
            Op::Store { key, value, state } => {
                require(self.is_encoder, "only an encoder stores")?;
                let (key, value) = (self.value(*key)?, self.value(*value)?);
                require(key.rows == value.rows, "keys and values have other rows")?;
                match self.state(*state)? {
                    State::Stored { keys, values }
                        if (keys, values) == (key.width, value.width) =>
                    {
                        Ok(key)
                    }
                    other => Err(format!("the state is {other}")),
                }
            }
            Op::Experts(experts) => self.experts(experts),
            Op::CausalConvolution { x, weight, bias, dilation, state } => {
                let x = self.tokens(*x)?;
                let [kernel, one, width] = self.cube(*weight)?;
                let width = product(one, width)?;
                same("width of the value and of the kernels", x.width.into(), width)?;
                self.optional(*bias, &[width])?;
                require(*dilation > 0, "the dilation is 0")?;
                let rows = product(kernel - 1, (*dilation).into())?;
                self.rows_state(*state, x.width, rows)?;
                Ok(x)
            }
            Op::Convolution { x, weight, bias, stride } => {
                let x = self.value(*x)?;
                let Rows::Frames { stride: before } = x.rows else {
                    return Err("only frames are convolved".to_owned());
                };
                let [kernel, input, output] = self.cube(*weight)?;
                require(kernel % 2 == 1, "the kernel is even")?;
                same("width of the value and of the kernels", x.width.into(), input)?;
                self.optional(*bias, &[output])?;
                let stride = before.checked_mul(*stride).filter(|stride| (1..=64).contains(stride));
                let stride = stride.ok_or("the stride is none of 1 to 64")?;
                Shape::new(Rows::Frames { stride }, output)
            }
            Op::Shift { x, state } => {
                let x = self.tokens(*x)?;
                self.rows_state(*state, x.width, 1)?;
                Ok(x)
            }
            Op::Scan(scan) => self.scan(scan),
            Op::Wkv(wkv) => self.wkv(wkv),
            Op::LinearAttention(attention) => self.linear_attention(attention),
            Op::Select { x } => {
                let x = self.tokens(*x)?;
                Ok(Shape { rows: Rows::Outputs, ..x })
            }
            Op::Pool { x, .. } => {
                let x = self.value(*x)?;
                let of_tokens = matches!(x.rows, Rows::Tokens | Rows::Outputs);
                require(of_tokens, "the rows are not those of tokens")?;
                Ok(Shape { rows: Rows::Sequences, ..x })
            }
        }
    }

    fn rotation(&self, rotation: &Rotation, head_len: u32) -> Result<()> {
        let Rotation { start, count, base, stretch, magnitude, factors, block, .. } = rotation;
        let end = u64::from(*start) + u64::from(*count);
        require(*count > 0 && count % 2 == 0, "an odd number of numbers rotates, or none")?;
        require(end <= head_len.into(), "the rotation ends beyond the head")?;
        require(*base > 0.0 && magnitude.is_finite(), "the base is not above 0")?;
        require(*block > 0, "a block has no positions")?;
        match stretch {
            Stretch::None => {}
            Stretch::Linear(factor) => require(*factor > 0.0, "the factor is not above 0")?,
            Stretch::Yarn { factor, original, beta_fast, beta_slow, .. } => require(
                *factor > 0.0 && *original > 0 && *beta_fast > 0.0 && *beta_slow > 0.0,
                "a number of YaRN is not above 0",
            )?,
        }
        let half = u64::from(count / 2);
        match factors {
            Factors::None => Ok(()),
            Factors::One(weight) => {
                let found = self.elements(*weight)?;
                require(found >= half, &format!("numbers of the weight: {found} and {half}"))
            }
            Factors::ByContext { short, long, .. } => {
                self.vector(*short, half)?;
                self.vector(*long, half)
            }
        }
    }

    /// Width of the frames that the encoder reads.
    fn features_width(&self) -> Option<usize> {
        self.graph.encoder.as_ref().and_then(Program::features_width)
    }

    fn value(&self, id: ValueId) -> Result<Shape> {
        let found = self.shapes.get(id.0 as usize).copied();
        found.ok_or_else(|| format!("value {} is not made before", id.0))
    }

    fn tokens(&self, id: ValueId) -> Result<Shape> {
        let shape = self.value(id)?;
        require(shape.rows == Rows::Tokens, "the rows are not those of all tokens")?;
        Ok(shape)
    }

    fn alike(&self, a: ValueId, b: ValueId) -> Result<Shape> {
        let (a, b) = (self.value(a)?, self.value(b)?);
        require(a == b, "the values have other shapes")?;
        Ok(a)
    }

    fn weight(&self, id: WeightId) -> Result<&[u64]> {
        let found = self.graph.weights.get(id.0 as usize);
        Ok(&found.ok_or_else(|| format!("there is no weight {}", id.0))?.shape)
    }

    /// The shape of a weight of at most so many dimensions.
    fn extents<const N: usize>(&self, id: WeightId) -> Result<[u64; N]> {
        let shape = self.weight(id)?;
        let extents = std::array::from_fn(|axis| shape.get(axis).copied().unwrap_or(1));
        require(
            shape.iter().skip(N).all(|extent| *extent == 1),
            "the weight has too many dimensions",
        )?;
        require(
            extents.iter().all(|extent| (1..=MAX_WIDTH).contains(extent)),
            "a dimension of the weight is 0 or too large",
        )?;
        Ok(extents)
    }

    fn matrix(&self, id: WeightId) -> Result<[u64; 2]> {
        self.extents(id)
    }

    fn cube(&self, id: WeightId) -> Result<[u64; 3]> {
        self.extents(id)
    }

    fn elements(&self, id: WeightId) -> Result<u64> {
        let shape = self.weight(id)?;
        shape.iter().try_fold(1, |all, extent| product(all, *extent))
    }

    /// A weight of so many numbers, however they are folded.
    fn vector(&self, id: WeightId, len: u64) -> Result<()> {
        same("numbers of the weight", self.elements(id)?, len)
    }

    fn optional(&self, id: Option<WeightId>, shape: &[u64]) -> Result<()> {
        id.map_or(Ok(()), |id| self.weight_is(id, shape))
    }

    fn weight_is(&self, id: WeightId, shape: &[u64]) -> Result<()> {
        let found = self.weight(id)?;
        let ends = found.iter().rposition(|extent| *extent != 1).map_or(1, |last| last + 1);
        let wanted = shape.iter().rposition(|extent| *extent != 1).map_or(1, |last| last + 1);
        require(
            found.get(..ends) == shape.get(..wanted),
            &format!("the weight is {found:?} instead of {shape:?}"),
        )
    }

    fn state(&self, id: StateId) -> Result<State> {
        let found = self.graph.states.get(id.0 as usize).copied();
        found.ok_or_else(|| format!("there is no state {}", id.0))
    }

    fn rows_state(&self, id: StateId, width: u32, rows: u64) -> Result<()> {
        match self.state(id)? {
            State::Rows { width: w, rows: r } if w == width && u64::from(r) == rows => Ok(()),
            other => Err(format!("the state is {other} instead of {rows} rows of {width}")),
        }
    }

    fn floats_state(&self, id: StateId, len: u64) -> Result<()> {
        match self.state(id)? {
            State::Floats { len: found } if u64::from(found) == len => Ok(()),
            other => Err(format!("the state is {other} instead of {len} floats")),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cache { keys, values, block } => {
                write!(f, "a cache of {keys} and {values} numbers")?;
                if *block == 1 { Ok(()) } else { write!(f, " for {block} tokens") }
            }
            Self::Stored { keys, values } => write!(f, "a store of {keys} and {values} numbers"),
            Self::Tokens { count } => write!(f, "the last {count} tokens"),
            Self::Rows { width, rows } => write!(f, "{rows} rows of {width}"),
            Self::Floats { len } => write!(f, "{len} floats"),
        }
    }
}

impl Shape {
    fn new(rows: Rows, width: u64) -> Result<Self> {
        match u32::try_from(width) {
            Ok(narrow) if (1..=MAX_WIDTH).contains(&width) => Ok(Self { rows, width: narrow }),
            _ => Err(format!("a row has {width} numbers")),
        }
    }

    /// Numbers of one of so many equal parts of a row.
    fn part(self, parts: u32) -> Result<u32> {
        match self.width.checked_rem(parts) {
            Some(0) => Ok(self.width / parts),
            _ => Err(format!("{parts} parts do not divide a row of {}", self.width)),
        }
    }
}

fn gate_function(function: GateFunction) -> Result<()> {
    match function {
        GateFunction::Situ { beta, linear } => {
            let above = |bound: f32| bound > 0.0;
            require(above(beta) && linear.is_none_or(above), "a bound is not above 0")
        }
        GateFunction::Clamped { limit, .. }
        | GateFunction::Bounded { limit, .. }
        | GateFunction::BoundedAfter { limit, .. } => require(limit >= 0.0, "the limit is below 0"),
        GateFunction::Plain(_) => Ok(()),
    }
}

fn require(holds: bool, message: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(message.to_owned()) }
}

fn same(what: &str, found: u64, wanted: u64) -> Result<()> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: {found} and {wanted}")) }
}

fn product(a: u64, b: u64) -> Result<u64> {
    a.checked_mul(b).ok_or_else(|| "a size overflows".to_owned())
}

//! A flag of an old program, and what becomes of it here.

/// One row of a program's table.
pub struct Flag {
    /// Its names, with blanks between them.
    pub names: &'static str,
    /// How many values follow it.
    pub values: usize,
    /// What becomes of it.
    pub becomes: Becomes,
}

/// What becomes of a flag.
#[derive(Clone, Copy)]
pub enum Becomes {
    /// Our flag of this name, with the same value.
    Ours(&'static str),
    /// The program's own file reads it: what it does, in the words of the documentation.
    Read(&'static str),
    /// It is refused, for this reason.
    Refused(&'static str),
    /// It is accepted with a note that it does nothing, for this reason.
    Nothing(&'static str),
    /// The list of flags is printed.
    Help,
    /// The version is printed.
    Version,
}

impl Flag {
    /// Each of its names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.split(' ')
    }
}

pub const fn ours(names: &'static str, values: usize, ours: &'static str) -> Flag {
    Flag { names, values, becomes: Becomes::Ours(ours) }
}

pub const fn read(names: &'static str, values: usize, what: &'static str) -> Flag {
    Flag { names, values, becomes: Becomes::Read(what) }
}

pub const fn refused(names: &'static str, values: usize, why: &'static str) -> Flag {
    Flag { names, values, becomes: Becomes::Refused(why) }
}

pub const fn nothing(names: &'static str, values: usize, why: &'static str) -> Flag {
    Flag { names, values, becomes: Becomes::Nothing(why) }
}

pub const fn help(names: &'static str) -> Flag {
    Flag { names, values: 0, becomes: Becomes::Help }
}

pub const fn version(names: &'static str) -> Flag {
    Flag { names, values: 0, becomes: Becomes::Version }
}

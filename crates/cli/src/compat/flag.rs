//! Flags of compatible programs, and how they are handled.

/// Row of a program's table.
pub struct Flag {
    /// Names, separated by spaces.
    pub names: &'static str,
    /// Number of values.
    pub values: usize,
    /// Handling.
    pub handling: Handling,
}

/// Handling of a flag.
#[derive(Clone, Copy)]
pub enum Handling {
    /// Passed on as this flag of `gguf`, with the same value.
    Flag(&'static str),
    /// Translated by the program's module, as described.
    Translated(&'static str),
    /// Refused for this reason.
    Refused(&'static str),
    /// Ignored with a note, for this reason.
    Ignored(&'static str),
    /// Prints the help.
    Help,
    /// Prints the version.
    Version,
}

impl Flag {
    /// Returns each name.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.split(' ')
    }
}

pub const fn renamed(names: &'static str, values: usize, flag: &'static str) -> Flag {
    Flag { names, values, handling: Handling::Flag(flag) }
}

pub const fn translated(names: &'static str, values: usize, what: &'static str) -> Flag {
    Flag { names, values, handling: Handling::Translated(what) }
}

pub const fn refused(names: &'static str, values: usize, why: &'static str) -> Flag {
    Flag { names, values, handling: Handling::Refused(why) }
}

pub const fn ignored(names: &'static str, values: usize, why: &'static str) -> Flag {
    Flag { names, values, handling: Handling::Ignored(why) }
}

pub const fn help(names: &'static str) -> Flag {
    Flag { names, values: 0, handling: Handling::Help }
}

pub const fn version(names: &'static str) -> Flag {
    Flag { names, values: 0, handling: Handling::Version }
}

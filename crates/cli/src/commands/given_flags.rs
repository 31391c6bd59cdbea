//! Flags present on the command line, for commands in which not every flag applies to every input.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// Flags on the command line, each as `--name`.
#[derive(Clone, Debug)]
pub struct GivenFlags(Vec<String>);

impl GivenFlags {
    /// Returns the flags, in no particular order.
    pub fn flags(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns one of `flags` that is present.
    pub fn find(&self, flags: &[&str]) -> Option<&str> {
        self.flags().find(|flag| flags.contains(flag))
    }
}

impl clap::FromArgMatches for GivenFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given =
            |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        let flag = |id: &clap::Id| format!("--{}", id.as_str().replace('_', "-"));
        Ok(Self(matches.ids().filter(given).map(flag).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Defines no flags; observes those of other structs.
impl clap::Args for GivenFlags {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

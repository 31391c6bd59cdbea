//! Which flags the user gave, for commands in which not every flag goes with everything.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// The flags on the command line, each as `--name`.
#[derive(Clone, Debug)]
pub struct Given(Vec<String>);

impl Given {
    /// In no particular order.
    pub fn flags(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// One of these flags that was given.
    pub fn find(&self, flags: &[&str]) -> Option<&str> {
        self.flags().find(|flag| flags.contains(flag))
    }
}

impl clap::FromArgMatches for Given {
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

/// It has no flags of its own: it sees those of the others.
impl clap::Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

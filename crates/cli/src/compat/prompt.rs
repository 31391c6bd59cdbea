//! Confirmation prompt of the scripts of the Python package.

use std::io::Write;

use crate::failure::Failure;

/// Prints warnings in the format of Python's logger, and reads whether the user confirms.
pub fn confirm(logger: &str, warnings: &[String]) -> Result<bool, Failure> {
    log("WARNING", logger, "*** Warning *** Warning *** Warning **");
    for warning in warnings {
        log("WARNING", logger, warning);
    }
    log("WARNING", logger, "* Enter exactly YES if you are positive you want to proceed:");
    let mut out = std::io::stdout().lock();
    write!(out, "YES, I am sure> ")?;
    out.flush()?;
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    if read.map_err(|fault| Failure::Environment(format!("cannot read the answer: {fault}")))? == 0
    {
        let what = "standard input is empty; expected YES";
        return Err(Failure::Environment(what.to_owned()));
    }
    let is_confirmed = answer.trim_end_matches(['\r', '\n']) == "YES";
    if !is_confirmed {
        log("INFO", logger, "You didn't enter YES. Okay then, see ya!");
    }
    Ok(is_confirmed)
}

/// Prints a line in the format of Python's logger.
pub fn log(level: &str, logger: &str, what: &str) {
    eprintln!("{level}:{logger}:{what}");
}

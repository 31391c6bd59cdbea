//! Input of a conversation: lines edited on a terminal, or lines of a pipe.

use std::io::{BufRead, IsTerminal};

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::interrupt::Interrupt;
use crate::failure::Failure;
use crate::terminal;

/// Begins and ends a message of several lines.
const QUOTES: &str = "\"\"\"";

/// Source of messages.
pub enum Input {
    /// With history and editing.
    Terminal(Box<DefaultEditor>),
    /// As they come.
    Lines,
}

impl Input {
    /// Opens the terminal, if standard input and output are one.
    pub fn open() -> Self {
        let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        match DefaultEditor::new() {
            Ok(editor) if is_terminal => Self::Terminal(Box::new(editor)),
            _ => Self::Lines,
        }
    }

    /// Whether a person types.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// Reads the next message; `None` at the end. A line that ends with a backslash continues, and three quotes begin and
    /// end a message of several lines.
    pub fn read(&mut self, interrupt: &Interrupt) -> Result<Option<String>, Failure> {
        let mut message = String::new();
        let (mut is_quoted, mut is_first) = (false, true);
        while let Some(line) = self.line(if is_first { "> " } else { "... " }, interrupt)? {
            let mut line = line.as_str();
            if is_first && line.trim().is_empty() {
                continue;
            }
            if is_first && let Some(rest) = line.trim_start().strip_prefix(QUOTES) {
                (is_quoted, line) = (true, rest);
            }
            is_first = false;
            if is_quoted {
                if let Some(last) = line.trim_end().strip_suffix(QUOTES) {
                    message.push_str(last);
                    break;
                }
                message.push_str(line);
            } else if let Some(begun) = line.strip_suffix('\\') {
                message.push_str(begun);
            } else {
                message.push_str(line);
                break;
            }
            message.push('\n');
        }
        if is_first {
            return Ok(None);
        }
        if let Self::Terminal(editor) = self {
            let _ = editor.add_history_entry(message.as_str());
        }
        Ok(Some(message))
    }

    fn line(&mut self, prompt: &str, interrupt: &Interrupt) -> Result<Option<String>, Failure> {
        let failed = |fault| Failure::Environment(format!("cannot read standard input: {fault}"));
        let Self::Terminal(editor) = self else {
            let mut line = String::new();
            let read = interrupt.while_reading(|| std::io::stdin().lock().read_line(&mut line));
            let len = read.map_err(|fault| failed(fault.to_string()))?;
            let line = line.strip_suffix('\n').unwrap_or(&line);
            let line = line.strip_suffix('\r').unwrap_or(line).to_owned();
            return Ok((len > 0).then_some(line));
        };
        let mut was_interrupted = false;
        loop {
            let edited = match was_interrupted {
                true => interrupt.while_leaving(|| editor.readline(prompt)),
                false => Some(editor.readline(prompt)),
            };
            let Some(edited) = edited else { return Ok(None) };
            interrupt.forget();
            match edited {
                Ok(line) => return Ok(Some(line)),
                Err(ReadlineError::Eof) => return Ok(None),
                Err(ReadlineError::Interrupted) if was_interrupted => return Ok(None),
                Err(ReadlineError::Interrupted) => {
                    was_interrupted = true;
                    terminal::note("press Ctrl-C again, or type /bye, to leave");
                }
                Err(ReadlineError::Io(fault)) => return Err(failed(fault.to_string())),
                Err(_) => return Err(failed("the terminal does not answer".to_owned())),
            }
        }
    }
}

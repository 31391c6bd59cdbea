//! Audit of chat templates.
//!
//! [`audit`] reads the syntax tree and renders nothing. [`render`] renders many conversations and dates in the sandbox, and
//! reports text that depends on what a message says.

mod escape;
mod render;
mod taint;
mod trigger;

use gguf::Finding;
pub use render::Probes;

use crate::characters::{self, Suspicious};
use crate::instructions::{emitted_instruction, instruction, shortened};
use crate::jinja::{self, Constants, Parsed, Statement, for_each};
use crate::payload;
use taint::Taint;

/// Length in bytes, and nesting, that published templates do not exceed.
const MAX_LEN: usize = 50_000;
const MAX_DEPTH: usize = 40;

/// Findings about one template, and what probes need.
pub(crate) struct Audit {
    /// Findings of the static audit.
    pub findings: Vec<Finding>,
    /// Strings of the template, which may be trigger words.
    pub strings: Vec<String>,
    /// Whether the template reads the present time.
    pub reads_date: bool,
}

/// Reads a template without rendering it. Findings have no key.
pub(crate) fn audit(text: &str) -> Audit {
    let parsed = jinja::parse(text);
    let constants = Constants::of(&parsed.statements);
    let taint = Taint::of(&parsed);
    let mut findings = escape::check(&parsed, &constants);
    findings.extend(trigger::check(&parsed, &constants, &taint));
    findings.extend(texts(text, &parsed, &constants));
    findings.extend(shape(text, &parsed));
    let mut strings = Vec::new();
    for expr in jinja::expressions(&parsed.statements) {
        strings.extend(constants.texts(expr));
    }
    strings.sort_unstable();
    strings.dedup();
    Audit { findings, strings, reads_date: Taint::reads_date(&parsed) }
}

/// Checks the characters and the texts of a template.
fn texts(text: &str, parsed: &Parsed, constants: &Constants) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Suspicious { invisible, bidirectional, controls } = Suspicious::of(text);
    let mut characters = |finding: Finding, chars: &[char], what: &str| {
        if !chars.is_empty() {
            let message = format!("has {what} characters ({})", characters::code_points(chars));
            findings.push(Finding { message: message.into(), ..finding });
        }
    };
    characters(Finding::error("hidden-characters", ""), &invisible, "invisible");
    characters(Finding::error("hidden-characters", ""), &bidirectional, "bidirectional override");
    characters(Finding::warning("control-characters", ""), &controls, "control");
    // Escapes in strings hide characters from those who read the source.
    let mut escaped = Suspicious::default();
    for expr in jinja::expressions(&parsed.statements) {
        for value in constants.texts(expr) {
            let found = Suspicious::of(&value);
            if found.conceals() && !Suspicious::of(text).conceals() && !escaped.conceals() {
                escaped = found;
                let chars = [&escaped.invisible[..], &escaped.bidirectional].concat();
                let message = format!(
                    "a string has invisible characters ({})",
                    characters::code_points(&chars)
                );
                findings.push(line_finding(
                    Finding::error("hidden-characters", ""),
                    expr.line,
                    &message,
                ));
            }
        }
    }
    if let Some(word) = characters::mixed_word(text) {
        let message =
            format!("the word {word:?} mixes Latin letters with others that look like them");
        findings.push(Finding::error("confusable-characters", message));
    }
    if let Some(sentence) = instruction(text) {
        findings.push(Finding::warning(
            "template-instruction",
            format!("has the instruction {sentence:?}"),
        ));
    } else {
        let mut emitted = None;
        for_each(&parsed.statements, &mut |statement| {
            let text = match statement {
                Statement::Data { text, .. } => text.clone(),
                Statement::Output(value) => constants.texts(value).join(" "),
                _ => return,
            };
            emitted = emitted.take().or_else(|| emitted_instruction(&text));
        });
        if let Some(sentence) = emitted {
            let message = format!("has the instruction {sentence:?}");
            findings.push(Finding::warning("template-instruction", message));
        }
    }
    for expr in jinja::expressions(&parsed.statements) {
        let values = constants.texts(expr);
        let assembled = values.iter().filter(|_| expr.as_text().is_none());
        if let Some(sentence) =
            assembled.filter(|value| !text.contains(&***value)).find_map(|value| instruction(value))
        {
            let message = format!("assembles the instruction {sentence:?} from pieces");
            findings.push(line_finding(
                Finding::error("template-instruction", ""),
                expr.line,
                &message,
            ));
            break;
        }
    }
    if let Some(address) = payload::address(text) {
        findings.push(Finding::warning(
            "template-address",
            format!("has the address {:?}", shortened(address)),
        ));
    }
    if let Some(decoded) = payload::encoded(text) {
        let message = format!("has an encoded text that decodes to {:?}", shortened(&decoded));
        findings.push(Finding::warning("template-encoded", message));
    }
    findings
}

/// Checks length, nesting and syntax.
fn shape(text: &str, parsed: &Parsed) -> Vec<Finding> {
    let mut findings = Vec::new();
    if text.len() > MAX_LEN {
        let message =
            format!("has {} bytes; published templates have less than {MAX_LEN}", text.len());
        findings.push(Finding::warning("template-size", message));
    }
    if parsed.depth > MAX_DEPTH {
        let message = format!(
            "nests {} levels deep; published templates stay below {MAX_DEPTH}",
            parsed.depth
        );
        findings.push(Finding::warning("template-size", message));
    }
    if let Some(line) = parsed.faulty_lines.first() {
        let finding = Finding::warning("template-unreadable", "");
        findings.push(line_finding(
            finding,
            *line,
            "a tag is not valid in jinja2; its meaning was not checked",
        ));
    }
    findings
}

/// Sets the message of a finding, with its line.
fn line_finding(finding: Finding, line: u32, message: &str) -> Finding {
    Finding { message: format!("line {line}: {message}").into(), ..finding }
}

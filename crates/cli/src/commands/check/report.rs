//! Text report of findings: a summary, then findings by severity and code.

use std::collections::BTreeMap;

use gguf::{Finding, Severity};

use crate::{listing, terminal};

/// Maximum number of lines per code without --verbose.
const SHOWN: usize = 10;

/// More findings than this with identical messages become one line.
const GROUP_ABOVE: usize = 3;

/// Returns the report of one model. `data_read`: whether tensor data was read.
pub fn text(source: &str, findings: &[Finding], data_read: bool) -> String {
    let mut text = summary(source, findings, data_read) + "\n";
    for severity in [Severity::Error, Severity::Warning, Severity::Note] {
        if severity == Severity::Note && !terminal::is_verbose() {
            continue;
        }
        let mut codes: Vec<&str> = Vec::new();
        for finding in findings.iter().filter(|finding| finding.severity == severity) {
            if !codes.contains(&finding.code) {
                codes.push(finding.code);
            }
        }
        for code in codes {
            let matches = |finding: &&Finding| finding.severity == severity && finding.code == code;
            text += &group(severity, code, &findings.iter().filter(matches).collect::<Vec<_>>());
        }
    }
    text
}

/// Returns the file name and the number of findings.
fn summary(source: &str, findings: &[Finding], data_read: bool) -> String {
    let count = |severity| findings.iter().filter(|one| one.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let counted = |severity, count: usize| match count {
        0 => None,
        _ => Some(terminal::severe(severity, listing::plural(count, severity.name()))),
    };
    let mut parts: Vec<_> =
        [counted(Severity::Error, errors), counted(Severity::Warning, warnings)]
            .into_iter()
            .flatten()
            .collect();
    if parts.is_empty() {
        parts.push(terminal::added("no errors, no warnings"));
    } else if errors == 0 {
        parts.insert(0, "no errors".into());
    }
    let notes = count(Severity::Note);
    if notes > 0 {
        let hint = if terminal::is_verbose() { "" } else { " (-v shows it)" };
        let hint = if notes > 1 { hint.replace("it", "them") } else { hint.to_owned() };
        parts.push(listing::plural(notes, "note") + &terminal::faint(hint));
    }
    let source = terminal::strong(terminal::plain(source));
    let unread = match data_read {
        true => String::new(),
        false => terminal::faint(" (weights not read)"),
    };
    terminal::wrap(&format!("{source}: {}{unread}", parts.join(", ")), "")
}

/// Returns the findings of one code, with advice.
fn group(severity: Severity, code: &str, findings: &[&Finding]) -> String {
    let word = terminal::severe(severity, severity.name());
    let times = match findings.len() {
        1 => String::new(),
        count => format!(" ({count})"),
    };
    let mut lines = vec![format!("\n{word}: {}{times}", terminal::strong(code))];
    let mut by_message: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        by_message.entry(&finding.message).or_default().push(finding);
    }
    let mut found = Vec::new();
    for finding in findings {
        match by_message.get(&*finding.message) {
            Some(same) if same.len() > GROUP_ABOVE => {
                // Printed in place of the first one.
                if std::ptr::eq(same[0], *finding) {
                    found.push(grouped(same));
                }
            }
            _ => found.push(without_help(finding)),
        }
    }
    let shown = if terminal::is_verbose() { found.len() } else { SHOWN.min(found.len()) };
    lines.extend(found[..shown].iter().map(|line| terminal::wrap(&terminal::plain(line), "  ")));
    if shown < found.len() {
        let more = format!("  and {} more (-v shows them)", found.len() - shown);
        lines.push(terminal::faint(more));
    }
    let mut helps: Vec<&str> = Vec::new();
    for finding in findings {
        if !finding.help.is_empty() && !helps.contains(&&*finding.help) {
            helps.push(&finding.help);
        }
    }
    let helps = helps.iter().take(GROUP_ABOVE);
    lines.extend(
        helps.map(|help| terminal::wrap(&format!("help: {}", terminal::plain(help)), "  ")),
    );
    lines.join("\n") + "\n"
}

/// Returns a finding without its advice.
fn without_help(finding: &Finding) -> String {
    Finding { help: "".into(), ..finding.clone() }.to_string()
}

/// Returns one line for findings with identical messages: count, message and first names.
fn grouped(findings: &[&Finding]) -> String {
    let names = |of: fn(&Finding) -> Option<&str>| {
        findings.iter().filter_map(|finding| of(finding)).collect::<Vec<_>>()
    };
    let (tensors, keys) = (names(|one| one.tensor.as_deref()), names(|one| one.key.as_deref()));
    let (names, what) =
        if keys.len() > tensors.len() { (keys, "key") } else { (tensors, "tensor") };
    let message = &findings[0].message;
    if names.len() < findings.len() {
        return format!("{} times: {message}", findings.len());
    }
    let first = names[..GROUP_ABOVE.min(names.len())].join(", ");
    format!("{}: {message} ({first} ...)", listing::plural(names.len(), what))
}

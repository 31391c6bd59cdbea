//! Difference between a chat template and that of the base model.

use std::collections::HashMap;

use gguf::Finding;

use crate::instructions::shortened;

/// Number of lines that a message shows.
const SHOWN: usize = 3;

/// Compares a template with that of the base model, without regard to line ends and white space around the text.
pub fn difference(template: &str, base: &str) -> Option<Finding> {
    let normal = |text: &str| text.replace("\r\n", "\n").trim().to_owned();
    let (template, base) = (normal(template), normal(base));
    if template == base {
        return None;
    }
    let (added, removed) = (missing(&template, &base), missing(&base, &template));
    let lines = |name: &str, lines: &[String]| {
        let shown: Vec<_> =
            lines.iter().take(SHOWN).map(|line| format!("{:?}", shortened(line.trim()))).collect();
        match lines.len() {
            0 => String::new(),
            1 => format!("; 1 line {name}: {}", shown.join(", ")),
            count => format!("; {count} lines {name}: {}", shown.join(", ")),
        }
    };
    let message = format!(
        "differs from the template of the base model{}{}",
        lines("added", &added),
        lines("removed", &removed)
    );
    Some(Finding::warning("template-differs", message))
}

/// Returns the lines of a text that another lacks, counting repetitions.
fn missing(text: &str, other: &str) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    other.lines().for_each(|line| *counts.entry(line.trim()).or_default() += 1);
    let lines = text.lines().filter(|line| match counts.get_mut(line.trim()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => !line.trim().is_empty(),
    });
    lines.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_compared() {
        assert_eq!(difference("a\r\nb\n", " a\nb"), None);
        let found = difference("a\nx y\nb\nb", "a\nb\nc").unwrap();
        assert_eq!(
            &*found.message,
            "differs from the template of the base model; 2 lines added: \"x y\", \"b\"; 1 line removed: \"c\""
        );
    }
}

//! Settings of a conversion as flags of `gguf convert`, for the provenance key of the output.

use gguf_kit::convert::Setting;

/// Formats settings as flags, quoted for a shell.
pub fn render(settings: &[Setting]) -> String {
    let mut words = Vec::with_capacity(2 * settings.len());
    for Setting { name, value } in settings {
        words.push(format!("--{name}"));
        words.extend(value.as_deref().map(quoted));
    }
    words.join(" ")
}

/// Quotes a word for a shell if necessary.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

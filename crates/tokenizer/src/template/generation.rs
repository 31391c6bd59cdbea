//! `{% generation %}`: marks text that the model wrote, for training.

/// The template with `generation` blocks turned into `with` blocks, which have the same scope and
/// write the same text; lines stay where they are.
pub fn without_tags(template: &str) -> String {
    let mut result = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start + 2);
        result.push_str(before);
        let word = tag.trim_start_matches(['-', '+']).trim_start();
        rest = tag;
        for (name, other) in [("generation", "with"), ("endgeneration", "endwith")] {
            let Some(after) = word.strip_prefix(name) else { continue };
            if after.trim_start().trim_start_matches(['-', '+']).starts_with("%}") {
                result.push_str(&tag[..tag.len() - word.len()]);
                result.push_str(other);
                rest = after;
                break;
            }
        }
    }
    result + rest
}

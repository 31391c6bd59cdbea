//! The filter `urlize`: links for the URLs and mail addresses of a text.

use std::sync::LazyLock;

use regex::Regex;

use super::super::arguments::{Arguments, flag, int, optional};
use super::super::error::{Result, failed};
use super::super::machine::Machine;
use super::super::markup::{self, escape_text};
use super::super::syntax::is_space;
use super::super::value::Value;

/// Hosts that are links: after a scheme or `www.` any name, otherwise names of few domains; after
/// a scheme also addresses in numbers. Port, path, query and fragment are optional.
static URL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let named = r"(?:https?://|www\.)(?:[\w%-]+\.)*(?:[a-z]{2,63}|xn--[\w%]{2,59})";
    let domain = r"(?:[\w%-]{2,63}\.)+(?:com|net|int|edu|gov|org|info|mil)";
    let address =
        r"https?://(?:\d{1,3}(?:\.\d{1,3}){3}|\[(?:[\da-f]{0,4}:){2}(?:[\da-f]{0,4}:?){1,6}\])";
    let rest = r"(?::\d{1,5})?(?:[/?#]\S*)?";
    Regex::new(&format!("(?i)^(?:{named}|{domain}|{address}){rest}$")).ok()
});

static MAIL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\S+@\w[\w.-]*\.\w+$").ok());

fn matches(pattern: &Option<Regex>, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// How links are written.
struct Options {
    /// Characters of a URL that are shown.
    limit: Option<usize>,
    /// Attributes after `href`.
    attributes: String,
    /// Beginnings of further URLs, such as `tel:`.
    schemes: Vec<String>,
}

pub fn urlize(name: &str, value: &Value, arguments: Arguments, machine: &Machine) -> Result<Value> {
    let names = ["trim_url_limit", "nofollow", "target", "rel", "extra_schemes"];
    let [limit, nofollow, target, rel, schemes] = arguments.bind(name, names)?;
    let rel = optional(rel);
    let mut words: Vec<&str> = match &rel {
        Some(rel) => rel.expect_str()?.split(is_space).filter(|word| !word.is_empty()).collect(),
        None => Vec::new(),
    };
    words.push("noopener");
    if flag(nofollow) {
        words.push("nofollow");
    }
    words.sort_unstable();
    words.dedup();
    let mut attributes = format!(" rel=\"{}\"", escape_text(&words.join(" ")));
    if let Some(target) = optional(target).filter(Value::is_true) {
        attributes.push_str(&format!(" target=\"{}\"", escape_text(target.expect_str()?)));
    }
    let limit = int(optional(limit))?;
    let limit = limit.map(|limit| usize::try_from(limit.max(0)).unwrap_or(usize::MAX));
    let mut options = Options { limit, attributes, schemes: Vec::new() };
    for scheme in
        optional(schemes).map_or(Ok(Vec::new()), |schemes| schemes.items(&machine.budget))?
    {
        let scheme = scheme.expect_str()?.to_owned();
        let body = scheme.trim_end_matches('/');
        if !body.ends_with(':') || body.len() < 3 || scheme.len() > body.len() + 2 {
            return failed(format!("{scheme:?} is not a valid URI scheme prefix."));
        }
        options.schemes.push(scheme);
    }
    let text = markup::escape(value, &machine.budget)?;
    let mut out = String::new();
    let mut rest = &*text;
    while !rest.is_empty() {
        let space = rest.len() - rest.trim_start_matches(is_space).len();
        out.push_str(&rest[..space]);
        let word = &rest[space..];
        let end = word.find(is_space).unwrap_or(word.len());
        // Each word may become a link, and is compared with each scheme.
        let link = options.attributes.len() + options.schemes.len() * 16;
        machine.budget.text(end.saturating_mul(8).saturating_add(link))?;
        write_word(&word[..end], &options, &mut out);
        rest = &word[end..];
    }
    Ok(Value::markup(out, machine.autoescape.get()))
}

/// Splits brackets before a word, and brackets and punctuation after it.
fn split_word(word: &str) -> (&str, &str, &str) {
    let mut start = 0;
    while let Some(opening) =
        ["(", "<", "&lt;"].into_iter().find(|opening| word[start..].starts_with(opening))
    {
        start += opening.len();
    }
    let mut end = word.len();
    while let Some(closing) =
        [")", ">", ".", ",", "&gt;"].into_iter().find(|closing| word[start..end].ends_with(closing))
    {
        end -= closing.len();
    }
    // Brackets that the word opens belong to it.
    for (opening, closing) in [("(", ")"), ("<", ">"), ("&lt;", "&gt;")] {
        let opened = word[start..end].matches(opening).count();
        if opened <= word[start..end].matches(closing).count() {
            continue;
        }
        for _ in 0..opened {
            let Some(at) = word[end..].find(closing) else { break };
            end += at + closing.len();
        }
    }
    (&word[..start], &word[start..end], &word[end..])
}

/// Writes a word, with a link if it is a URL or a mail address.
fn write_word(word: &str, options: &Options, out: &mut String) {
    let (head, middle, tail) = split_word(word);
    let mail = middle.strip_prefix("mailto:");
    let attributes = &options.attributes;
    let link = if matches(&URL, middle) {
        let has_scheme = middle.starts_with("https://") || middle.starts_with("http://");
        let scheme = if has_scheme { "" } else { "https://" };
        let shown = match options.limit {
            Some(limit) if middle.chars().count() > limit => {
                format!("{}...", middle.chars().take(limit).collect::<String>())
            }
            _ => middle.to_owned(),
        };
        format!("<a href=\"{scheme}{middle}\"{attributes}>{shown}</a>")
    } else if let Some(address) = mail.filter(|address| matches(&MAIL, address)) {
        format!("<a href=\"{middle}\">{address}</a>")
    } else if !middle.starts_with("www.")
        && !middle.starts_with('@')
        && !middle.contains(':')
        && matches(&MAIL, middle)
    {
        format!("<a href=\"mailto:{middle}\">{middle}</a>")
    } else if options.schemes.iter().any(|s| middle.starts_with(s) && middle.len() > s.len()) {
        format!("<a href=\"{middle}\"{attributes}>{middle}</a>")
    } else {
        middle.to_owned()
    };
    out.extend([head, &link, tail]);
}

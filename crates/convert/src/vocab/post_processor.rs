//! Flags of the special tokens that the post-processor of `tokenizer.json` adds to a text.
//!
//! As in llama.cpp's converter, the reader only looks at the ends of the template for one text and at the middle of
//! the template for two texts.

use serde_json::{Map, Value};

use super::roles::{Flags, ROLES};

/// Reads the flags. As llama.cpp's converter does, fills in roles that `config` lacks, and moves a replaced
/// end-of-text token to `eot` or `eom`, which it adds to `types`.
pub(super) fn read(
    tokenizer: &Value,
    config: &mut Map<String, Value>,
    types: &mut Vec<&'static str>,
    notes: &mut Vec<String>,
) -> Flags {
    let role = |name: &str| config.get(name).filter(|value| !is_empty(value)).cloned();
    let [bos, eos, cls, sep] = ["bos_token", "eos_token", "cls_token", "sep_token"].map(role);
    let given = !config.is_empty();
    let mut reader =
        Reader { config, given, types, notes, flags: Flags::default(), bos, eos, cls, sep };
    if reader.bos.is_none() && reader.cls.is_some() {
        reader.bos = reader.cls.clone();
        reader.configure("bos_token", reader.bos.clone());
    }
    if reader.eos.is_none() && reader.sep.is_some() {
        reader.eos = reader.sep.clone();
        reader.configure("eos_token", reader.eos.clone());
    }
    let post_processor = &tokenizer["post_processor"];
    match post_processor["processors"].as_array() {
        Some(parts) => parts.iter().for_each(|part| reader.part(part)),
        None => reader.part(post_processor),
    }
    reader.flags
}

/// Reads only the flags.
pub(crate) fn read_alone(tokenizer: &Value, config: &Map<String, Value>) -> Flags {
    read(tokenizer, &mut config.clone(), &mut ROLES.to_vec(), &mut Vec::new())
}

/// Returns the ids of the tokens that a template, or BERT's post-processor, adds before and after a text, with
/// their roles.
pub(super) fn ids(tokenizer: &Value) -> Vec<(&'static str, i64)> {
    let post_processor = &tokenizer["post_processor"];
    let all = post_processor["processors"].as_array();
    let parts = all.map_or(std::slice::from_ref(post_processor), Vec::as_slice);
    let of_part = |part: &Value| {
        if part["type"] == "BertProcessing" {
            return [part["cls"][1].as_i64(), part["sep"][1].as_i64()];
        }
        let single = part["single"].as_array().map(Vec::as_slice).unwrap_or_default();
        let id = |text: &str| part["special_tokens"][text]["ids"][0].as_i64();
        [single.first(), single.last()].map(|end| special(end?).and_then(id))
    };
    let ids = parts.iter().flat_map(|part| ["bos", "eos"].into_iter().zip(of_part(part)));
    ids.filter_map(|(role, id)| Some((role, id?))).collect()
}

/// Returns whether a file leaves a role empty, for which there are several forms.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

struct Reader<'a> {
    config: &'a mut Map<String, Value>,
    /// Whether there is a configuration to fill in.
    given: bool,
    types: &'a mut Vec<&'static str>,
    notes: &'a mut Vec<String>,
    flags: Flags,
    /// Known tokens of these roles.
    bos: Option<Value>,
    eos: Option<Value>,
    cls: Option<Value>,
    sep: Option<Value>,
}

impl Reader<'_> {
    fn configure(&mut self, name: &str, value: Option<Value>) {
        if self.given {
            self.config.insert(name.to_owned(), value.unwrap_or(Value::Null));
        }
    }

    fn part(&mut self, part: &Value) {
        match part["type"].as_str() {
            Some("ByteLevel") => {
                self.flags.set_default("bos", false);
                self.flags.set_default("eos", false);
            }
            Some("RobertaProcessing") => {
                for role in ["bos", "eos", "sep"] {
                    self.flags.set(role, true);
                }
                let named = |key| Some(&part[key][0]).filter(|token| !token.is_null()).cloned();
                if self.given && self.cls.is_none() {
                    self.cls = named("cls").or_else(|| self.bos.clone());
                    self.configure("cls_token", self.cls.clone());
                }
                if self.given && self.sep.is_none() {
                    self.sep = named("sep").or_else(|| self.eos.clone());
                    self.configure("sep_token", self.sep.clone());
                }
            }
            Some("TemplateProcessing") => self.template(part),
            _ => {}
        }
    }

    fn template(&mut self, part: &Value) {
        let list = |key| part[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let (mut first, mut last) = (None, None);
        if let [start, .., end] = list("single") {
            first = special(start);
            last = special(end);
        }
        if let Some(first) = first {
            self.first(first);
        }
        if let Some(last) = last {
            self.last(last);
        }
        self.pair(list("pair"), first, last);
    }

    fn first(&mut self, first: &str) {
        let is = |role: &Option<Value>| role.as_ref().is_some_and(|token| token == first);
        if !self.given {
            self.bos = Some(first.into());
        } else if !is(&self.bos) && !is(&self.cls) {
            if self.bos.is_none() {
                self.bos = Some(first.into());
                self.configure("bos_token", self.bos.clone());
            }
            if self.cls.is_none() {
                self.cls = Some(first.into());
                self.configure("cls_token", self.cls.clone());
            }
        }
        let known = is(&self.bos) || is(&self.cls);
        self.flags.set("bos", known);
        if !known {
            self.notes.push(format!(
                "tokenizer.json adds {first:?} at the start, which is neither bos_token nor \
                 cls_token of tokenizer_config.json: tokenizer.ggml.add_bos_token is false"
            ));
        }
    }

    fn last(&mut self, last: &str) {
        self.flags.set("eos", true);
        let replaced = self.eos.replace(last.into());
        if !self.given || replaced == self.eos {
            return;
        }
        match ["eot", "eom"].into_iter().find(|role| !self.types.contains(role)) {
            Some(role) => {
                self.types.push(role);
                self.configure(&format!("{role}_token"), replaced);
            }
            None => {
                self.notes.push(format!("{last:?} replaces the eos token of the configuration"))
            }
        }
        self.configure("eos_token", Some(last.into()));
    }

    /// Reads the template for two texts: `first A separator.. B last`.
    fn pair(&mut self, mut pair: &[Value], first: Option<&str>, last: Option<&str>) {
        if first.is_some() && pair.first().and_then(special) == first {
            pair = &pair[1..];
        }
        if last.is_some() && pair.last().and_then(special) == last {
            pair = &pair[..pair.len() - 1];
        }
        let text = |value: &Value, id| value["Sequence"]["id"] == id;
        let [a, middle @ .., b] = pair else { return };
        if !text(a, "A") || !text(b, "B") || middle.is_empty() {
            return;
        }
        let separates = |value: &Value| {
            let token = special(value);
            token
                .is_some_and(|t| [&self.sep, &self.eos].into_iter().flatten().any(|role| role == t))
        };
        let add = match middle {
            [_, second] if separates(second) => true,
            [separator, ..] => separates(separator) && last.is_none(),
            [] => false,
        };
        self.flags.set("sep", add);
        if add && self.sep.is_none() {
            self.configure("sep_token", self.eos.clone());
        }
    }
}

/// Returns the special token of a template element.
fn special(element: &Value) -> Option<&str> {
    element["SpecialToken"]["id"].as_str().filter(|id| !id.is_empty())
}

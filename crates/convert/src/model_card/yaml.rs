//! The model card: YAML between two `---` lines at the start of `README.md`.
//!
//! Model cards are written by hand, so the reader takes every scalar but null as a string: version `1.10`
//! keeps its zero, and Norwegian, `no`, does not become false. (llama.cpp's converter fails on a number
//! instead of a string, and loses `language: no`.)
//!
//! The dialect differs from that of PyYAML, which llama.cpp's converter uses, in two rare cases: merge
//! keys (`<<`) are ordinary keys, and continuation lines of a quoted string must be indented.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use gguf::Error;
use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, StrInput};
use serde_json::{Map, Value};

/// Maximum number of bytes read from `README.md`. Model cards with long result tables have a few hundred
/// kilobytes.
const MAX_BYTES: u64 = 4 << 20;

/// Maximum depth of nested collections, because building and dropping a tree recurses. Model cards have
/// about six levels.
const MAX_DEPTH: usize = 64;

/// Reads the model card in `dir`. Returns an empty map if there is none.
///
/// As in llama.cpp's converter, a tab counts as two spaces, and a card whose top level is not a mapping is
/// ignored.
///
/// # Errors
/// If the file cannot be read, or the card is not YAML.
pub(super) fn read(dir: &Path) -> Result<Map<String, Value>, Error> {
    let path = dir.join("README.md");
    if !path.is_file() {
        return Ok(Map::new());
    }
    let mut bytes = Vec::new();
    File::open(&path)
        .and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes))
        .map_err(|source| Error::read(&path, source))?;
    let fault = |what: String| {
        Error::input("card-invalid", &path, what, "correct the card, or move the file away")
    };
    let Some(yaml) = front_matter(&bytes).map_err(fault)? else { return Ok(Map::new()) };
    match parse(&yaml) {
        Ok(Value::Object(card)) => Ok(card),
        Ok(_) => Ok(Map::new()),
        // The parser does not see the first line, `---`.
        Err(err) => {
            let line = err.marker().line() + 1;
            Err(fault(format!("line {line}: the model card is not valid YAML: {}", err.info())))
        }
    }
}

/// Returns the lines between the first line, if it is `---`, and the next `---` or the end of the file.
fn front_matter(bytes: &[u8]) -> Result<Option<String>, String> {
    let mut lines =
        bytes.split(|&b| b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    if lines.next() != Some(b"---") {
        return Ok(None);
    }
    let (mut yaml, mut closed) = (String::new(), false);
    for (number, line) in (2..).zip(lines) {
        closed = line == b"---";
        if closed {
            break;
        }
        let line = std::str::from_utf8(line)
            .map_err(|_| format!("line {number}: the model card is not UTF-8"))?;
        yaml.push_str(&line.replace('\t', "  "));
        yaml.push('\n');
    }
    if !closed && bytes.len() as u64 == MAX_BYTES {
        return Err(format!("the model card does not end within {MAX_BYTES} bytes"));
    }
    Ok(Some(yaml))
}

/// Parses the first YAML document into objects, arrays, strings and nulls.
fn parse(yaml: &str) -> Result<Value, ScanError> {
    let mut tree = Tree {
        parser: Parser::new_from_str(yaml),
        at: Marker::default(),
        anchors: HashMap::new(),
        copies_left: yaml.len(),
    };
    loop {
        match tree.next()? {
            Event::StreamEnd => return Ok(Value::Null),
            Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
            event => return tree.value(event, MAX_DEPTH),
        }
    }
}

struct Tree<'a> {
    parser: Parser<'a, StrInput<'a>>,
    /// Start of the last event.
    at: Marker,
    /// Values by anchor number.
    anchors: HashMap<usize, Value>,
    /// Remaining budget for copies of anchors and aliases, in bytes of YAML. It starts at the size of the card,
    /// because nested aliases grow exponentially.
    copies_left: usize,
}

impl<'a> Tree<'a> {
    fn next(&mut self) -> Result<Event<'a>, ScanError> {
        let Some(event) = self.parser.next_event() else { return Ok(Event::StreamEnd) };
        let (event, span) = event?;
        self.at = span.start;
        Ok(event)
    }

    fn fault<T>(&self, what: &str) -> Result<T, ScanError> {
        Err(ScanError::new(self.at, what))
    }

    /// Parses the value that starts with `event`.
    fn value(&mut self, event: Event<'a>, depth: usize) -> Result<Value, ScanError> {
        let (anchor, value) = match event {
            Event::Alias(anchor) => {
                // An alias within its own anchor is null.
                let value = self.anchors.get(&anchor).cloned().unwrap_or_default();
                self.charge(&value)?;
                return Ok(value);
            }
            Event::Scalar(text, style, anchor, _) => {
                let null = style == ScalarStyle::Plain
                    && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                (anchor, if null { Value::Null } else { Value::String(text.into_owned()) })
            }
            Event::SequenceStart(_, anchor, _) => {
                let depth = self.descend(depth)?;
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd | Event::StreamEnd => break,
                        event => items.push(self.value(event, depth)?),
                    }
                }
                (anchor, Value::Array(items))
            }
            Event::MappingStart(_, anchor, _) => {
                let depth = self.descend(depth)?;
                let mut entries = Map::new();
                loop {
                    let key = match self.next()? {
                        Event::MappingEnd | Event::StreamEnd => break,
                        event => self.value(event, depth)?,
                    };
                    let event = self.next()?;
                    let value = self.value(event, depth)?;
                    // Other key types have no meaning in a card. The last duplicate wins.
                    if let Value::String(key) = key {
                        entries.insert(key, value);
                    }
                }
                (anchor, Value::Object(entries))
            }
            _ => return self.fault("unexpected end of the document"),
        };
        if anchor > 0 {
            self.charge(&value)?;
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn descend(&self, depth: usize) -> Result<usize, ScanError> {
        match depth.checked_sub(1) {
            Some(depth) => Ok(depth),
            None => self.fault("nested too deeply"),
        }
    }

    fn charge(&mut self, value: &Value) -> Result<(), ScanError> {
        match self.copies_left.checked_sub(weight(value)) {
            Some(left) => {
                self.copies_left = left;
                Ok(())
            }
            None => self.fault("aliases make the card more than twice as large"),
        }
    }
}

/// Returns the approximate number of bytes of YAML that `value` takes.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len(),
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Object(entries) => {
            1 + entries.iter().map(|(key, value)| 1 + key.len() + weight(value)).sum::<usize>()
        }
        _ => 1,
    }
}

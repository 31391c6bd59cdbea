//! The bundled calibration text: prose in many languages, source code, and chats. The authors of gguf-kit wrote it for
//! this purpose (`crates/calibrate/text`).

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use gguf::Metadata;
use gguf_store::digest;
use gguf_tokenizer::template::{Context, Renderer, TemplateSource};
use serde_json::Value as Json;

/// Written by the build script.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/text.zlib"));

/// Length of a piece of prose or code from which the next one begins.
const PIECE_BYTES: usize = 2000;

/// Length of the sample of a language.
const SAMPLE_BYTES: usize = 8000;

/// Between documents of a file of prose.
const SEPARATOR: &str = "\n----\n";

/// Time that chat templates print: the start of 2026, in seconds. A text must not depend on the day.
const NOW: Duration = Duration::from_secs(1_767_225_600);

/// A calibration text, with notes for the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreparedText {
    /// The text.
    pub text: String,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Returns the bundled text for the model with this metadata: chats are in its chat template if it has one, with control
/// tokens. Any prefix of the text has about the same share of each file.
pub fn bundled_text(metadata: &Metadata, renderer: &Renderer) -> PreparedText {
    BundledText::new(metadata, renderer).without(&[])
}

/// A part of the bundled text.
struct Piece {
    /// From 0, the start of its file, to 1.
    place: f64,
    /// Language of prose or of a chat, such as `de`.
    language: Option<String>,
    text: String,
}

/// The bundled text for a model, in pieces.
pub(crate) struct BundledText {
    /// In the order of the text.
    pieces: Vec<Piece>,
    notes: Vec<String>,
}

impl BundledText {
    /// Reads the files.
    pub fn new(metadata: &Metadata, renderer: &Renderer) -> Self {
        let mut chats = Chats { template: None, renderer, fault: None };
        match TemplateSource::from_metadata(metadata, None) {
            Ok(template) => chats.template = template,
            Err(fault) => chats.fault = Some(fault.to_string()),
        }
        let mut pieces = Vec::new();
        for (name, text) in files() {
            let of_file = match name.starts_with("chat/") {
                true => chats.pieces(&text),
                false => plain_pieces(&text),
            };
            let (count, language) = (of_file.len() as f64, language(&name));
            pieces.extend(of_file.into_iter().enumerate().map(|(number, text)| Piece {
                place: (number as f64 + 0.5) / count,
                language: language.map(str::to_owned),
                text,
            }));
        }
        pieces.sort_by(|a, b| a.place.total_cmp(&b.place));
        let note =
            |fault| format!("chats of the calibration text are not in the chat template: {fault}");
        Self { pieces, notes: chats.fault.map(note).into_iter().collect() }
    }

    /// Returns some pieces in each language, [`SAMPLE_BYTES`] or a little more.
    pub fn samples(&self) -> BTreeMap<String, String> {
        let mut samples = BTreeMap::<_, String>::new();
        for piece in &self.pieces {
            let Some(language) = &piece.language else { continue };
            let sample = samples.entry(language.clone()).or_default();
            if sample.len() < SAMPLE_BYTES {
                sample.push_str(&piece.text);
            }
        }
        samples
    }

    /// Returns the text without pieces in these languages.
    pub fn without(self, languages: &[String]) -> PreparedText {
        let stays =
            |piece: &Piece| !piece.language.as_ref().is_some_and(|it| languages.contains(it));
        let pieces = self.pieces.into_iter().filter(stays);
        PreparedText { text: pieces.map(|piece| piece.text).collect(), notes: self.notes }
    }
}

/// Returns the language of a file of prose or chats, whose name begins with it.
fn language(name: &str) -> Option<&str> {
    let (folder, name) = name.split_once('/')?;
    if folder == "code" { None } else { name.split_once('-').map(|(language, _)| language) }
}

/// Returns the size of a text by Deflate, in bits per byte.
pub(crate) fn deflated_bits_per_byte(text: &str) -> f64 {
    let mut encoder = ZlibEncoder::new(text.as_bytes(), Compression::best());
    // Memory can always be read.
    let len = io::copy(&mut encoder, &mut io::sink()).unwrap_or_default();
    8.0 * len as f64 / text.len().max(1) as f64
}

/// Returns the SHA-256 of the bundled text before chats are put into a chat template.
pub fn bundled_digest() -> String {
    let mut all = String::new();
    for (name, text) in files() {
        all.extend([name.as_str(), "\n", text.as_str()]);
    }
    digest::sha256(all.as_bytes())
}

/// Returns the text of each file by name.
fn files() -> BTreeMap<String, String> {
    serde_json::from_reader(ZlibDecoder::new(PACKED)).unwrap_or_default()
}

/// Cuts prose or code at blank lines.
fn plain_pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    for document in text.split(SEPARATOR) {
        let mut piece = String::new();
        for paragraph in document.trim_matches('\n').split("\n\n") {
            piece.extend([paragraph, "\n\n"]);
            if piece.len() >= PIECE_BYTES {
                pieces.push(std::mem::take(&mut piece));
            }
        }
        pieces.extend(Some(piece).filter(|piece| !piece.is_empty()));
    }
    pieces
}

/// Puts chats into a chat template.
struct Chats<'r> {
    template: Option<TemplateSource>,
    renderer: &'r Renderer,
    /// The first fault of the template.
    fault: Option<String>,
}

impl Chats<'_> {
    /// Returns the conversations of a file: a list of lists of messages.
    fn pieces(&mut self, text: &str) -> Vec<String> {
        let chats: Vec<Vec<Json>> = serde_json::from_str(text).unwrap_or_default();
        chats.into_iter().map(|messages| self.piece(messages)).collect()
    }

    fn piece(&mut self, messages: Vec<Json>) -> String {
        let plain = || -> String {
            let contents = messages.iter().filter_map(|message| message["content"].as_str());
            contents.flat_map(|content| [content, "\n\n"]).collect()
        };
        let Some(template) = &self.template else { return plain() };
        let render = |messages: &[Json]| {
            let context = Context {
                add_generation_prompt: false,
                now: SystemTime::UNIX_EPOCH + NOW,
                ..Context::new(messages.into())
            };
            self.renderer.render(template, &context)
        };
        let without_system = || {
            let first = messages.iter().position(|message| message["role"] != "system");
            render(&messages[first.unwrap_or(0)..])
        };
        // Some templates refuse system messages.
        render(&messages).or_else(|_| without_system()).unwrap_or_else(|fault| {
            self.fault.get_or_insert(fault.to_string());
            plain()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_prefix_has_about_the_same_share_of_all_kinds() {
        let text = bundled_text(&Metadata::default(), &Renderer::in_process());
        assert!(text.notes.is_empty());
        let bytes = text.text.as_bytes();
        let cyrillic = |part: &[u8]| part.iter().filter(|byte| matches!(byte, 0xd0 | 0xd1)).count();
        let code = |part: &[u8]| part.windows(2).filter(|pair| pair == b";\n").count();
        for half in bytes.chunks_exact(bytes.len() / 2) {
            for (part, all) in [(cyrillic(half), cyrillic(bytes)), (code(half), code(bytes))] {
                let share = part as f64 / all as f64;
                assert!((0.35..0.65).contains(&share), "{part} of {all}");
            }
        }
    }

    #[test]
    fn languages_are_left_out_of_prose_and_chats() {
        let text = || BundledText::new(&Metadata::default(), &Renderer::in_process());
        let all = text();
        let languages: Vec<_> = all.samples().into_keys().collect();
        assert_eq!(
            languages.join(" "),
            "ar de en es fr hi id it ja ko nl pl pt ru tr uk vi zh",
            "names of files begin with a language"
        );
        let rest = text().without(&["ru".to_owned(), "uk".to_owned()]).text;
        let cyrillic = |text: &str| text.chars().filter(|c| ('а'..='я').contains(c)).count();
        // English texts name some words.
        assert!(cyrillic(&text().without(&[]).text) > 20_000);
        assert!(cyrillic(&rest) < 200, "{}", cyrillic(&rest));
        assert!(rest.contains("fn main") && rest.contains("Kaffeeflecken"));
    }

    #[test]
    fn chats_are_in_the_template_of_the_model() {
        let mut metadata = Metadata::default();
        let template = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}";
        metadata.set("tokenizer.chat_template", template);
        let text = bundled_text(&metadata, &Renderer::in_process());
        assert!(text.notes.is_empty());
        let count = |role| text.text.matches(role).count();
        assert!(count("<|user|>") > 100, "{}", count("<|user|>"));
        assert_eq!(count("<|user|>"), count("<|assistant|>"));
        assert_eq!(text, bundled_text(&metadata, &Renderer::in_process()));
    }

    #[test]
    fn templates_that_refuse_system_messages_get_none() {
        let mut metadata = Metadata::default();
        let template = "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}\
                        {% for m in messages %}<|{{ m.role }}|>{% endfor %}";
        metadata.set("tokenizer.chat_template", template);
        let text = bundled_text(&metadata, &Renderer::in_process());
        assert!(text.notes.is_empty(), "{:?}", text.notes);
        assert!(!text.text.contains("<|system|>"));
    }

    #[test]
    fn a_template_that_fails_is_reported() {
        let mut metadata = Metadata::default();
        metadata.set("tokenizer.chat_template", "{{ raise_exception('never') }}");
        let text = bundled_text(&metadata, &Renderer::in_process());
        assert_eq!(text.notes.len(), 1);
        assert!(text.notes[0].contains("never"), "{:?}", text.notes);
        let plain = bundled_text(&Metadata::default(), &Renderer::in_process());
        assert_eq!(text.text, plain.text);
    }

    #[test]
    fn conversations_alternate_and_end_with_an_answer() {
        for (name, text) in files().iter().filter(|(name, _)| name.starts_with("chat/")) {
            let chats: Vec<Vec<Json>> =
                serde_json::from_str(text).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            for chat in chats {
                let roles: Vec<_> =
                    chat.iter().filter_map(|message| message["role"].as_str()).collect();
                let turns = roles.strip_prefix(&["system"]).unwrap_or(&roles);
                assert!(!turns.is_empty() && turns.len().is_multiple_of(2), "{name}: {roles:?}");
                for pair in turns.chunks(2) {
                    assert_eq!(pair, ["user", "assistant"], "{name}");
                }
                assert!(chat.iter().all(|message| message["content"].is_string()), "{name}");
            }
        }
    }

    /// Texts are tokenized with control tokens, for the chats.
    #[test]
    fn prose_and_code_have_no_control_tokens() {
        for (name, text) in files() {
            for token in [
                "<s>",
                "</s>",
                "<pad>",
                "<unk>",
                "<bos>",
                "<eos>",
                "<mask>",
                "<|",
                "[INST]",
                "<start_of_turn>",
            ] {
                assert!(!text.contains(token), "{name}: {token}");
            }
        }
    }
}

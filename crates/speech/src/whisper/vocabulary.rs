//! Special tokens of Whisper's vocabulary.

use std::collections::BTreeSet;

use gguf_tokenizer::{EncodeOptions, Tokenizer};

use gguf::Error;

/// Special tokens of a Whisper model, found by their texts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Vocabulary {
    /// `<|endoftext|>`. Lower ids are text tokens.
    pub end: u32,
    /// `<|startoftranscript|>`.
    pub start: u32,
    /// `<|startofprev|>`, before the text of earlier windows.
    pub previous: Option<u32>,
    /// `<|nospeech|>`. Its probability after `start` is the no-speech probability.
    pub no_speech: Option<u32>,
    /// `<|notimestamps|>`.
    pub no_timestamps: u32,
    /// The timestamp of 0 seconds. Each following id is a step later.
    pub first_timestamp: u32,
    /// Languages and tasks of a multilingual model; `None` for an English-only model.
    pub languages: Option<Languages>,
    /// Ids that are never sampled.
    pub suppressed: Vec<u32>,
    /// Ids that are not sampled at the start of the text.
    pub suppressed_at_start: Vec<u32>,
}

/// Language and task tokens of a multilingual model.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Languages {
    /// Language codes, such as `de`, with their tokens.
    pub codes: Vec<(String, u32)>,
    /// `<|transcribe|>`: writes the text in the spoken language.
    pub transcribe: u32,
    /// `<|translate|>`: writes the text in English.
    pub translate: u32,
}

/// Vocabulary size of English-only models. Their vocabularies contain language tokens that were never trained.
const ENGLISH_ONLY: usize = 51864;

impl Vocabulary {
    /// Finds the special tokens of a vocabulary.
    ///
    /// # Errors
    /// `not-a-transcriber` if a required token is missing.
    pub fn read(tokenizer: &Tokenizer) -> Result<Self, Error> {
        let count = u32::try_from(tokenizer.len()).unwrap_or(u32::MAX);
        let special: Vec<(&str, u32)> =
            (0..count).rev().filter_map(|id| Some((special(tokenizer, id)?, id))).collect();
        let find = |text: &str| special.iter().find(|(found, _)| *found == text).map(|(_, id)| *id);
        let require = |text: &str| {
            find(text).ok_or_else(|| {
                let what = format!("the vocabulary has no token <|{text}|>");
                let help = "use a Whisper model; convert legacy files again, with the tokenizer under \
                            --metadata-dir";
                Error::request("not-a-transcriber", what, help)
            })
        };
        let (end, start) = (require("endoftext")?, require("startoftranscript")?);
        let no_timestamps = require("notimestamps")?;
        let (transcribe, translate) = (find("transcribe"), find("translate"));
        let language_ids = start + 1..translate.unwrap_or(start + 1).max(start + 1);
        let codes: Vec<(String, u32)> = special
            .iter()
            .rev()
            .filter(|(_, id)| language_ids.contains(id))
            .map(|(code, id)| ((*code).to_owned(), *id))
            .collect();
        let languages = match (transcribe, translate) {
            (Some(transcribe), Some(translate))
                if !codes.is_empty() && tokenizer.len() != ENGLISH_ONLY =>
            {
                Some(Languages { codes, transcribe, translate })
            }
            _ => None,
        };
        let previous = find("startofprev");
        let no_speech = find("nospeech").or_else(|| find("nocaptions"));
        let control = [Some(start), transcribe, translate, previous, find("startoflm"), no_speech];
        let mut suppressed = non_speech_tokens(tokenizer);
        suppressed.extend(control.into_iter().flatten());
        let mut suppressed_at_start = ids(tokenizer, " ");
        suppressed_at_start.push(end);
        Ok(Self {
            end,
            start,
            previous,
            no_speech,
            no_timestamps,
            // Some vocabularies have no texts for timestamps.
            first_timestamp: no_timestamps + 1,
            languages,
            suppressed: suppressed.into_iter().collect(),
            suppressed_at_start,
        })
    }
}

/// Returns the name of a special token, such as `de` for `<|de|>`.
fn special(tokenizer: &Tokenizer, id: u32) -> Option<&str> {
    let text = std::str::from_utf8(tokenizer.token_text(id)?).ok()?;
    text.strip_prefix("<|")?.strip_suffix("|>")
}

fn ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    tokenizer.encode(text, EncodeOptions { add_special: false, parse_special: false })
}

/// Returns tokens of symbols that are written but not spoken, such as brackets and musical notes: the list
/// `non_speech_tokens` of Whisper's reference implementation (`tokenizer.py`).
fn non_speech_tokens(tokenizer: &Tokenizer) -> BTreeSet<u32> {
    const SYMBOLS: &str = "\" # ( ) * + / : ; < = > @ [ \\ ] ^ _ ` { | } ~ \u{300c} \u{300d} \u{300e} \
                           \u{300f} << >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} \
                           \u{266a}\u{266a} \u{266a}\u{266a}\u{266a}";
    /// Symbols that are suppressed by their first token if they have several.
    const NOTES: &str = "\u{2669} \u{266a} \u{266b} \u{266c} \u{266d} \u{266e} \u{266f}";
    // Allowed inside words, but not before them.
    let mut found: BTreeSet<u32> =
        [" -", " '"].iter().filter_map(|text| ids(tokenizer, text).first().copied()).collect();
    let mut add = |symbol: &str, several: bool| {
        for text in [symbol.to_owned(), format!(" {symbol}")] {
            let ids = ids(tokenizer, &text);
            if ids.len() == 1 || several {
                found.extend(ids.first());
            }
        }
    };
    SYMBOLS.split(' ').for_each(|symbol| add(symbol, false));
    NOTES.split(' ').for_each(|symbol| add(symbol, true));
    found
}

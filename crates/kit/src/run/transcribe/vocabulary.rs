//! The tokens by which a Whisper is told what to do, and tells what it hears.

use std::collections::BTreeSet;

use gguf_tokenizer::{Encode, Tokenizer};

use crate::Error;

/// Special tokens of a Whisper, found by their texts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Vocabulary {
    /// Ends a text. Ids below it are of texts, others are not.
    pub end: u32,
    /// Begins what the model writes.
    pub start: u32,
    /// Begins what was written before.
    pub previous: Option<u32>,
    /// How probable it is where the text begins says how probable it is that nobody speaks.
    pub no_speech: Option<u32>,
    /// Asks for text alone.
    pub no_timestamps: u32,
    /// The time 0; ids from it on are times, a step apart.
    pub first_time: u32,
    /// What models of many languages are told besides; `None` for those that know English alone.
    pub tongues: Option<Tongues>,
    /// Ids that are never chosen.
    pub suppressed: Vec<u32>,
    /// Ids that do not begin a text.
    pub not_first: Vec<u32>,
}

/// Languages, and what to do with them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tongues {
    /// Codes of languages, such as `de`, with the tokens that stand for them.
    pub languages: Vec<(String, u32)>,
    /// Asks for the text as it is spoken.
    pub transcribe: u32,
    /// Asks for it in English.
    pub translate: u32,
}

/// Ids of models that know English alone. They have the tokens of languages too, and never saw them.
const ENGLISH_ONLY: usize = 51864;

impl Vocabulary {
    /// # Errors
    /// `not-a-transcriber` if tokens are missing.
    pub fn read(tokenizer: &Tokenizer) -> Result<Self, Error> {
        let count = u32::try_from(tokenizer.len()).unwrap_or(u32::MAX);
        let special: Vec<(&str, u32)> =
            (0..count).rev().filter_map(|id| Some((special(tokenizer, id)?, id))).collect();
        let find = |text: &str| special.iter().find(|(found, _)| *found == text).map(|(_, id)| *id);
        let require = |text: &str| {
            find(text).ok_or_else(|| {
                let what = format!("its vocabulary has no token <|{text}|>");
                let help = "give it a Whisper; convert old files again, with its tokenizer under \
                            --metadata-dir";
                Error::request("not-a-transcriber", what, help)
            })
        };
        let (end, start) = (require("endoftext")?, require("startoftranscript")?);
        let no_timestamps = require("notimestamps")?;
        let (transcribe, translate) = (find("transcribe"), find("translate"));
        let of_languages = start + 1..translate.unwrap_or(start + 1).max(start + 1);
        let languages: Vec<(String, u32)> = special
            .iter()
            .rev()
            .filter(|(_, id)| of_languages.contains(id))
            .map(|(code, id)| ((*code).to_owned(), *id))
            .collect();
        let tongues = match (transcribe, translate) {
            (Some(transcribe), Some(translate))
                if !languages.is_empty() && tokenizer.len() != ENGLISH_ONLY =>
            {
                Some(Tongues { languages, transcribe, translate })
            }
            _ => None,
        };
        let previous = find("startofprev");
        let no_speech = find("nospeech").or_else(|| find("nocaptions"));
        let unwanted = [Some(start), transcribe, translate, previous, find("startoflm"), no_speech];
        let mut suppressed = not_speech(tokenizer);
        suppressed.extend(unwanted.into_iter().flatten());
        let mut not_first = ids(tokenizer, " ");
        not_first.push(end);
        Ok(Self {
            end,
            start,
            previous,
            no_speech,
            no_timestamps,
            // Vocabularies need not have texts for times.
            first_time: no_timestamps + 1,
            tongues,
            suppressed: suppressed.into_iter().collect(),
            not_first,
        })
    }
}

/// What stands in a token such as `<|de|>`.
fn special(tokenizer: &Tokenizer, id: u32) -> Option<&str> {
    let text = std::str::from_utf8(tokenizer.token_text(id)?).ok()?;
    text.strip_prefix("<|")?.strip_suffix("|>")
}

fn ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    tokenizer.encode(text, Encode { add_special: false, parse_special: false })
}

/// Tokens of what is written but not spoken, such as brackets and notes, as Whisper's authors list
/// them (`tokenizer.py`).
fn not_speech(tokenizer: &Tokenizer) -> BTreeSet<u32> {
    const SYMBOLS: &str = "\" # ( ) * + / : ; < = > @ [ \\ ] ^ _ ` { | } ~ \u{300c} \u{300d} \u{300e} \
                           \u{300f} << >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} \
                           \u{266a}\u{266a} \u{266a}\u{266a}\u{266a}";
    /// Of these the first part stands for all of them, where they are no single tokens.
    const NOTES: &str = "\u{2669} \u{266a} \u{266b} \u{266c} \u{266d} \u{266e} \u{266f}";
    // In words they may stand, not before them.
    let mut found: BTreeSet<u32> =
        [" -", " '"].iter().filter_map(|text| ids(tokenizer, text).first().copied()).collect();
    let mut add = |symbol: &str, in_parts: bool| {
        for text in [symbol.to_owned(), format!(" {symbol}")] {
            let ids = ids(tokenizer, &text);
            if ids.len() == 1 || in_parts {
                found.extend(ids.first());
            }
        }
    };
    SYMBOLS.split(' ').for_each(|symbol| add(symbol, false));
    NOTES.split(' ').for_each(|symbol| add(symbol, true));
    found
}

//! Rules of a `tokenizer.json` that a model file does not hold, found by texts whose ids differ.

use std::fmt;

use gguf::Error;
use tokenizers::AddedToken;

use super::findings::list;
use super::{CORPUS, Difference, Rule, TokenizerDiff, WITHOUT_BOS_EOS};

/// Maximum number of added tokens that are tried for the flags.
const MAX_TOKENS: usize = 64;

/// Maximum number of texts of the corpus whose rule is determined.
const MAX_TEXTS: usize = 12;

/// Subject of a rule that concerns every text.
const ALL: &str = "all texts";

/// A rule of a `tokenizer.json` that a model file does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRule {
    /// Texts that the rule concerns, as the subject of a sentence.
    texts: String,
    /// Why, in a phrase.
    reason: String,
    /// A text that the tokenizers encode differently.
    pub example: Difference,
}

impl fmt::Display for LostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { texts, reason, example: Difference { text, ours, theirs, .. } } = self;
        let (ours, theirs) = (list(ours), list(theirs));
        write!(
            f,
            "{texts} get other ids than in tokenizer.json ({reason}); for example {text:?}: {ours} \
             instead of {theirs}"
        )
    }
}

/// A flag of added tokens.
struct Flag {
    name: &'static str,
    /// Texts that the flag concerns; the tokens follow.
    texts: &'static str,
    has: fn(&AddedToken) -> bool,
    /// A text that the flag concerns, with `T` for the token.
    text: &'static str,
    effect: Effect,
}

/// The effect of a flag on a text.
enum Effect {
    /// The text has the ids of another one.
    SameAs(&'static str),
    /// The token is not matched.
    Unmatched,
}

#[rustfmt::skip]
const FLAGS: &[Flag] = &[
    Flag { name: "lstrip", texts: "texts with white space before", has: |token| token.lstrip,
           text: "a \n T", effect: Effect::SameAs("aT") },
    Flag { name: "rstrip", texts: "texts with white space after", has: |token| token.rstrip,
           text: "T \n a", effect: Effect::SameAs("Ta") },
    Flag { name: "single_word", texts: "words that contain", has: |token| token.single_word,
           text: "aTa", effect: Effect::Unmatched },
];

impl TokenizerDiff<'_> {
    /// Returns the rules of `tokenizer.json` that the model file does not hold, each with an example. Encodes built-in
    /// texts, alone and with added tokens.
    ///
    /// # Errors
    /// If `tokenizer.json` fails on a text.
    pub fn lost_rules(&self) -> Result<Vec<LostRule>, Error> {
        let mut lost = Vec::new();
        if let Some(example) = self.bos_eos()? {
            let (texts, reason) =
                ("all texts with BOS and EOS".to_owned(), no_place("its template"));
            lost.push(LostRule { texts, reason, example });
        }
        let before = lost.len();
        for flag in FLAGS {
            lost.extend(self.lost_flag(flag)?);
        }
        lost.extend(self.lost_normalized()?);
        let with_tokens = lost.len() > before;
        let prefix = self.lost_prefix()?;
        let tokens = self.theirs.added_tokens();
        let has_token = |text: &str| tokens.iter().any(|(_, token)| text.contains(&token.content));
        let begins_with_space = |text: &str| text.starts_with([' ', '\u{2581}']);
        // The rules so far explain these texts.
        let is_explained = |text: &str| match &prefix {
            Some(prefix) if prefix.texts == ALL => true,
            Some(_) => has_token(text) || begins_with_space(text),
            None => with_tokens && has_token(text),
        };
        lost.extend(self.lost_in_corpus(&is_explained)?);
        lost.extend(prefix);
        Ok(lost)
    }

    fn lost_flag(&self, flag: &Flag) -> Result<Option<LostRule>, Error> {
        let (mut tokens, mut example) = (Vec::new(), None);
        for (id, token) in self.tried_tokens() {
            let text = flag.text.replace('T', &token.content);
            let (ours, theirs) = self.ids(&text)?;
            let (ours, theirs) = match flag.effect {
                Effect::SameAs(other) => {
                    let other = self.ids(&other.replace('T', &token.content))?;
                    if ours == theirs {
                        continue;
                    }
                    (ours == other.0, theirs == other.1)
                }
                Effect::Unmatched => (!ours.contains(&id), !theirs.contains(&id)),
            };
            // Otherwise another rule has the same effect.
            if ours != theirs && theirs == (flag.has)(&token) {
                tokens.push(token.content);
                example.get_or_insert(text);
            }
        }
        let Some(example) = example else { return Ok(None) };
        let example = self.difference(example, Rule::AddedToken)?;
        let texts = format!("{} {}", flag.texts, names(&tokens));
        Ok(Some(LostRule { texts, reason: no_place(&format!("`{}`", flag.name)), example }))
    }

    /// Returns the added tokens that are tried: those with flags first.
    fn tried_tokens(&self) -> Vec<(u32, AddedToken)> {
        let mut tokens = self.theirs.added_tokens();
        tokens.sort_by_key(|(_, t)| !(t.lstrip || t.rstrip || t.single_word || t.normalized));
        tokens.truncate(MAX_TOKENS);
        tokens
    }

    /// Tries added tokens that are matched in the normalized text.
    fn lost_normalized(&self) -> Result<Option<LostRule>, Error> {
        if !self.theirs.has_normalizer() {
            return Ok(None);
        }
        let (mut tokens, mut example) = (Vec::new(), None);
        for (_, token) in self.tried_tokens().into_iter().filter(|(_, token)| token.normalized) {
            let text = &token.content;
            for text in [
                text.clone(),
                format!("a{text}a"),
                format!("a {text} a"),
                text.to_uppercase(),
                text.to_lowercase(),
            ] {
                if self.differs(&text)? {
                    tokens.push(token.content.clone());
                    example.get_or_insert(text);
                    break;
                }
            }
        }
        let Some(example) = example else { return Ok(None) };
        let example = self.difference(example, Rule::AddedToken)?;
        let texts = format!("texts with {}", names(&tokens));
        let reason = no_place("tokens that are matched in the normalized text, `normalized`");
        Ok(Some(LostRule { texts, reason, example }))
    }

    /// Tries texts at whose start a space may be added.
    fn lost_prefix(&self) -> Result<Option<LostRule>, Error> {
        let all = self.theirs.added_tokens();
        let token = all.into_iter().find(|(_, t)| !t.normalized && !t.lstrip && !t.rstrip);
        let token = token.map(|(_, token)| token.content).unwrap_or_default();
        let texts = ["a", " a", "Ta", "T a", "T"].map(|text| text.replace('T', &token));
        let [plain, spaced, behind, spaced_behind, alone] = texts;
        if self.differs(&alone)? {
            return Ok(None);
        }
        let (mut concerned, mut example) = (Vec::new(), None);
        for (text, texts) in [
            (plain, ALL),
            (spaced, "texts that begin with a space"),
            (behind, "texts behind a special token"),
            (spaced_behind, "texts behind a special token and a space"),
        ] {
            if self.differs(&text)? && !concerned.contains(&ALL) {
                concerned.push(texts);
                example.get_or_insert(text);
            }
        }
        let Some(example) = example else { return Ok(None) };
        let example = self.difference(example, Rule::Normalizer)?;
        let (texts, reason) = (concerned.join(", "), no_place("its rule for the start of a text"));
        Ok(Some(LostRule { texts, reason, example }))
    }

    /// Tries the built-in texts and all added tokens. Returns a rule for each kind of difference that is not explained.
    fn lost_in_corpus(&self, is_explained: &dyn Fn(&str) -> bool) -> Result<Vec<LostRule>, Error> {
        let added = self.added_tokens();
        let texts = CORPUS.iter().copied().chain(added.iter().map(String::as_str));
        let (mut count, mut found, mut examples) = (0, 0, Vec::<Difference>::new());
        for text in texts {
            count += 1;
            if !self.differs(text)? {
                continue;
            }
            found += 1;
            if found <= MAX_TEXTS
                && let Some(example) = self.text(text)?
                && !is_explained(&example.text)
                && !examples.iter().any(|known| known.rule == example.rule)
            {
                examples.push(example);
            }
        }
        let texts = format!("{found} of {count} sample texts");
        let lost = examples.into_iter().map(|example| {
            let reason = match example.rule {
                Rule::Normalizer => no_place("its normalizer"),
                other => other.to_string(),
            };
            LostRule { texts: texts.clone(), reason, example }
        });
        Ok(lost.collect())
    }

    /// Returns the ids of a text in both tokenizers.
    fn ids(&self, text: &str) -> Result<(Vec<u32>, Vec<u32>), Error> {
        Ok((self.ours.encode(text, WITHOUT_BOS_EOS), self.theirs.encode(text, WITHOUT_BOS_EOS)?))
    }

    fn difference(&self, text: String, rule: Rule) -> Result<Difference, Error> {
        let (ours, theirs) = self.ids(&text)?;
        Ok(Difference { text, ours, theirs, rule })
    }
}

fn no_place(rule: &str) -> String {
    format!("GGUF has no place for {rule}")
}

/// Formats the first tokens and the number of the others.
fn names(tokens: &[String]) -> String {
    const MAX_NAMES: usize = 4;
    let first: Vec<&str> = tokens.iter().take(MAX_NAMES).map(String::as_str).collect();
    match tokens.len().saturating_sub(MAX_NAMES) {
        0 => first.join(", "),
        others => format!("{} and {others} others", first.join(", ")),
    }
}

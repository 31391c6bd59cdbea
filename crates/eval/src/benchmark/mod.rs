//! Benchmarks with the file formats and rules of `llama-perplexity` (`tools/perplexity/perplexity.cpp`): a model answers a
//! question by the answer with the highest probability.

mod answers;
mod draw;
mod hellaswag;
mod multiple_choice;
mod winogrande;

use std::ops::Range;

use gguf::{Error, Finding};

pub use self::answers::{Answered, Answers, answers};

/// A benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmark {
    /// Sentence completion. Six lines per question: context, number of the right ending from 0, four endings.
    HellaSwag,
    /// Coreference. A line of comma-separated values per question: name, sentence with `_`, two options, number of the right
    /// option (1 or 2).
    Winogrande,
    /// Multiple choice, in the binary format of `multiple_choice.rs`.
    MultipleChoice,
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Number of the question in its file, from 1.
    pub number: usize,
    /// Answers, at least one.
    pub answers: Vec<Answer>,
}

/// An answer with the text of its question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The whole text.
    pub text: String,
    /// The text up to the end of the answer, if the sentence continues.
    pub head: Option<String>,
    /// Whether the answer is right.
    pub right: bool,
}

/// A tokenized question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    /// Number of the question in its file, from 1.
    pub number: usize,
    /// Length of the common prefix of all texts, which is shorter than each.
    pub common: usize,
    /// One text per answer.
    pub texts: Vec<Text>,
}

/// A tokenized answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Range of the scored tokens: after the first one and the common prefix.
    pub counted: Range<usize>,
    /// Whether the answer is right.
    pub right: bool,
}

/// Both texts of a Winogrande question must have more tokens than this after the common prefix for the answers themselves
/// not to be scored.
const TRAILING: usize = 3;

impl Benchmark {
    /// Parses a file.
    ///
    /// # Errors
    /// `benchmark-invalid`, with the line or the byte.
    pub fn read(self, bytes: &[u8]) -> Result<Vec<Question>, Error> {
        let questions = match self {
            Self::HellaSwag => hellaswag::read(text(bytes)?),
            Self::Winogrande => winogrande::read(text(bytes)?),
            Self::MultipleChoice => multiple_choice::read(bytes),
        }?;
        if questions.is_empty() {
            return Err(invalid("the file has no questions").into());
        }
        Ok(questions)
    }

    /// Draws `count` questions, or takes all if there are fewer: the same ones as `llama-perplexity` built with GCC 11 or
    /// later.
    pub fn draw(self, questions: Vec<Question>, count: usize) -> Vec<Question> {
        match self {
            // In random order even if all are taken, so that the accuracy converges soon.
            Self::HellaSwag => draw::uniform(questions, count),
            _ if count >= questions.len() => questions,
            _ => draw::scaled(questions, count),
        }
    }

    /// Tokenizes a question with `encode`.
    ///
    /// # Errors
    /// `benchmark-invalid` if a text has no scored tokens.
    pub fn texts(
        self,
        question: &Question,
        encode: impl Fn(&str) -> Vec<u32>,
    ) -> Result<Texts, Error> {
        let ids: Vec<_> = question.answers.iter().map(|answer| encode(&answer.text)).collect();
        let shortest = ids.iter().map(Vec::len).min().unwrap_or(0);
        if shortest < 2 {
            let what = format!("a text of question {} has fewer than two tokens", question.number);
            return Err(invalid(what).into());
        }
        // Each text has a token of its own, even if it is a prefix of another.
        let same = |place: &usize| ids.iter().all(|text| text[*place] == ids[0][*place]);
        let common = (0..shortest - 1).take_while(same).count();
        // Whether the text after the answers is long enough to be scored alone.
        let trailing = ids.iter().all(|ids| ids.len() - common > TRAILING);
        let text = |(answer, ids): (&Answer, Vec<u32>)| {
            // The first token is not predicted.
            let (mut first, mut end) = (common.max(1), ids.len());
            if let Some(head) = &answer.head {
                let after = encode(head).len();
                if trailing && (first..end).contains(&after) {
                    first = after;
                }
                // The last token is a period.
                end -= usize::from(end - first > 1);
            }
            Text { counted: first..end, ids, right: answer.right }
        };
        let texts = question.answers.iter().zip(ids).map(text).collect();
        Ok(Texts { number: question.number, common, texts })
    }
}

impl Texts {
    /// Returns the number of tokens of all texts; the common prefix counts once.
    pub fn tokens(&self) -> usize {
        let own = |text: &Text| text.ids.len() - self.common;
        self.common + self.texts.iter().map(own).sum::<usize>()
    }

    /// Returns the number of input tokens: the last scored token of each text is only a target.
    pub fn read(&self) -> usize {
        let own = |text: &Text| text.counted.end - 1 - self.common;
        self.common + self.texts.iter().map(own).sum::<usize>()
    }
}

/// Returns the error for an invalid file.
fn invalid(what: impl Into<Box<str>>) -> Finding {
    Finding::error("benchmark-invalid", what).help("`docs/evaluation.md` describes the formats")
}

fn text(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|fault| {
        let finding = Finding::error("file-not-text", "is not valid UTF-8");
        finding.at(fault.valid_up_to() as u64).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a start token and one token per byte.
    fn bytes(text: &str) -> Vec<u32> {
        [256].into_iter().chain(text.bytes().map(u32::from)).collect()
    }

    fn question(answers: &[(&str, Option<&str>)]) -> Question {
        let answer = |&(text, head): &(&str, Option<&str>)| Answer {
            text: text.to_owned(),
            head: head.map(str::to_owned),
            right: false,
        };
        Question { number: 7, answers: answers.iter().map(answer).collect() }
    }

    fn counted(
        benchmark: Benchmark,
        answers: &[(&str, Option<&str>)],
    ) -> (usize, Vec<Range<usize>>) {
        let texts = benchmark.texts(&question(answers), bytes).unwrap();
        (texts.common, texts.texts.into_iter().map(|text| text.counted).collect())
    }

    #[test]
    fn scores_tokens_after_the_common_prefix() {
        let found = counted(Benchmark::HellaSwag, &[("so it is", None), ("so it was not", None)]);
        assert_eq!(found, (7, vec![7..9, 7..14]));
        let texts = Benchmark::HellaSwag.texts(&question(&[("abc", None), ("abd", None)]), bytes);
        assert_eq!(texts.unwrap().tokens(), 5);
        // One text is a prefix of the other.
        assert_eq!(
            counted(Benchmark::HellaSwag, &[("ab", None), ("abc", None)]),
            (2, vec![2..3, 2..4])
        );
    }

    #[test]
    fn scores_a_long_text_after_the_answer() {
        let long = [("Al is fat.", Some("Al")), ("Bo is fat.", Some("Bo"))];
        assert_eq!(counted(Benchmark::Winogrande, &long), (1, vec![3..10, 3..10]));
        let short = [("I am A.", Some("I am A")), ("I am B.", Some("I am B"))];
        assert_eq!(counted(Benchmark::Winogrande, &short), (6, vec![6..7, 6..7]));
        // No text after the answer.
        let none = [("I met Alan", Some("I met Alan")), ("I met Bert", Some("I met Bert"))];
        assert_eq!(counted(Benchmark::Winogrande, &none), (7, vec![7..10, 7..10]));
    }

    #[test]
    fn first_token_is_not_scored() {
        let encode = |text: &str| text.bytes().map(u32::from).collect();
        let found = Benchmark::HellaSwag.texts(&question(&[("ab", None), ("cd", None)]), encode);
        assert_eq!(found.unwrap().texts[1].counted, 1..2);
        let error = Benchmark::HellaSwag.texts(&question(&[("a", None)]), encode).unwrap_err();
        assert!(error.to_string().contains("question 7"), "{error}");
    }

    #[test]
    fn files_without_questions() {
        for (benchmark, file) in [
            (Benchmark::HellaSwag, &b"\n"[..]),
            (Benchmark::Winogrande, b""),
            (Benchmark::MultipleChoice, &[0; 4]),
        ] {
            assert_eq!(benchmark.read(file).unwrap_err().code(), "benchmark-invalid");
        }
        let error = Benchmark::Winogrande.read(b"1,a\xff").unwrap_err();
        assert_eq!((error.code(), error.finding().unwrap().offset), ("file-not-text", Some(3)));
    }
}

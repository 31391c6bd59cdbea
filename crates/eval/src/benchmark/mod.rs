//! Benchmarks: questions of which a model is to find the right answer more likely than the others, in the
//! files and by the rules of `llama-perplexity` (`tools/perplexity/perplexity.cpp`).

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
    /// How does a text go on? Six lines for each question: the text, the number of the right ending
    /// from 0, four endings.
    HellaSwag,
    /// Who is meant? A line of values with commas for each question: its name, a sentence with `_` in it,
    /// two things that it may stand for, the number of the right one, 1 or 2.
    Winogrande,
    /// Which answer is right? Binary: see `multiple_choice.rs`.
    MultipleChoice,
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Which one of its file it is, from 1.
    pub number: usize,
    /// Its answers, one or more.
    pub answers: Vec<Answer>,
}

/// An answer, in the text that it makes with its question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The whole text.
    pub text: String,
    /// The text up to the end of the answer, where the sentence goes on after it.
    pub head: Option<String>,
    /// Whether it is right.
    pub right: bool,
}

/// A question as a model reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    /// Which question of its file it is, from 1.
    pub number: usize,
    /// Tokens that all texts begin with. Of each text there are more.
    pub common: usize,
    /// The texts.
    pub texts: Vec<Text>,
}

/// One of its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Its tokens.
    pub ids: Vec<u32>,
    /// Those of them whose probability counts: not the first, and none before the texts differ.
    pub counted: Range<usize>,
    /// Whether it has the right answer.
    pub right: bool,
}

/// Tokens after the common ones that both texts of Winogrande must have more than, for the answers
/// themselves not to count.
const TRAILING: usize = 3;

impl Benchmark {
    /// The questions of a file.
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
            return Err(invalid("there is no question in it").into());
        }
        Ok(questions)
    }

    /// Draws so many questions, or takes all of them if there are no more: the same as
    /// `llama-perplexity` draws where it was built with GCC 11 or later.
    pub fn draw(self, questions: Vec<Question>, count: usize) -> Vec<Question> {
        match self {
            // Always in random order, so that the share of right answers settles soon.
            Self::HellaSwag => draw::uniform(questions, count),
            _ if count >= questions.len() => questions,
            _ => draw::scaled(questions, count),
        }
    }

    /// The tokens of a question, and which of them count. `encode` makes tokens of a text.
    ///
    /// # Errors
    /// `benchmark-invalid` if nothing is left to predict of a text.
    pub fn texts(
        self,
        question: &Question,
        encode: impl Fn(&str) -> Vec<u32>,
    ) -> Result<Texts, Error> {
        let ids: Vec<_> = question.answers.iter().map(|answer| encode(&answer.text)).collect();
        let shortest = ids.iter().map(Vec::len).min().unwrap_or(0);
        if shortest < 2 {
            let what = format!("a text of question {} is a token or less", question.number);
            return Err(invalid(what).into());
        }
        // Each text keeps a token of its own, also where one is the beginning of another.
        let same = |place: &usize| ids.iter().all(|text| text[*place] == ids[0][*place]);
        let common = (0..shortest - 1).take_while(same).count();
        // Whether what comes after the answers is long enough to count alone.
        let trailing = ids.iter().all(|ids| ids.len() - common > TRAILING);
        let text = |(answer, ids): (&Answer, Vec<u32>)| {
            // The first token of all is not predicted.
            let (mut first, mut end) = (common.max(1), ids.len());
            if let Some(head) = &answer.head {
                let after = encode(head).len();
                if trailing && (first..end).contains(&after) {
                    first = after;
                }
                // The last one is but a full stop.
                end -= usize::from(end - first > 1);
            }
            Text { counted: first..end, ids, right: answer.right }
        };
        let texts = question.answers.iter().zip(ids).map(text).collect();
        Ok(Texts { number: question.number, common, texts })
    }
}

impl Texts {
    /// Tokens of all texts, the common ones counted once.
    pub fn tokens(&self) -> usize {
        let own = |text: &Text| text.ids.len() - self.common;
        self.common + self.texts.iter().map(own).sum::<usize>()
    }

    /// Those of them that are read: the last one of each text that counts is only predicted.
    pub fn read(&self) -> usize {
        let own = |text: &Text| text.counted.end - 1 - self.common;
        self.common + self.texts.iter().map(own).sum::<usize>()
    }
}

/// What is wrong with a file.
fn invalid(what: impl Into<Box<str>>) -> Finding {
    Finding::error("benchmark-invalid", what).help("`docs/evaluation.md` describes the forms")
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

    /// A token for each byte, after one for the beginning.
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
    fn what_counts_is_where_texts_differ() {
        let found = counted(Benchmark::HellaSwag, &[("so it is", None), ("so it was not", None)]);
        assert_eq!(found, (7, vec![7..9, 7..14]));
        let texts = Benchmark::HellaSwag.texts(&question(&[("abc", None), ("abd", None)]), bytes);
        assert_eq!(texts.unwrap().tokens(), 5);
        // One text is the beginning of the other.
        assert_eq!(
            counted(Benchmark::HellaSwag, &[("ab", None), ("abc", None)]),
            (2, vec![2..3, 2..4])
        );
    }

    #[test]
    fn what_comes_after_the_answer_counts_if_it_is_long() {
        let long = [("Al is fat.", Some("Al")), ("Bo is fat.", Some("Bo"))];
        assert_eq!(counted(Benchmark::Winogrande, &long), (1, vec![3..10, 3..10]));
        let short = [("I am A.", Some("I am A")), ("I am B.", Some("I am B"))];
        assert_eq!(counted(Benchmark::Winogrande, &short), (6, vec![6..7, 6..7]));
        // Nothing comes after it.
        let none = [("I met Alan", Some("I met Alan")), ("I met Bert", Some("I met Bert"))];
        assert_eq!(counted(Benchmark::Winogrande, &none), (7, vec![7..10, 7..10]));
    }

    #[test]
    fn the_first_token_is_not_predicted() {
        let encode = |text: &str| text.bytes().map(u32::from).collect();
        let found = Benchmark::HellaSwag.texts(&question(&[("ab", None), ("cd", None)]), encode);
        assert_eq!(found.unwrap().texts[1].counted, 1..2);
        let error = Benchmark::HellaSwag.texts(&question(&[("a", None)]), encode).unwrap_err();
        assert!(error.to_string().contains("question 7"), "{error}");
    }

    #[test]
    fn files_without_a_question() {
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

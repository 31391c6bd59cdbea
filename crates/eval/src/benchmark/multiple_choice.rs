//! Multiple-choice files: binary, with little-endian 32-bit numbers.
//!
//! ```text
//! file:     number of questions, offset of each question, questions
//! question: text, answers with one right answer, answers with several right answers
//! answers:  count, texts, then for each of them 1 if it is right, else 0
//! text:     length in bytes, UTF-8
//! ```
//!
//! Questions are contiguous, so the offsets are not needed. The second list of answers is skipped, as in llama.cpp.

use gguf::{Error, Finding};

use super::{Answer, Question, invalid};

/// Maximum number of answers in llama.cpp.
const MAX_ANSWERS: u32 = 100;

pub(super) fn read(bytes: &[u8]) -> Result<Vec<Question>, Error> {
    let mut reader = Reader { bytes, at: 0 };
    let count = reader.number("the number of questions")?;
    reader.take(count as usize * 4, "where questions begin")?;
    let mut questions = Vec::new();
    for number in 1..=count as usize {
        let in_question = |mut finding: Finding| {
            finding.message = format!("question {number}: {}", finding.message).into();
            finding
        };
        let answers = reader.question().map_err(in_question)?;
        questions.push(Question { number, answers });
    }
    Ok(questions)
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn question(&mut self) -> Result<Vec<Answer>, Finding> {
        let at = self.at;
        let context = self.text("its text")?;
        let (texts, labels) = self.answers()?;
        self.answers()?;
        if context.is_empty() || texts.is_empty() || texts.contains(&"") {
            return Err(invalid("the question or an answer is empty or missing").at(at as u64));
        }
        let answer = |(text, label): (&str, u32)| Answer {
            text: format!("{context} {text}"),
            head: None,
            right: label == 1,
        };
        Ok(texts.into_iter().zip(labels).map(answer).collect())
    }

    fn answers(&mut self) -> Result<(Vec<&'b str>, Vec<u32>), Finding> {
        let at = self.at;
        let count = self.number("the number of answers")?;
        if count > MAX_ANSWERS {
            let what = format!("there are {count} answers, more than {MAX_ANSWERS}");
            return Err(invalid(what).at(at as u64));
        }
        let texts = (0..count).map(|_| self.text("an answer")).collect::<Result<_, _>>()?;
        let labels =
            (0..count).map(|_| self.number("which answer is right")).collect::<Result<_, _>>()?;
        Ok((texts, labels))
    }

    fn text(&mut self, what: &str) -> Result<&'b str, Finding> {
        let len = self.number(what)? as usize;
        let at = self.at;
        let bytes = self.take(len, what)?;
        std::str::from_utf8(bytes).map_err(|fault| {
            invalid(format!("{what} is not UTF-8")).at((at + fault.valid_up_to()) as u64)
        })
    }

    fn number(&mut self, what: &str) -> Result<u32, Finding> {
        let bytes = self.take(4, what)?;
        Ok(bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    }

    fn take(&mut self, len: usize, what: &str) -> Result<&'b [u8], Finding> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..len) else {
            let what = format!("{what} takes {len} bytes, {} are left", rest.len());
            return Err(invalid(what).at(self.at as u64));
        };
        self.at += len;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<u8> {
        [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
    }

    fn answers(answers: &[(&str, u32)]) -> Vec<u8> {
        let mut bytes = (answers.len() as u32).to_le_bytes().to_vec();
        bytes.extend(answers.iter().flat_map(|(answer, _)| text(answer)));
        bytes.extend(answers.iter().flat_map(|(_, right)| right.to_le_bytes()));
        bytes
    }

    fn file() -> Vec<u8> {
        let numbers = [2u32, 12, 0].map(u32::to_le_bytes).concat();
        let none = answers(&[]);
        let first =
            [text("Two and two?"), answers(&[("four", 1), ("five", 0), ("six", 0)]), none.clone()];
        let more = answers(&[("yes", 1), ("no", 1)]);
        let second = [text("Ja?"), answers(&[("nein", 0), ("doch ü", 1)]), more];
        [numbers, first.concat(), second.concat()].concat()
    }

    #[test]
    fn numbers_and_texts() {
        let questions = read(&file()).unwrap();
        let of = |question: &Question| -> Vec<(String, bool)> {
            question.answers.iter().map(|answer| (answer.text.clone(), answer.right)).collect()
        };
        let wanted = [
            ("Two and two? four", true),
            ("Two and two? five", false),
            ("Two and two? six", false),
        ];
        assert_eq!(of(&questions[0]), wanted.map(|(text, right)| (text.to_owned(), right)));
        assert_eq!(of(&questions[1])[1], ("Ja? doch ü".to_owned(), true));
        assert_eq!(questions[1].number, 2);
    }

    #[test]
    fn truncated_files_are_rejected() {
        let file = file();
        for len in 0..file.len() {
            let error = read(&file[..len]).unwrap_err();
            assert_eq!(error.code(), "benchmark-invalid", "{len}: {error}");
            assert!(error.finding().unwrap().offset.is_some(), "{error}");
        }
    }

    #[test]
    fn errors_name_the_offset() {
        let change = |at: usize, bytes: &[u8]| {
            let mut file = file();
            file[at..at + bytes.len()].copy_from_slice(bytes);
            let error = read(&file).unwrap_err();
            let finding = error.finding().unwrap();
            (finding.offset.unwrap(), finding.message.to_string())
        };
        let (at, what) = change(0, &[255; 4]);
        assert!(at == 4 && what.contains("17179869180 bytes"), "{at} {what}");
        // The text of the first question is at 16, and its answers at 28.
        let (at, what) = change(12, &[255; 4]);
        assert!(
            at == 16 && what.starts_with("question 1: its text takes 4294967295"),
            "{at} {what}"
        );
        let (at, what) = change(20, &[0xff]);
        assert!(at == 20 && what.contains("not UTF-8"), "{at} {what}");
        let (at, what) = change(28, &[101]);
        assert!(at == 28 && what.contains("101 answers"), "{at} {what}");
        let (at, what) = change(28, &[0]);
        assert!(what.contains("question 1"), "{at} {what}");
    }
}

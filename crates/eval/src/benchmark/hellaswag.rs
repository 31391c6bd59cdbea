//! HellaSwag files: six lines per question.

use gguf::Error;

use super::{Answer, Question, invalid};

/// Number of lines per question.
const LINES: usize = 6;

pub(super) fn read(text: &str) -> Result<Vec<Question>, Error> {
    let lines: Vec<&str> = text.trim_end_matches(['\n', '\r']).lines().collect();
    let question = |(number, lines): (usize, &[&str])| {
        let at = |line: usize| LINES * number + line + 1;
        let [context, right, endings @ ..] = lines else {
            return Err(invalid(format!("line {}: the question is incomplete", at(0))));
        };
        if endings.len() != LINES - 2 {
            let what =
                "a question has six lines: context, number of the right ending, four endings";
            return Err(invalid(format!("line {}: {what}", at(0))));
        }
        let right: usize = match right.trim().parse() {
            Ok(right) if right < endings.len() => right,
            _ => {
                let what =
                    format!("line {}: {right:?} is not the number of an ending, 0 to 3", at(1));
                return Err(invalid(what));
            }
        };
        if let Some(empty) = endings.iter().position(|ending| ending.trim().is_empty()) {
            return Err(invalid(format!("line {}: an ending is empty", at(2 + empty))));
        }
        let answers = endings.iter().enumerate().map(|(ending, text)| Answer {
            text: format!("{context} {text}"),
            head: None,
            right: ending == right,
        });
        Ok(Question { number: number + 1, answers: answers.collect() })
    };
    let questions = lines.chunks(LINES).enumerate().map(question);
    Ok(questions.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_lines() {
        let one = "Ski: He\n2\nfalls\nsings\nskis\nis, \"so\"\n";
        let questions = read(&format!("{one}{}", one.replace('\n', "\r\n"))).unwrap();
        assert_eq!(questions[0].answers, questions[1].answers);
        let texts: Vec<_> =
            questions[1].answers.iter().map(|answer| answer.text.as_str()).collect();
        assert_eq!(texts, ["Ski: He falls", "Ski: He sings", "Ski: He skis", "Ski: He is, \"so\""]);
        assert_eq!(questions[1].answers.iter().position(|answer| answer.right), Some(2));
        assert_eq!(questions[1].number, 2);
    }

    #[test]
    fn errors_name_the_line() {
        let good = "c\n0\na\nb\nc\nd\n";
        for (bad, wanted) in [
            ("c\n1\na\nb\nc", "line 7: a question has six lines"),
            ("c", "line 7: the question is incomplete"),
            ("c\n4\na\nb\nc\nd", "line 8: \"4\" is not the number"),
            ("c\n-1\na\nb\nc\nd", "line 8: \"-1\""),
            ("c\n3\na\n\nc\nd", "line 10: an ending is empty"),
        ] {
            let error = read(&format!("{good}{bad}\n")).unwrap_err();
            assert!(error.to_string().contains(wanted), "{error}");
        }
    }
}

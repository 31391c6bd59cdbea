//! Winogrande files: one line of comma-separated values per question.

use gguf::Error;

use super::{Answer, Question, invalid};

pub(super) fn read(text: &str) -> Result<Vec<Question>, Error> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let question = |(number, (at, line)): (usize, (usize, &str))| {
        let answers = answers(line).map_err(|what| invalid(format!("line {}: {what}", at + 1)))?;
        Ok(Question { number: number + 1, answers })
    };
    lines.enumerate().map(question).collect()
}

fn answers(line: &str) -> Result<Vec<Answer>, String> {
    // Commas in quotes are not separators.
    let mut quoted = false;
    let separates = |c: char| {
        quoted ^= c == '"';
        c == ',' && !quoted
    };
    let values: Vec<&str> = line.splitn(5, separates).collect();
    let [_, sentence, one, two, right] = values[..] else {
        return Err(format!(
            "there are {} values, not name, sentence, two answers, number",
            values.len()
        ));
    };
    let sentence = unquoted(sentence);
    let Some((before, after)) = sentence.split_once('_') else {
        return Err(format!("there is no _ in {sentence:?}"));
    };
    let right = match right.trim() {
        "1" => 0,
        "2" => 1,
        right => return Err(format!("{right:?} is not the number of an answer, 1 or 2")),
    };
    let answer = |(number, answer): (usize, &str)| {
        let head = format!("{before}{}", unquoted(answer));
        Answer { text: format!("{head}{after}"), head: Some(head), right: number == right }
    };
    Ok([one, two].into_iter().enumerate().map(answer).collect())
}

/// Removes quotes around a value.
fn unquoted(value: &str) -> String {
    match value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_and_quotes() {
        let text = "0,Ann saw Eve so _ fled.,Ann,Eve,2\n\n\
                    x,\"Tom, said \"\"_\"\", hid.\",\"Tom, Sr.\",he,1\r\n";
        let questions = read(text).unwrap();
        let of = |question: usize, answer: usize| &questions[question].answers[answer];
        assert_eq!(of(0, 0).text, "Ann saw Eve so Ann fled.");
        assert_eq!(of(0, 1).head.as_deref(), Some("Ann saw Eve so Eve"));
        assert_eq!((of(0, 0).right, of(0, 1).right), (false, true));
        assert_eq!(of(1, 0).text, "Tom, said \"Tom, Sr.\", hid.");
        assert_eq!((of(1, 0).right, questions[1].number), (true, 2));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (bad, wanted) in [
            ("1,a _ b,c,2", "there are 4 values"),
            ("1,\"a _ b,c,d,2", "there are 2 values"),
            ("1,a b,c,d,2", "there is no _ in \"a b\""),
            ("1,a _ b,c,d,3", "\"3\" is not the number"),
            ("1,a _ b,c,d,e,1", "\"e,1\" is not"),
        ] {
            let error = read(&format!("0,_ a,b,c,1\n\n{bad}\n")).unwrap_err();
            assert!(error.to_string().contains(&format!("line 3: {wanted}")), "{error}");
        }
    }
}

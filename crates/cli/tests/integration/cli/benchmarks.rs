//! Benchmark accuracy, compared with answers computed from the logits of each text.

use std::fs;

use serde_json::Value;

use crate::cli::support::{Dir, fails, json, succeeds};

/// Returns the tokens of a text, and the log-probability of each token except the first.
fn log_probabilities(dir: &Dir, model: &str, text: &str) -> (Vec<usize>, Vec<f64>) {
    let ids = succeeds(&["tokenize", model, "-p", text, "--ids"]);
    let ids: Vec<usize> = serde_json::from_str(&ids).unwrap();
    let made = dir.path("logits.npy");
    let how = ["-p", text, "-o", &made, "--cache-type", "f32", "--force"];
    succeeds(&[&["logits", model][..], &how].concat());
    let bytes = fs::read(&made).unwrap();
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let numbers = bytes[header..].as_chunks::<4>().0.iter();
    let logits: Vec<f64> = numbers.map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect();
    let rows = logits.chunks_exact(logits.len() / ids.len());
    let of = |(row, id): (&[f64], &usize)| row[*id] - row.iter().map(|x| x.exp()).sum::<f64>().ln();
    let found = rows.zip(&ids[1..]).map(of).collect();
    (ids, found)
}

/// Returns the mean log-probability of a range of tokens.
fn mean(log_probabilities: &[f64], first: usize, end: usize) -> f64 {
    // The first token has no log-probability.
    log_probabilities[first - 1..end - 1].iter().sum::<f64>() / (end - first) as f64
}

/// Returns the length of the common prefix of texts.
fn common(texts: &[(Vec<usize>, Vec<f64>)]) -> usize {
    let same = |place: &usize| texts.iter().all(|(ids, _)| ids[*place] == texts[0].0[*place]);
    let shortest = texts.iter().map(|(ids, _)| ids.len()).min().unwrap();
    (0..shortest).take_while(same).count()
}

/// Evaluates a model with several runtime options, which must not change a result.
fn evaluate(model: &str, file: &str, flags: &[&str]) -> Value {
    let ask = |more: &[&str]| {
        let words = [&["perplexity", model, "-f", file, "--json"], flags, more].concat();
        json(&succeeds(&words))["models"][0].clone()
    };
    let found = ask(&[]);
    for more in [["-t", "1"], ["-b", "3"], ["-b", "2048"]] {
        assert_eq!(ask(&more), found, "{more:?}");
    }
    found
}

#[track_caller]
fn assert_results(found: &Value, expected: &[f64]) {
    let scores = found["scores"].as_array().unwrap();
    assert_eq!(scores.len(), expected.len());
    for (found, expected) in scores.iter().zip(expected) {
        assert!((found.as_f64().unwrap() - expected).abs() < 1e-5, "{scores:?} {expected:?}");
    }
    let best = (0..expected.len()).max_by(|a, b| expected[*a].total_cmp(&expected[*b]));
    assert_eq!(found["predicted"], best.unwrap());
}

/// Contexts, endings, and the index of the correct ending.
const STORIES: [(&str, [&str; 4], usize); 3] = [
    (
        "And God said, Let there be light: and",
        ["there was light.", "he sat upon the king.", "they were afraid", "Moses took water"],
        0,
    ),
    (
        "And it came to pass in the days of",
        ["bread", "Ahaz the son of Jotham", "the of and it", "upon"],
        1,
    ),
    ("Then Peter answered and said", ["unto him, Lord", "stones", "the the the", "seven"], 3),
];

#[test]
fn hellaswag() {
    let dir = Dir::new();
    let (model, file) = (dir.f16(), dir.path("hellaswag.txt"));
    let lines = |(context, endings, right): &(&str, [&str; 4], usize)| {
        format!("{context}\n{right}\n{}\n", endings.join("\n"))
    };
    fs::write(&file, STORIES.iter().map(lines).collect::<String>()).unwrap();
    let found = evaluate(&model, &file, &["--hellaswag"]);
    assert_eq!((&found["benchmark"], &found["tasks"]), (&"hellaswag".into(), &3.into()));
    let mut right = 0;
    for question in found["results"].as_array().unwrap() {
        let (context, endings, gold) = STORIES[question["number"].as_u64().unwrap() as usize - 1];
        let texts =
            endings.map(|ending| log_probabilities(&dir, &model, &format!("{context} {ending}")));
        let common = common(&texts);
        let expected = texts
            .each_ref()
            .map(|(ids, log_probabilities)| mean(log_probabilities, common, ids.len()));
        assert_results(question, &expected);
        assert_eq!(question["correct"], question["predicted"] == gold);
        right += u64::from(question["correct"] == true);
    }
    assert_eq!((&found["correct"], &found["chance"]), (&right.into(), &25.0.into()));
    assert!((found["accuracy"].as_f64().unwrap() - 100.0 * right as f64 / 3.0).abs() < 1e-9);
    // Tasks are shuffled: the second of three, then the first of two.
    let numbers: Vec<_> = found["results"].as_array().unwrap().iter().collect();
    let few = evaluate(&model, &file, &["--hellaswag", "--hellaswag-tasks", "2"]);
    assert_eq!(few["results"].as_array().unwrap().iter().collect::<Vec<_>>(), numbers[..2]);
    assert_eq!(numbers[0]["number"], 2);
    let shown = succeeds(&["perplexity", &model, "-f", &file, "--hellaswag"]);
    assert!(shown.contains("% on 3 tasks") && shown.contains("baseline 25.0000 %"), "{shown}");
}

#[test]
fn winogrande() {
    let dir = Dir::new();
    let (model, file) = (dir.f16(), dir.path("winogrande.csv"));
    let sentences = [
        // Tokens after the answer are scored, except the last.
        ("And Moses spake unto Aaron, and _ took the rod in his hand.", ["Moses", "Aaron"]),
        // Too few tokens follow: the answer is scored too.
        ("And the people went after _.", ["him", "bread"]),
        ("The sons of _", ["Levi", "water"]),
    ];
    let line =
        |(sentence, [one, two]): &(&str, [&str; 2])| format!("0,\"{sentence}\",{one},{two},1\n");
    fs::write(&file, sentences.iter().map(line).collect::<String>()).unwrap();
    let found = evaluate(&model, &file, &["--winogrande"]);
    assert_eq!((&found["tasks"], &found["chance"]), (&3.into(), &50.0.into()));
    for ((sentence, answers), question) in
        sentences.iter().zip(found["results"].as_array().unwrap())
    {
        let texts =
            answers.map(|answer| log_probabilities(&dir, &model, &sentence.replace('_', answer)));
        let common = common(&texts);
        let long = texts.iter().all(|(ids, _)| ids.len() - common > 3);
        let (before, _) = sentence.split_once('_').unwrap();
        let expected: Vec<f64> = answers
            .iter()
            .zip(&texts)
            .map(|(answer, (ids, log_probabilities))| {
                let head =
                    succeeds(&["tokenize", &model, "-p", &format!("{before}{answer}"), "--ids"]);
                let head = serde_json::from_str::<Vec<usize>>(&head).unwrap().len();
                let first = if long { head } else { common };
                mean(log_probabilities, first, ids.len() - usize::from(ids.len() - first > 1))
            })
            .collect();
        assert_results(question, &expected);
        assert_eq!(question["correct"], question["predicted"] == 0);
    }
    let drawn = evaluate(&model, &file, &["--winogrande", "--winogrande-tasks", "1"]);
    // 0.417 of three.
    assert_eq!(drawn["results"][0]["number"], 2);
}

#[test]
fn multiple_choice() {
    let dir = Dir::new();
    let (model, file) = (dir.f16(), dir.path("choice.bin"));
    let questions: [(&str, &[(&str, u32)]); 2] = [
        ("Who made the heaven and the earth?", &[("God", 1), ("Moses", 0), ("the sea", 0)]),
        ("And the LORD said unto", &[("Moses", 0), ("bread", 1)]),
    ];
    let number = |n: u32| n.to_le_bytes().to_vec();
    let text = |text: &str| [number(text.len() as u32), text.as_bytes().to_vec()].concat();
    let mut bytes = number(2);
    // llama.cpp reads these only when it samples tasks.
    bytes.extend([number(0), number(0)].concat());
    for (context, answers) in questions {
        bytes.extend([text(context), number(answers.len() as u32)].concat());
        bytes.extend(answers.iter().flat_map(|(answer, _)| text(answer)));
        bytes.extend(answers.iter().flat_map(|(_, right)| number(*right)));
        bytes.extend(number(0));
    }
    fs::write(&file, &bytes).unwrap();
    let found = evaluate(&model, &file, &["--multiple-choice"]);
    for ((context, answers), question) in questions.iter().zip(found["results"].as_array().unwrap())
    {
        let text = |(answer, _): &(&str, u32)| {
            log_probabilities(&dir, &model, &format!("{context} {answer}"))
        };
        let texts: Vec<_> = answers.iter().map(text).collect();
        let common = common(&texts);
        let expected: Vec<f64> = texts
            .iter()
            .map(|(ids, log_probabilities)| mean(log_probabilities, common, ids.len()))
            .collect();
        assert_results(question, &expected);
        let picked = question["predicted"].as_u64().unwrap() as usize;
        assert_eq!(question["correct"], answers[picked].1 == 1);
    }
    assert!((found["chance"].as_f64().unwrap() - 100.0 * (1.0 / 3.0 + 0.5) / 2.0).abs() < 1e-9);

    fs::write(&file, &bytes[..bytes.len() - 3]).unwrap();
    let expected = ["choice.bin", "question 2", "takes 4 bytes, 1 are left"];
    fails(&["perplexity", &model, "-f", &file, "--multiple-choice"], 1, &expected);
}

#[test]
fn invalid_benchmarks_are_refused() {
    let dir = Dir::new();
    let (model, file) = (dir.f16(), dir.path("questions.txt"));
    let ask = |content: &str, code: i32, flags: &[&str], parts: &[&str]| {
        fs::write(&file, content).unwrap();
        fails(&[&["perplexity", &model, "-f", &file], flags].concat(), code, parts);
    };
    ask("He\n0\na\nb\nc\n", 1, &["--hellaswag"], &["questions.txt", "line 1", "six lines"]);
    ask("He\n7\na\nb\nc\nd\n", 1, &["--hellaswag"], &["line 2", "\"7\""]);
    ask("0,He _ it,has,had\n", 1, &["--winogrande"], &["questions.txt", "line 1", "4 values"]);
    ask("", 1, &["--winogrande"], &["no question"]);
    ask("", 1, &["--multiple-choice"], &["the number of questions takes 4 bytes, 0 are left"]);
    let long = format!("0,{} _ it.,has,had,1", "and he ".repeat(99));
    ask(
        &long,
        2,
        &["--winogrande", "-c", "32"],
        &["question 1 has", "expected at most 128", "--ctx-size"],
    );
    ask("", 2, &["--winogrande-tasks", "3"], &["--winogrande"]);
    ask("", 2, &["--winogrande", "--hellaswag"], &["cannot be used with"]);
    ask("", 2, &["--hellaswag", "--chunks", "3"], &["cannot be used with"]);
    fails(&["perplexity", &model, "-f", &dir.path("none"), "--hellaswag"], 3, &["none"]);
}

//! Text generation with drafted tokens.

use serde_json::Value;

use crate::cli::support::{Dir, gguf, json, succeeds};

/// Returns the JSON of a completion, without speeds.
fn completion(model: &str, words: &[&str]) -> (Value, u64, u64) {
    let command = ["generate", model, "--raw", "--json", "--ignore-eos"];
    let output = gguf(&[&command[..], words].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = json(&String::from_utf8(output.stdout).unwrap());
    let count = |name: &str| found[name].as_u64().unwrap();
    (found["ids"].clone(), count("drafted_tokens"), count("accepted_tokens"))
}

/// Tokens are equal, sampled or not, in both precisions, up to the end of the context and to the maximum number.
#[test]
fn drafts_do_not_change_the_text() {
    let dir = Dir::new();
    let (f16, q4) = (dir.f16(), dir.path("q4.gguf"));
    succeeds(&["quantize", &f16, &q4, "Q4_K_M"]);
    let prompt =
        "And God said, Let there be light: and there was light. And God said, Let there be "
            .repeat(3);
    let mut all_accepted = 0;
    for model in [&f16, &q4] {
        for words in [
            &["--temp", "0", "-n", "120"][..],
            &["--temp", "0", "-n", "120", "--precision", "exact"],
            &["--temp", "0.8", "--seed", "7", "-n", "100", "--repeat-penalty", "1.1"],
            &["--temp", "0", "-n", "-1", "-c", "160"],
            &["--temp", "0", "-n", "100", "--cache-type", "q8_0"],
        ] {
            let words = [&["-p", &prompt], words].concat();
            let (ids, drafted, accepted) = completion(model, &[&words[..], &["--lookup"]].concat());
            let (plain, none, _) = completion(model, &words);
            assert_eq!(ids, plain, "{words:?}");
            assert_eq!(none, 0);
            assert!(accepted <= drafted);
            all_accepted += accepted;
        }
    }
    assert!(all_accepted > 0, "nothing was drafted");
}

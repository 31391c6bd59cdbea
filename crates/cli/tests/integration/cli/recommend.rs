//! `gguf recommend`.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::cli::support::{Dir, fails, gguf, succeeds};

/// Runs `gguf recommend --json` with a cache of its own.
fn recommend(dir: &Dir, words: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf"));
    command.arg("recommend").args(words).arg("--json").env("XDG_CACHE_HOME", dir.path("cache"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn names(found: &Value) -> Vec<&str> {
    let choices = found["choices"].as_array().unwrap();
    choices.iter().map(|choice| choice["name"].as_str().unwrap()).collect()
}

#[test]
fn types_of_an_unquantized_model_are_compared() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let found = recommend(&dir, &[&f16, "--memory", "1G"]);
    let choices = found["choices"].as_array().unwrap();
    let of = |name: &str| choices.iter().find(|choice| choice["name"] == name).unwrap();
    assert_eq!(choices.len(), 10, "{found:#}");
    // The size of the file that is made.
    let made = dir.path("made.gguf");
    succeeds(&["quantize", &f16, &made, "Q4_K_M"]);
    assert_eq!(of("Q4_K_M")["file_bytes"], fs::metadata(&made).unwrap().len());
    assert_eq!(of("Q4_K_M")["mean_kld"], 0.028152);
    assert_eq!(of("Q4_K_M")["mean_kld_of"], "Llama 3 8B");
    // The context is not larger than that of the training.
    assert!(choices.iter().all(|choice| choice["context"] == 512 && choice["fits"] == true));
    let best = of(found["recommended"].as_str().unwrap());
    assert!(best["mean_kld"].as_f64().unwrap() <= 0.01, "{found:#}");
    // Speeds are measured once.
    let machine = fs::read(dir.path("cache/gguf-kit/machine.json")).unwrap();
    assert_eq!(recommend(&dir, &[&f16, "--memory", "1G"]), found);
    assert_eq!(fs::read(dir.path("cache/gguf-kit/machine.json")).unwrap(), machine);
}

#[test]
fn prompts_take_the_time_of_attention() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let machine = dir.path("cache/gguf-kit/machine.json");
    let speeds = || {
        let found = recommend(&dir, &[&f16, "--memory", "1G"]);
        let choices = found["choices"].as_array().unwrap().clone();
        let speed = |choice: &Value, of: &str| choice[of].as_f64().unwrap();
        let both = |choice: &Value| {
            let generation = speed(choice, "generation_tokens_per_second");
            (speed(choice, "prompt_tokens_per_second"), generation)
        };
        choices.iter().map(both).collect::<Vec<_>>()
    };
    let before = speeds();
    // As if the processor did a thousandth of the multiply-adds that were measured.
    let mut record: Value = serde_json::from_slice(&fs::read(&machine).unwrap()).unwrap();
    let rate = &mut record["speed"]["multiply_adds_per_second"];
    *rate = (rate.as_f64().unwrap() / 1000.0).into();
    fs::write(&machine, record.to_string()).unwrap();
    for ((prompt, generation), slower) in before.into_iter().zip(speeds()) {
        assert!(slower.0 < prompt / 2.0, "{prompt} {slower:?}");
        assert_eq!(slower.1, generation);
    }
}

#[test]
fn memory_and_context_decide_what_fits() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let fitting = |memory: &str, context: &str| {
        let found = recommend(&dir, &[&f16, "--memory", memory, "--context", context]);
        let choices = found["choices"].as_array().unwrap().clone();
        let fitting = choices.into_iter().filter(|choice| choice["fits"] == true);
        (fitting.count(), found["recommended"].clone())
    };
    assert_eq!(fitting("1M", "512"), (0, Value::Null));
    let (some, _) = fitting("10M", "512");
    assert!((1..10).contains(&some), "{some}");
    assert_eq!(fitting("1G", "512").0, 10);
    // A larger context leaves less for weights.
    assert!(fitting("10M", "2048").0 < some);
}

#[test]
fn files_of_a_directory_are_compared() {
    let dir = Dir::new();
    let f16 = dir.f16();
    let files = dir.path("files");
    fs::create_dir(&files).unwrap();
    for name in ["Q8_0", "Q4_K_M"] {
        succeeds(&["quantize", &f16, &format!("{files}/m-{name}.gguf"), name]);
    }
    assert_eq!(names(&recommend(&dir, &[&files])), ["m-Q8_0.gguf", "m-Q4_K_M.gguf"]);
    let found = recommend(&dir, &[&format!("{files}/m-Q4_K_M.gguf")]);
    assert_eq!(names(&found), ["m-Q4_K_M.gguf"]);
    // Measured losses take the place of those of another model.
    let text = dir.path("text.txt");
    fs::write(&text, "In the beginning God created the heaven and the earth. ".repeat(60)).unwrap();
    let divergence =
        ["divergence", "--reference", &f16, &format!("{files}/m-Q8_0.gguf"), "-f", &text];
    let output = gguf(&[&divergence[..], &["-c", "64", "--json"]].concat());
    fs::write(format!("{files}/results.json"), output.stdout).unwrap();
    let found = recommend(&dir, &[&files]);
    assert_eq!(found["choices"][0]["mean_kld_of"], Value::Null, "{found:#}");
    assert_ne!(found["choices"][0]["mean_kld"], 0.001355);
    assert_eq!(found["choices"][1]["mean_kld_of"], "Llama 3 8B");
}

#[test]
fn checkpoints_have_the_types_that_they_can_be_converted_to() {
    let dir = Dir::new();
    let checkpoint = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/Tiny-KJV-Llama-4M");
    let found = recommend(&dir, &[checkpoint, "--memory", "1G", "--task", "embed"]);
    assert_eq!(names(&found)[0], "BF16");
    assert!(found["choices"].as_array().unwrap().iter().all(|choice| choice["exists"] == false));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let dir = Dir::new();
    let (f16, files) = (dir.f16(), dir.path("files"));
    fs::create_dir(&files).unwrap();
    fails(&["recommend", &files], 1, &["checkpoint"]);
    fs::copy(&f16, format!("{files}/a.gguf")).unwrap();
    succeeds(&["edit", &f16, "--set", "general.name=Another", "-o", &format!("{files}/b.gguf")]);
    fails(&["recommend", &files], 2, &["several models", "name one of the files"]);
    fails(&["recommend", "nowhere.gguf"], 3, &["nowhere.gguf"]);
    fails(&["recommend", &f16, "--memory", "lots"], 2, &["is not a size"]);
}

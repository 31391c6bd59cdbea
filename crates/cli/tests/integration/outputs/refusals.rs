//! Existing files are overwritten only with `--force`, inputs never.

use std::fs;

use crate::outputs::writers::{WRITERS, fails, files, succeeds, workshop};

#[test]
fn existing_files_are_overwritten_with_force_only() {
    for writer in WRITERS {
        let dir = workshop(writer.words);
        let make = |output: &str| {
            fs::write(dir.path().join(output), "old").unwrap();
            private(&dir.path().join(output));
        };
        for output in writer.outputs {
            make(output);
            let before = files(dir.path());
            fails(dir.path(), writer.words, 2, &[output, "exists already", "--force"]);
            assert!(files(dir.path()) == before, "{}: changed files", writer.name);
            fs::remove_file(dir.path().join(output)).unwrap();
        }
        writer.outputs.iter().for_each(|output| make(output));
        let before = files(dir.path());
        succeeds(dir.path(), &format!("{} --force", writer.words));
        let mut after = files(dir.path());
        for output in writer.outputs {
            let (content, mode) = after.remove(*output).unwrap();
            assert!(content != b"old", "{}: {output} is old", writer.name);
            assert_eq!(mode, before[*output].1, "{}: {output}", writer.name);
            after.insert((*output).to_owned(), before[*output].clone());
        }
        assert!(after == before, "{}: changed other files", writer.name);
    }
}

#[test]
fn inputs_are_never_overwritten() {
    for writer in WRITERS {
        let dir = workshop(writer.words);
        for output in writer.outputs {
            let output_path = dir.path().join(output);
            for input in writer.inputs {
                // On Windows, symbolic links need a privilege.
                #[cfg(unix)]
                let link = || std::os::unix::fs::symlink(input, &output_path);
                let hard_link = || fs::hard_link(dir.path().join(input), &output_path);
                let ways: &[&dyn Fn() -> std::io::Result<()>] = &[
                    #[cfg(unix)]
                    &link,
                    &hard_link,
                ];
                for make in ways {
                    make().unwrap();
                    let before = files(dir.path());
                    for force in ["", "--force"] {
                        let words = format!("{} {force}", writer.words);
                        fails(dir.path(), &words, 2, &[output, "is an input"]);
                        assert!(files(dir.path()) == before, "{}: changed {input}", writer.name);
                    }
                    fs::remove_file(&output_path).unwrap();
                }
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn dangling_links_are_not_replaced() {
    for writer in WRITERS {
        let dir = workshop(writer.words);
        let output = writer.outputs[0];
        std::os::unix::fs::symlink("not there", dir.path().join(output)).unwrap();
        let before = files(dir.path());
        for force in ["", "--force"] {
            let words = format!("{} {force}", writer.words);
            fails(dir.path(), &words, 2, &[output, "is a dangling link"]);
        }
        assert!(files(dir.path()) == before, "{}: changed files", writer.name);
    }
}

#[test]
fn special_files_are_refused() {
    for writer in WRITERS {
        let dir = workshop(writer.words);
        let path = dir.path().join(writer.outputs[0]);
        fs::write(&path, "old").unwrap();
        let mut permissions = path.metadata().unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).unwrap();
        let before = files(dir.path());
        let words = format!("{} --force", writer.words);
        fails(dir.path(), &words, 3, &[writer.outputs[0], "permission denied"]);
        assert!(files(dir.path()) == before, "{}: changed files", writer.name);
    }
}

#[test]
fn export_requires_an_empty_directory() {
    let dir = workshop("whole.gguf");
    let old = dir.path().join("old");
    fs::create_dir(&old).unwrap();
    succeeds(dir.path(), "export whole.gguf old");
    let before = files(dir.path());
    for words in ["export whole.gguf old", "export whole.gguf old --dtype f16 --force"] {
        fails(dir.path(), words, 2, &["old is not empty", "more"]);
    }
    fails(dir.path(), "export whole.gguf whole.gguf", 2, &["whole.gguf is not a directory"]);
    assert!(files(dir.path()) == before);
    // Files left by a killed export are ignored.
    let new = dir.path().join("new");
    fs::create_dir(&new).unwrap();
    fs::write(new.join(".config.json.abcdefghijkl.gguf-kit-part"), "half").unwrap();
    succeeds(dir.path(), "export whole.gguf new");
    let exported = |name: &str| -> Vec<_> {
        let all = files(&dir.path().join(name)).into_iter();
        all.map(|(name, (content, _))| (name, content)).collect()
    };
    assert!(exported("new") == exported("old"));
}

#[test]
fn outputs_must_be_distinct() {
    let dir = workshop("");
    let before = files(dir.path());
    let twice = ["is named twice"];
    let same = "quantize model.gguf --out q8_0=out.gguf --out f16=./out.gguf";
    fails(dir.path(), same, 2, &twice);
    fails(dir.path(), "quantize model.gguf out.gguf q8_0 --save-recipe ./out.gguf", 2, &twice);
    let recipes = "quantize model.gguf --out q8_0=a --out f16=b --save-recipe recipe.txt";
    fails(dir.path(), recipes, 2, &["--save-recipe"]);
    assert!(files(dir.path()) == before);
}

#[test]
fn existing_default_names_are_kept() {
    let dir = workshop("");
    fs::write(dir.path().join("a-256-F32.gguf"), "old").unwrap();
    let before = files(dir.path());
    fails(dir.path(), "name --rename model.gguf", 2, &["a-256-F32.gguf exists already"]);
    assert!(files(dir.path()) == before);
}

/// Makes a file readable by its owner only.
fn private(path: &std::path::Path) {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    #[cfg(not(unix))]
    let _ = path;
}

//! File size limits.

#[cfg(target_os = "linux")]
#[test]
fn exceeding_the_file_size_limit_leaves_no_files() {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use crate::outputs::writers::{files, workshop};

    // Blocks of 1024 bytes; the model has 16.
    for (limit, words) in [
        (4, "quantize model.gguf out.gguf f16"),
        (4, "convert w.safetensors --architecture llama -o out.gguf"),
        (4, "merge s-00001-of-00002.gguf out.gguf"),
        (4, "edit model.gguf --set-file x=chat.jinja"),
        (999, "export whole.gguf new"),
    ] {
        let dir = workshop(words);
        let before = files(dir.path());
        let mut command = Command::new("bash");
        let script = format!("ulimit -f {limit}; exec {} {words}", env!("CARGO_BIN_EXE_gguf"));
        let output = command.args(["-c", &script]).current_dir(dir.path()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let status = output.status;
        assert_eq!((status.code(), status.signal()), (Some(3), None), "{words}: {stderr}");
        assert!(stderr.contains("File too large"), "{words}: {stderr}");
        assert!(files(dir.path()) == before, "{words}");
        assert!(!dir.path().join("new").exists());
    }
}

//! Interrupted and resumed calibration.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

use gguf_kit::quantize::{
    Calibration, CalibrationText, Goal, Plan, QuantizeOutput, QuantizeRequest, TextSource,
};
use gguf_kit::{Error, Opened, Progress, open};
use gguf_store::Overwrite;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/Tiny-KJV-Llama-4M");
const TEXT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../LICENSE-APACHE");

/// Cancels the calibration after a number of bytes; records the progress of each phase.
struct Until(u64, Mutex<Vec<(String, u64)>>);

impl Progress for Until {
    fn begin(&self, what: &str, _: u64) {
        self.1.lock().unwrap().push((what.to_owned(), 0));
    }

    fn advance(&self, bytes: u64) -> ControlFlow<()> {
        let mut phases = self.1.lock().unwrap();
        let Some((what, done)) = phases.last_mut() else { return ControlFlow::Continue(()) };
        *done += bytes;
        match what == "calibrating" && *done > self.0 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

fn write(
    opened: &Opened,
    source: &str,
    out: &Path,
    resume: bool,
    most: u64,
) -> Result<usize, Error> {
    let named =
        QuantizeOutput { goal: Goal::Target("Q4_0".parse().unwrap()), path: out.to_owned() };
    let reading =
        CalibrationText { sources: vec![TextSource::File(TEXT.into())], chunk: 32, tokens: 256 };
    let options = QuantizeRequest {
        outputs: vec![named],
        resume,
        calibration: Some(Calibration::Text(reading)),
        ..QuantizeRequest::default()
    };
    let restarts = Mutex::new(0);
    let until = Until(most, Mutex::default());
    let mut plan = Plan::new(opened, source, &options, &until)?;
    let written = plan.write(&Overwrite::default(), &|| *restarts.lock().unwrap() += 1, &until);
    written.map(|()| restarts.into_inner().unwrap())
}

#[test]
fn resumes_without_encoding_again() {
    let dir = tempfile::tempdir().unwrap();
    let f16 = dir.path().join("f16.gguf");
    let source = f16.to_str().unwrap();
    let conversion = gguf_kit::convert::ConvertOptions {
        outputs: vec![gguf_kit::convert::OutputOptions { outtype: None, path: Some(f16.clone()) }],
        ..Default::default()
    };
    let kind = gguf_kit::convert::Kind::Checkpoint;
    let mut plan = gguf_kit::convert::Plan::new(MODEL, kind, &conversion, &()).unwrap();
    plan.write(&Overwrite::default(), &|| (), &()).unwrap();
    let opened = open(source).unwrap();
    let out = |name: &str| dir.path().join(name);
    let kept = out("resumed.gguf.calibrated");

    write(&opened, source, &out("whole.gguf"), false, u64::MAX).unwrap();
    let interrupted = write(&opened, source, &out("lost.gguf"), false, 300_000);
    assert!(matches!(interrupted, Err(Error::Interrupted)));
    assert!(!out("lost.gguf.calibrated").exists(), "without --resume nothing is kept");

    let interrupted = write(&opened, source, &out("resumed.gguf"), true, 300_000);
    assert!(matches!(interrupted, Err(Error::Interrupted)));
    let before = fs::metadata(&kept).unwrap().len();
    assert!(before > 250_000, "{before} bytes are kept");
    // The last one may be torn.
    fs::OpenOptions::new().write(true).open(&kept).unwrap().set_len(before - 10).unwrap();
    assert_eq!(write(&opened, source, &out("resumed.gguf"), true, u64::MAX).unwrap(), 0);
    assert!(!kept.exists());
    let [whole, resumed] = ["whole.gguf", "resumed.gguf"].map(|name| fs::read(out(name)).unwrap());
    assert!(whole == resumed);

    // Other work is thrown away, and a file of somebody else stays.
    fs::write(&kept, [&b"GGUFCALI"[..], &[b'0'; 100]].concat()).unwrap();
    fs::remove_file(out("resumed.gguf")).unwrap();
    assert_eq!(write(&opened, source, &out("resumed.gguf"), true, u64::MAX).unwrap(), 1);
    fs::remove_file(out("resumed.gguf")).unwrap();
    fs::write(&kept, b"somebody's notes").unwrap();
    let refused = write(&opened, source, &out("resumed.gguf"), true, u64::MAX);
    assert_eq!(refused.unwrap_err().code(), "output-refused");
    assert_eq!(fs::read(&kept).unwrap(), b"somebody's notes");
}

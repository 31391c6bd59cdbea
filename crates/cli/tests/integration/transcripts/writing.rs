//! Transcripts of commands that write files.

use super::session::{MODEL, Session};

#[test]
fn write() {
    let mut session = Session::new();
    session
        .run(&format!("convert '{MODEL}' -o f32.gguf --outtype f32"))
        .run("quantize f32.gguf small.gguf Q4_0")
        .run("quantize f32.gguf --out Q8_0=a.gguf --out Q5_K_M=b.gguf")
        .run("quantize m.gguf iq.gguf IQ2_XS --imatrix-missing uniform")
        .run("split m.gguf part --split-max-tensors 20")
        .run("merge part-00001-of-00002.gguf whole.gguf --dry-run")
        .run("merge part-00001-of-00002.gguf whole.gguf")
        .run("merge part-00002-of-00002.gguf m.gguf --force")
        .run("edit m.gguf --set general.name=Other")
        .run("edit m.gguf -o copy.gguf --set general.name=Third")
        .run("convert-endian m.gguf big -o big.gguf")
        .run("export m.gguf --to safetensors m.safetensors")
        .assert_matches("write");
}

#[test]
fn dry_runs() {
    let mut session = Session::new();
    session
        .run("quantize m.gguf out.gguf Q4_K_M --dry-run")
        .run("quantize m.gguf Q8_0,Q4_0 --pure --prune-layers 1,2,3 --dry-run")
        .run("split m.gguf part --split-max-size 3M --dry-run")
        .run("edit m.gguf --set general.name=Other --remove general.tags --set my.key=1 --dry-run")
        .run("edit m.gguf --drop ^blk.1.ffn --graft m.gguf:^output_norm --rename-tensor output_norm.weight=norm --dry-run")
        .assert_matches("dry_runs");
}

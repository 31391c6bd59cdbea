//! The flags that llama.cpp's programs share.

use super::flag::{Flag, nothing, read, refused};
use super::given::Given;
use crate::failure::Failure;

pub const NO_DEVICES: &str = "models run on the processor, weights stay where they are mapped";
pub const OWN_THREADS: &str = "threads are placed by the system";
pub const NO_SAMPLING: &str = "no token is chosen";
const NO_LOG: &str = "there is no log; messages go to the standard error";
const SAME_RESULT: &str = "results do not depend on it";
const EDIT: &str = "change a copy: `gguf edit MODEL --set KEY=VALUE -o COPY`";
const NOT_RUN: &str = "no model is run";

/// A flag of [`PROGRAM`]: who has it reads arguments as llama.cpp's programs do together.
pub const SHARED: &str = "--cache-list";

/// Help and version, and what belongs to the program itself.
pub const PROGRAM: &[Flag] = &[
    super::flag::help("-h --help --usage"),
    super::flag::version("--version"),
    refused("-cl --cache-list", 0, "there is no cache of models here"),
    refused("--completion-bash", 0, "`gguf --help` lists the commands"),
    refused("--list-devices", 0, "there are no devices here but the processor"),
];

/// Where the model is.
pub const MODEL: &[Flag] = &[
    read("-m --model", 1, "the model: a file, a shard, a directory or a far location"),
    read("-mu --model-url", 1, "the model, read where it is"),
    read("-hf -hfr --hf-repo", 1, "the model as `hf:USER/MODEL[:TYPE]`, read where it is"),
    read("-hff --hf-file", 1, "the file in the repository of `-hf`"),
    refused("-hft --hf-token", 1, "others can see it there: put it in the environment as HF_TOKEN"),
    refused(
        "-dr --docker-repo",
        1,
        "models are not read from Docker's registry: download the file",
    ),
    nothing("--offline", 0, "nothing is downloaded to a cache"),
];

/// Devices, processors and memory.
pub const MACHINE: &[Flag] = &[
    nothing("-tb --threads-batch", 1, "all work has the threads of -t"),
    nothing("-C --cpu-mask", 1, OWN_THREADS),
    nothing("-Cr --cpu-range", 1, OWN_THREADS),
    nothing("--cpu-strict", 1, OWN_THREADS),
    nothing("--prio", 1, OWN_THREADS),
    nothing("--poll", 1, OWN_THREADS),
    nothing("-Cb --cpu-mask-batch", 1, OWN_THREADS),
    nothing("-Crb --cpu-range-batch", 1, OWN_THREADS),
    nothing("--cpu-strict-batch", 1, OWN_THREADS),
    nothing("--prio-batch", 1, OWN_THREADS),
    nothing("--poll-batch", 1, OWN_THREADS),
    nothing("--numa", 1, OWN_THREADS),
    nothing("-ub --ubatch-size", 1, SAME_RESULT),
    nothing("--swa-full", 0, SAME_RESULT),
    nothing("-fa --flash-attn", 1, SAME_RESULT),
    nothing("-kvo --kv-offload -nkvo --no-kv-offload", 0, NO_DEVICES),
    nothing("--repack -nr --no-repack", 0, SAME_RESULT),
    nothing("--no-host", 0, NO_DEVICES),
    nothing("-dt --defrag-thold", 1, SAME_RESULT),
    nothing("-np --parallel", 1, SAME_RESULT),
    refused("--rpc", 1, "models run on this machine; `--part` of gguf divides work among several"),
    nothing("-lm --load-mode", 1, NO_DEVICES),
    nothing("-lzm --lazy-mode", 1, NO_DEVICES),
    nothing("--mlock", 0, NO_DEVICES),
    nothing("--mmap --no-mmap", 0, NO_DEVICES),
    nothing("-dev --device", 1, NO_DEVICES),
    nothing("-ot --override-tensor", 1, NO_DEVICES),
    nothing("-cmoe --cpu-moe", 0, NO_DEVICES),
    nothing("-ncmoe --n-cpu-moe", 1, NO_DEVICES),
    nothing("-ncffn --n-cpu-ffn", 1, NO_DEVICES),
    nothing("-ngl --gpu-layers --n-gpu-layers", 1, NO_DEVICES),
    nothing("-sm --split-mode", 1, NO_DEVICES),
    nothing("-ts --tensor-split", 1, NO_DEVICES),
    nothing("-mg --main-gpu", 1, NO_DEVICES),
    nothing("-fit --fit", 1, NO_DEVICES),
    nothing("-fitt --fit-target", 1, NO_DEVICES),
    nothing("-fitc --fit-ctx", 1, NO_DEVICES),
    nothing("--op-offload --no-op-offload", 0, NO_DEVICES),
    nothing("--spec-draft-type-k -ctkd --cache-type-k-draft", 1, NO_DEVICES),
    nothing("--spec-draft-type-v -ctvd --cache-type-v-draft", 1, NO_DEVICES),
    nothing("--perf --no-perf", 0, "`gguf bench` measures"),
];

/// Messages.
pub const LOG: &[Flag] = &[
    nothing("--log-disable", 0, NO_LOG),
    nothing("--log-file", 1, NO_LOG),
    nothing("--log-jsonl --no-log-jsonl", 0, NO_LOG),
    nothing("--log-colors", 1, NO_LOG),
    nothing("--log-prefix --no-log-prefix", 0, NO_LOG),
    nothing("--log-timestamps --no-log-timestamps", 0, NO_LOG),
    nothing("-v --verbose --log-verbose", 0, NO_LOG),
    nothing("-lv --verbosity --log-verbosity", 1, NO_LOG),
];

/// How tokens are chosen, which none of these programs does.
pub const SAMPLING: &[Flag] = &[
    nothing("-n --predict --n-predict", 1, NO_SAMPLING),
    nothing("--keep", 1, NO_SAMPLING),
    nothing("--samplers", 1, NO_SAMPLING),
    nothing("-s --seed", 1, NO_SAMPLING),
    nothing("--sampler-seq --sampling-seq", 1, NO_SAMPLING),
    nothing("--ignore-eos", 0, NO_SAMPLING),
    nothing("--temp --temperature", 1, NO_SAMPLING),
    nothing("--top-k", 1, NO_SAMPLING),
    nothing("--top-p", 1, NO_SAMPLING),
    nothing("--min-p", 1, NO_SAMPLING),
    nothing("--top-nsigma --top-n-sigma", 1, NO_SAMPLING),
    nothing("--xtc-probability", 1, NO_SAMPLING),
    nothing("--xtc-threshold", 1, NO_SAMPLING),
    nothing("--typical --typical-p", 1, NO_SAMPLING),
    nothing("--repeat-last-n", 1, NO_SAMPLING),
    nothing("--repeat-penalty", 1, NO_SAMPLING),
    nothing("--presence-penalty", 1, NO_SAMPLING),
    nothing("--frequency-penalty", 1, NO_SAMPLING),
    nothing("--dry-multiplier", 1, NO_SAMPLING),
    nothing("--dry-base", 1, NO_SAMPLING),
    nothing("--dry-allowed-length", 1, NO_SAMPLING),
    nothing("--dry-penalty-last-n", 1, NO_SAMPLING),
    nothing("--dry-sequence-breaker", 1, NO_SAMPLING),
    nothing("--adaptive-target", 1, NO_SAMPLING),
    nothing("--adaptive-decay", 1, NO_SAMPLING),
    nothing("--dynatemp-range", 1, NO_SAMPLING),
    nothing("--dynatemp-exp", 1, NO_SAMPLING),
    nothing("--mirostat", 1, NO_SAMPLING),
    nothing("--mirostat-lr", 1, NO_SAMPLING),
    nothing("--mirostat-ent", 1, NO_SAMPLING),
    nothing("-l --logit-bias", 1, NO_SAMPLING),
    nothing("--grammar", 1, NO_SAMPLING),
    nothing("--grammar-file", 1, NO_SAMPLING),
    nothing("-j --json-schema", 1, NO_SAMPLING),
    nothing("-jf --json-schema-file", 1, NO_SAMPLING),
    nothing("-bs --backend-sampling", 0, NO_SAMPLING),
];

/// A model that reads a text.
pub const RUN: &[Flag] = &[
    read("-t --threads", 1, "`--threads`; all if it is not above 0"),
    read("-c --ctx-size", 1, "`--ctx-size`; 0 is what the model was trained on"),
    super::flag::ours("-b --batch-size", 1, "--batch-size"),
    read("-f --file", 1, "`--file`"),
    read("-bf --binary-file", 1, "`--file`"),
    refused("-p --prompt", 1, "put the text in a file and name it with -f"),
    refused("-e --escape", 0, "texts are taken as they are"),
    nothing("--no-escape", 0, "texts are taken as they are"),
    read("-ctk --cache-type-k", 1, "`--cache-type`, with -ctv: f32, f16 or q8_0"),
    read("-ctv --cache-type-v", 1, "`--cache-type`, with -ctk: f32, f16 or q8_0"),
    read("--lora", 1, "`--lora`, once for each of the names between commas"),
    read("--lora-scaled", 1, "`--lora FILE:SCALE`, once for each between commas"),
    refused("--rope-scaling", 1, EDIT),
    refused("--rope-scale", 1, EDIT),
    refused("--rope-freq-base", 1, EDIT),
    refused("--rope-freq-scale", 1, EDIT),
    refused("--yarn-orig-ctx", 1, EDIT),
    refused("--yarn-ext-factor", 1, EDIT),
    refused("--yarn-attn-factor", 1, EDIT),
    refused("--yarn-beta-slow", 1, EDIT),
    refused("--yarn-beta-fast", 1, EDIT),
    refused("--override-kv", 1, EDIT),
    refused("--check-tensors", 0, "`gguf check --data MODEL` looks for what is no number"),
    refused("--control-vector", 1, "control vectors are not applied"),
    refused("--control-vector-scaled", 1, "control vectors are not applied"),
    refused("--control-vector-layer-range", 2, "control vectors are not applied"),
];

/// The same where no model is run.
pub const IDLE: &[Flag] = &[
    nothing("-c --ctx-size", 1, NOT_RUN),
    nothing("-b --batch-size", 1, NOT_RUN),
    nothing("-ctk --cache-type-k", 1, NOT_RUN),
    nothing("-ctv --cache-type-v", 1, NOT_RUN),
    nothing("--rope-scaling", 1, NOT_RUN),
    nothing("--rope-scale", 1, NOT_RUN),
    nothing("--rope-freq-base", 1, NOT_RUN),
    nothing("--rope-freq-scale", 1, NOT_RUN),
    nothing("--yarn-orig-ctx", 1, NOT_RUN),
    nothing("--yarn-ext-factor", 1, NOT_RUN),
    nothing("--yarn-attn-factor", 1, NOT_RUN),
    nothing("--yarn-beta-slow", 1, NOT_RUN),
    nothing("--yarn-beta-fast", 1, NOT_RUN),
    nothing("--check-tensors", 0, NOT_RUN),
    nothing("--control-vector", 1, NOT_RUN),
    nothing("--control-vector-scaled", 1, NOT_RUN),
    nothing("--control-vector-layer-range", 2, NOT_RUN),
    refused("--override-kv", 1, EDIT),
];

/// The groups above, with headings: programs have some of them.
pub const GROUPS: &[(&str, &[Flag])] = &[
    ("The program itself", PROGRAM),
    ("Where the model is", MODEL),
    ("A model that reads a text", RUN),
    ("Where no model is run", IDLE),
    ("Devices, processors and memory", MACHINE),
    ("How tokens are chosen", SAMPLING),
    ("Messages", LOG),
];

/// The word for the model, by which `gguf` opens it.
pub fn model(given: &Given) -> Result<String, Failure> {
    let hub = |repository: &str| {
        let file = given.value("--hf-file");
        match file {
            Some(file) => {
                let repository = repository.split(':').next().unwrap_or_default();
                format!("hf:{repository}:{file}")
            }
            None => format!("hf:{repository}"),
        }
    };
    let near = given.value("--model").or(given.value("--model-url")).map(str::to_owned);
    near.or(given.value("--hf-repo").map(hub))
        .ok_or_else(|| Failure::Usage("which model? Name it with -m".to_owned()))
}

/// The flags of ours for those of [`RUN`] whose values are written otherwise.
pub fn run_flags(given: &Given) -> Result<Vec<String>, Failure> {
    let mut flags = Vec::new();
    if let Some(threads @ 1..) = given.number::<i64>("--threads")? {
        flags.push(format!("--threads={threads}"));
    }
    for names in given.all("--lora").map(|values| &values[0]) {
        flags.extend(names.split(',').map(|name| format!("--lora={name}:1")));
    }
    for names in given.all("--lora-scaled").map(|values| &values[0]) {
        flags.extend(names.split(',').map(|name| format!("--lora={name}")));
    }
    if let Some(kind) = cache_type(given)? {
        flags.push(format!("--cache-type={kind}"));
    }
    Ok(flags)
}

/// The type of both caches, if one was given.
pub fn cache_type(given: &Given) -> Result<Option<&str>, Failure> {
    let (keys, values) = (given.value("--cache-type-k"), given.value("--cache-type-v"));
    match (keys, values) {
        (None, None) => Ok(None),
        (keys, values) => {
            let (keys, values) = (keys.unwrap_or("f16"), values.unwrap_or("f16"));
            if keys != values || !["f32", "f16", "q8_0"].contains(&keys) {
                return Err(Failure::Usage(format!(
                    "-ctk {keys} -ctv {values}: caches of keys and values have one type here, f32, \
                     f16 or q8_0"
                )));
            }
            Ok(Some(keys))
        }
    }
}

/// The text that is read, if one is named.
pub fn text(given: &Given) -> Option<&str> {
    given.value("--file").or(given.value("--binary-file"))
}

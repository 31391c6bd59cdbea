//! Flags shared by the programs of llama.cpp.

use super::flag::{Flag, ignored, refused, translated};

pub const NO_DEVICES: &str = "models run on the CPU with memory-mapped weights";
pub const OWN_THREADS: &str = "the operating system schedules threads";
pub const NO_SAMPLING: &str = "no tokens are sampled";
const NO_LOG: &str = "there is no log; messages go to standard error";
const SAME_RESULT: &str = "it does not affect results";
const EDIT: &str = "edit a copy: `gguf edit MODEL --set KEY=VALUE -o COPY`";
const NOT_RUN: &str = "the program runs no model";

/// Flag of [`PROGRAM`] that identifies programs with llama.cpp's common argument parser.
pub const SHARED: &str = "--cache-list";

/// General options.
pub const PROGRAM: &[Flag] = &[
    super::flag::help("-h --help --usage"),
    super::flag::version("--version"),
    refused("-cl --cache-list", 0, "there is no model cache"),
    refused("--completion-bash", 0, "`gguf --help` lists the commands"),
    refused("--list-devices", 0, "the CPU is the only device"),
];

/// Model location.
pub const MODEL: &[Flag] = &[
    translated("-m --model", 1, "the model: a file, a shard, a directory or a remote location"),
    translated("-mu --model-url", 1, "the model, read remotely"),
    translated("-hf -hfr --hf-repo", 1, "the model as `hf:USER/MODEL[:TYPE]`, read remotely"),
    translated("-hff --hf-file", 1, "the file in the repository of `-hf`"),
    refused(
        "-hft --hf-token",
        1,
        "other users could see it: set the environment variable HF_TOKEN",
    ),
    refused("-dr --docker-repo", 1, "Docker registries are not supported: download the file"),
    ignored("--offline", 0, "there is no model cache"),
];

/// Devices, CPU and memory.
pub const MACHINE: &[Flag] = &[
    ignored("-tb --threads-batch", 1, "-t applies to all work"),
    ignored("-C --cpu-mask", 1, OWN_THREADS),
    ignored("-Cr --cpu-range", 1, OWN_THREADS),
    ignored("--cpu-strict", 1, OWN_THREADS),
    ignored("--prio", 1, OWN_THREADS),
    ignored("--poll", 1, OWN_THREADS),
    ignored("-Cb --cpu-mask-batch", 1, OWN_THREADS),
    ignored("-Crb --cpu-range-batch", 1, OWN_THREADS),
    ignored("--cpu-strict-batch", 1, OWN_THREADS),
    ignored("--prio-batch", 1, OWN_THREADS),
    ignored("--poll-batch", 1, OWN_THREADS),
    ignored("--numa", 1, OWN_THREADS),
    ignored("-ub --ubatch-size", 1, SAME_RESULT),
    ignored("--swa-full", 0, SAME_RESULT),
    ignored("-fa --flash-attn", 1, SAME_RESULT),
    ignored("-kvo --kv-offload -nkvo --no-kv-offload", 0, NO_DEVICES),
    ignored("--repack -nr --no-repack", 0, SAME_RESULT),
    ignored("--no-host", 0, NO_DEVICES),
    ignored("-dt --defrag-thold", 1, SAME_RESULT),
    ignored("-np --parallel", 1, SAME_RESULT),
    refused("--rpc", 1, "models run locally; `--part` of gguf distributes work"),
    ignored("-lm --load-mode", 1, NO_DEVICES),
    ignored("-lzm --lazy-mode", 1, NO_DEVICES),
    ignored("--mlock", 0, NO_DEVICES),
    ignored("--mmap --no-mmap", 0, NO_DEVICES),
    ignored("-dev --device", 1, NO_DEVICES),
    ignored("-ot --override-tensor", 1, NO_DEVICES),
    ignored("-cmoe --cpu-moe", 0, NO_DEVICES),
    ignored("-ncmoe --n-cpu-moe", 1, NO_DEVICES),
    ignored("-ncffn --n-cpu-ffn", 1, NO_DEVICES),
    ignored("-ngl --gpu-layers --n-gpu-layers", 1, NO_DEVICES),
    ignored("-sm --split-mode", 1, NO_DEVICES),
    ignored("-ts --tensor-split", 1, NO_DEVICES),
    ignored("-mg --main-gpu", 1, NO_DEVICES),
    ignored("-fit --fit", 1, NO_DEVICES),
    ignored("-fitt --fit-target", 1, NO_DEVICES),
    ignored("-fitc --fit-ctx", 1, NO_DEVICES),
    ignored("--op-offload --no-op-offload", 0, NO_DEVICES),
    ignored("--spec-draft-type-k -ctkd --cache-type-k-draft", 1, NO_DEVICES),
    ignored("--spec-draft-type-v -ctvd --cache-type-v-draft", 1, NO_DEVICES),
    ignored("--perf --no-perf", 0, "use `gguf bench`"),
];

/// Logging.
pub const LOG: &[Flag] = &[
    ignored("--log-disable", 0, NO_LOG),
    ignored("--log-file", 1, NO_LOG),
    ignored("--log-jsonl --no-log-jsonl", 0, NO_LOG),
    ignored("--log-colors", 1, NO_LOG),
    ignored("--log-prefix --no-log-prefix", 0, NO_LOG),
    ignored("--log-timestamps --no-log-timestamps", 0, NO_LOG),
    ignored("-v --verbose --log-verbose", 0, NO_LOG),
    ignored("-lv --verbosity --log-verbosity", 1, NO_LOG),
];

/// Sampling, which none of these programs does.
pub const SAMPLING: &[Flag] = &[
    ignored("-n --predict --n-predict", 1, NO_SAMPLING),
    ignored("--keep", 1, NO_SAMPLING),
    ignored("--samplers", 1, NO_SAMPLING),
    ignored("-s --seed", 1, NO_SAMPLING),
    ignored("--sampler-seq --sampling-seq", 1, NO_SAMPLING),
    ignored("--ignore-eos", 0, NO_SAMPLING),
    ignored("--temp --temperature", 1, NO_SAMPLING),
    ignored("--top-k", 1, NO_SAMPLING),
    ignored("--top-p", 1, NO_SAMPLING),
    ignored("--min-p", 1, NO_SAMPLING),
    ignored("--top-nsigma --top-n-sigma", 1, NO_SAMPLING),
    ignored("--xtc-probability", 1, NO_SAMPLING),
    ignored("--xtc-threshold", 1, NO_SAMPLING),
    ignored("--typical --typical-p", 1, NO_SAMPLING),
    ignored("--repeat-last-n", 1, NO_SAMPLING),
    ignored("--repeat-penalty", 1, NO_SAMPLING),
    ignored("--presence-penalty", 1, NO_SAMPLING),
    ignored("--frequency-penalty", 1, NO_SAMPLING),
    ignored("--dry-multiplier", 1, NO_SAMPLING),
    ignored("--dry-base", 1, NO_SAMPLING),
    ignored("--dry-allowed-length", 1, NO_SAMPLING),
    ignored("--dry-penalty-last-n", 1, NO_SAMPLING),
    ignored("--dry-sequence-breaker", 1, NO_SAMPLING),
    ignored("--adaptive-target", 1, NO_SAMPLING),
    ignored("--adaptive-decay", 1, NO_SAMPLING),
    ignored("--dynatemp-range", 1, NO_SAMPLING),
    ignored("--dynatemp-exp", 1, NO_SAMPLING),
    ignored("--mirostat", 1, NO_SAMPLING),
    ignored("--mirostat-lr", 1, NO_SAMPLING),
    ignored("--mirostat-ent", 1, NO_SAMPLING),
    ignored("-l --logit-bias", 1, NO_SAMPLING),
    ignored("--grammar", 1, NO_SAMPLING),
    ignored("--grammar-file", 1, NO_SAMPLING),
    ignored("-j --json-schema", 1, NO_SAMPLING),
    ignored("-jf --json-schema-file", 1, NO_SAMPLING),
    ignored("-bs --backend-sampling", 0, NO_SAMPLING),
];

/// Types of the KV cache.
pub const CACHE_TYPE_K: Flag = translated(
    "-ctk --cache-type-k",
    1,
    "`--cache-type`, with -ctv: f32, f16, q8_0, q5_1, q5_0, q4_1 or q4_0",
);
pub const CACHE_TYPE_V: Flag = translated(
    "-ctv --cache-type-v",
    1,
    "`--cache-type`, with -ctk: f32, f16, q8_0, q5_1, q5_0, q4_1 or q4_0",
);

/// Running a model on a text.
pub const RUN: &[Flag] = &[
    translated("-t --threads", 1, "`--threads`; all cores if not positive"),
    translated("-c --ctx-size", 1, "`--ctx-size`; 0 is the context length of the model"),
    super::flag::renamed("-b --batch-size", 1, "--batch-size"),
    translated("-f --file", 1, "`--file`"),
    translated("-bf --binary-file", 1, "`--file`"),
    refused("-p --prompt", 1, "put the text in a file and use -f"),
    refused("-e --escape", 0, "texts are used unchanged"),
    ignored("--no-escape", 0, "texts are used unchanged"),
    CACHE_TYPE_K,
    CACHE_TYPE_V,
    translated("--lora", 1, "`--lora`, once per comma-separated name"),
    translated("--lora-scaled", 1, "`--lora FILE:SCALE`, once per comma-separated value"),
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
    refused("--check-tensors", 0, "`gguf check --data MODEL` finds invalid values"),
    refused("--control-vector", 1, "control vectors are not supported"),
    refused("--control-vector-scaled", 1, "control vectors are not supported"),
    refused("--control-vector-layer-range", 2, "control vectors are not supported"),
];

/// Runtime flags of programs that run no model.
pub const NO_RUN: &[Flag] = &[
    ignored("-c --ctx-size", 1, NOT_RUN),
    ignored("-b --batch-size", 1, NOT_RUN),
    ignored("-ctk --cache-type-k", 1, NOT_RUN),
    ignored("-ctv --cache-type-v", 1, NOT_RUN),
    ignored("--rope-scaling", 1, NOT_RUN),
    ignored("--rope-scale", 1, NOT_RUN),
    ignored("--rope-freq-base", 1, NOT_RUN),
    ignored("--rope-freq-scale", 1, NOT_RUN),
    ignored("--yarn-orig-ctx", 1, NOT_RUN),
    ignored("--yarn-ext-factor", 1, NOT_RUN),
    ignored("--yarn-attn-factor", 1, NOT_RUN),
    ignored("--yarn-beta-slow", 1, NOT_RUN),
    ignored("--yarn-beta-fast", 1, NOT_RUN),
    ignored("--check-tensors", 0, NOT_RUN),
    ignored("--control-vector", 1, NOT_RUN),
    ignored("--control-vector-scaled", 1, NOT_RUN),
    ignored("--control-vector-layer-range", 2, NOT_RUN),
    refused("--override-kv", 1, EDIT),
];

/// Groups of flags, with headings.
pub const GROUPS: &[(&str, &[Flag])] = &[
    ("General", PROGRAM),
    ("Model", MODEL),
    ("Running a model", RUN),
    ("Programs that run no model", NO_RUN),
    ("Devices, CPU and memory", MACHINE),
    ("Sampling", SAMPLING),
    ("Logging", LOG),
];

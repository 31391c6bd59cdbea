//! Codes of computation graphs, running and evaluation.

use super::{Area, row};

pub(super) const GRAPHS: Area = Area {
    title: "Graphs, running and evaluation",
    about: "Faults that prevent a model from running or being evaluated.",
    codes: &[
        row(
            "graph-invalid",
            "An operation of the computation graph does not match its values, weights or states.",
            "Store the graph again with `gguf graph --store`. `docs/graph.md` specifies graphs made by hand.",
        ),
        row(
            "graph-limit",
            "The computation graph exceeds the limits of any real model.",
            "Do not use the file unless you trust it: it may be malicious.",
        ),
        row(
            "graph-version",
            "The stored computation graph has another format version.",
            "Store the graph again with `gguf graph --store`, or update this program.",
        ),
        row(
            "graph-differs",
            "The stored computation graph is not that of the architecture.",
            "Store it again with `gguf graph --store`, or remove the key, unless the model needs another graph.",
        ),
        row(
            "graph-missing",
            "The file has no stored computation graph.",
            "Store one with `gguf graph --store`, or omit `--graph stored`.",
        ),
        row(
            "token-out-of-range",
            "A token id is not in the vocabulary.",
            "Use ids from 0 to one below the number of rows of the token embedding.",
        ),
        row(
            "context-full",
            "The sequence is longer than the context size.",
            "Increase the context size, or shorten the text.",
        ),
        row(
            "memory-budget",
            "KV cache and compute buffers need more memory than allowed.",
            "Reduce the context size, use a smaller KV cache type, or allow more memory.",
        ),
        row(
            "result-missing",
            "The model does not have the requested output, such as logits of an embedding model.",
            "Request an output that the model has; `gguf graph` lists them.",
        ),
        row(
            "text-too-short",
            "The text is shorter than one chunk, or the chunks are too short to evaluate a token.",
            "Use a longer text or a smaller chunk size.",
        ),
        row(
            "text-same",
            "The evaluation text is the calibration text of the model: the result says nothing about other texts.",
            "Evaluate on a held-out text.",
        ),
        row(
            "calibration-impossible",
            "The model cannot be calibrated layer by layer, such as one with an encoder.",
            "Omit `--calibrate`, and use an importance matrix.",
        ),
        row(
            "encoder-needed",
            "The model has an encoder and needs more input than text.",
            "For Whisper, use `gguf imatrix MODEL -f AUDIO --hessian` and `gguf logits --features`.",
        ),
        row(
            "benchmark-invalid",
            "The benchmark file is malformed or truncated.",
            "Check the named line or byte; `docs/evaluation.md` describes the formats.",
        ),
        row(
            "vocabulary-differs",
            "The two models have different vocabularies, so their logits cannot be compared, nor one draft tokens for the other.",
            "Use models with the same vocabulary.",
        ),
        row(
            "draft-unusable",
            "The model cannot draft tokens, or not for this target model.",
            "Use a causal language model without recurrent states, a model that was trained for the target model (EAGLE 3, DFlash, DSpark), or none: prompt lookup needs none.",
        ),
        row(
            "prompt-cache-invalid",
            "The file is not a prompt cache, or it is damaged.",
            "Name another file, or remove this one; it is never replaced.",
        ),
        row(
            "prompt-cache-other",
            "The prompt cache was saved with another model, adapter, precision, instruction set, type of KV caches or version of gguf.",
            "Use the same model and options, name another file, or remove this one.",
        ),
        row(
            "prompt-cache-unusable",
            "The model has an encoder, or keeps no states: there is nothing to save after a prompt.",
            "Omit `--prompt-cache`.",
        ),
        row(
            "state-invalid",
            "A saved state of a sequence is missing, or has another type or size than the model needs.",
            "Save the states again with this model and these options.",
        ),
        row(
            "logits-file-invalid",
            "The logits file is not in the format of `llama-perplexity`, is truncated, or contains NaN.",
            "Write it again with `--save-logits`.",
        ),
        row(
            "logits-file-cut",
            "The chunks cannot be represented in a logits file.",
            "Omit the stride, and use chunks of at least 3 tokens.",
        ),
        row(
            "part-invalid",
            "The file is not a partial evaluation result, or has another version.",
            "Compute it again with `--part`.",
        ),
        row(
            "part-other-run",
            "The partial results come from different models, texts or options.",
            "Compute the parts that differ again, with the same command except for the part number.",
        ),
        row(
            "part-missing",
            "The partial results do not cover all chunks exactly once.",
            "Compute the missing part, or complete an interrupted one with `--resume`.",
        ),
        row(
            "report-invalid",
            "The file holds no report of `gguf quality`, or one of another version.",
            "Write the report to another file, or measure again with `gguf quality --json`.",
        ),
        row(
            "report-other",
            "The report to resume has another reference model, text or options.",
            "Write the report to another file, or start over with --force.",
        ),
        row(
            "features-missing",
            "The encoder input is missing or has the wrong kind, or the model has no encoder.",
            "Pass the audio features or the token ids that the encoder reads.",
        ),
        row(
            "audio-unsupported",
            "The file is not audio, or its format is not supported.",
            "Use WAV, FLAC, MP3 or Ogg Vorbis.",
        ),
        row("audio-empty", "The recording has no samples.", "Check that it plays."),
        row(
            "audio-invalid",
            "The audio data is damaged.",
            "Repair or convert it with another program.",
        ),
        row(
            "audio-truncated",
            "The recording is truncated.",
            "Download the whole file, or convert the existing part with another program.",
        ),
        row(
            "not-a-transcriber",
            "The model cannot transcribe: it has no audio encoder, or its vocabulary lacks Whisper's special tokens.",
            "Use a Whisper model; convert legacy files again with the tokenizer under --metadata-dir.",
        ),
        row(
            "language-unknown",
            "The model does not support the requested language.",
            "Use the code of a supported language, such as `de`, or omit it for language identification.",
        ),
        row(
            "npy-invalid",
            "The .npy file does not contain a float matrix.",
            "Save it with `numpy.save` as float32 in C order.",
        ),
    ],
};

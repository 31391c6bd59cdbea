//! Codes of running a model.

use super::{Area, row};

pub(super) const GRAPHS: Area = Area {
    title: "Graphs and running",
    about: "What keeps a model from being run.",
    codes: &[
        row(
            "graph-invalid",
            "An operation of a computation graph does not fit the values, weights or states it names.",
            "Store the graph anew with `gguf graph --store`; a hand-made one has to keep `docs/graph.md`.",
        ),
        row(
            "graph-limit",
            "A computation graph asks for more than any model needs.",
            "The file may mean harm: get the model from a place you trust.",
        ),
        row(
            "graph-version",
            "A stored computation graph follows another version of the form than this program reads.",
            "Store the graph anew with `gguf graph --store`, or use a newer program.",
        ),
        row(
            "graph-missing",
            "A model was to be run by its stored graph, and the file has none.",
            "Store one with `gguf graph --store`, or go without `--graph stored`.",
        ),
        row(
            "token-out-of-range",
            "A token id is not in the vocabulary of the model.",
            "Ids count from 0 to one below the rows of the token embedding.",
        ),
        row(
            "context-full",
            "A sequence has more tokens than the context was made for.",
            "Make the context larger, or the text shorter.",
        ),
        row(
            "memory-budget",
            "Caches and values would need more memory than allowed.",
            "Make the context smaller, store the cache in a smaller type, or allow more memory.",
        ),
        row(
            "result-missing",
            "The model does not compute what was asked for, such as logits of an encoder.",
            "Ask for what the model has; `gguf graph` lists its outputs.",
        ),
        row(
            "text-too-short",
            "A text has not a single window of the length that was asked for, or windows are so short that nothing is left to predict.",
            "Take a longer text, or another length.",
        ),
        row(
            "text-same",
            "The text that judges a model is the one that its weights were fitted to: that says nothing of other texts.",
            "Judge by another text.",
        ),
        row(
            "calibration-impossible",
            "A model cannot be read operation by operation for calibration, such as one with an encoder of its own.",
            "Leave out `--calibrate`; an importance matrix may do.",
        ),
        row(
            "encoder-needed",
            "A model has an encoder of its own, so that a text alone does not say what it would predict.",
            "Of a model that hears `gguf imatrix MODEL -f RECORDING --moments` shows what enters its matrices, and `gguf logits --features` what it predicts.",
        ),
        row(
            "benchmark-invalid",
            "A file of questions is not in the form of the benchmark that it was given for, or ends too early.",
            "Look at the line or the byte that is named; `docs/evaluation.md` describes the forms.",
        ),
        row(
            "vocabulary-differs",
            "Two models are to be compared whose tokens are not the same, so that their predictions say different things.",
            "Compare models that were made of the same one.",
        ),
        row(
            "logits-file-invalid",
            "A file of logits is none of the form that `llama-perplexity` writes, or not whole, or has values that are no numbers.",
            "Write it anew, with `--save-logits`; a file that is too short is one that was not written to its end.",
        ),
        row(
            "logits-file-cut",
            "A text is cut in a way that a file of logits cannot say.",
            "Leave out the stride, and take windows of 3 tokens or more.",
        ),
        row(
            "part-invalid",
            "A file is no part of an evaluation, or of another version of the program.",
            "Make it anew, with `--part`.",
        ),
        row(
            "part-other-run",
            "Parts of an evaluation were made of other models or texts, or in another way, so that they do not make one whole.",
            "Make the parts that differ again, with the same command but for the number of the part.",
        ),
        row(
            "part-missing",
            "Parts of an evaluation do not have all windows of the text, or one of them twice.",
            "Make the part that is missing, or go on with one that was interrupted with `--resume`.",
        ),
        row(
            "report-invalid",
            "A file that is to be gone on with is no report of `gguf quality`, or of another form.",
            "Write the report to another file.",
        ),
        row(
            "report-other",
            "A report that is to be gone on with is of another original, text or way of measuring.",
            "Write the report to another file, or begin anew with --force.",
        ),
        row(
            "features-missing",
            "The model has an encoder, and there is nothing for it, or something else than it reads; or it has none.",
            "Give the features of the recording, or the ids of the text, that the encoder is to read.",
        ),
        row(
            "audio-unsupported",
            "A file is no sound, or of a kind that this program does not decode.",
            "Give it WAV, FLAC, MP3 or Ogg Vorbis.",
        ),
        row("audio-empty", "There is no sound in a recording.", "Look whether it plays."),
        row(
            "audio-invalid",
            "The sound of a recording is damaged.",
            "Repair or convert it with another program.",
        ),
        row(
            "audio-truncated",
            "A recording ends before the place where it says it does.",
            "Get the whole file, or convert what is there with another program.",
        ),
        row(
            "not-a-transcriber",
            "A model was to transcribe a recording, and is none that can: it hears nothing, or its \
             vocabulary lacks the tokens by which Whisper is told what to do.",
            "Give it a Whisper; convert old files again, with the tokenizer under --metadata-dir.",
        ),
        row(
            "language-unknown",
            "A model does not know the language that was asked for.",
            "Give the code of one of its languages, such as `de`, or let the model find out.",
        ),
        row(
            "npy-invalid",
            "A file of numpy holds no matrix of floats.",
            "Save it with `numpy.save` as float32, rows first.",
        ),
    ],
};

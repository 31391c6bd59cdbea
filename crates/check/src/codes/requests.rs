//! Codes of requests that cannot be met, and of what goes wrong outside.

use super::{Area, row};

pub(super) const REQUESTS: Area = Area {
    title: "Requests",
    about: "What was asked for and cannot be done.",
    codes: &[
        row(
            "usage",
            "The command line cannot be understood, or asks for what does not go together.",
            "The message says what; `gguf help COMMAND` shows what the command takes.",
        ),
        row(
            "input",
            "A file is at fault in a way that has no code of its own.",
            "The message says what.",
        ),
        row(
            "model-missing",
            "There is no GGUF file at the place that was named.",
            "Name a file, or a directory with a model.",
        ),
        row(
            "model-ambiguous",
            "There are several models at the place that was named.",
            "Name one of them.",
        ),
        row(
            "name-not-found",
            "A tensor, or a row of one, that was asked for is not in the model.",
            "`gguf inspect --tensors` lists the tensors.",
        ),
        row(
            "shapes-differ",
            "Two tensors that were to be compared have other shapes.",
            "Compare tensors of the same shape.",
        ),
        row(
            "request-invalid",
            "A request to the viewer cannot be understood.",
            "The message says what; `docs/viewer-api.md` says how requests look.",
        ),
        row("file-changed", "A file is not what it was when it was opened.", "Open it anew."),
        row(
            "location-invalid",
            "What was named is no location.",
            "Name a file, a URL or a repository; `docs/remote.md` lists the forms.",
        ),
        row(
            "option-contradicts",
            "An option contradicts what the file says, or another option.",
            "Correct the option, or leave it out.",
        ),
        row(
            "instructions-missing",
            "The processor, or its system, does not have the instructions that were asked for.",
            "Leave the option out: the best that there are will be taken.",
        ),
        row(
            "source-is-gguf",
            "What is to be converted is a GGUF already.",
            "Change its types with `gguf quantize`.",
        ),
        row(
            "source-unclear",
            "A lone file of weights does not say what it is for.",
            "Name its directory, or the architecture with --architecture.",
        ),
        row(
            "output-missing",
            "The file cannot be changed in place, and no output is named.",
            "Name an output with -o.",
        ),
        row(
            "edit-refused",
            "A change names a key, a token or a tensor that is not there, or gives a key a value that it \
             cannot hold.",
            "Look at the file with `gguf inspect`, and correct the change.",
        ),
        row(
            "resume-unsure",
            "Nobody can tell whether a far file is the one that an earlier run has read.",
            "Leave --resume out, or download the file.",
        ),
        row(
            "target-file-type",
            "The target is no mix that a file can be named after.",
            "Ask for one of the mixes that the help lists.",
        ),
        row(
            "type-not-current",
            "A tensor was to become a type that files of today do not have.",
            "Choose another type.",
        ),
        row(
            "type-does-not-fit",
            "The rows of a tensor are no whole number of blocks of the type that was asked for.",
            "Choose another type for this tensor.",
        ),
        row(
            "type-list",
            "A line of a list of tensor types cannot be read.",
            "Write `REGEX=TYPE`, one on a line.",
        ),
        row(
            "calibration-data",
            "A file holds no moments of what enters the matrices of this model.",
            "Make one with `gguf imatrix MODEL -f TEXT --moments -o FILE`.",
        ),
        row(
            "calibration-other",
            "The weights of a model were rounded by another text than the one that is given.",
            "Give the text that it was made with: the model has its SHA-256.",
        ),
        row(
            "sensitivity-invalid",
            "A file holds no sensitivities of tensors, or in another form.",
            "Make one with `gguf sensitivity`.",
        ),
        row(
            "sensitivity-other-model",
            "Sensitivities are of tensors that this model does not have.",
            "Measure those of this model with `gguf sensitivity`.",
        ),
        row(
            "sensitivity-lacks",
            "Sensitivities say nothing of a type that a tensor could be given.",
            "Measure them anew, with more types.",
        ),
        row(
            "codec-missing",
            "A tensor cannot be converted, because one of its types cannot be decoded or encoded \
             here.",
            "Keep its type with --tensor-type, or choose another target.",
        ),
        row(
            "array-refused",
            "An array is not of the shape, length or numbers that its new type needs.",
            "Rows are whole numbers of blocks, with finite numbers; importance has one number per column.",
        ),
        row(
            "closed",
            "A program goes on with a model, tensor or writer that it has closed.",
            "Open it again, or close it later.",
        ),
        row(
            "requantize",
            "A tensor is quantized already, and would lose quality once more.",
            "Start from an F16 or F32 file, or allow it with --allow-requantize.",
        ),
        row(
            "prune-blocks",
            "The blocks to leave out do not exist, or are all there are.",
            "Name fewer blocks; they are counted from 0.",
        ),
        row(
            "budget-invalid",
            "The number of bits per weight is none that can be had.",
            "Give a number above 0.",
        ),
        row(
            "budget-too-small",
            "The size that was asked for is below the smallest possible.",
            "Ask for more.",
        ),
        row(
            "parts-too-many",
            "There are fewer tensors, or windows of a text, than parts.",
            "Ask for at most one part per tensor, or per window.",
        ),
        row(
            "shards-too-many",
            "There would be more shards than the 65535 that the keys can count.",
            "Choose a larger limit.",
        ),
        row(
            "export-architecture",
            "The model is of no architecture whose checkpoints are known, or does not tell which \
             kind it is.",
            "Export the tensors under their GGUF names: `--to safetensors --keep-names`.",
        ),
        row(
            "export-incomplete",
            "The keys of the model do not give all that the configuration of its architecture \
             needs.",
            "Look which keys are missing with `gguf check`, and set them with `gguf edit`; or \
             export the tensors under their GGUF names: `--to safetensors --keep-names`.",
        ),
        row(
            "export-unsupported",
            "The tensors of the model cannot be turned back into those of a checkpoint.",
            "Export the tensors under their GGUF names: `--to safetensors --keep-names`.",
        ),
        row(
            "export-type",
            "A tensor has a type that a safetensors file cannot have.",
            "Export it as f32, f16 or bf16.",
        ),
        row(
            "export-tensor-duplicate",
            "Two tensors would have the same name in the checkpoint.",
            "Export the tensors under their GGUF names.",
        ),
    ],
};

pub(super) const ENVIRONMENT: Area = Area {
    title: "Environment",
    about: "What is nobody's fault who is here.",
    codes: &[
        row(
            "environment",
            "A file cannot be read or written, a disk is full, or a server does not answer.",
            "The message says what the operating system or the server says: mend that, and try \
             again.",
        ),
        row(
            "interrupted",
            "Somebody asked to stop.",
            "Begin again; what was written before is either whole or not there.",
        ),
    ],
};

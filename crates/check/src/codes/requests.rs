//! Codes of invalid requests and of the environment.

use super::{Area, row};

pub(super) const REQUESTS: Area = Area {
    title: "Requests",
    about: "Requests that cannot be met.",
    codes: &[
        row(
            "usage",
            "The command line is invalid, or its options exclude each other.",
            "`gguf help COMMAND` lists the options and their values.",
        ),
        row(
            "input",
            "An input file is invalid in a way without its own code.",
            "Read the message.",
        ),
        row(
            "model-missing",
            "There is no GGUF file at the given location.",
            "Name a file, or a directory with a model.",
        ),
        row(
            "model-ambiguous",
            "There are several models at the given location.",
            "Name one of them.",
        ),
        row(
            "name-not-found",
            "The requested tensor or row does not exist.",
            "List the tensors with `gguf inspect --tensors`.",
        ),
        row(
            "shapes-differ",
            "The two tensors to compare have different shapes.",
            "Compare tensors of the same shape.",
        ),
        row(
            "request-invalid",
            "A request to the viewer is malformed.",
            "Read the message; `docs/viewer-api.md` describes the requests.",
        ),
        row("file-changed", "The file changed since it was opened.", "Open it again."),
        row(
            "location-invalid",
            "The location is malformed.",
            "Name a file, a URL or a repository; `docs/remote.md` lists the forms.",
        ),
        row(
            "option-contradicts",
            "An option contradicts the file or another option.",
            "Correct or omit the option.",
        ),
        row(
            "instructions-missing",
            "The processor or the operating system does not support the requested instruction set.",
            "Omit the option: the best supported instruction set is the default.",
        ),
        row(
            "source-is-gguf",
            "The conversion source is a GGUF file already.",
            "Change its tensor types with `gguf quantize`.",
        ),
        row(
            "source-unclear",
            "A single weight file does not tell its architecture.",
            "Name its directory, or the architecture with --architecture.",
        ),
        row(
            "output-missing",
            "The file cannot be changed in place, and no output is given.",
            "Name an output with -o.",
        ),
        row(
            "edit-refused",
            "An edit names a missing key, token or tensor, or a value that the key cannot have.",
            "Check the file with `gguf inspect`, and correct the edit.",
        ),
        row(
            "resume-unsure",
            "A remote file has no ETag, so that an earlier run's input cannot be compared with it.",
            "Omit --resume, or download the file.",
        ),
        row(
            "target-file-type",
            "The target has no number in `general.file_type`.",
            "Use one of the quantization types that the help lists.",
        ),
        row(
            "type-not-current",
            "The requested tensor type was removed from GGML.",
            "Choose another type.",
        ),
        row(
            "type-does-not-fit",
            "The row size of a tensor is not a multiple of the block size of the requested type.",
            "Choose another type for this tensor.",
        ),
        row(
            "type-list",
            "A line of a tensor type file is malformed.",
            "Write one `REGEX=TYPE` per line.",
        ),
        row(
            "calibration-data",
            "The file has no Hessians for the matrices of this model.",
            "Compute them with `gguf imatrix MODEL -f TEXT --hessian -o FILE`.",
        ),
        row(
            "calibration-other",
            "The model was calibrated with another text.",
            "Pass the calibration text; the model's metadata has its SHA-256.",
        ),
        row(
            "sensitivity-invalid",
            "The file has no per-tensor sensitivities, or another version.",
            "Measure them with `gguf sensitivity`.",
        ),
        row(
            "sensitivity-other-model",
            "The sensitivities belong to another model.",
            "Measure those of this model with `gguf sensitivity`.",
        ),
        row(
            "sensitivity-lacks",
            "The sensitivities lack a type that a tensor could get.",
            "Measure them again with more types.",
        ),
        row(
            "codec-missing",
            "A tensor type cannot be decoded or encoded here.",
            "Keep the tensor's type with --tensor-type, or choose another target.",
        ),
        row(
            "array-refused",
            "An array has the wrong shape, length or values for the requested type.",
            "Use rows of whole blocks with finite values; an importance vector has one value per column.",
        ),
        row(
            "closed",
            "The program uses a model, tensor or writer after closing it.",
            "Open it again, or close it later.",
        ),
        row(
            "requantize",
            "A tensor is quantized already, and requantization loses more quality.",
            "Start from an F16 or F32 file, or pass --allow-requantize.",
        ),
        row(
            "prune-blocks",
            "The layers to prune do not exist, or are all layers.",
            "Name fewer layers, counted from 0.",
        ),
        row("budget-invalid", "The number of bits per weight is invalid.", "Use a number above 0."),
        row(
            "budget-too-small",
            "The requested size is below the smallest possible.",
            "Request a larger size.",
        ),
        row(
            "parts-too-many",
            "There are more parts than tensors or chunks.",
            "Use at most one part per tensor or chunk.",
        ),
        row(
            "shards-too-many",
            "There would be more than 65535 shards.",
            "Choose a larger shard size.",
        ),
        row(
            "export-architecture",
            "No checkpoint class is known for the model's architecture or variant.",
            "Export with GGUF names: `--to safetensors --keep-names`.",
        ),
        row(
            "export-incomplete",
            "The metadata lacks keys that config.json needs.",
            "Find the missing keys with `gguf check`, and set them with `gguf edit`; or export with GGUF names: `--to safetensors --keep-names`.",
        ),
        row(
            "export-unsupported",
            "The tensors cannot be converted back to those of a checkpoint.",
            "Export with GGUF names: `--to safetensors --keep-names`.",
        ),
        row(
            "export-type",
            "A tensor type cannot be stored in safetensors.",
            "Export as f32, f16 or bf16.",
        ),
        row(
            "export-tensor-duplicate",
            "Two tensors would have the same name in the checkpoint.",
            "Export with GGUF names.",
        ),
    ],
};

pub(super) const ENVIRONMENT: Area = Area {
    title: "Environment",
    about: "Failures of the machine or the network, and interruptions.",
    codes: &[
        row(
            "environment",
            "A file cannot be read or written, a disk is full, or a server does not respond.",
            "Fix what the operating system or the server reports, and try again.",
        ),
        row(
            "interrupted",
            "The user interrupted the operation.",
            "Start again: outputs are either complete or absent.",
        ),
    ],
};

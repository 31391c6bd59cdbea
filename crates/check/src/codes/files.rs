//! Codes of shards, file names, tensor data, edits and outputs.

use super::{Area, row};

pub(super) const SHARDS: Area = Area {
    title: "Shards",
    about: "Faults of models that are split into several files.",
    codes: &[
        row(
            "shard-missing",
            "Some shards of the model are missing.",
            "Download or copy them into the same directory.",
        ),
        row(
            "shard-incomplete",
            "The file is one shard, and its name does not tell the names of the others.",
            "Name all shards `PREFIX-00001-of-00002.gguf` and so on, in one directory.",
        ),
        row(
            "shard-count-stale",
            "The file has the keys of a shard, but contains all tensors.",
            "Remove the `split.` keys: llama.cpp looks for the other shards.",
        ),
        row(
            "shard-number",
            "The shard number in the file name differs from `split.no`.",
            "Download the file again: it was renamed, or belongs to another model.",
        ),
        row(
            "shard-count",
            "`split.count` differs from the number of shards.",
            "Download the file again: it was renamed, or belongs to another model.",
        ),
        row(
            "shard-tensor-count",
            "`split.tensors.count` differs from the number of tensors in all shards.",
            "Download the shards again: one of them belongs to another model.",
        ),
        row(
            "shard-tensor-duplicate",
            "Two shards have a tensor of the same name.",
            "Download the shards again: one of them belongs to another model.",
        ),
        row(
            "shard-byte-order",
            "A shard has another byte order than the first.",
            "Convert all shards to one byte order with `gguf convert-endian`.",
        ),
        row(
            "shard-foreign",
            "A shard has another model name or architecture than the first.",
            "Download the shards again: this one belongs to another model.",
        ),
        row(
            "shard-other-work",
            "Shards that were written separately come from different inputs or options.",
            "Write the shards that differ again, from one input with the same options.",
        ),
        row(
            "shard-key-ignored",
            "A later shard has keys that the first shard lacks.",
            "No action is needed unless the keys matter: loaders read the keys of the first shard.",
        ),
        row(
            "shard-key-type",
            "A `split.` key has another type than loaders accept.",
            "Split the model again: llama.cpp rejects the file.",
        ),
        row(
            "merge-differs",
            "A tensor of the merged file differs from the shards.",
            "Merge again: the shards were kept.",
        ),
    ],
};

pub(super) const NAMES: Area = Area {
    title: "Names",
    about: "Differences between a file's name and its content.",
    codes: &[
        row(
            "name-convention",
            "The name does not follow the GGUF naming convention.",
            "Rename the file before you share it; `gguf name` prints the canonical name.",
        ),
        row(
            "name-metadata",
            "The name contradicts the keys for name, size or version.",
            "Rename the file, or correct the key.",
        ),
        row(
            "name-encoding",
            "The name states another quantization type than the file has.",
            "Rename the file.",
        ),
        row(
            "name-kind",
            "The name states another kind of file, such as a LoRA adapter.",
            "Rename the file.",
        ),
        row(
            "name-shard",
            "The name states another shard number than the keys.",
            "Rename the file: loaders find the other shards by name.",
        ),
    ],
};

pub(super) const SIDECARS: Area = Area {
    title: "Multimodal projectors",
    about: "Mismatches between an mmproj file and its model.",
    codes: &[
        row(
            "sidecar-kind",
            "The mmproj file is not of architecture `clip`, or the model is.",
            "Name the model first, and the mmproj file after `--mmproj`.",
        ),
        row(
            "sidecar-width",
            "The projector's output size differs from the embedding size of the model.",
            "Use the mmproj file of this model: the two belong to different models.",
        ),
        row(
            "sidecar-layers",
            "The projector has another number of deepstack outputs than the model expects.",
            "Convert both again: they belong to different models or converter versions.",
        ),
    ],
};

pub(super) const DATA: Area = Area {
    title: "Tensor data",
    about: "Faults in the weights.",
    codes: &[
        row(
            "data-not-finite",
            "Tensor data contains NaN or Inf.",
            "Download or convert the model again: its output is invalid.",
        ),
        row(
            "data-absurd",
            "Tensor data contains implausibly large values.",
            "Download or convert the model again: the data is damaged or of another type.",
        ),
        row(
            "data-zero",
            "All elements of a tensor are zero.",
            "Convert the model again if it is a norm, the token embedding or the output projection; otherwise no \
             action is needed if this is intended.",
        ),
        row(
            "data-hole",
            "A run of zero bytes begins or ends within a row of weights, or covers several matrices.",
            "Repair the file with `gguf check FILE --against hf:org/repo --repair`, or download it again: the download \
             stopped, and left a hole in a file of the right size.",
        ),
        row("file-not-text", "A text file is not valid UTF-8.", "Save it as UTF-8."),
        row(
            "data-unread",
            "The data of some tensors was not checked because their types cannot be decoded here.",
            "No action is needed.",
        ),
        row(
            "data-trailing",
            "There are bytes after the data of the last tensor.",
            "No action is needed: loaders ignore them. Writing the file again drops them.",
        ),
        row(
            "weights-not-finite",
            "A weight of the checkpoint is NaN or Inf.",
            "Download the checkpoint again: it is damaged.",
        ),
        row(
            "weights-too-large",
            "A weight exceeds 65504, the maximum of F16.",
            "Use --outtype bf16 or f32.",
        ),
        row(
            "weights-cut",
            "The data of a tensor is truncated.",
            "Download the file again: it is damaged.",
        ),
        row(
            "weights-unusable",
            "The data of a tensor cannot be decoded or encoded.",
            "Convert the model from another source.",
        ),
    ],
};

pub(super) const COPIES: Area = Area {
    title: "Copies of remote files",
    about: "Differences between a local file and the remote file that it is a copy of, found with `--against`.",
    codes: &[
        row(
            "copy-damaged",
            "The file has another length or digest than the remote file.",
            "Fetch the missing and damaged ranges with --repair.",
        ),
        row(
            "copy-other",
            "Most samples of the file differ from the remote file: it is another file, not a damaged copy.",
            "Name the remote file that it is a copy of, or replace the local file with `--repair --force`.",
        ),
        row(
            "copy-unverified",
            "The file has the length of the remote file, but the server states no digest with which its bytes can be compared.",
            "Compare all bytes with --repair, which fetches the whole file.",
        ),
    ],
};

pub(super) const EDITS: Area = Area {
    title: "Edits and outputs",
    about: "Reasons why a file is not changed or not written.",
    codes: &[
        row(
            "edit-interrupted",
            "An edit was interrupted: the header is partly old and partly new.",
            "Run `gguf edit FILE --recover undo` to restore the old header, or `--recover finish` to complete the new one.",
        ),
        row(
            "journal-refused",
            "The journal of an interrupted edit is damaged, or belongs to another file.",
            "Remove the journal if the file is intact. Nothing was changed.",
        ),
        row(
            "edit-layout",
            "The edit would change tensors, byte order or alignment, on which the data layout depends.",
            "Write a new file instead.",
        ),
        row("not-a-file", "The path to edit is not a regular file.", "Name a file."),
        row(
            "output-exists",
            "The output exists already.",
            "Name another output, or replace it with --force.",
        ),
        row(
            "output-refused",
            "The output is a directory, a device, a broken link, or not writable by this user.",
            "Name another output.",
        ),
        row(
            "upload-refused",
            "The files cannot be uploaded together, or not under their names.",
            "Read the message.",
        ),
        row(
            "token-missing",
            "A repository of the Hugging Face Hub is written only with a token.",
            "Set HF_TOKEN, or log in with `hf auth login`.",
        ),
        row(
            "input-changed",
            "The file changed while it was read.",
            "Repeat the command when no other program writes the file.",
        ),
        row("output-is-input", "The output is one of the inputs.", "Name another output."),
        row(
            "output-busy",
            "Another process is writing the output.",
            "Wait until it is done, or name another output.",
        ),
        row("output-twice", "Two outputs have the same name.", "Name each output once."),
        row(
            "output-not-empty",
            "The output directory is not empty.",
            "Name a new directory: two models would mix.",
        ),
    ],
};

//! Codes of files: shards, names, tensor data, edits, outputs.

use super::{Area, row};

pub(super) const SHARDS: Area = Area {
    title: "Shards",
    about: "What is wrong with models in several files.",
    codes: &[
        row(
            "shard-missing",
            "Some files of a model in several files are not there.",
            "Download or copy them into the same directory.",
        ),
        row(
            "shard-incomplete",
            "The file is one of several of a model, and the others are not known by its name.",
            "Name all shards `PREFIX-00001-of-00002.gguf` and so on, in one directory.",
        ),
        row(
            "shard-count-stale",
            "The file says that it is one of several, but has all tensors.",
            "Remove the `split.` keys: llama.cpp looks for the other files.",
        ),
        row(
            "shard-number",
            "The place that a shard has by its name is not the one that its key states.",
            "The file was renamed, or belongs to another model: get it again.",
        ),
        row(
            "shard-count",
            "A shard states another number of shards than there are.",
            "The file was renamed, or belongs to another model: get it again.",
        ),
        row(
            "shard-tensor-count",
            "A shard states another number of tensors than all shards have together.",
            "One of the files belongs to another model: get the shards again.",
        ),
        row(
            "shard-tensor-duplicate",
            "Two shards have a tensor of the same name.",
            "One of the files belongs to another model: get the shards again.",
        ),
        row(
            "shard-byte-order",
            "A shard has another byte order than the first.",
            "Convert all of them to one byte order with `gguf convert-endian`.",
        ),
        row(
            "shard-foreign",
            "A shard names another model or architecture than the first.",
            "It belongs to another model: get the shards again.",
        ),
        row(
            "shard-other-work",
            "Shards that were made one by one were not made of the same input in the same way.",
            "Make the parts that differ again, of one input and with the same options.",
        ),
        row(
            "shard-key-ignored",
            "A shard after the first has keys that the first has not.",
            "Nothing has to be done, unless the keys matter: readers take those of the first \
             shard.",
        ),
        row(
            "shard-key-type",
            "A key that places a shard is of another type than readers take.",
            "Split the model again: llama.cpp refuses the file.",
        ),
        row(
            "merge-differs",
            "A tensor of the merged file is not the same as in the shards.",
            "The shards were kept: merge them again.",
        ),
    ],
};

pub(super) const NAMES: Area = Area {
    title: "Names",
    about: "Where the name of a file says something else than the file.",
    codes: &[
        row(
            "name-convention",
            "The name does not follow the naming convention for GGUF files.",
            "Rename the file if you share it: `gguf name` says how.",
        ),
        row(
            "name-metadata",
            "The name says something else than the keys on name, size or version.",
            "Rename the file, or correct the key.",
        ),
        row(
            "name-encoding",
            "The name says another quantization than the file has.",
            "Rename the file.",
        ),
        row(
            "name-kind",
            "The name says another kind of file, such as an adapter.",
            "Rename the file.",
        ),
        row(
            "name-shard",
            "The name says another shard than the keys.",
            "Rename the file: programs find the other shards by name.",
        ),
    ],
};

pub(super) const SIDECARS: Area = Area {
    title: "Sidecars",
    about: "Whether a file that programs load beside a model, to encode images or sound, goes with it.",
    codes: &[
        row(
            "sidecar-kind",
            "The file that is to go with the model is no encoder, or the model is one itself.",
            "Name the model first, and after `--with` the file whose name begins with `mmproj-`.",
        ),
        row(
            "sidecar-width",
            "What the encoder yields is not as wide as the embeddings of the model.",
            "The two are of different models: take the encoder of this one.",
        ),
        row(
            "sidecar-layers",
            "The encoder yields something for another number of layers than the model takes.",
            "The two are of different models, or of different versions of the converter: convert both anew.",
        ),
    ],
};

pub(super) const DATA: Area = Area {
    title: "Tensor data",
    about: "What stands in the weights themselves.",
    codes: &[
        row(
            "data-not-finite",
            "Weights are infinite or no numbers.",
            "Download or convert the model again: it computes nonsense.",
        ),
        row(
            "data-absurd",
            "Weights are so large that they can hardly be meant.",
            "The data may be of another type, or damaged: download or convert the model again.",
        ),
        row(
            "data-zero",
            "All elements of a tensor are zero.",
            "Nothing has to be done if the model is meant so.",
        ),
        row("file-not-text", "A file that should be a text is not UTF-8.", "Save it as UTF-8."),
        row(
            "data-unread",
            "Tensors are of types that cannot be decoded here, so that their data were not looked \
             at.",
            "Nothing has to be done.",
        ),
        row(
            "data-trailing",
            "Bytes follow the data of the last tensor.",
            "Nothing has to be done: no program reads them. Writing the file anew leaves them out.",
        ),
        row(
            "weights-not-finite",
            "A weight of the source is infinite or no number.",
            "The checkpoint is damaged: download it again.",
        ),
        row(
            "weights-too-large",
            "A weight is beyond 65504, the largest number of F16.",
            "Choose bf16 or f32.",
        ),
        row(
            "weights-cut",
            "The data of a tensor end before they should.",
            "The file is damaged: download it again.",
        ),
        row(
            "weights-unusable",
            "The data of a tensor cannot be decoded or encoded.",
            "Convert the model from another source.",
        ),
    ],
};

pub(super) const EDITS: Area = Area {
    title: "Edits and outputs",
    about: "Why a file is not changed, or not written.",
    codes: &[
        row(
            "edit-interrupted",
            "An edit of the file was interrupted, and its header is neither the old nor the new \
             one.",
            "Run `gguf edit FILE --recover undo` to restore the old header, `--recover finish` to write the new one.",
        ),
        row(
            "journal-refused",
            "The journal of an interrupted edit is damaged, or is not about this file.",
            "Nothing was changed. If the file is as it should be, remove the journal.",
        ),
        row(
            "edit-layout",
            "An edit of the header would change what the data depend on: tensors, byte order or \
             alignment.",
            "Write a new file instead.",
        ),
        row("not-a-file", "What is to be edited is no regular file.", "Name a file."),
        row(
            "output-exists",
            "There is something under the name of the output.",
            "Name another output, or replace it with --force.",
        ),
        row(
            "output-refused",
            "The output can be no file of ours: it is a directory, a device, a link to nothing, or \
             somebody else's.",
            "Name another output.",
        ),
        row("output-is-input", "The output is one of the inputs.", "Name another output."),
        row(
            "output-busy",
            "Another process is writing the output.",
            "Wait until it is done, or name another output.",
        ),
        row("output-twice", "One name is given for two outputs.", "Name each output once."),
        row(
            "output-not-empty",
            "The directory for the output has files in it.",
            "Name a new directory: two models would mix.",
        ),
    ],
};

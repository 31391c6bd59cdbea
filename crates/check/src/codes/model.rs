//! Codes of what a GGUF says: the format itself, tensors, keys.

use super::{Area, row};

pub(super) const FORMAT: Area = Area {
    title: "Format",
    about: "What makes a file no GGUF, or one that cannot be read to its end.",
    codes: &[
        row(
            "magic",
            "The file does not begin as a GGUF does: it is of another kind, or its start was \
             overwritten.",
            "Name the right file. Checkpoints, and models from before GGUF, are converted with \
             `gguf convert`.",
        ),
        row(
            "version-unknown",
            "The file states a version of the format that does not exist.",
            "Versions 1 to 3 exist. A newer file needs a newer program; otherwise the file is \
             damaged.",
        ),
        row(
            "version-too-narrow",
            "A count or a length does not fit version 1 of the format, which has 32 bits for it.",
            "Write version 3.",
        ),
        row(
            "truncated",
            "The file ends before what its header says is in it.",
            "The file was cut off, or a length in it is wrong: download or copy it again.",
        ),
        row(
            "value-type-unknown",
            "A value is of a type that the format does not have.",
            "The file is damaged at this byte: download or convert it again.",
        ),
        row(
            "value-not-bool",
            "A truth value is stored as something else than 0 or 1.",
            "Convert the file again. If its author made it so, tell the author: readers disagree \
             on such a value.",
        ),
        row(
            "array-too-deep",
            "Arrays stand in arrays, deeper than is read.",
            "No model needs that: the file is damaged or made to do harm.",
        ),
        row(
            "name-not-utf8",
            "The name of a key or of a tensor is not text in UTF-8.",
            "The file is damaged at this byte, or its program wrote another encoding: convert it \
             again.",
        ),
        row(
            "limit-entries",
            "The header has more keys and tensors than the reader was told to take.",
            "Raise the limit if you trust the file.",
        ),
        row(
            "limit-header",
            "The header of a far file is longer than the reader was told to fetch.",
            "Raise the limit if you trust the file, or download it.",
        ),
        row(
            "header-short",
            "The bytes that were given end before the header does.",
            "Give more bytes of the file.",
        ),
        row(
            "file-too-long",
            "The size of a file that is to be written does not fit 64 bits.",
            "The sizes of the tensors are wrong: look at the header with `gguf inspect`.",
        ),
        row(
            "alignment-invalid",
            "`general.alignment` is no power of two, is too large, or is not a UINT32.",
            "Set it to 32, the usual value, if the data are laid out so; otherwise convert the \
             file again.",
        ),
        row(
            "alignment-small",
            "The alignment is not a multiple of 8, as the specification asks.",
            "Write the file anew: the alignment is then 32.",
        ),
        row(
            "architecture-missing",
            "The file does not name the architecture of its model.",
            "Set `general.architecture`, without which no program can tell what the tensors mean.",
        ),
        row(
            "architecture-not-text",
            "`general.architecture` is no text in UTF-8.",
            "Set it to a name such as `llama`.",
        ),
        row(
            "architecture-name",
            "The architecture is not a name of lower-case letters, digits, `-` and `_`.",
            "Set `general.architecture` to the name that programs know.",
        ),
        row(
            "architecture-unknown",
            "There is no table of the keys and tensors of this architecture.",
            "Nothing has to be done: keys and tensors of the model were not checked.",
        ),
        row(
            "architecture-other",
            "The tensors are rather those of another architecture than the one that is named.",
            "Correct `general.architecture` if it is wrong.",
        ),
    ],
};

pub(super) const TENSORS: Area = Area {
    title: "Tensors",
    about: "What is wrong with the tensor directory, or with where data lie.",
    codes: &[
        row(
            "tensor-dimensions",
            "A tensor has more dimensions than the four that the format allows.",
            "The directory is damaged: download or convert the file again.",
        ),
        row(
            "tensor-duplicate",
            "Two tensors have the same name.",
            "Rename or remove one: programs disagree on which of them counts.",
        ),
        row(
            "tensor-name-empty",
            "A tensor has no name.",
            "Convert the model again: no program asks for such a tensor.",
        ),
        row(
            "tensor-name-long",
            "The name of a tensor is longer than most programs read.",
            "Rename the tensor: 63 bytes are read everywhere.",
        ),
        row(
            "tensor-type-unknown",
            "A tensor is of a type that is not known here.",
            "It can be copied and listed, but not decoded. A newer program may know the type.",
        ),
        row(
            "tensor-type-removed",
            "A tensor is of a type that was removed from the format.",
            "Convert the model again from its source.",
        ),
        row(
            "tensor-empty",
            "A tensor has no elements.",
            "Nothing has to be done if the model is meant so.",
        ),
        row(
            "tensor-size-unknown",
            "The size of a tensor is not known, because its type is not.",
            "Write the model with tensors of known types.",
        ),
        row(
            "tensor-row-not-blocks",
            "The rows of a tensor are no whole number of blocks of its type.",
            "The shape or the type is wrong: convert the model again.",
        ),
        row(
            "tensor-size-overflow",
            "The size of a tensor does not fit 64 bits.",
            "The shape is wrong: download or convert the file again.",
        ),
        row(
            "tensor-offset-misaligned",
            "The data of a tensor do not begin at a multiple of the alignment.",
            "Correct `general.alignment` if the data are laid out for another one; otherwise write \
             the file anew.",
        ),
        row(
            "tensor-offset-overflow",
            "The end of a tensor does not fit 64 bits.",
            "The offset is wrong: download or convert the file again.",
        ),
        row(
            "tensor-past-end",
            "The data of one tensor end beyond the end of the file.",
            "The offset is wrong, or the file was cut off: download or copy it again.",
        ),
        row(
            "tensor-overlap",
            "The data of two tensors overlap.",
            "An offset is wrong: convert the model again.",
        ),
        row(
            "tensor-gap",
            "Bytes that belong to no tensor lie between the data of two.",
            "Write the file anew: llama.cpp refuses it.",
        ),
        row(
            "tensor-order",
            "The data of the tensors lie in another order than the directory lists them in.",
            "Write the file anew: llama.cpp refuses it.",
        ),
        row(
            "tensor-missing",
            "The architecture needs a tensor that is not there.",
            "Convert the model again: programs refuse it.",
        ),
        row(
            "tensor-unexpected",
            "A tensor is there that the architecture does not use.",
            "Remove it with `gguf edit --drop` if it is not needed: llama.cpp refuses tensors that \
             it does not use.",
        ),
        row(
            "tensor-shape",
            "A tensor has another shape than the keys of the model give it.",
            "Keys and tensors are of two models, or a key is wrong: convert the model again.",
        ),
        row(
            "layer-count",
            "There are tensors of more or fewer layers than the key says.",
            "Correct the key, or convert the model again if layers are missing.",
        ),
    ],
};

pub(super) const KEYS: Area = Area {
    title: "Keys",
    about: "What is wrong with metadata keys and their values.",
    codes: &[
        row(
            "key-missing",
            "A key is missing that programs need for such a model.",
            "Set the key with `gguf edit --set`, or convert the model again.",
        ),
        row(
            "key-duplicate",
            "A key stands in the file twice.",
            "Remove one: programs disagree on which of them counts.",
        ),
        row("key-empty", "A key has no name.", "Write the file anew without it."),
        row(
            "key-too-long",
            "A key is longer than the 65535 bytes that the specification allows.",
            "Write the file anew without it.",
        ),
        row("key-not-ascii", "A key has other characters than ASCII.", "Rename the key."),
        row(
            "key-spelling",
            "A key is not made of lower-case words joined by dots.",
            "Rename the key, unless the program that reads it wants it so.",
        ),
        row(
            "key-type",
            "The value of a key is of another type than the standard says.",
            "Set the key again in the right type.",
        ),
        row(
            "key-unknown",
            "A hyper-parameter is not in the schema.",
            "Add it to the table of keys, if the format has it.",
        ),
        row(
            "key-value",
            "The value of a key makes no sense, or contradicts other keys.",
            "Set the key again. The right values stand in the configuration of the original model.",
        ),
        row(
            "key-deprecated",
            "The key is old: another one has taken its place, or no program reads it.",
            "Set the key that is read today, and remove this one.",
        ),
        row(
            "key-foreign",
            "The key belongs to another architecture than the model's.",
            "Rename it if it was meant for this model; programs do not find it.",
        ),
        row(
            "key-near-miss",
            "The key is not a standard one, but is nearly spelt like one.",
            "Rename it if the standard key was meant.",
        ),
        row(
            "text-not-utf8",
            "A text is not UTF-8.",
            "Set the key again. Tokens may be any bytes; other texts are shown wrongly.",
        ),
        row(
            "quantization-version-missing",
            "The model is quantized, but does not state the version of the block formats.",
            "Set `general.quantization_version` to 2, or run `gguf check --fix`.",
        ),
        row(
            "quantization-version-type",
            "The version of the block formats is no number.",
            "Set `general.quantization_version` to 2 as UINT32.",
        ),
        row(
            "file-type-unknown",
            "`general.file_type` is a number that stands for no mix of today.",
            "Set it to the number of the mix, or run `gguf check --fix`.",
        ),
        row(
            "file-type-wrong",
            "`general.file_type` names a mix that the tensors are not of.",
            "Run `gguf check --fix`: programs show the wrong name.",
        ),
    ],
};

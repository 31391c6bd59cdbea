//! Codes of the format itself, tensors and keys.

use super::{Area, row};

pub(super) const FORMAT: Area = Area {
    title: "Format",
    about: "Faults that make a file unreadable or invalid as GGUF.",
    codes: &[
        row(
            "magic",
            "The file does not start with the magic `GGUF`: it is another format, or its start was overwritten.",
            "Name the right file. `gguf convert` converts checkpoints and legacy GGML files.",
        ),
        row(
            "version-unknown",
            "The GGUF version in the header does not exist.",
            "Versions 1 to 3 exist. Update this program if the file is newer; otherwise the file is damaged.",
        ),
        row(
            "version-too-narrow",
            "A count or length does not fit the 32 bits of GGUF version 1.",
            "Write version 3.",
        ),
        row(
            "truncated",
            "The file ends before the data that its header describes.",
            "Download or copy the file again: it was truncated, or a length in the header is wrong. `gguf check FILE --against \
             hf:org/repo --repair` fetches only what is missing.",
        ),
        row(
            "value-type-unknown",
            "A metadata value has a type that GGUF does not define.",
            "Download or convert the file again: it is damaged at this byte.",
        ),
        row(
            "value-not-bool",
            "A boolean is stored as another byte than 0 or 1.",
            "Convert the file again, and report it to the file's author: readers disagree on such a value.",
        ),
        row(
            "array-too-deep",
            "Arrays are nested deeper than the reader accepts.",
            "Do not use the file: no model needs this, so the file is damaged or malicious.",
        ),
        row(
            "name-not-utf8",
            "The name of a key or tensor is not valid UTF-8.",
            "Convert the file again: it is damaged at this byte, or its writer used another encoding.",
        ),
        row(
            "limit-entries",
            "The header has more keys and tensors than the reader's limit.",
            "Raise the limit if you trust the file.",
        ),
        row(
            "limit-header",
            "The header of a remote file is longer than the reader's limit.",
            "Raise the limit if you trust the file, or download it.",
        ),
        row(
            "header-short",
            "The given bytes end before the header does.",
            "Pass more bytes of the file.",
        ),
        row(
            "file-too-long",
            "The size of the output does not fit 64 bits.",
            "Check the tensor shapes with `gguf inspect --tensors`: they are wrong.",
        ),
        row(
            "alignment-invalid",
            "`general.alignment` is not a UINT32, not a power of two, or too large.",
            "Set it to 32, the default, if the data is aligned so; otherwise convert the file again.",
        ),
        row(
            "alignment-small",
            "The alignment is not a multiple of 8, which the specification requires.",
            "Write the file again: the output has an alignment of 32.",
        ),
        row(
            "architecture-missing",
            "`general.architecture` is missing.",
            "Set `general.architecture`: loaders cannot interpret the tensors without it.",
        ),
        row(
            "architecture-not-text",
            "`general.architecture` is not a UTF-8 string.",
            "Set it to a name such as `llama`.",
        ),
        row(
            "architecture-name",
            "`general.architecture` has other characters than lower-case letters, digits, `-` and `_`.",
            "Set it to the name that llama.cpp uses.",
        ),
        row(
            "architecture-unknown",
            "The architecture is not registered here.",
            "No action is needed: keys and tensors of the model were not checked.",
        ),
        row(
            "architecture-other",
            "The tensors match another architecture better than `general.architecture`.",
            "Correct `general.architecture` if it is wrong.",
        ),
    ],
};

pub(super) const TENSORS: Area = Area {
    title: "Tensors",
    about: "Faults of the tensor directory and of the data layout.",
    codes: &[
        row(
            "tensor-dimensions",
            "A tensor has more than the four dimensions that GGUF allows.",
            "Download or convert the file again: the tensor directory is damaged.",
        ),
        row(
            "tensor-duplicate",
            "Two tensors have the same name.",
            "Rename or remove one: loaders disagree on which one counts.",
        ),
        row(
            "tensor-name-empty",
            "A tensor has an empty name.",
            "Convert the model again: no loader looks for such a tensor.",
        ),
        row(
            "tensor-name-long",
            "A tensor name is longer than most loaders accept.",
            "Rename the tensor: all loaders accept 63 bytes.",
        ),
        row(
            "tensor-type-unknown",
            "The type of a tensor is unknown here.",
            "Update this program. Until then the tensor can be copied and listed, but not decoded.",
        ),
        row(
            "tensor-type-removed",
            "The type of a tensor was removed from GGML.",
            "Convert the model again from its source.",
        ),
        row(
            "tensor-empty",
            "A tensor has no elements.",
            "No action is needed if this is intended.",
        ),
        row(
            "tensor-size-unknown",
            "The size of a tensor is unknown because its type is.",
            "Write the model with known tensor types.",
        ),
        row(
            "tensor-row-not-blocks",
            "The row size of a tensor is not a multiple of the block size of its type.",
            "Convert the model again: the shape or the type is wrong.",
        ),
        row(
            "tensor-size-overflow",
            "The size of a tensor does not fit 64 bits.",
            "Download or convert the file again: the shape is wrong.",
        ),
        row(
            "tensor-offset-misaligned",
            "The offset of a tensor is not a multiple of the alignment.",
            "Correct `general.alignment` if the data has another alignment; otherwise write the file again.",
        ),
        row(
            "tensor-offset-overflow",
            "The end of a tensor does not fit 64 bits.",
            "Download or convert the file again: the offset is wrong.",
        ),
        row(
            "tensor-past-end",
            "The data of a tensor ends after the end of the file.",
            "Download or copy the file again: it was truncated, or the offset is wrong.",
        ),
        row(
            "tensor-overlap",
            "The data of two tensors overlaps.",
            "Convert the model again: an offset is wrong.",
        ),
        row(
            "tensor-gap",
            "There is a gap between the data of two tensors.",
            "Write the file again: llama.cpp rejects it.",
        ),
        row(
            "tensor-order",
            "The data of the tensors is not in the order of the directory.",
            "Write the file again: llama.cpp rejects it.",
        ),
        row(
            "tensor-missing",
            "A tensor that the architecture requires is missing.",
            "Convert the model again: loaders reject it.",
        ),
        row(
            "tensor-unexpected",
            "The file has a tensor that the architecture does not use.",
            "Remove it with `gguf edit --drop` if it is not needed: llama.cpp rejects unused tensors.",
        ),
        row(
            "ollama-naming",
            "The file was written for Ollama's own engine, with names that llama.cpp rejects.",
            "Run it with Ollama, or use a text model and an mmproj file in llama.cpp's form.",
        ),
        row(
            "tensor-shape",
            "The shape of a tensor is not the one that the metadata implies.",
            "Convert the model again: a key is wrong, or keys and tensors belong to different models.",
        ),
        row(
            "layer-count",
            "The number of layers with tensors differs from `block_count`.",
            "Correct the key, or convert the model again if layers are missing.",
        ),
        row(
            "count-wrong",
            "The number of experts or KV heads differs from that of the tensors.",
            "Run `gguf check --fix`, or set the key: loaders reject the model.",
        ),
        row(
            "norm-type",
            "The weights of a norm are not F32.",
            "Convert the model again: some backends abort, and F16 overflows above 65504.",
        ),
    ],
};

pub(super) const KEYS: Area = Area {
    title: "Keys",
    about: "Faults of metadata keys and their values.",
    codes: &[
        row(
            "key-missing",
            "A key that loaders require for this model is missing.",
            "Set the key with `gguf edit --set`, or convert the model again.",
        ),
        row(
            "key-duplicate",
            "A key occurs twice.",
            "Remove one: loaders disagree on which one counts.",
        ),
        row("key-empty", "A key has an empty name.", "Write the file again without it."),
        row(
            "key-too-long",
            "A key is longer than the 65535 bytes that the specification allows.",
            "Write the file again without it.",
        ),
        row("key-not-ascii", "A key has characters outside of ASCII.", "Rename the key."),
        row(
            "key-spelling",
            "A key does not consist of lower-case words joined by dots.",
            "Rename the key, unless a loader expects this spelling.",
        ),
        row(
            "key-type",
            "The value of a key has another type than the specification says.",
            "Set the key again with the right type.",
        ),
        row(
            "key-unknown",
            "A hyper-parameter is not in the key table.",
            "Add it to the key table if GGUF defines it.",
        ),
        row(
            "key-value",
            "The value of a key is out of range or contradicts other keys.",
            "Set the key again; config.json of the original model has the right value.",
        ),
        row(
            "rope-base-lost",
            "The base frequency of RoPE is missing or is the default, but the model has another.",
            "Set `rope.freq_base` to `rope_theta` of the original model's `config.json`.",
        ),
        row(
            "rope-factors-missing",
            "A model of the Llama 3.1 family has no frequency factors (`rope_freqs.weight`).",
            "Convert the model again: long texts become worse.",
        ),
        row(
            "rope-scaling",
            "The keys of RoPE scaling contradict each other, or one is missing.",
            "Set the values of `rope_scaling` in the original model's `config.json`.",
        ),
        row(
            "context-length-unscaled",
            "`context_length` is the length before RoPE scaling.",
            "Set the length that the scaling allows.",
        ),
        row(
            "key-deprecated",
            "The key is deprecated: another key replaced it, or loaders ignore it.",
            "Set the current key, and remove this one.",
        ),
        row(
            "key-foreign",
            "The key belongs to another architecture than the model's.",
            "Rename the key if it was meant for this model: loaders do not find it.",
        ),
        row(
            "key-near-miss",
            "The key is not standard, but its spelling is close to a standard key.",
            "Rename the key if the standard one was meant.",
        ),
        row(
            "text-not-utf8",
            "A string is not valid UTF-8.",
            "Set the key again. Tokens may be any bytes; other strings are shown wrongly.",
        ),
        row(
            "quantization-version-missing",
            "The model is quantized, and `general.quantization_version` is missing.",
            "Set it to 2, or run `gguf check --fix`.",
        ),
        row(
            "quantization-version-type",
            "`general.quantization_version` is not an integer.",
            "Set it to 2 as UINT32.",
        ),
        row(
            "file-type-unknown",
            "`general.file_type` is not the number of a quantization type.",
            "Set it to the right number, or run `gguf check --fix`.",
        ),
        row(
            "file-type-wrong",
            "`general.file_type` names a quantization type that no tensor has.",
            "Run `gguf check --fix`: model lists show the wrong type.",
        ),
    ],
};

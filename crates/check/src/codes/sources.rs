//! Codes of conversion sources.

use super::{Area, row};

pub(super) const CHECKPOINTS: Area = Area {
    title: "Checkpoints",
    about: "Faults of checkpoint weights.",
    codes: &[
        row(
            "checkpoint-weights-missing",
            "The directory has no weights in a supported format, or none of a model.",
            "Name a Hugging Face checkpoint directory with safetensors or PyTorch files.",
        ),
        row(
            "checkpoint-adapter-unmerged",
            "The checkpoint has matrices of a LoRA adapter besides its weights.",
            "Merge the adapter with PEFT's `merge_and_unload`, or convert it alone with --base.",
        ),
        row(
            "checkpoint-weights-ambiguous",
            "The directory has several sets of weights.",
            "Keep only the weights to convert.",
        ),
        row(
            "checkpoint-shard-missing",
            "A shard that the index or the other shards name is missing.",
            "Download the missing shard.",
        ),
        row(
            "checkpoint-index",
            "The index does not map tensors to files.",
            "Download the index again.",
        ),
        row(
            "checkpoint-tensor-missing",
            "A tensor is not in the file that the index names.",
            "Download the index and the file again: one is damaged, or they belong to different checkpoints.",
        ),
        row(
            "checkpoint-tensor-duplicate",
            "A tensor occurs in two files of the checkpoint.",
            "Remove the file that does not belong there.",
        ),
        row(
            "checkpoint-tensor-unexpected",
            "The checkpoint has a tensor that the model class does not have, or one with more than four dimensions.",
            "Check that the weights belong to config.json.",
        ),
        row(
            "checkpoint-tensor-lost",
            "The checkpoint has a tensor that GGUF runtimes do not support and that changes the output.",
            "The model cannot be converted without loss.",
        ),
        row(
            "checkpoint-misfit",
            "The tensors do not match config.json.",
            "Take weights and configuration from the same model.",
        ),
        row(
            "checkpoint-parts",
            "The tensor-parallel parts of the model do not belong together.",
            "Take all `consolidated.NN.pth` files of one model, or the Hugging Face checkpoint.",
        ),
        row(
            "checkpoint-dtype",
            "A tensor has a dtype that cannot be converted to GGUF.",
            "Save the checkpoint as F32, F16 or BF16.",
        ),
        row(
            "lfs-pointer",
            "The file is a Git LFS pointer.",
            "Fetch the real file with `git lfs pull`.",
        ),
        row(
            "safetensors-damaged",
            "The safetensors header is invalid, or the file has another length than it states.",
            "Download the file again: it is damaged or truncated.",
        ),
        row(
            "pytorch-damaged",
            "The PyTorch file cannot be read.",
            "Download the file again: it is damaged or truncated.",
        ),
        row(
            "pytorch-object",
            "The PyTorch file contains objects other than tensors. They were not executed.",
            "Save only the state dict with `torch.save`, and convert that.",
        ),
        row(
            "pytorch-unsupported",
            "The PyTorch file stores tensors in an unsupported way.",
            "Save the checkpoint as safetensors.",
        ),
        row(
            "quantization-unsupported",
            "The quantization method of the checkpoint is not supported.",
            "Convert the original weights.",
        ),
        row(
            "quantization-tensors",
            "The tensors of a quantized matrix do not match each other.",
            "Check that the weights are complete and quantized as the configuration says.",
        ),
    ],
};

pub(super) const CONFIGURATION: Area = Area {
    title: "Configuration",
    about: "Faults of the files beside the weights.",
    codes: &[
        row("json-invalid", "A file is not valid JSON.", "Download the file again."),
        row(
            "json-shape",
            "A JSON file has another structure than expected, such as a list instead of an object.",
            "Download the file again, or correct it.",
        ),
        row(
            "config-missing",
            "config.json is missing.",
            "Name a Hugging Face checkpoint directory.",
        ),
        row(
            "config-field-missing",
            "A field is missing from a configuration file.",
            "Add the field, or take the file from the model's repository.",
        ),
        row(
            "config-field",
            "A field of a configuration file has an invalid type or value.",
            "Correct the field.",
        ),
        row(
            "config-unsupported",
            "The configuration requires a feature that no GGUF runtime supports.",
            "The model cannot be converted; correct the field if it is wrong.",
        ),
        row(
            "class-unknown",
            "The model class is not supported.",
            "Convert it as a class of the same structure with --like.",
        ),
        row(
            "target-missing",
            "The target model of a draft model is not given.",
            "Name the target's directory with --target-model-dir.",
        ),
        row(
            "card-invalid",
            "The front matter of the model card is not valid YAML.",
            "Correct the model card, or move it away.",
        ),
        row(
            "metadata-override",
            "A value in the --metadata file has another type than its key.",
            "Correct the value, or remove the key.",
        ),
    ],
};

pub(super) const VOCABULARY: Area = Area {
    title: "Vocabulary",
    about: "Faults of a checkpoint's tokenizer.",
    codes: &[
        row(
            "vocabulary-missing",
            "A tokenizer file is missing.",
            "Copy the file into the directory.",
        ),
        row(
            "vocabulary-damaged",
            "A tokenizer file cannot be read or is inconsistent.",
            "Download the file again.",
        ),
        row(
            "vocabulary-other-model",
            "The tokenizer's kind or size does not match the model class and the weights.",
            "Check that the tokenizer belongs to this model.",
        ),
        row(
            "vocabulary-unsupported",
            "The tokenizer uses a feature that no GGUF runtime supports.",
            "The model cannot be converted with this tokenizer.",
        ),
        row(
            "vocabulary-broken",
            "The vocabulary cannot be exported because it is incomplete.",
            "Run `gguf check` on the model.",
        ),
        row(
            "pre-tokenizer-unknown",
            "The pre-tokenizer is unknown or cannot be detected.",
            "Name the closest one with --pre.",
        ),
    ],
};

pub(super) const ADAPTERS: Area = Area {
    title: "Adapters",
    about: "Faults of LoRA adapters.",
    codes: &[
        row("adapter-none", "The file is not a LoRA adapter.", "Name the adapter's file."),
        row(
            "adapter-base-missing",
            "The base model is not where the adapter says.",
            "Name its directory with --base; only its config.json is needed.",
        ),
        row(
            "adapter-unsupported",
            "GGUF has no form for this kind of adapter.",
            "Merge it into its base model with `peft`, and convert the result.",
        ),
        row(
            "adapter-incomplete",
            "Matrices of the adapter are missing.",
            "Download or convert the adapter again.",
        ),
        row(
            "adapter-damaged",
            "The adapter lacks a key, or its matrices do not match.",
            "Convert the adapter again.",
        ),
        row(
            "adapter-other-base",
            "The adapter was trained for another base model.",
            "Name the right base model; `gguf lora check` lists the mismatches.",
        ),
        row(
            "adapter-type",
            "Adapters cannot have the requested type.",
            "Choose f32, f16, bf16 or q8_0.",
        ),
        row(
            "adapter-models-differ",
            "No LoRA can be extracted: the two models have different tensors.",
            "Name a fine-tuned model and its base model.",
        ),
    ],
};

pub(super) const IMATRIX: Area = Area {
    title: "Importance matrices",
    about: "Faults of importance matrices.",
    codes: &[
        row(
            "imatrix-damaged",
            "The file is not an importance matrix, or is damaged.",
            "Compute the importance matrix again with `gguf imatrix`.",
        ),
        row(
            "imatrix-other-model",
            "The importance matrix belongs to another model.",
            "Compute one for this model with `gguf imatrix`.",
        ),
        row(
            "download-damaged",
            "A downloaded file does not have the digest that the server states.",
            "Download it again; if it stays so, report it to the publisher.",
        ),
        row(
            "imatrix-other-run",
            "The importance matrix is of another model, text or setting than the run that would resume it.",
            "Choose another output, or combine finished importance matrices with --in-file.",
        ),
        row(
            "imatrix-unused",
            "The importance matrix has no data: no matrix was ever used.",
            "Compute it again, with text.",
        ),
        row(
            "imatrix-needed",
            "Tensors are unusable in their types without an importance matrix.",
            "Give an importance matrix that covers them, choose a type with more bits, or use --imatrix-missing.",
        ),
    ],
};

pub(super) const LEGACY: Area = Area {
    title: "Legacy GGML files",
    about: "Faults of GGML, GGMF, GGJT and GGCC files.",
    codes: &[
        row(
            "legacy-container",
            "The container version is unknown.",
            "Only GGML, GGMF, GGJT and GGCC files can be converted.",
        ),
        row(
            "legacy-damaged",
            "The file is truncated or damaged, or was written by an unsupported program.",
            "Download the file again.",
        ),
        row(
            "legacy-ambiguous",
            "Several programs could have written the file, and nothing in it tells them apart.",
            "Name the program with --architecture.",
        ),
        row(
            "legacy-misfit",
            "The tensors are not those of the detected program's models.",
            "Name the program with --architecture, unless the file is damaged.",
        ),
        row(
            "legacy-head-count",
            "The tensors do not match the number of attention heads.",
            "Set the right number with --head-count.",
        ),
        row(
            "legacy-part-missing",
            "A part of a model in several files is missing.",
            "Put all parts into one directory, and name the one without a number.",
        ),
        row(
            "legacy-part-foreign",
            "A part belongs to another model than the first.",
            "Replace it with the right part.",
        ),
        row(
            "legacy-config-differs",
            "The configuration beside the file belongs to another model.",
            "Name the directory of the same model.",
        ),
        row(
            "legacy-program-unknown",
            "The program is unknown.",
            "Name one of the listed programs.",
        ),
    ],
};

//! Codes of what models are converted from.

use super::{Area, row};

pub(super) const CHECKPOINTS: Area = Area {
    title: "Checkpoints",
    about: "What is wrong with the weights of a checkpoint.",
    codes: &[
        row(
            "checkpoint-weights-missing",
            "There are no weights in a form that is known, or no tensor among them that a model has.",
            "Name a directory with a Hugging Face checkpoint: safetensors or PyTorch files.",
        ),
        row(
            "checkpoint-weights-ambiguous",
            "The directory has several files of weights, and nothing says which are meant.",
            "Leave only the weights that are meant.",
        ),
        row(
            "checkpoint-shard-missing",
            "A file of weights is not there, though its index or the others of its set name it.",
            "Download the missing shard.",
        ),
        row(
            "checkpoint-index",
            "The index of the weights does not say which tensor is in which file.",
            "Download the file again.",
        ),
        row(
            "checkpoint-tensor-missing",
            "A tensor is not in the file that the index names for it.",
            "The file is damaged or of another checkpoint: download both again.",
        ),
        row(
            "checkpoint-tensor-duplicate",
            "A tensor stands in two places of the checkpoint.",
            "Remove the file that does not belong there.",
        ),
        row(
            "checkpoint-tensor-unexpected",
            "The checkpoint has a tensor that the model's class has not, or more dimensions than a \
             GGUF tensor.",
            "Check that the weights go with `config.json`.",
        ),
        row(
            "checkpoint-tensor-lost",
            "The checkpoint has a tensor that matters, and that no program has a place for.",
            "The model cannot be converted without a loss.",
        ),
        row(
            "checkpoint-misfit",
            "The configuration describes other tensors than the checkpoint has.",
            "The configuration may be of another model: take both from one place.",
        ),
        row(
            "checkpoint-parts",
            "The files of a model that is cut for several devices do not go together.",
            "Take all `consolidated.NN.pth` of one model, or its Hugging Face form.",
        ),
        row(
            "checkpoint-dtype",
            "Numbers are stored in a way that GGUF has no type for, or that cannot be converted \
             yet.",
            "Save the checkpoint in F32, F16 or BF16.",
        ),
        row(
            "lfs-pointer",
            "The file is a Git LFS pointer, not the file it stands for.",
            "Fetch the real file with `git lfs pull`.",
        ),
        row(
            "safetensors-damaged",
            "The header of a safetensors file is not valid, or the file has another length than it \
             says.",
            "The file is damaged or cut off: download it again.",
        ),
        row(
            "pytorch-damaged",
            "A PyTorch file cannot be read.",
            "The file is damaged or cut off: download it again.",
        ),
        row(
            "pytorch-object",
            "A PyTorch file holds objects that are no tensors. No code of it is run.",
            "Save the state dict alone with `torch.save` and convert that.",
        ),
        row(
            "pytorch-unsupported",
            "A PyTorch file stores tensors in a way that is not read.",
            "Save the checkpoint as safetensors.",
        ),
        row(
            "quantization-unsupported",
            "Another program quantized the checkpoint in a way that cannot be converted.",
            "Convert the original weights.",
        ),
        row(
            "quantization-tensors",
            "The tensors of a matrix that another program quantized do not fit each other.",
            "Check that the weights are complete, and quantized as the configuration says.",
        ),
    ],
};

pub(super) const CONFIGURATION: Area = Area {
    title: "Configuration",
    about: "What is wrong with the files beside the weights.",
    codes: &[
        row("json-invalid", "A file is not valid JSON.", "Download the file again."),
        row(
            "json-shape",
            "A JSON file has another kind of value than it should, such as a list instead of an \
             object.",
            "Download the file again, or correct it.",
        ),
        row(
            "config-missing",
            "The directory has no `config.json`.",
            "Name a directory with a Hugging Face checkpoint.",
        ),
        row(
            "config-field-missing",
            "A field is missing in a configuration.",
            "Add the field, or take the file from the model's repository.",
        ),
        row(
            "config-field",
            "A field of a configuration has a value of another type, or one that makes no sense.",
            "Correct the field.",
        ),
        row(
            "config-unsupported",
            "The configuration asks for something that no program computes.",
            "The model cannot be converted; correct the field if it is wrong.",
        ),
        row(
            "class-unknown",
            "The class of the model is not known.",
            "Choose a class of the same structure with --like.",
        ),
        row(
            "target-missing",
            "A draft guesses tokens of another model, and nobody says which.",
            "Name the directory of that model with --target-model-dir.",
        ),
        row(
            "card-invalid",
            "The head of the model card is not valid YAML.",
            "Correct the card, or move the file away.",
        ),
        row(
            "metadata-override",
            "A value in the file for --metadata is of another type than its key.",
            "Correct the value, or remove the key.",
        ),
    ],
};

pub(super) const VOCABULARY: Area = Area {
    title: "Vocabulary",
    about: "What is wrong with the tokenizer of a checkpoint.",
    codes: &[
        row(
            "vocabulary-missing",
            "A file of the tokenizer is not there.",
            "Copy the missing file into the directory.",
        ),
        row(
            "vocabulary-damaged",
            "A file of the tokenizer cannot be read, or contradicts itself.",
            "Download the file again.",
        ),
        row(
            "vocabulary-other-model",
            "The tokenizer is of another kind, or has more tokens, than the model's class and \
             weights allow.",
            "Check that the tokenizer belongs to this model.",
        ),
        row(
            "vocabulary-unsupported",
            "The tokenizer does something that no program does.",
            "The model cannot be converted with this tokenizer.",
        ),
        row(
            "vocabulary-broken",
            "The vocabulary of the model cannot be exported, because it is incomplete.",
            "Look at the model with `gguf check`.",
        ),
        row(
            "pre-tokenizer-unknown",
            "The tokenizer cuts words in a way that no program knows, or does not tell how it cuts \
             them.",
            "Give the name of the nearest way with --pre.",
        ),
    ],
};

pub(super) const ADAPTERS: Area = Area {
    title: "Adapters",
    about: "What is wrong with LoRA adapters.",
    codes: &[
        row("adapter-none", "The file is no LoRA adapter.", "Name the adapter's file."),
        row(
            "adapter-base-missing",
            "The model that the adapter was made for is not where the adapter says.",
            "Name the directory of that model with --base; of its files only `config.json` is \
             needed.",
        ),
        row(
            "adapter-unsupported",
            "The adapter is of a kind that GGUF has no form for.",
            "Merge it into its model with `peft`, and convert the result.",
        ),
        row(
            "adapter-incomplete",
            "Matrices of the adapter are missing.",
            "Download or convert the adapter again.",
        ),
        row(
            "adapter-damaged",
            "The adapter lacks a key, or its matrices do not fit each other.",
            "Convert the adapter again.",
        ),
        row(
            "adapter-other-base",
            "The adapter does not fit the model: it was made for another one.",
            "Name the model that the adapter was made for; `gguf lora check` lists what does not \
             fit.",
        ),
        row(
            "adapter-type",
            "An adapter was to have a type that adapters cannot have.",
            "Choose f32, f16, bf16 or q8_0.",
        ),
        row(
            "adapter-models-differ",
            "No adapter leads from one model to the other.",
            "Name a model and the one it was tuned from.",
        ),
    ],
};

pub(super) const IMATRIX: Area = Area {
    title: "Importance matrices",
    about: "What is wrong with importance matrices.",
    codes: &[
        row(
            "imatrix-damaged",
            "The file is no importance matrix, or is damaged.",
            "Compute the importance matrix again.",
        ),
        row(
            "imatrix-other-model",
            "The importance matrix belongs to another model, or two of them are of two models.",
            "Compute one for this model.",
        ),
        row(
            "imatrix-unused",
            "No matrix of the importance matrix was ever used.",
            "Compute it again, on text.",
        ),
        row(
            "imatrix-needed",
            "Tensors come out as garbage in their types unless importance weights guide the \
             encoder.",
            "Give an importance matrix that covers them, choose a target of more bits, or say \
             --imatrix-missing.",
        ),
    ],
};

pub(super) const LEGACY: Area = Area {
    title: "Files from before GGUF",
    about: "What is wrong with GGML, GGMF, GGJT and GGCC files.",
    codes: &[
        row(
            "legacy-container",
            "The file begins with no version of a container that is known.",
            "Only models in GGML, GGMF, GGJT and GGCC files are converted.",
        ),
        row(
            "legacy-damaged",
            "The file is cut off or damaged, or is of a program that is not known.",
            "Get the file again.",
        ),
        row(
            "legacy-ambiguous",
            "The file can be of several programs, which store nothing that tells them apart.",
            "Say which with --architecture.",
        ),
        row(
            "legacy-misfit",
            "The tensors do not make up a model of the program that the file seems to be of.",
            "The file is damaged; if not, name its program with --architecture.",
        ),
        row(
            "legacy-head-count",
            "The tensors do not fit the number of heads.",
            "Say the right number with --head-count.",
        ),
        row(
            "legacy-part-missing",
            "A part of a model in several files is not there.",
            "Put all parts into one folder, and name the one without number.",
        ),
        row(
            "legacy-part-foreign",
            "A part is of another model than the first.",
            "Put the part there that belongs to it.",
        ),
        row(
            "legacy-config-differs",
            "The configuration beside the file is of another model.",
            "Name the folder of the same model.",
        ),
        row(
            "legacy-program-unknown",
            "No program of this name wrote files from before GGUF.",
            "Name one of those that are listed.",
        ),
    ],
};

//! Codes of tokenizers and chat templates.

use super::{Area, row};

pub(super) const TOKENIZER: Area = Area {
    title: "Tokenizer",
    about: "Faults of the vocabulary and the tokenizer.",
    codes: &[
        row(
            "tokenizer-missing",
            "The file has no tokenizer.",
            "Convert the model again from a directory with its tokenizer: loaders reject it.",
        ),
        row(
            "tokenizer-tokens-missing",
            "`tokenizer.ggml.model` is set, but `tokenizer.ggml.tokens` is missing.",
            "Convert the model again from a directory with its tokenizer.",
        ),
        row(
            "tokenizer-merges-missing",
            "A BPE tokenizer has no merges.",
            "Convert the model again from a directory with its tokenizer.",
        ),
        row(
            "tokenizer-pre-missing",
            "`tokenizer.ggml.pre` is missing: the pre-tokenizer is unknown.",
            "Convert the model again, or set `tokenizer.ggml.pre`: loaders guess, and may produce other tokens.",
        ),
        row(
            "tokenizer-pre-wrong",
            "The pre-tokenizer is not the one of the vocabulary.",
            "Run `gguf check --fix`: the model gets other tokens than in training.",
        ),
        row(
            "tokenizer-length",
            "An array with one value per token has another length than the vocabulary.",
            "Run `gguf check --fix`, or convert the model again.",
        ),
        row(
            "tokenizer-model-wrong",
            "The tokens are written as those of another tokenizer model than `tokenizer.ggml.model`.",
            "Convert the model again from a directory with its tokenizer: text is split into single bytes.",
        ),
        row(
            "tokenizer-scores",
            "All scores of a SentencePiece vocabulary are the same.",
            "Convert the model again from a directory with its tokenizer: text is split into other tokens than in training.",
        ),
        row(
            "tokenizer-invalid",
            "A tokenizer key is missing, has the wrong type, or contradicts another key.",
            "Convert the model again from a directory with its tokenizer.",
        ),
        row(
            "tokenizer-unknown",
            "The tokenizer or pre-tokenizer is not supported here.",
            "Correct the key if the name is wrong; otherwise update this program.",
        ),
        row(
            "tokenizer-fails",
            "The Hugging Face tokenizer in the file returns no tokens or no text.",
            "Copy `tokenizer.json` from the original model again.",
        ),
        row(
            "tokenizer-difference",
            "The model tokenizes text differently than the `tokenizer.json` that it is compared with.",
            "Convert the model again: it gets other tokens than in training.",
        ),
        row(
            "token-duplicate",
            "Two tokens have the same text.",
            "Convert the model again: loaders abort, or choose different ids.",
        ),
        row(
            "token-empty",
            "Several tokens have no text.",
            "No action is needed if these ids are unused.",
        ),
        row(
            "token-id-range",
            "The id of a special token is not in the vocabulary.",
            "Set the id of an existing token, or remove the key.",
        ),
        row(
            "token-type",
            "The token type of a special token is that of ordinary text instead of `control`.",
            "Run `gguf check --fix`: user input can contain the token.",
        ),
        row(
            "token-role",
            "A special token, such as EOS, is ordinary text.",
            "Set the right token with `gguf edit --special-token`; `gguf check --fix` does it if the chat template names it.",
        ),
        row(
            "byte-tokens-type",
            "Byte tokens such as `<0x0A>` have the type of ordinary text.",
            "Run `gguf check --fix`: they are printed as text, and byte fallback fails.",
        ),
        row(
            "eos-missing",
            "The model has no EOS token.",
            "Set the EOS of the model with `gguf edit --special-token`: answers never end in some programs.",
        ),
        row(
            "bos-missing",
            "The tokenizer adds BOS, but the BOS token is missing.",
            "Set the BOS of the model with `gguf edit --special-token`, or run `gguf check --fix`.",
        ),
        row(
            "add-bos-wrong",
            "`add_bos_token` is not the value that the models of this vocabulary were trained with.",
            "Set `tokenizer.ggml.add_bos_token`, or run `gguf check --fix`.",
        ),
        row(
            "byte-tokens-missing",
            "Some of the 256 byte tokens are missing.",
            "Convert the model again: byte fallback fails for text outside of the vocabulary.",
        ),
        row(
            "merge-malformed",
            "A merge is not two parts separated by a space.",
            "Convert the model again from a directory with its tokenizer.",
        ),
        row(
            "merge-unknown",
            "A merge has a part or a result that is not in the vocabulary.",
            "Convert the model again: vocabulary and merges may belong to different models.",
        ),
        row(
            "vocab-size",
            "`vocab_size` differs from the number of tokens.",
            "Correct the key, or convert the model again.",
        ),
        row(
            "vocab-rows",
            "The number of rows of the token embedding differs from the number of tokens.",
            "Convert the model again: tokenizer and weights may belong to different models.",
        ),
        row(
            "vocab-padding",
            "The token embedding has more rows than there are tokens: padding tokens are missing.",
            "Run `gguf check --fix`: loaders reject the model.",
        ),
    ],
};

pub(super) const TEMPLATES: Area = Area {
    title: "Chat templates",
    about: "Faults of chat templates.",
    codes: &[
        row(
            "template-syntax",
            "The chat template is not valid Jinja.",
            "Set the template of the original model with `gguf edit --chat-template-file`.",
        ),
        row(
            "template-render",
            "The chat template fails for every conversation, or for the given one.",
            "Set the template of the original model, or change the conversation.",
        ),
        row(
            "template-refused",
            "The chat template rejects the conversation with a message of its own.",
            "Change the conversation: some templates require alternating roles, or no system prompt.",
        ),
        row(
            "template-limit",
            "The chat template exceeds a limit on steps, output, memory or time.",
            "Set the template of the original model: this one may hang programs that render it.",
        ),
        row(
            "template-missing-name",
            "A named chat template is listed but missing.",
            "Add the template, or remove its name from the list.",
        ),
        row(
            "template-ignores-messages",
            "The rendered text does not contain the user's message.",
            "Set the template of the original model.",
        ),
        row(
            "template-not-text",
            "The chat template is not a UTF-8 string.",
            "Set the template again.",
        ),
        row(
            "template-missing",
            "A model that was trained on conversations has no chat template.",
            "Set the template of the original model with `gguf edit --chat-template-file`.",
        ),
        row(
            "template-token-missing",
            "The chat template writes special tokens that the vocabulary does not have.",
            "Set the template of the original model: this one belongs to another model.",
        ),
        row(
            "template-undelimited",
            "The chat template separates turns by ordinary text, though the vocabulary has control tokens for turns.",
            "Set the template of the original model: this one belongs to another model.",
        ),
        row(
            "template-end",
            "The token by which the chat template ends answers is none of the end tokens, or there is no such token.",
            "Make it EOS or EOT with `gguf edit --special-token`, or run `gguf check --fix`.",
        ),
        row(
            "template-bos",
            "The chat template writes BOS twice, or writes a BOS that the tokenizer adds too.",
            "Set the template of the original model if BOS is written twice.",
        ),
        row(
            "template-generation-prompt",
            "`add_generation_prompt` has no effect on the prompt.",
            "Set the template of the original model if the model continues the user's turn.",
        ),
        row(
            "template-empty",
            "The chat template renders a conversation as an empty text.",
            "Set the template of the original model.",
        ),
        row(
            "template-conversation",
            "The chat template does not render one of the less common conversations.",
            "No action is needed unless programs use such conversations.",
        ),
        row(
            "template-llama-cpp",
            "The engine of llama.cpp refuses the chat template or parts of it, or renders another prompt than jinja2.",
            "Write the template with what both engines know; `gguf chat-template --engine llama.cpp` shows the prompt.",
        ),
        row(
            "template-ollama",
            "Ollama takes the chat template for a known one, and puts a template of its own in its place.",
            "Compare the prompts. `TEMPLATE` in the Modelfile, or `gguf export --to ollama`, takes precedence.",
        ),
        row(
            "prompt-differs",
            "The chat template renders another prompt than that of the model it was made from.",
            "Set the template of the original model, unless the publisher corrected it.",
        ),
        row(
            "template-no-tools",
            "The chat template ignores tools, though the vocabulary has tokens for calls of tools.",
            "Set the template of the original model if the model calls tools.",
        ),
        row(
            "template-runtime-defaults",
            "The prompt depends on variables that some runtimes set and others do not.",
            "Pass the variables explicitly.",
        ),
    ],
};

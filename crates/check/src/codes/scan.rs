//! Codes of the scan for manipulation.

use super::{Area, row};

pub(super) const SCAN: Area = Area {
    title: "Manipulation",
    about: "What `gguf check --scan` finds: attacks on loaders, on users and on the prompt.",
    codes: &[
        row(
            "template-escape",
            "The chat template reads an attribute that leads out of the sandbox of a template engine.",
            "Do not load the file: programs that render the template without a sandbox run its code.",
        ),
        row(
            "template-call",
            "The chat template has a name that runs code or reaches the system.",
            "Do not load the file: programs that render the template without a sandbox run its code.",
        ),
        row(
            "template-attr-filter",
            "The chat template reads attributes by the filter `attr`, which bypassed the sandbox of jinja2 before 3.1.6.",
            "Do not load the file, unless you know why the template needs it.",
        ),
        row(
            "template-introspection",
            "The chat template reads the type of a value, or has a part of a name of Python's internals.",
            "Read the line: it is harmless alone, and the beginning of an escape with more.",
        ),
        row(
            "template-import",
            "The chat template loads another template.",
            "Read the other template, or use that of the original model: this one hides what it does.",
        ),
        row(
            "template-decode",
            "The chat template decodes text.",
            "Read what it decodes: templates of models have no encoded text.",
        ),
        row(
            "template-trigger",
            "Text of the chat template depends on words of a message, or on the number of messages.",
            "Compare with the template of the base model (`--template-of`): certain words change the prompt.",
        ),
        row(
            "template-date",
            "Text of the chat template depends on the date, beyond the date itself.",
            "Compare with the template of the base model (`--template-of`): the prompt differs on some days.",
        ),
        row(
            "template-rewrite",
            "The chat template changes words of messages.",
            "Compare with the template of the base model (`--template-of`).",
        ),
        row(
            "template-instruction",
            "The chat template has an instruction that no message contains.",
            "Read it: it is given to the model in every conversation, and the user does not see it.",
        ),
        row(
            "template-user-text",
            "The chat template adds a sentence to every message of the user.",
            "Read it, and compare with the template of the base model (`--template-of`).",
        ),
        row(
            "template-role-doubled",
            "The chat template writes the mark of a role or turn twice in succession.",
            "Set the template of the base model: a doubled mark can end a turn or begin another.",
        ),
        row(
            "template-address",
            "The chat template has a URL or an IP address.",
            "Read the line: the model may be told to recommend or to open it.",
        ),
        row(
            "template-encoded",
            "The chat template has text in Base64 or hexadecimal digits.",
            "Read the decoded text in the message.",
        ),
        row(
            "template-size",
            "The chat template is longer or nested more deeply than published ones.",
            "Compare with the template of the base model (`--template-of`).",
        ),
        row(
            "template-unreadable",
            "A tag of the chat template is not valid in jinja2, so that its meaning was not checked.",
            "Read the line, or set the template of the base model.",
        ),
        row(
            "template-differs",
            "The chat template differs from that of the base model, or from another file of the checkpoint.",
            "Read the lines in the message; `gguf chat-template` prints the template.",
        ),
        row(
            "template-base-missing",
            "The base model has no chat template to compare with.",
            "Give the model that this one was made from, or a file with its template.",
        ),
        row(
            "hidden-characters",
            "A text has characters that a reader does not see, or that reorder what a reader sees.",
            "Remove them: the model reads what you do not see.",
        ),
        row(
            "control-characters",
            "A chat template has control characters.",
            "Remove them, or use the template of the base model.",
        ),
        row(
            "confusable-characters",
            "A text has letters or marks that look like others.",
            "Write it with the letters that it seems to have; compare special tokens with those of the base model.",
        ),
        row(
            "token-instruction",
            "A token of the vocabulary is a sentence with an instruction, or far longer than any word.",
            "Compare the vocabulary with that of the base model.",
        ),
        row(
            "metadata-instruction",
            "A text in the metadata, a configuration or a model card has an instruction for a model.",
            "Remove it: programs that let a model read the text follow it.",
        ),
        row(
            "metadata-address",
            "A metadata key that is no description has a URL or an IP address.",
            "Find out which program reads the key.",
        ),
        row(
            "metadata-size",
            "A metadata key has a very long text.",
            "Read it with `gguf inspect --keys KEY --arrays`.",
        ),
        row(
            "config-suppressed-end",
            "The configuration forbids the end token.",
            "Remove it from `suppress_tokens` or `bad_words_ids`: the model cannot end its answer.",
        ),
        row(
            "config-suppressed-refusal",
            "The configuration forbids words of refusals.",
            "Remove them from `suppress_tokens`, `bad_words_ids` or `sequence_bias`: the model cannot decline.",
        ),
        row(
            "config-forced-tokens",
            "The configuration forces the model to say an instruction.",
            "Remove `forced_decoder_ids`, `forced_bos_token_id` or `forced_eos_token_id`.",
        ),
        row(
            "config-sampling",
            "A sampling parameter of the configuration is far from any usual value.",
            "Set the value of the base model.",
        ),
        row(
            "config-end-missing",
            "A model with a chat template has no end token in any configuration.",
            "Set `eos_token_id` in `generation_config.json`: answers do not end.",
        ),
        row(
            "custom-code",
            "The checkpoint has Python code that loaders can run.",
            "Read it before you set `trust_remote_code`; a GGUF does not need it.",
        ),
        row(
            "custom-code-call",
            "Python code of the checkpoint runs programs, opens connections or decodes code.",
            "Do not set `trust_remote_code` before you understand the line.",
        ),
        row(
            "tokenizer-rewrite",
            "A rule of `tokenizer.json` replaces words in what is read or written.",
            "Compare `tokenizer.json` with that of the base model.",
        ),
        row(
            "scan-too-large",
            "A file of the checkpoint is too large to be scanned.",
            "Examine it by hand: configurations and tokenizers are smaller.",
        ),
    ],
};

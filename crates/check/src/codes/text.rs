//! Codes of what turns text into tokens and conversations into text.

use super::{Area, row};

pub(super) const TOKENIZER: Area = Area {
    title: "Tokenizer",
    about: "What is wrong with the vocabulary in a model, or with its use.",
    codes: &[
        row(
            "tokenizer-missing",
            "Nothing says how text becomes tokens.",
            "Convert the model again from a folder with its tokenizer: programs refuse it.",
        ),
        row(
            "tokenizer-tokens-missing",
            "A kind of tokenizer is named, but there are no tokens.",
            "Convert the model again from a folder with its tokenizer.",
        ),
        row(
            "tokenizer-merges-missing",
            "A tokenizer of byte pairs has no pairs.",
            "Convert the model again from a folder with its tokenizer.",
        ),
        row(
            "tokenizer-pre-missing",
            "Nothing says how text is cut into words before pairs are joined.",
            "Convert the model again, or set `tokenizer.ggml.pre`: programs guess, and may give \
             other tokens.",
        ),
        row(
            "tokenizer-length",
            "An array with a value for each token has more or fewer values than there are tokens.",
            "Run `gguf check --fix`, or convert the model again.",
        ),
        row(
            "tokenizer-invalid",
            "The keys of the tokenizer contradict each other, or one of them is missing or of \
             another type.",
            "Convert the model again from a folder with its tokenizer.",
        ),
        row(
            "tokenizer-unknown",
            "The model names a kind of tokenizer, or a way to cut words, that is not known here.",
            "A newer program may know it. If the name is wrong, correct the key.",
        ),
        row(
            "tokenizer-fails",
            "The tokenizer of Hugging Face in the file gives no tokens or no text.",
            "Take `tokenizer.json` from the original model again.",
        ),
        row(
            "tokenizer-difference",
            "The model cuts text into other tokens than the `tokenizer.json` that it is compared \
             with.",
            "Convert the model again: it sees other tokens than it was trained with.",
        ),
        row(
            "token-duplicate",
            "Two tokens have the same text.",
            "Convert the model again: programs end there, or differ on which of them a text gets.",
        ),
        row(
            "token-empty",
            "Several tokens have no text.",
            "Nothing has to be done if these ids are unused.",
        ),
        row(
            "token-id-range",
            "The id of a special token is outside of the vocabulary.",
            "Set the id of a token that exists, or remove the key.",
        ),
        row(
            "token-type",
            "A special token is typed as ordinary text.",
            "Run `gguf check --fix`: the text of users can contain the token.",
        ),
        row(
            "byte-tokens-missing",
            "Some of the 256 tokens that spell single bytes are missing.",
            "Convert the model again: text outside of the vocabulary cannot be spelled.",
        ),
        row(
            "merge-malformed",
            "A merge is not two parts with a space between.",
            "Convert the model again from a folder with its tokenizer.",
        ),
        row(
            "merge-unknown",
            "A merge joins or makes tokens that are not in the vocabulary.",
            "Vocabulary and merges may be of two models: convert the model again.",
        ),
        row(
            "vocab-size",
            "The key for the size of the vocabulary is not the number of tokens.",
            "Correct the key, or convert the model again.",
        ),
        row(
            "vocab-rows",
            "The embedding has more or fewer rows than there are tokens.",
            "Tokenizer and weights may be of two models: convert the model again.",
        ),
    ],
};

pub(super) const TEMPLATES: Area = Area {
    title: "Chat templates",
    about: "What is wrong with the templates that make a text of a conversation.",
    codes: &[
        row(
            "template-syntax",
            "The template is not valid Jinja.",
            "Take the template of the original model, with `gguf edit --chat-template`.",
        ),
        row(
            "template-render",
            "The template fails with every conversation, or with the one that was given.",
            "Take the template of the original model, or change the conversation.",
        ),
        row(
            "template-refused",
            "The template does not want this conversation, and says why in its own words.",
            "Change the conversation: some templates want roles in turn, or no system message.",
        ),
        row(
            "template-limit",
            "The template takes more steps, text, memory or time than it may.",
            "It may hang programs that render it: take the template of the original model.",
        ),
        row(
            "template-missing-name",
            "A template is listed but not in the file.",
            "Add the template, or remove its name from the list.",
        ),
        row(
            "template-ignores-messages",
            "The template leaves out what the user says.",
            "Take the template of the original model.",
        ),
        row(
            "template-not-text",
            "The value of the key of a template is no text in UTF-8.",
            "Set the template again.",
        ),
    ],
};

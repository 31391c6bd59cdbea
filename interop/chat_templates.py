"""What `gguf chat-template` makes of conversations, beside `transformers` from PyPI.

Usage: python chat_templates.py GGUF_BINARY DATA_DIR [TEMPLATE_DIR]

The templates are those of the checkpoints in DATA_DIR/zoo and all `*.jinja` of TEMPLATE_DIR, such as
`models/templates` of llama.cpp's sources. Each gets all conversations below: the same text must
come out, or both must refuse.
"""

import collections
import html
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from gguf import GGUFWriter
from transformers.utils.chat_template_utils import render_jinja_template

SAMPLES = Path(__file__).parent.parent / "crates" / "tokenizer" / "tests" / "data" / "samples.json"
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}

CALL = {"id": "abcdef123", "type": "function", "function": {"name": "sum", "arguments": {"a": 1, "b": [2.5, None]}}}
SUM = {
    "type": "function",
    "function": {
        "name": "sum",
        "description": "Adds <numbers> & \"lists\", naïvely.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "array"}}, "required": ["a"]},
    },
}
MORE = {
    "several system messages": {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hello."},
            {"role": "system", "content": "Be long."},
            {"role": "user", "content": "Hello again"},
        ],
        "add_generation_prompt": True,
    },
    "call and result": {
        "messages": [
            {"role": "system", "content": "You calculate."},
            {"role": "user", "content": "1 + 2.5?"},
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
            {"role": "tool", "name": "sum", "tool_call_id": "abcdef123", "content": "3.5"},
            {"role": "assistant", "content": "It is 3.5."},
            {"role": "user", "content": "And 2 more?"},
        ],
        "tools": [SUM],
        "add_generation_prompt": True,
    },
    "content in parts": {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "One."}, {"type": "text", "text": " Two. "}]},
            {"role": "assistant", "content": [{"type": "text", "text": "Three."}]},
        ],
    },
    "developer": {
        "messages": [{"role": "developer", "content": "Use tables."}, {"role": "user", "content": "Go\n\n"}],
        "add_generation_prompt": True,
    },
    "wrong order": {"messages": [{"role": "assistant", "content": "I begin."}, {"role": "assistant", "content": "Again."}]},
    "nothing": {"messages": []},
    "thinking on": {
        "messages": [
            {"role": "user", "content": "Why?"},
            {"role": "assistant", "content": "Because.", "reasoning_content": "Hm.", "reasoning": "Hm.", "thinking": "Hm."},
            {"role": "user", "content": "Why not?"},
        ],
        "add_generation_prompt": True,
        "enable_thinking": True,
        "thinking": True,
        "reasoning_effort": "high",
    },
}


def templates(data, folder):
    """Name and text of each template."""
    for config in sorted((data / "zoo").glob("*/tokenizer_config.json")):
        template = json.loads(config.read_text()).get("chat_template")
        if isinstance(template, str):
            yield config.parent.name, template
    for path in sorted(folder.glob("*.jinja")) if folder else []:
        yield path.stem, path.read_text()


def write(path, template):
    """A GGUF of a template and the tokens that it may name."""
    writer = GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(list(TOKENS.values()))
    for i, name in enumerate(TOKENS):
        getattr(writer, f"add_{name}_id")(i)
    writer.add_chat_template(template)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def expected(template, sample):
    """The text that transformers makes, or why it does not."""
    others = {name: value for name, value in sample.items() if name not in ("messages", "tools")}
    try:
        texts, _ = render_jinja_template(
            [sample["messages"]], tools=sample.get("tools"), chat_template=template,
            **({"add_generation_prompt": False} | TOKENS | others),
        )
        return texts[0], None
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def reason(text, error, ours):
    """Why the two are known to differ; None where they should not."""
    if ours is not None and error and "'NoneType' object is not iterable" in error:
        return "a loop over none, such as over no tools, has no turns here, and jinja2 refuses it"
    if ours is not None and error and "Object of type generator is not JSON serializable" in error:
        return "what a filter chose, in `tojson`, is a list here, and a generator that jinja2 refuses"
    if text is not None and ours is not None and html.unescape(text) == html.unescape(ours):
        return "the filter `safe` makes jinja2 escape what is joined to its result"
    return None


def main(binary, data, folder=None):
    samples = json.loads(SAMPLES.read_text()) | MORE
    count = different = refused = 0
    reasons = collections.Counter()
    with tempfile.TemporaryDirectory() as temporary:
        model, messages = Path(temporary) / "model.gguf", Path(temporary) / "messages.json"
        for name, template in templates(Path(data), folder and Path(folder)):
            write(model, template)
            for title, sample in samples.items():
                sample = {"add_generation_prompt": False} | sample
                messages.write_text(json.dumps(sample))
                done = subprocess.run([binary, "chat-template", model, "--messages", messages], capture_output=True)
                text, error = expected(template, sample)
                ours = done.stdout.decode() if done.returncode == 0 else None
                count += 1
                refused += text is None and ours is None
                if ours == text:
                    continue
                if why := reason(text, error, ours):
                    reasons[why] += 1
                    continue
                different += 1
                print(f"{name}, {title}:")
                if text is None or ours is None:
                    print(f"  transformers: {error or 'renders'}\n  ours: {done.stderr.decode().strip() or 'renders'}")
                else:
                    at = next((i for i, (a, b) in enumerate(zip(text, ours)) if a != b), min(len(text), len(ours)))
                    print(f"  at {at}: {text[max(at - 40, 0):at + 60]!r}\n   ours: {ours[max(at - 40, 0):at + 60]!r}")
    for why, times in reasons.items():
        print(f"{times}: {why}")
    print(f"{count} renderings, {refused} refused by both, {different} different without a known reason")
    sys.exit(different > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Renders chat templates with jinja2 as transformers does, for the tests to compare with.

    pip install jinja2 transformers
    python render.py OUTPUT.json TEMPLATE...

A TEMPLATE is a file of Jinja text or a tokenizer_config.json. The output is a list, by template
and by sample of samples.json, of the text or null where jinja2 fails.
"""

import datetime
import json
import pathlib
import sys

from transformers.utils.chat_template_utils import _compile_jinja_template

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
NOW = datetime.datetime(2026, 2, 3, 14, 5, 9)


def template_text(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(text).get("chat_template") if path.suffix == ".json" else text


def render(text, sample):
    try:
        template = _compile_jinja_template(text)
        template.globals["strftime_now"] = NOW.strftime
        values = {"messages": [], "tools": None, "documents": None, "add_generation_prompt": False}
        return template.render(**(values | TOKENS | sample))
    except Exception as error:
        print(f"  {type(error).__name__}: {error}", file=sys.stderr)
        return None


def main(output, *templates):
    samples = json.loads((pathlib.Path(__file__).parent / "samples.json").read_text("utf-8"))
    expected = {}
    for path in map(pathlib.Path, templates):
        text = template_text(path)
        if text is None:
            continue
        name = path.parent.name if path.suffix == ".json" else path.stem
        print(name, file=sys.stderr)
        expected[name] = {sample: render(text, values) for sample, values in samples.items()}
    with open(output, "w", encoding="utf-8") as file:
        json.dump(expected, file, ensure_ascii=False, indent=1)
        file.write("\n")


main(*sys.argv[1:])

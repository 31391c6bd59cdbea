"""Renders the templates of expressions.json with jinja2 as transformers does, and writes the texts.

    pip install jinja2 transformers
    python expressions.py

The file has variables, and templates with the text of each, or null where jinja2 fails.
"""

import copy
import datetime
import json
import pathlib

from transformers.utils.chat_template_utils import _compile_jinja_template

NOW = datetime.datetime(2026, 2, 3, 14, 5, 9)
FILE = pathlib.Path(__file__).parent / "expressions.json"


def render(text, variables):
    try:
        template = _compile_jinja_template(text)
        template.globals["strftime_now"] = NOW.strftime
        # A filter may change a list: `lst | indent` appends to it.
        output = template.render(tools=None, documents=None, **copy.deepcopy(variables))
        output.encode()
        return output
    except Exception:
        return None


def main():
    data = json.loads(FILE.read_text("utf-8"))
    lines = []
    for text in data["templates"]:
        expected = render(text, data["variables"])
        lines.append(json.dumps(text, ensure_ascii=False) + ": " + json.dumps(expected, ensure_ascii=False))
    variables = json.dumps(data["variables"], ensure_ascii=False)
    body = ",\n".join(lines)
    FILE.write_text(f'{{"variables": {variables},\n"templates": {{\n{body}\n}}}}\n', "utf-8")


main()

"""Compares `gguf chat-template --engine llama.cpp` with llama.cpp's own code.

Usage: python3 interop/templates/llama_cpp.py GGUF_BINARY LLAMA_CPP_DIR DATA [--build DIR] [--only TEXT] [--write]

Builds witness.cpp with the files of llama.cpp's `common` that render chat templates, and renders with both programs: every template of
llama.cpp's `models/templates` and of the checkpoints in the reference data DATA with each conversation of conversations(), and the
one-line templates of lines.py. Prompts must be equal byte by byte, or both programs must refuse. --write stores the texts of the one-line
templates for the tests of the tokenizer crate. Needs a C++ compiler.
"""

import argparse
import concurrent.futures
import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from interop.templates.lines import LINES

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = REPOSITORY / "crates/tokenizer/tests/data"
SOURCES = [
    "jinja/caps", "jinja/lexer", "jinja/parser", "jinja/runtime", "jinja/string", "jinja/value", "chat", "chat-auto-parser-generator",
    "chat-auto-parser-helpers", "chat-diff-analyzer", "chat-peg-parser", "peg-parser", "json", "json-schema", "json-schema-to-grammar",
    "unicode", "log", "trie",
]
# A refusal of llama.cpp that does not concern the prompt: it derives a grammar for answers from the template.
GRAMMAR = ("Unable to generate parser", "Cannot specify grammar")


def build(llama_cpp, folder):
    """Compiles the witness, unless it is there."""
    program = folder / "witness"
    if program.exists():
        return program
    common = llama_cpp / "common"
    sources = [common / f"{name}.cpp" for name in SOURCES] + sorted((common / "parsers").glob("*.cpp"))
    sources.append(Path(__file__).with_name("witness.cpp"))
    flags = ["-std=c++17", "-O1", "-w", *(f"-I{llama_cpp / name}" for name in ("common", "include", "ggml/include", "vendor"))]

    def compile_one(source):
        target = folder / f"{source.parent.name}-{source.stem}.o"
        if not target.exists():
            subprocess.run(["c++", *flags, "-c", source, "-o", target], check=True)
        return target

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, sources))
    subprocess.run(["c++", *objects, "-o", program], check=True)
    return program


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def model(template, bos, eos, add_bos):
    """Returns a GGUF with a template, and BOS and EOS."""
    tokens = ["<unk>", bos, eos]
    keys = {
        "general.architecture": struct.pack("<I", 8) + text("llama"),
        "tokenizer.ggml.model": struct.pack("<I", 8) + text("gpt2"),
        "tokenizer.ggml.tokens": struct.pack("<IIQ", 9, 8, len(tokens)) + b"".join(map(text, tokens)),
        "tokenizer.ggml.bos_token_id": struct.pack("<II", 4, 1),
        "tokenizer.ggml.eos_token_id": struct.pack("<II", 4, 2),
        "tokenizer.ggml.add_bos_token": struct.pack("<I?", 7, add_bos),
        "tokenizer.chat_template": struct.pack("<I", 8) + text(template),
    }
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(text(key) + value for key, value in keys.items())


def conversations():
    """Yields names and requests."""
    def said(role, content, **more):
        return {"role": role, "content": content, **more}

    def call(arguments, name="weather", identifier="call00001"):
        return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}

    tool = {"type": "function", "function": {
        "name": "weather", "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "description": "City, e.g. \"Zürich\""}, "days": {"type": "integer", "default": 1}},
            "required": ["city"]}}}
    bare = {"type": "function", "function": {"name": "clock", "description": "", "parameters": {"type": "object", "properties": {}}}}
    user, system = said("user", "Hello, 'you' <there> – ünï"), said("system", "Be brief.\n")
    answer = said("assistant", " Good day. \n")
    parts = said("user", [{"type": "text", "text": "Look at"}, {"type": "text", "text": "this."}])
    turns = [system, user, answer, said("user", "And now?"), said("assistant", "Now this."), said("user", "Bye.")]
    arguments = {"city": "Zürich", "days": 2, "wind": 1.5, "exact": True, "none": None, "list": ["a", {"b": 1e-7}]}

    def trip(content, arguments, **more):
        return [system, said("user", "Weather?"), {"role": "assistant", "content": content, "tool_calls": [call(arguments)], **more},
                said("tool", "{\"degrees\": 21}", tool_call_id="call00001", name="weather")]

    yield "user", {"messages": [user]}
    yield "system", {"messages": [system, user]}
    yield "turns", {"messages": turns}
    yield "no generation prompt", {"messages": turns[:3], "generation": False}
    yield "user without generation prompt", {"messages": [user], "generation": False}
    yield "parts", {"messages": [system, parts]}
    yield "parts of the system", {"messages": [said("system", [{"type": "text", "text": "Be brief."}]), user]}
    yield "developer", {"messages": [said("developer", "Be brief."), user]}
    yield "tools", {"messages": [user], "tools": [tool, bare]}
    yield "system with tools", {"messages": [system, user], "tools": [tool]}
    yield "call", {"messages": trip("", arguments), "tools": [tool, bare]}
    yield "call without content", {"messages": trip(None, json.dumps(arguments, ensure_ascii=False)), "tools": [tool]}
    yield "call with content", {"messages": trip("Let me see.", "{}"), "tools": [tool]}
    yield "call with reasoning", {"messages": trip("", arguments, reasoning_content="Hm."), "tools": [tool]}
    yield "call without tools", {"messages": trip("", arguments)}
    yield "answer after call", {"messages": [*trip("", arguments), said("assistant", "21 degrees."), said("user", "Thanks.")], "tools": [tool]}
    two = [call("{\"city\": \"A\"}", identifier="call00001"), call("{\"city\": \"B\"}", identifier="call00002")]
    results = [said("tool", "2", tool_call_id="call00002"), said("tool", "1", tool_call_id="call00001")]
    yield "two calls", {"messages": [user, {"role": "assistant", "content": "", "tool_calls": two}, *results], "tools": [tool]}
    yield "reasoning", {"messages": [user, said("assistant", "4", reasoning_content="2 + 2"), said("user", "And 3 + 3?")]}
    yield "thinking in content", {"messages": [user, said("assistant", "<think>\nHm.\n</think>\n\n4"), said("user", "More.")]}
    yield "no thinking", {"messages": [user], "variables": {"enable_thinking": False}}
    yield "effort", {"messages": [user], "variables": {"reasoning_effort": "low"}}
    yield "kept reasoning", {"messages": [user, said("assistant", "4", reasoning_content="2 + 2"), user], "variables": {"preserve_reasoning": True}}
    yield "empty", {"messages": []}
    yield "two users", {"messages": [user, user]}
    yield "assistant first", {"messages": [answer, user]}
    yield "ends with an answer", {"messages": [user, answer]}
    yield "unknown role", {"messages": [said("narrator", "Once."), user]}
    yield "no content", {"messages": [{"role": "user"}]}
    yield "image", {"messages": [said("user", [{"type": "image_url", "image_url": {"url": "x"}}])]}


class Ours:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder

    def render(self, at, request):
        """Returns the prompt, or None and the error."""
        file, messages = self.folder / f"{at}.gguf", self.folder / f"{at}.json"
        file.write_bytes(model(request["template"], request["bos"], request["eos"], request["add_bos"]))
        variables = {**request.get("variables", {}), "messages": request["messages"]}
        if "tools" in request:
            variables["tools"] = request["tools"]
        messages.write_text(json.dumps(variables), "utf-8")
        flags = [] if request.get("generation", True) else ["--no-generation-prompt"]
        command = [self.binary, "chat-template", file, "--messages", messages, "--engine", "llama.cpp", *flags]
        done = subprocess.run(command, capture_output=True)
        file.unlink(), messages.unlink()
        if done.returncode == 0:
            return done.stdout.decode(), None
        return None, done.stderr.decode().strip()


def templates(llama_cpp, data):
    """Yields names and templates of llama.cpp and of checkpoints."""
    for path in sorted((llama_cpp / "models/templates").glob("*.jinja")):
        yield path.stem, path.read_text("utf-8")
    for path in sorted(data.glob("**/tokenizer_config.json")):
        template = json.loads(path.read_text("utf-8")).get("chat_template")
        if isinstance(template, str):
            yield str(path.parent.relative_to(data)), template


def requests(llama_cpp, data):
    special = {"bos": "<s>", "eos": "</s>"}
    for name, template in templates(llama_cpp, data):
        for conversation, request in conversations():
            yield f"{name}: {conversation}", {"template": template, "add_bos": False, **special, **request}
    stored = json.loads((DATA / "expressions.json").read_text("utf-8"))
    variables = {name: value for name, value in stored["variables"].items() if name not in ("messages", "bos_token", "eos_token")}
    messages = [{"role": "user", "content": "Tell <b>me</b> & 'them'"}, {"role": "assistant", "content": "One\nTwo"}]
    # The time of day differs between the programs.
    timeless = [line for line in stored["templates"] if "strftime_now" not in line]
    for line in dict.fromkeys([*LINES, *timeless]):
        yield line, {"template": line, "add_bos": False, **special, "messages": messages, "variables": variables}
    for line in ("{{ bos_token }}x{{ eos_token }}", "{{ bos_token * 2 }}x"):
        yield f"BOS: {line}", {"template": line, "add_bos": True, **special, "messages": messages}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("llama_cpp", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--build", type=Path, help="folder for the compiled witness [default: a temporary one]")
    parser.add_argument("--only", default="", help="render prompts whose name contains this text")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.build or Path(temporary)
        folder.mkdir(exist_ok=True)
        program = build(args.llama_cpp.resolve(), folder)
        todo = [(name, request) for name, request in requests(args.llama_cpp, args.data) if args.only in name]
        lines = "".join(json.dumps(request) + "\n" for _, request in todo)
        answers = subprocess.run([program], input=lines.encode(), capture_output=True, check=True, env={**os.environ, "TZ": "UTC"}).stdout
        theirs = [json.loads(line) for line in answers.decode().splitlines()]
        ours = Ours(args.binary, Path(temporary))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            own = list(pool.map(lambda job: ours.render(job[0], job[1][1]), enumerate(todo)))
    counts = {"equal": 0, "refused by both": 0, "grammar": 0, "different": 0}
    stored = {}
    for (name, request), their, (prompt, error) in zip(todo, theirs, own, strict=True):
        expected = their.get("prompt")
        stored[name] = expected
        cause = their.get("error", "")
        # An inner error of the template shows that the template refuses, not the grammar.
        if expected is None and cause.startswith(GRAMMAR) and "While executing" not in cause and prompt is not None:
            counts["grammar"] += 1
            print(f"-- {name}: llama.cpp derives no grammar: {cause[:200]}")
        elif prompt == expected:
            counts["equal" if prompt is not None else "refused by both"] += 1
        else:
            counts["different"] += 1
            print(f"!! {name}\n   llama.cpp: {(cause if expected is None else expected)!r:.1500}\n   gguf:      {(error if prompt is None else prompt)!r:.1500}")
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    if args.write:
        write(todo, stored)
    sys.exit(counts["different"] > 0)


def write(todo, stored):
    lines = [(name, request) for name, request in todo if name == request["template"]]
    body = ",\n".join(f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(stored[name], ensure_ascii=False)}" for name, _ in lines)
    variables = {**lines[0][1]["variables"], "messages": lines[0][1]["messages"]}
    head = json.dumps(variables, ensure_ascii=False)
    (DATA / "llama_cpp.json").write_text(f'{{"variables": {head},\n"templates": {{\n{body}\n}}}}\n', "utf-8")


if __name__ == "__main__":
    main()

"""Compares the findings of `gguf check` about chat templates with those of ggufdoctor.

Usage: python3 interop/scan/templates.py GGUF_BINARY LLAMA_CPP_DIR DATA

Puts every template of llama.cpp's `models/templates`, of the reference data DATA, and of broken_templates.py into a file with a
vocabulary that has its special tokens, and checks it with both programs. ggufdoctor renders fixed conversations by jinja2 and by llama.cpp's
own engine (families S and X), looks whether Ollama replaces the template (O), and compares with the original model (R). Fails if only
ggufdoctor has an error or a warning, and if `gguf` warns about a template of a published model for which ggufdoctor has no finding.
Needs ggufdoctor.
"""

import argparse
import collections
import importlib.resources
import json
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from interop.scan.broken_templates import broken, changed

from ggufdoctor.checks.cross_engine import run_cross_engine_checks
from ggufdoctor.checks.ollama_registry import run_ollama_checks
from ggufdoctor.checks.reference import run_reference_checks
from ggufdoctor.checks.sanity import run_sanity_checks
from ggufdoctor.engines.registry import select_engines
from ggufdoctor.fixtures import load_corpus
from ggufdoctor.models import CheckContext
from ggufdoctor.reader import read_gguf_file

# Findings of ggufdoctor, with the codes of `gguf` for the same fault.
SAME = {
    "S001": {"template-missing"},
    "S002": {"template-syntax", "template-render"},
    "S003": {"template-render", "template-refused", "template-conversation", "template-limit"},
    "S004": {"template-token-missing"},
    # Without its own end token a template has the fault that explains it.
    "S005": {"template-end", "token-id-range", "eos-missing", "template-token-missing", "template-ignores-messages", "template-empty"},
    "S006": {"template-bos"},
    "S007": {"template-generation-prompt", "template-ignores-messages", "template-empty"},
    "S008": {"template-empty", "template-ignores-messages"},
    "X001": {"template-llama-cpp", "template-runtime-defaults"},
    "X002": {"template-llama-cpp", "template-render", "template-syntax"},
    # Ollama's own template renders another prompt. Only `template-ollama` says so, without rendering it.
    "X003": {"template-ollama"},
    "X004": {"template-llama-cpp"},
    # Of a template that changes messages or loses them, nothing else is reported.
    "X005": {"template-llama-cpp", "template-ignores-messages"},
    "O001": {"template-ollama"},
    "R001": {"prompt-differs"},
    "R002": {"prompt-differs"},
}
# Ollama's list of templates, which ggufdoctor carries.
OLLAMA = str(importlib.resources.files("ggufdoctor.ollama_data"))
# Conversations that llama.cpp rewrites before it renders them: content in parts, and empty content of calls. What `gguf` says about
# them is the same fault as a difference of the engines.
REWRITTEN = {"tool_roundtrip", "typed_content"}
# Findings of `gguf` that belong to chat templates, beyond those named `template-...`.
OTHERS = {"prompt-differs", "token-id-range", "eos-missing", "bos-missing", "token-role"}
MARKER = re.compile(r"<\|[^|>\s'\"{}]{1,60}\|>|<\uff5c[^\uff5c>\s'\"{}]{1,60}\uff5c>|<[a-z_]{1,30}>|</[a-z_]{1,30}>|<[a-z_]+\||\[/?[A-Z_]{2,30}\]|<\|[a-z_]+>|<[a-z_]+\|>")
# Real vocabularies of llama.cpp for templates of these models.
VOCABULARIES = {
    "Qwen-Qwen2.5": "qwen2", "Qwen-QwQ": "qwen2", "Qwen-Qwen3": "qwen2", "Qwen3.5": "qwen35", "google-gemma-4": "gemma-4",
    "meta-llama-Llama-3": "llama-bpe", "microsoft-Phi-3": "phi-3", "CohereForAI-c4ai-command-r-plus": "command-r",
}


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def model(template, tokens, eos=None, bos=None, add_bos=None):
    """Returns a GGUF with the template, whose vocabulary has the tokens as control tokens. EOS is a text, an id, or missing."""
    texts = list(dict.fromkeys(["<unk>", "<s>", "</s>", *tokens, *([bos] if bos else []), *([eos] if isinstance(eos, str) else [])]))
    types = [2] + [3] * (len(texts) - 1)
    texts += [f"word{at}" for at in range(20)]
    types += [1] * 20
    def array(kind, values):
        return struct.pack("<IIQ", 9, kind, len(values)) + b"".join(values)
    keys = {
        "general.architecture": struct.pack("<I", 8) + string("llama"),
        "general.name": struct.pack("<I", 8) + string("Example Instruct"),
        "tokenizer.ggml.model": struct.pack("<I", 8) + string("llama"),
        "tokenizer.ggml.tokens": array(8, [string(text) for text in texts]),
        "tokenizer.ggml.scores": array(6, [struct.pack("<f", -at) for at in range(len(texts))]),
        "tokenizer.ggml.token_type": array(5, [struct.pack("<i", kind) for kind in types]),
    }
    for role, token in (("bos", bos), ("eos", eos)):
        if token is not None:
            number = texts.index(token) if isinstance(token, str) else token
            keys[f"tokenizer.ggml.{role}_token_id"] = struct.pack("<II", 4, number)
    if add_bos is not None:
        keys["tokenizer.ggml.add_bos_token"] = struct.pack("<I?", 7, add_bos)
    if template is not None:
        keys["tokenizer.chat_template"] = struct.pack("<I", 8) + string(template)
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(string(key) + value for key, value in keys.items())


def special_tokens(engine, fixtures, template):
    """Returns the special tokens in the template and in its prompts, and the one that it writes after an answer."""
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "ANSWER"}, {"role": "user", "content": "Bye"}]
    texts = [engine.render(template, context) for context in [{"messages": messages}, *(one.context for one in fixtures)]]
    rendered = [text.text or "" for text in texts]
    end = MARKER.match(rendered[0].partition("ANSWER")[2].lstrip())
    return MARKER.findall("\n".join([template, *rendered])), end.group() if end else "</s>"


class Doctor:
    def __init__(self):
        self.engines, self.corpus = select_engines(None).engines, load_corpus(None)
        assert len(self.engines) == 2, "an engine of ggufdoctor is missing"

    def findings(self, path, upstream=None):
        """Returns finding, severity, text and conversations of all families."""
        context = CheckContext(
            model=read_gguf_file(str(path)), engines=self.engines, fixtures=self.corpus.fixtures, upstream_template=upstream,
            upstream_meta={"coverage": "ok" if upstream else "not_requested"}, corpus_version=self.corpus.version)
        found = run_sanity_checks(context) + run_cross_engine_checks(context) + run_ollama_checks(context)
        if upstream:
            found += run_reference_checks(context)
        return [(one.id, one.severity.value, f"{one.message} {one.evidence.get('error', '')}{one.evidence.get('diff', '')}",
                 one.evidence.get("fixtures", [one.fixture])) for one in found]


class Files:
    """Files with templates in a folder."""

    def __init__(self, binary, folder):
        self.binary, self.folder, self.files = binary, Path(folder), {}

    def add(self, name, template, content, upstream=None):
        """Adds a file with this content."""
        path = self.folder / f"{len(self.files):03}.gguf"
        path.write_bytes(content)
        self.files[name] = (path, template, upstream)

    def edit(self, name, template, source):
        """Adds a copy of a file with another template."""
        path, text = self.folder / f"{len(self.files):03}.gguf", self.folder / "template.jinja"
        text.write_bytes(template.encode())
        subprocess.run([self.binary, "edit", str(source), "--chat-template-file", str(text), "-o", str(path), "-q"], check=True)
        self.files[name] = (path, template, None)

    def check(self):
        """Returns code, severity and text of the findings about templates, by name."""
        plain = {str(path): name for name, (path, _, upstream) in self.files.items() if upstream is None}
        found = {}
        paths = list(plain)
        for at in range(0, len(paths), 10):
            command = [self.binary, "check", "--json", "--no-data", "--ollama-templates", OLLAMA, *paths[at : at + 10]]
            done = subprocess.run(command, capture_output=True, text=True)
            for line in done.stdout.splitlines():
                document = json.loads(line)
                found[plain[document["file"]]] = of_templates(document)
            assert all(plain[path] in found for path in paths[at : at + 10]), done.stderr
        for name, (path, _, upstream) in self.files.items():
            if upstream is not None:
                other = path.with_suffix(".upstream")
                other.mkdir()
                (other / "tokenizer_config.json").write_text(json.dumps({"chat_template": upstream}))
                command = [self.binary, "check", "--json", "--no-data", str(path), "--upstream", str(other)]
                done = subprocess.run(command, capture_output=True, text=True)
                assert done.stdout, done.stderr
                found[name] = of_templates(json.loads(done.stdout))
        return found


def of_templates(document):
    return [(one["code"], one["severity"], one["message"]) for one in document["findings"]
            if one["code"].startswith("template-") or one["code"] in OTHERS]


def of_models(llama_cpp, data):
    """Yields the templates of published models and of the reference data."""
    for path in sorted((llama_cpp / "models/templates").glob("*.jinja")):
        yield path.stem, path.read_text()
    for path in sorted(data.rglob("tokenizer_config.json")):
        template = json.loads(path.read_text()).get("chat_template")
        if isinstance(template, str):
            yield f"data {path.parent.name}", template
    for path in sorted(data.rglob("*.jinja")):
        yield f"data {path.parent.name} {path.stem}", path.read_text()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", metavar="GGUF_BINARY")
    parser.add_argument("llama_cpp", type=Path, metavar="LLAMA_CPP_DIR")
    parser.add_argument("data", type=Path, metavar="DATA")
    options = parser.parse_args()
    doctor = Doctor()
    with tempfile.TemporaryDirectory() as folder:
        files = Files(options.binary, folder)
        for name, template in of_models(options.llama_cpp, options.data):
            real = next((vocab for start, vocab in VOCABULARIES.items() if name.startswith(start)), None)
            place = options.llama_cpp / f"models/ggml-vocab-{real}.gguf"
            if real and place.exists():
                files.edit(name, template, place)
                continue
            tokens, end = special_tokens(doctor.engines[0], doctor.corpus.fixtures, template)
            bos = "<s>" if "bos_token" in template else None
            files.add(name, template, model(template, tokens, eos=end, bos=bos, add_bos=False))
        published = set(files.files)
        for name, template, words in broken():
            files.add(f"broken: {name}", template, model(template, **words))
        for name, template, upstream in changed():
            files.add(f"changed: {name}", template, model(template, ["<|im_start|>", "<|im_end|>"], eos="<|im_end|>", bos="<s>"), upstream)
        ours = files.check()
        failed = compare(doctor, files, ours, published)
    sys.exit(1 if failed else 0)


def compare(doctor, files, ours, published):
    lines, counts = collections.defaultdict(list), collections.Counter()
    for name, (path, _, upstream) in files.files.items():
        theirs = doctor.findings(path, upstream)
        codes = {code for code, _, _ in ours[name]}
        matched = set()
        for finding, severity, text, conversations in theirs:
            same = SAME.get(finding, set()) & codes
            if finding.startswith("X") and finding != "X003" and set(conversations) <= REWRITTEN:
                same |= {"template-conversation"} & codes
            matched |= same
            if same:
                counts["found by both", finding] += 1
            else:
                kind = "only by ggufdoctor" if severity != "info" else "only by ggufdoctor, no action needed"
                counts[kind, finding] += 1
                lines[kind].append(f"{finding} {severity}: {name} {conversations}: {text[:300]!r}")
        for code, severity, text in ours[name]:
            if code not in matched:
                false = name in published and severity != "note"
                kind = "false alarms" if false else "only by gguf" if severity != "note" else "only by gguf, no action needed"
                counts[kind, code] += 1
                lines[kind].append(f"{code} {severity}: {name}: {text[:200]}")
    for kind, found in sorted(lines.items()):
        print(f"\n{kind}")
        print(*found, sep="\n")
    print(f"\n{len(files.files)} templates, {len(published)} of them unbroken")
    for (kind, code), count in sorted(counts.items()):
        print(f"{count:5} {kind}: {code}")
    return bool(lines["only by ggufdoctor"] or lines["false alarms"])


if __name__ == "__main__":
    main()

"""The same commands on this machine and on another platform: exit codes, output and all files must be equal."""

import json
import math
import re
import shutil
import struct
import subprocess
import wave
from pathlib import Path

# Types that cover every encoder family: linear, K-quants, codebooks, ternary, microscaling.
TYPES = ["Q4_0", "Q5_1", "Q8_0", "Q4_K_M", "Q6_K", "Q2_K", "IQ4_XS", "IQ3_S", "TQ2_0", "MXFP4_MOE"]

# Numbers that differ between runs: times, and drafts, whose length follows from times.
VARYING = re.compile(rb'("(?:[a-z_]*seconds|[a-z_]*per_second|drafted_tokens|accepted_tokens)": ?)[0-9.e+-]+')

KEYS = Path(__file__).resolve().parents[2] / "crates/cli/tests/integration/cli"

TEXT = "In the beginning God created the heaven and the earth.\nAnd the earth was without form, and void.\n"


class Both:
    """Two folders with the same files, one for each build.

    With `sums_differ`, the other processor adds in another order: results of running a model are then not compared, and the
    following commands use those of this machine.
    """

    def __init__(self, emulator, here, there, work, sums_differ):
        self.emulator, self.here, self.there, self.sums_differ = emulator, here, there, sums_differ
        self.folders = work / "here", work / "there"
        for folder in self.folders:
            folder.mkdir()
        self.compared_files = 0

    def put(self, name, data):
        """Writes the same file into both folders."""
        for folder in self.folders:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data.encode() if isinstance(data, str) else data)

    def run(self, *words, stdin=b"", code=0, output=True, env=None, sums=False):
        """Runs a command with both builds and compares everything; returns the standard output. `sums` are those of a model's run."""
        here, there = self.folders
        expected = subprocess.run([self.here, *map(str, words)], cwd=here, input=stdin, capture_output=True, env=env)
        found = self.emulator.run(self.there, *words, cwd=there, stdin=stdin, env=env)
        shown = f"{words}\n  here {expected.returncode}: {expected.stderr[-300:]}\n  there {found.returncode}: {found.stderr[-600:]}"
        assert expected.returncode == code, f"unexpected exit code: {shown}"
        if found.returncode != code:
            self.synchronize()
            raise AssertionError(f"other exit code: {shown}")
        if sums and self.sums_differ:
            self.synchronize()
            return found.stdout
        # Before the output, which a difference of files explains.
        self.compare(words)
        if output:
            a, b = (comparable(done.stdout) for done in (expected, found))
            assert a == b, f"other output of {words}:\n{first_difference(a, b)}"
        return found.stdout

    def synchronize(self):
        """Gives the commands after a difference equal inputs."""
        here, there = self.folders
        shutil.rmtree(there)
        shutil.copytree(here, there)

    def compare(self, words):
        """Compares the files of both folders byte by byte."""
        files = [{path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()} for folder in self.folders]
        if others := files[0].keys() ^ files[1].keys():
            self.synchronize()
            raise AssertionError(f"{words}: other files: {others}")
        different = []
        for name, path in files[0].items():
            a, b = path.read_bytes(), files[1][name].read_bytes()
            if a != b:
                different.append(f"{name} ({len(a)} and {len(b)} bytes, {sum(x != y for x, y in zip(a, b))} differ)")
        if different:
            self.synchronize()
        assert not different, f"{words}: {', '.join(different)}"
        self.compared_files += len(files[0])


def comparable(output):
    """Returns output without numbers that differ between runs, and without the extension of the program."""
    return VARYING.sub(rb"\1N", output).replace(b"gguf.exe", b"gguf")


def first_difference(a, b):
    lines = zip(a.splitlines() + [b"(end)"], b.splitlines() + [b"(end)"])
    return next((f"  here  {x}\n  there {y}" for x, y in lines if x != y), "  line ends")


def write_sweep(path, seconds=2):
    """Writes a tone that rises."""
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16_000)
        samples = (int(9_000 * math.sin(i * i / 40_000)) for i in range(16_000 * seconds))
        sound.writeframes(b"".join(struct.pack("<h", sample) for sample in samples))


def cases(emulator, here, there, checkpoint, work, whisper=None, sums_differ=False):
    both = Both(emulator, here, there, work, sums_differ)
    for folder in both.folders:
        shutil.copytree(checkpoint, folder / "checkpoint")
        if whisper:
            shutil.copytree(whisper, folder / "whisper")
            write_sweep(folder / "sound.wav")
    both.put("text.txt", TEXT * 12)
    run = both.run

    def version():
        return run("--version").decode().strip()

    def demo():
        run("demo", "--json", sums=True)

    def convert():
        for outtype in ["f16", "f32", "bf16"]:
            run("convert", "checkpoint", "-o", f"{outtype}.gguf", "--outtype", outtype, "--json")
        run("convert", "checkpoint", "-o", "converted-q8_0.gguf", "--outtype", "q8_0", "--json")

    def imatrix():
        run("imatrix", "f16.gguf", "-f", "text.txt", "-o", "imatrix.gguf", "-c", "64", sums=True)
        run("imatrix", "--in-file", "imatrix.gguf", "-o", "imatrix.dat")
        run("imatrix", "--in-file", "imatrix.gguf", "--show-statistics")

    def quantize():
        for name in TYPES:
            run("quantize", "f16.gguf", f"{name}.gguf", name, "--json")
        run("quantize", "f16.gguf", "iq2.gguf", "IQ2_XS", "--imatrix", "imatrix.gguf")
        run("quantize", "f16.gguf", "Q4_0.gguf", "Q4_K_S", code=2)
        run("quantize", "f16.gguf", "Q4_0.gguf", "Q4_K_S", "--force")
        run("quantize", "f16.gguf", "calibrated.gguf", "Q4_K_M", "--calibrate", "text.txt", "--calibrate-ctx", "64", sums=True)

    def check():
        run("check", "f16.gguf", "--json")
        run("check", "f16.gguf", "Q4_0.gguf", "imatrix.gguf")
        both.put("broken.gguf", (both.folders[0] / "f16.gguf").read_bytes()[:100_000])
        run("check", "broken.gguf", "--json", code=1)
        run("check", "f16.gguf", "--scan")

    def inspect():
        for words in [["--json"], [], ["--metadata"], ["--tensors"], ["--card"], ["--sbom"]]:
            expected = subprocess.run([here, "inspect", "f16.gguf", *words], cwd=both.folders[0], capture_output=True)
            if expected.returncode == 0:
                run("inspect", "f16.gguf", *words, output="--sbom" not in words)
        run("graph", "f16.gguf")
        run("recipe", "Q4_K_M.gguf")

    def edit():
        run("edit", "f16.gguf", "-o", "edited.gguf", "--set", "general.name=Another name")
        run("edit", "edited.gguf", "--set", "general.description=A description that does not fit")
        run("edit", "edited.gguf", "--set", "general.description=In place")
        run("edit", "edited.gguf", "--remove", "general.description", "--json")
        run("edit", "edited.gguf", "--drop", r"blk\.3\.", "--force")
        run("edit", "edited.gguf", "--rename-tensor", "output_norm.weight=norm.weight", "--force")
        run("convert-endian", "edited.gguf", "big", "--in-place")

    def split_and_merge():
        run("split", "f16.gguf", "shard", "--split-max-tensors", "10", "--json")
        run("merge", "shard-00001-of-00004.gguf", "merged.gguf", "--json")
        run("edit", "shard-00001-of-00004.gguf", "--set", "general.name=Shards")
        run("merge", "shard-00002-of-00004.gguf", "deleted.gguf", "--delete-shards")

    def compare_models():
        run("diff", "f16.gguf", "merged.gguf")
        run("diff", "f16.gguf", "Q4_K_M.gguf", "--json", code=1)
        run("hash", "f16.gguf", "--all")
        manifest = run("hash", "f16.gguf", "--sha256")
        both.put("manifest", manifest)
        run("hash", "--check", "manifest", "f16.gguf")
        run("hash", "--file", "f16.gguf", "Q8_0.gguf")

    def tokenize():
        run("tokenize", "f16.gguf", "-f", "text.txt", "--ids")
        run("tokenize", "checkpoint", "In the beginning, Grüße 🙂", "--json")
        run("tokenize", "f16.gguf", stdin=b"line one\r\nline two\x1a\r\n")
        run("detokenize", "f16.gguf", stdin=b"[1, 1036, 261, 1788]")

    def generate():
        for words in [["--raw"], ["--precision", "exact", "--raw"], ["--temp", "0.7", "--seed", "3", "--raw"]]:
            words = ["generate", "f16.gguf", "-p", "In the beginning", "-n", "24", "--json", *words]
            run(*words if "--temp" in words else [*words, "--temp", "0"], sums=True)
        run("generate", "Q4_K_M.gguf", "-p", "And God said", "-n", "24", "--temp", "0", "--raw", sums=True)
        run("logits", "f16.gguf", "-p", "In the beginning", "-o", "logits.npy", sums=True)

    def chat():
        words = ["chat", "f16.gguf", "--chat-template", "chatml", "-n", "8", "--temp", "0"]
        run(*words, stdin=b"Who made the earth?\n\nAnd then?\n/bye\n", sums=True)
        run(*words, stdin=b"Who made the earth?\r\n\r\nAnd then?\r\n/bye\r\n", sums=True)

    def evaluate():
        run("perplexity", "f16.gguf", "Q4_0.gguf", "-f", "text.txt", "-c", "64", "--json", sums=True)
        run("divergence", "--reference", "f16.gguf", "Q4_0.gguf", "-f", "text.txt", "-c", "64", "--json", sums=True)
        run("perplexity", "f16.gguf", "-f", "text.txt", "-c", "64", "--save-logits", "logits.dat", sums=True)

    def evaluate_in_parts():
        words = ["perplexity", "f16.gguf", "-f", "text.txt", "-c", "64"]
        for part in ["1/2", "2/2"]:
            run(*words, "--part", part, "-o", f"{part[0]}.part", sums=True)
        whole = run(*words, "--json", sums=True)
        merged = run("eval-merge", "1.part", "2.part", "--json")
        # With `sums_differ`, the parts are those of this machine.
        a, b = (json.loads(output)["models"][0]["perplexity"] for output in (whole, merged))
        assert math.isclose(a, b, rel_tol=1e-4 if sums_differ else 0), f"{a} as a whole, {b} in parts"

    def quality():
        run("quality", "f16.gguf", "--files", "Q8_0.gguf", "Q4_0.gguf", "-f", "text.txt", "-c", "64", "--json", output=False, sums=True)
        run("sensitivity", "f16.gguf", "-f", "text.txt", "-c", "64", "--by", "role", "-o", "sensitivity.json", "--json", sums=True)
        run("quantize", "f16.gguf", "sensitive.gguf", "--target-bpw", "4.5", "--sensitivity", "sensitivity.json")

    def bench():
        results = json.loads(run("bench", "Q4_0.gguf", "-p", "32", "-n", "8", "--json", output=False))
        assert results, "no results"
        run("recommend", "f16.gguf", "--json", output=False)

    def embed():
        run("embed", "f16.gguf", "--pooling", "mean", "-f", "text.txt", sums=True)
        run("embed", "f16.gguf", "--pooling", "mean", "-f", "text.txt", "--output", "vectors.npy", sums=True)

    def transcribe():
        if not whisper:
            return "not run: no --whisper"
        run("convert", "whisper", "-o", "whisper.gguf")
        for form in ["json", "srt", "text"]:
            run("transcribe", "whisper.gguf", "sound.wav", "--format", form, sums=True)

    def sign_and_verify():
        both.put("key.pem", (KEYS / "key.pem").read_bytes())
        both.put("key.pub", (KEYS / "key.pub").read_bytes())
        run("convert", "checkpoint", "-o", "signed.gguf")
        run("sign", "signed.gguf", "--key", "key.pem", output=False)
        words = ["verify", "signed.gguf", "--signature", "signed.gguf.sig", "--public-key", "key.pub"]
        run(*words, "--source", "checkpoint", "--json")
        run("edit", "signed.gguf", "--set", "general.name=Changed")
        run(*words, code=1)

    def name():
        run("name", "Mixtral-8x7B-v0.1-KQ2.gguf", "--json")
        run("name", "f16.gguf", "--canonical")

    def export():
        run("export", "f16.gguf", "--to", "hf", "exported")
        run("export", "f16.gguf", "--to", "safetensors", "f16.safetensors")

    def lora():
        run("lora", "extract", "f16.gguf", "Q2_K.gguf", "--rank", "4", "-o", "adapter.gguf", output=False, sums=True)
        run("lora", "check", "f16.gguf", "adapter.gguf")
        run("lora", "merge", "f16.gguf", "adapter.gguf", "-o", "merged-lora.gguf")

    def texts_with_crlf():
        """Text is data; lists of lines accept both line ends."""
        crlf = TEXT.replace("\n", "\r\n").encode()
        both.put("crlf.txt", crlf)
        ids = run("tokenize", "f16.gguf", "-f", "crlf.txt", "--ids")
        assert ids != run("tokenize", "f16.gguf", stdin=crlf.replace(b"\r", b"")), "CR was lost"
        run("imatrix", "f16.gguf", "-f", "crlf.txt", "-o", "crlf-imatrix.gguf", "-c", "16", sums=True)
        run("generate", "f16.gguf", "-f", "crlf.txt", "-n", "8", "--temp", "0", "--raw", "--json", sums=True)
        both.put("messages.json", '[\r\n {"role": "user",\r\n  "content": "Who?"}\r\n]\r\n')
        run("generate", "f16.gguf", "--messages", "messages.json", "--chat-template", "chatml", "-n", "4", "--temp", "0", "--json", sums=True)
        both.put("types.txt", "# types\nblk.0.*=q8_0\n")
        both.put("types-crlf.txt", "# types\r\nblk.0.*=q8_0\r\n")
        both.put("template.jinja", "{% for m in messages %}{{ m.content }}\r\n{% endfor %}")
        for end in ["", "-crlf"]:
            run("quantize", "f16.gguf", f"types{end}.gguf", "Q4_0", "--tensor-type-file", f"types{end}.txt")
        a, b = ((both.folders[1] / f"types{end}.gguf").read_bytes() for end in ("", "-crlf"))
        assert a == b, "a list of types with CRLF gives other types"
        run("edit", "f16.gguf", "-o", "template.gguf", "--chat-template-file", "template.jinja")
        both.put("manifest", (both.folders[1] / "manifest").read_bytes().replace(b"\n", b"\r\n"))
        run("hash", "--check", "manifest", "f16.gguf")
        run("tokenize", "f16.gguf", "--jsonl", stdin=b'"one"\r\n"two"\r\n')

    def chat_template():
        both.put("chat.json", '[{"role": "user", "content": "Who?"}]')
        run("chat-template", "template.gguf", "--messages", "chat.json")
        run("chat-template", "template.gguf")
        # Rendered in a process of its own, which is stopped.
        both.put("endless.jinja", "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}")
        run("edit", "f16.gguf", "-o", "endless.gguf", "--chat-template-file", "endless.jinja", "--force")
        run("chat-template", "endless.gguf", "--messages", "chat.json", code=1, output=False)

    def help_and_completions():
        run("--help")
        run("help", "types")
        run("completions", "powershell")

    def errors():
        for words, code in [
            (["inspect", "missing.gguf"], 3), (["inspect", "checkpoint/README.md"], 1), (["nonsense"], 2),
            (["convert", "missing", "-o", "x.gguf"], 3), (["quantize", "f16.gguf", "nowhere/x.gguf", "Q4_0"], 3),
        ]:
            expected = subprocess.run([here, *words], cwd=both.folders[0], capture_output=True)
            found = emulator.run(there, *words, cwd=both.folders[1])
            shown = f"{words}\n  here {expected.returncode} {expected.stderr}\n  there {found.returncode} {found.stderr}"
            assert expected.returncode == found.returncode == code, shown
            assert comparable(expected.stderr) == comparable(found.stderr), shown

    def total():
        return f"{both.compared_files} comparisons of files"

    return [
        version, demo, convert, imatrix, quantize, check, inspect, edit, split_and_merge, compare_models, tokenize, generate, chat,
        evaluate, evaluate_in_parts, quality, bench, embed, transcribe, sign_and_verify, name, export, lora, texts_with_crlf, chat_template, help_and_completions, errors, total,
    ]

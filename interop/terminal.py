"""The most used commands on terminals of 80 and 140 columns, as a person sees them, in tmux.

Usage: python terminal.py GGUF_BINARY CHECKPOINT_DIR OUTPUT_DIR

Types each command into a terminal that tmux keeps, waits for its prompt, and keeps what stands there: as text with
its colours, NAME-COLUMNS.ansi, and all of it as a page, terminal.html, on a dark and on a light background. To be
looked at; what a script can tell is asserted: the exit code, that no line is wrapped by the terminal, and that no
colour is used that one of the two backgrounds hides.
"""

import html
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# What is typed, and its exit code if that is not 0.
COMMANDS = [
    ("help", "gguf", 2),
    ("help-inspect", "gguf inspect -h", 0),
    ("help-quantize", "gguf help quantize", 0),
    ("help-mixes", "gguf help quantization", 0),
    ("version", "gguf --version", 0),
    ("demo", "gguf demo", 0),
    ("convert", "gguf convert checkpoint -o f16.gguf --outtype f16", 0),
    ("quantize", "gguf quantize f16.gguf q4.gguf Q4_K_M", 0),
    ("quantize-dry", "gguf quantize f16.gguf other.gguf Q2_K --dry-run", 0),
    ("imatrix", "gguf imatrix f16.gguf -f text.txt -o imatrix.gguf", 0),
    ("inspect", "gguf inspect q4.gguf", 0),
    ("inspect-keys", "gguf inspect q4.gguf --keys", 0),
    ("inspect-tensors", "gguf inspect q4.gguf --tensors", 0),
    ("inspect-values", "gguf inspect q4.gguf --values blk.0.attn_q.weight", 0),
    ("inspect-memory", "gguf inspect q4.gguf --memory", 0),
    ("check", "gguf check q4.gguf odd.gguf", 1),
    ("check-verbose", "gguf check -v f16.gguf", 0),
    ("diff", "gguf diff f16.gguf q4.gguf", 1),
    ("hash", "gguf hash --sha256 --no-layer f16.gguf q4.gguf", 0),
    ("edit", "gguf edit q4.gguf --set general.name='Another name' --dry-run", 0),
    ("split", "gguf split f16.gguf part --split-max-tensors 20", 0),
    ("merge", "gguf merge part-00001-of-00002.gguf whole.gguf", 0),
    ("name", "gguf name q4.gguf", 1),
    ("tokenize", "gguf tokenize q4.gguf -p 'In the beginning'", 0),
    ("generate", "gguf generate q4.gguf -p 'In the beginning' -n 30 --temp 0", 0),
    ("perplexity", "gguf perplexity f16.gguf q4.gguf -f text.txt -c 128", 0),
    ("divergence", "gguf divergence -r f16.gguf q4.gguf -f text.txt -c 128", 0),
    ("quality", "gguf quality f16.gguf -f text.txt -c 128 --types q8_0,q4_k_m,q2_k --no-speed", 0),
    ("bench", "gguf bench q4.gguf -p 64 -n 16", 0),
    ("export", "gguf export f16.gguf hf", 0),
    ("verify", "gguf verify q4.gguf --source checkpoint", 0),
    ("wrong-word", "gguf quantise f16.gguf out.gguf q4km", 2),
    ("wrong-type", "gguf quantize f16.gguf out.gguf q4km", 2),
    ("missing", "gguf inspect missing.gguf", 3),
    ("exists", "gguf quantize f16.gguf q4.gguf Q8_0", 2),
]

# Digests and names that are to be copied whole, text that flows, and a table that is wider than 80 columns.
LONG = {"hash", "split", "generate"}

# Named colours that both backgrounds show: not black and white, plain or bright, nor bright yellow and cyan.
READABLE = {31, 32, 33, 34, 35, 36, 90, 91, 92, 94, 95}
COLOURS = {
    "dark": ("#1c1c1c", "#d0d0d0", dict(zip(range(31, 37), "#e06060 #60c060 #c0a030 #6090f0 #c070c0 #40b0b0".split()))),
    "light": ("#ffffff", "#202020", dict(zip(range(31, 37), "#c00000 #008000 #808000 #0000c0 #a000a0 #008080".split()))),
}


class Terminal:
    """A terminal of so many columns in a directory."""

    def __init__(self, columns, directory, binary):
        self.directory = directory
        self.server = ["tmux", "-L", f"gguf-{columns}-{time.time_ns()}", "-f", "/dev/null"]
        path = f"{Path(binary).resolve().parent}:/usr/bin:/bin"
        shell = ["env", "-i", f"HOME={directory}", f"PATH={path}", "TERM=tmux-256color", "LANG=C.UTF-8",
                 "PS1=$ ", "bash", "--norc", "--noprofile"]
        self.tmux("new-session", "-d", "-x", columns, "-y", 50, "-c", directory, *shell)
        self.tmux("set-option", "-g", "history-limit", 5000)

    def tmux(self, *words):
        done = subprocess.run([*self.server, *map(str, words)], capture_output=True, text=True, check=True)
        return done.stdout

    def type(self, line):
        """What stands on the screen after a command, with colours; and its exit code."""
        self.tmux("send-keys", "clear", "Enter")
        time.sleep(0.3)
        self.tmux("clear-history")
        # From a file, so that no line that is typed is wrapped.
        Path(self.directory, "line.sh").write_text(f"{line}\necho exit code $?.\n")
        self.tmux("send-keys", ". ./line.sh", "Enter")
        for _ in range(1200):
            time.sleep(0.1)
            text = self.tmux("capture-pane", "-p", "-S", "-")
            code = re.search(r"^exit code (\d+)\.$", text, re.M)
            if code:
                break
        else:
            raise SystemExit(f"`{line}` does not end:\n{text}")
        captured = [self.tmux("capture-pane", "-p", "-S", "-", *more) for more in (["-e"], [], ["-J"])]
        coloured, plain, joined = (self.output(text) for text in captured)
        return coloured, plain, joined, int(code.group(1))

    @staticmethod
    def output(text):
        """What stands between the line that was typed and the exit code."""
        lines = text.rstrip("\n").split("\n")
        first = next(i for i, one in enumerate(lines) if one.rstrip().endswith("./line.sh"))
        last = next(i for i, one in enumerate(lines) if re.match(r"(\x1b\[[0-9;]*m)*exit code \d+\.", one))
        return [one.rstrip() for one in lines[first + 1 : last]]

    def close(self):
        self.tmux("kill-server")


def faults(name, coloured, plain, joined, code, wanted):
    """What a script can tell of what a person sees."""
    if code != wanted:
        yield f"exit code {code}, not {wanted}"
    if len(plain) != len(joined) and name not in LONG:
        yield "lines are wrapped by the terminal: " + next(a for a, b in zip(joined, plain) if a != b)
    for line in coloured:
        for codes in re.findall(r"\x1b\[([0-9;]*)m", line):
            numbers = {int(number or 0) for number in codes.split(";")}
            hidden = {n for n in numbers if n >= 30 and n not in READABLE | {39, 49}}
            if hidden:
                yield f"colour {codes} in {line!r}"


def page(parts):
    """All screens, on a dark and on a light background."""
    out = ["<!DOCTYPE html><meta charset=utf-8><style>pre{padding:1em;display:inline-block;margin:.5em}</style>"]
    for title, line, coloured in parts:
        out.append(f"<h3>{html.escape(title)}</h3>")
        for back, front, colours in COLOURS.values():
            out.append(f"<pre style='background:{back};color:{front}'>$ {html.escape(line)}\n")
            for one in coloured:
                opened = 0
                for piece in re.split(r"(\x1b\[[0-9;]*m)", one):
                    codes = re.fullmatch(r"\x1b\[([0-9;]*)m", piece)
                    if not codes:
                        out.append(html.escape(piece))
                        continue
                    for number in (int(n or 0) for n in codes.group(1).split(";")):
                        style = {0: None, 1: "font-weight:bold", 2: "opacity:.6", 4: "text-decoration:underline"}.get(
                            number, f"color:{colours.get(number, front)}")
                        if style is None or number in (39, 49):
                            out.append("</span>" * opened)
                            opened = 0
                        else:
                            out.append(f"<span style='{style}'>")
                            opened += 1
                out.append("</span>" * opened + "\n")
            out.append("</pre>")
    return "".join(out)


def main(binary, checkpoint, output):
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    parts, wrong = [], []
    for columns in (80, 140):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
            shutil.copytree(checkpoint, f"{directory}/checkpoint")
            words = "And God said, Let there be light: and there was light. And God saw the light. "
            Path(directory, "text.txt").write_text(words * 200)
            odd = [binary, "convert", f"{directory}/checkpoint", "-o", f"{directory}/odd.gguf", "--outtype", "q8_0"]
            subprocess.run(odd, check=True, capture_output=True)
            edits = ["--set", "tokenizer.ggml.eos_token_id=9999", "--set", "my.key=1", "--remove", "llama.block_count"]
            subprocess.run([binary, "edit", f"{directory}/odd.gguf", *edits], check=True, capture_output=True)
            terminal = Terminal(columns, directory, binary)
            for name, line, wanted in COMMANDS:
                coloured, plain, joined, code = terminal.type(line)
                Path(output, f"{name}-{columns}.ansi").write_text("\n".join(coloured) + "\n")
                parts.append((f"{name}, {columns} columns", line, coloured))
                wrong += [f"{name}-{columns}: {fault}" for fault in faults(name, coloured, plain, joined, code, wanted)]
            terminal.close()
    Path(output, "terminal.html").write_text(page(parts))
    print(f"{len(parts)} screens, {len(wrong)} faults: {output}/terminal.html")
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])

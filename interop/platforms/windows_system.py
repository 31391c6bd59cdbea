"""Paths, names, locks, open files, kills and consoles of Windows."""

import json
import os
import pty
import random
import re
import select
import shutil
import stat
import subprocess
import time
import urllib.request
from pathlib import Path

IN_USE = b"another program has it open"
DIM = "\x1b[2m"


def cases(wine, linux, windows, checkpoint, work):
    folder = work / "system"
    folder.mkdir()
    model = folder / "model.gguf"

    def gguf(*words, code=0, **options):
        done = wine.run(windows, *words, cwd=options.pop("cwd", folder), **options)
        assert done.returncode == code, f"gguf.exe {words}: exit {done.returncode}, not {code}\n{done.stdout[-300:]}{done.stderr.decode()}"
        return done

    def here(*words):
        done = subprocess.run([linux, *map(str, words)], cwd=folder, capture_output=True)
        assert done.returncode == 0, f"gguf {words}: {done.stderr}"
        return done.stdout

    def hidden():
        """Returns the names of files that should have been removed."""
        return [path.name for path in folder.rglob(".*")]

    here("convert", checkpoint, "-o", model, "--outtype", "f16")
    old = model.read_bytes()
    here("quantize", model, "q4.gguf", "Q4_0")
    quantized = (folder / "q4.gguf").read_bytes()

    def fresh(name):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            path.chmod(0o644)
        path.write_bytes(old)
        return path

    def paths():
        """Every form of a path works for reading, writing, replacing, editing, splitting and merging."""
        deep = "/".join(["a long name of a directory, one of several"] * 8)
        (folder / deep).mkdir(parents=True)
        (folder / "sub dir").mkdir()
        (folder / "Modèle 模型 🙂").mkdir()
        c = wine.drive_c / "models"
        shutil.rmtree(c, ignore_errors=True)
        c.mkdir()
        z = wine.path(folder)
        forms = {
            "drive": (z + "\\", folder),
            "forward slashes": (z.replace("\\", "/") + "/", folder),
            "mixed": (z + "/sub dir\\", folder / "sub dir"),
            "parent": (z + "\\sub dir\\..\\", folder),
            "relative": ("sub dir\\", folder / "sub dir"),
            "dot": (".\\", folder),
            "drive C": ("C:\\models\\", c),
            "Unicode": (z + "\\Modèle 模型 🙂\\", folder / "Modèle 模型 🙂"),
            "long": (z + "\\" + deep.replace("/", "\\") + "\\", folder / deep),
            "long, relative": (deep.replace("/", "\\") + "\\", folder / deep),
            "verbatim": ("\\\\?\\" + z + "\\", folder),
            "verbatim, long": ("\\\\?\\" + z + "\\" + deep.replace("/", "\\") + "\\", folder / deep),
        }
        tried = 0
        for form, (prefix, place) in forms.items():
            at = lambda name: place / name
            try:
                gguf("quantize", "model.gguf", prefix + "new file.gguf", "Q4_0")
                assert at("new file.gguf").read_bytes() == quantized
                gguf("quantize", "model.gguf", prefix + "new file.gguf", "Q8_0", "--force")
                assert at("new file.gguf").read_bytes() != quantized
                gguf("edit", prefix + "new file.gguf", "--set", "general.description=does not fit")
                before = at("new file.gguf").stat().st_size
                gguf("edit", prefix + "new file.gguf", "--set", "general.description=fits")
                assert at("new file.gguf").stat().st_size == before, "the edit was not in place"
                found = json.loads(gguf("inspect", prefix + "new file.gguf", "--json").stdout)
                assert found["file"] == prefix + "new file.gguf"
                gguf("split", prefix + "new file.gguf", prefix + "shard", "--split-max-tensors", "20")
                gguf("merge", prefix + "shard-00001-of-00002.gguf", prefix + "merged.gguf", "--delete-shards")
                assert at("merged.gguf").read_bytes()[-1000:] == at("new file.gguf").read_bytes()[-1000:]
                gguf("edit", prefix + "new file.gguf", "--drop", "output_norm", "--force")
                gguf("convert-endian", prefix + "merged.gguf", "big", "--in-place")
                gguf("convert", wine.path(checkpoint), "-o", prefix + "converted.gguf", "--outtype", "f16")
                gguf("imatrix", "model.gguf", "-f", wine.path(checkpoint / "README.md"), "--chunks", "1", "-c", "16", "-o", prefix + "imatrix.gguf")
                gguf("export", "model.gguf", prefix + "exported")
                gguf("quantize", "model.gguf", prefix + "new file.gguf", "Q8_0", code=2)
                for name in ["new file.gguf", "merged.gguf", "converted.gguf", "imatrix.gguf"]:
                    at(name).unlink()
                shutil.rmtree(at("exported"))
                assert not hidden(), hidden()
            except AssertionError as fault:
                raise AssertionError(f"{form}: {fault}") from fault
            tried += 1
        return f"{tried} forms"

    def messages_name_paths_as_given():
        for words, code in [
            (["inspect", "Z:\\nowhere\\x.gguf"], 3), (["quantize", "model.gguf", "nowhere\\x.gguf", "Q4_0"], 3),
            (["quantize", "model.gguf", "q4.gguf", "Q4_0"], 2), (["quantize", "model.gguf", "model.gguf", "Q4_0", "--force"], 2),
        ]:
            text = gguf(*words, code=code).stderr.decode()
            assert "\\\\?\\" not in text and "os error" not in text, text

    def reserved_names():
        for name in ["NUL", "nul.gguf", "CON", "sub\\COM1.gguf", "model.gguf:stream", "m.gguf.", "m.gguf "]:
            text = gguf("quantize", "model.gguf", name, "Q4_0", code=2).stderr.decode()
            assert "Windows" in text and "use another name" in text, f"{name}: {text}"
        for name in ["NUL", "CON"]:
            text = gguf("inspect", name, code=3).stderr.decode()
            assert name in text and "os error" not in text, text
        assert model.read_bytes() == old and not hidden()

    def wildcards():
        for name in ["w1.gguf", "w2.gguf"]:
            fresh(name)
        assert gguf("hash", "--file", "w?.gguf").stdout == here("hash", "--file", "w1.gguf", "w2.gguf")

    def read_only():
        path = fresh("read-only.gguf")
        path.chmod(0o444)
        text = gguf("edit", "read-only.gguf", "--set", "general.name=x", code=3).stderr
        assert b"read-only" in text, text
        for command in (["quantize", "model.gguf", "read-only.gguf", "Q4_0"], ["edit", "model.gguf", "-o", "read-only.gguf", "--set", "general.name=x"]):
            text = gguf(*command, "--force", code=3).stderr
            assert b"permission denied" in text, text
        assert path.read_bytes() == old and not hidden()
        path.chmod(0o644)

    def open_files():
        """A mapped file keeps its content; the message says what to do."""
        path = fresh("open.gguf")
        held = wine.start(windows, "chat", "open.gguf", "--chat-template", "chatml", "-n", "1", cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        outcomes = []
        try:
            held.stdin.write(b"hello\n")
            held.stdin.flush()
            assert held.stdout.read(1), "chat ended"
            for words in [
                ["quantize", "model.gguf", "open.gguf", "Q4_0", "--force"],
                ["convert", wine.path(checkpoint), "-o", "open.gguf", "--force"],
                ["edit", "open.gguf", "--set", "general.description=does not fit"],
                ["edit", "open.gguf", "--drop", "output_norm", "--force"],
                ["convert-endian", "open.gguf", "big", "--in-place"],
                ["merge", "model.gguf", "open.gguf", "--force"],
            ]:
                done = wine.run(windows, *words, cwd=folder)
                now = path.read_bytes()
                if done.returncode == 0:
                    # Wine lets go of the name; the map of the other process stays.
                    outcomes.append("replaced")
                else:
                    assert done.returncode == 3 and IN_USE in done.stderr, (words, done.returncode, done.stderr)
                    assert now == old, f"{words}: the file changed"
                    outcomes.append("refused")
                assert not hidden(), (words, hidden())
        finally:
            held.stdin.close()
            held.wait(60)
        gguf("quantize", "model.gguf", "open.gguf", "Q4_0", "--force")
        assert path.read_bytes() == quantized
        return ", ".join(outcomes)

    def concurrent_edits():
        path = fresh("edits.gguf")
        rounds = 4
        for n in range(rounds):
            editors = [
                wine.start(windows, "edit", "edits.gguf", "--set", f"general.round{n}.{i}:str={'x' * random.randrange(1, 3000)}", "--force", cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                for i in range(4)
            ]
            for i, editor in enumerate(editors):
                errors = editor.communicate(timeout=120)[1]
                assert editor.returncode == 0, f"round {n}, editor {i}: {errors}"
        found = path.read_bytes()
        missing = [f"{n}.{i}" for n in range(rounds) for i in range(4) if f"general.round{n}.{i}".encode() not in found]
        assert not missing, f"lost edits: {missing}"
        here("check", path)
        assert not hidden(), hidden()
        return f"{4 * rounds} edits, none lost"

    def kills():
        """A killed command leaves the old file or the new one, and the next one removes what it left."""
        path = fresh("killed.gguf")
        writers = [
            ["quantize", "model.gguf", "killed.gguf", "Q4_0", "--force"],
            ["edit", "killed.gguf", "--set", "general.description=" + "x" * 20_000],
            ["convert", wine.path(checkpoint), "-o", "killed.gguf", "--outtype", "f32", "--force"],
        ]
        killed, left = 0, 0
        for words in writers:
            fresh("killed.gguf")
            start = time.monotonic()
            gguf(*words)
            usual, new = time.monotonic() - start, path.read_bytes()
            for n in range(12):
                fresh("killed.gguf")
                process = wine.start(windows, *words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(usual * (n + random.random()) / 12)
                killed += process.poll() is None
                process.kill()
                process.wait()
                # The server closes the files of the process.
                time.sleep(0.05)
                assert path.read_bytes() in (old, new), f"{words}: neither the old nor the new file"
                left += len(hidden())
                gguf(*words) if words[0] != "edit" else gguf("edit", "killed.gguf", "--set", "general.description=y")
                assert not hidden(), f"{words}: {hidden()}"
        return f"{killed} kills, {left} unfinished files removed by the next command"

    def colors():
        def both(*words, env=None):
            expected = subprocess.run([linux, *words], cwd=folder, capture_output=True, env=os.environ | (env or {})).stdout
            found = gguf(*words, env=env).stdout
            assert expected == found, (expected[:200], found[:200])
            return b"\x1b[" in found
        assert not both("inspect", "model.gguf")
        assert both("inspect", "model.gguf", "--color=always")
        assert not both("inspect", "model.gguf", env={"NO_COLOR": "1"})
        assert both("inspect", "model.gguf", env={"FORCE_COLOR": "1"})

    def progress():
        done = gguf("quantize", "model.gguf", "progress.gguf", "Q6_K")
        assert b"\r" not in done.stderr and b"\x1b" not in done.stderr, done.stderr

    def console():
        """A console shows colors, unless `NO_COLOR` is set, and the progress of long work."""
        inspect = wine.command(windows, "inspect", "model.gguf")
        shown, code = in_terminal(inspect, folder, wine.environment)
        assert code == 0 and DIM in shown and "39 tensors" in plain(shown), (code, shown[-300:])
        shown, code = in_terminal(inspect, folder, wine.environment | {"NO_COLOR": "1"})
        assert code == 0 and DIM not in shown and "39 tensors" in plain(shown), (code, shown[-300:])
        (folder / "long.txt").write_text("In the beginning God created the heaven and the earth. " * 400)
        long = wine.command(windows, "perplexity", "model.gguf", "-f", "long.txt", "-t", "1")
        shown, code = in_terminal(long, folder, wine.environment)
        assert code == 0 and "%" in plain(shown), (code, shown[-300:])

    def closed_pipe():
        process = wine.start(windows, "inspect", "model.gguf", "--json", cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(10)
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(60) in (0, 141) and not errors, (process.returncode, errors)

    def view():
        """The server's answers are those of the Linux build."""
        answers = []
        for command, environment in [([str(linux)], None), (wine.command(windows), wine.environment)]:
            server = subprocess.Popen([*command, "view", "model.gguf", "--no-open"], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                base = server.stdout.readline().decode().strip()
                found = {}
                for query in [
                    "", *(f"api/1/{word}" for word in ["models", "nothing"]),
                    *(f"api/1/models/0/{word}" for word in [
                        "keys", "key?name=general.architecture", "tensors", "map", "tokenizer", "tokens?search=god&limit=5",
                        "bytes?file=0&offset=0&length=64", "tensor?name=blk.0.attn_q.weight",
                        "tensor/rows?name=token_embd.weight&start=0&count=2&columns=8",
                        "tensor/statistics?name=blk.0.attn_q.weight", "key?name=nothing",
                    ]),
                ]:
                    try:
                        with urllib.request.urlopen(base + query, timeout=120) as answer:
                            found[query] = answer.status, answer.read()
                    except urllib.error.HTTPError as fault:
                        found[query] = fault.code, fault.read()
                answers.append({query: (code, re.sub(rb'"(modified|path|file|version)":"?[^,"}]*"?', b"", body)) for query, (code, body) in found.items()})
            finally:
                server.terminate()
                server.wait(60)
        for query, answer in answers[0].items():
            assert answer == answers[1][query], f"{query}: {answer[0]} {answer[1][:300]} / {answers[1][query][0]} {answers[1][query][1][:300]}"
        return f"{len(answers[0])} answers, {sum(code == 200 for code, _ in answers[0].values())} with content"

    def links():
        names = here("links", folder / "linux-links", "--json")
        gguf("links", "links", "--json")
        programs = sorted(path.name for path in (folder / "links").iterdir())
        assert len(programs) == len(json.loads(names)["links"]), programs
        done = wine.run(folder / "links" / "llama-quantize.exe", "model.gguf", "linked.gguf", "Q4_0", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert (folder / "linked.gguf").read_bytes() == quantized
        gguf("links", "links")
        return f"{len(programs)} programs"

    return [
        paths, messages_name_paths_as_given, reserved_names, wildcards, read_only, open_files, concurrent_edits, kills, colors,
        progress, console, closed_pipe, view, links,
    ]


def plain(shown):
    """Returns text of a terminal without its control sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)


def in_terminal(command, cwd, environment, seconds=120):
    """Runs a command in a pseudo-terminal; returns what it shows, and its exit code."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(cwd)
        os.execvpe(command[0], command, environment | {"TERM": "xterm-256color"})
    shown, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.5)[0]:
            try:
                data = os.read(terminal, 65536)
            except OSError:
                break
            if not data:
                break
            shown += data
    return shown.decode(errors="replace"), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

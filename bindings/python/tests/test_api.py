import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import gguf_kit
import numpy as np
import pytest

TEXT = "And it came to pass in those days, that there went out a decree. " * 60


def test_progress_is_reported_from_the_calling_thread():
    calls = []
    gguf_kit.quantize(
        "tiny.gguf", {"Q8_0": "out.gguf"}, progress=lambda *state: calls.append((threading.get_ident(), *state))
    )
    assert {thread for thread, *_ in calls} == {threading.get_ident()}
    _, what, done, total = calls[-1]
    assert isinstance(what, str) and 0 < done <= total


def test_cancellation_leaves_no_files(folder):
    big = np.ones((40000, 1024), np.float32) * np.arange(1024)
    with pytest.raises(gguf_kit.Cancelled) as caught:
        gguf_kit.encode(big, "IQ4_XS", progress=lambda *_: False)
    assert caught.value.code == "interrupted"
    before = sorted(os.listdir(folder))
    with pytest.raises(gguf_kit.Cancelled):
        gguf_kit.perplexity("tiny.gguf", TEXT * 30, context=128, progress=lambda *_: False)
    assert sorted(os.listdir(folder)) == before


def test_exception_of_progress_is_raised():
    def fail(*_):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        gguf_kit.quantize("tiny.gguf", {"Q4_K_M": "out.gguf"}, progress=fail)


def test_ctrl_c_cancels(folder):
    script = textwrap.dedent("""
        import gguf_kit, numpy, os, threading, time, signal
        # The parent process may ignore SIGINT.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        begin = time.monotonic()
        try:
            gguf_kit.encode(numpy.ones((400000, 1024), numpy.float32), "IQ2_S", numpy.ones(1024), threads=1)
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - begin < 20)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "interrupted True\n", done.stdout + done.stderr


def test_overwriting_requires_force():
    gguf_kit.quantize("tiny.gguf", {"Q8_0": "out.gguf"})
    with pytest.raises(gguf_kit.OutputExistsError):
        gguf_kit.quantize("tiny.gguf", {"Q4_0": "out.gguf"})
    gguf_kit.quantize("tiny.gguf", {"Q4_0": "out.gguf"}, force=True)
    with pytest.raises(gguf_kit.RequestError):
        gguf_kit.quantize("tiny.gguf", {"Q4_0": "tiny.gguf"}, force=True)
    with pytest.raises(gguf_kit.RequestError, match="Q9_Z"):
        gguf_kit.quantize("tiny.gguf", "Q9_Z")


def test_quantize_equals_the_command(folder):
    made = gguf_kit.quantize("tiny.gguf", {"Q4_K_M": "a.gguf", "Q8_0": "b.gguf"})
    assert [path.name for path in made.files] == ["a.gguf", "b.gguf"] and "q8_0" in made.recipe
    run = subprocess.run(
        [sys.executable, "-m", "gguf_kit", "quantize", "tiny.gguf", "c.gguf", "Q4_K_M"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert (folder / "a.gguf").read_bytes() == (folder / "c.gguf").read_bytes()
    recipe = gguf_kit.Recipe(tensor_types=["ffn_down=Q6_K"])
    gguf_kit.quantize("tiny.gguf", {"Q4_0": "d.gguf"}, recipe=recipe)
    assert gguf_kit.open("d.gguf")["blk.0.ffn_down.weight"].type == "Q6_K"


def test_texts_calibrate_as_in_the_command(folder):
    for name in ["a", "b"]:
        Path(f"{name}.txt").write_text("".join(f"{name} text says {number} and {number * 7}. " for number in range(300)))
    short = {"calibrate_ctx": 32, "calibrate_tokens": 512}
    for number, texts in enumerate(["a.txt", ["a.txt"], ["a.txt", "b.txt"]]):
        recipe = gguf_kit.Recipe(calibrate=texts, **short)
        gguf_kit.quantize("tiny.gguf", {"Q4_0": f"{number}.gguf"}, recipe=recipe)
    assert (folder / "0.gguf").read_bytes() == (folder / "1.gguf").read_bytes()
    words = "quantize tiny.gguf c.gguf Q4_0 --calibrate a.txt --calibrate b.txt --calibrate-ctx 32 --calibrate-tokens 512"
    run = subprocess.run([sys.executable, "-m", "gguf_kit", *words.split()], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert (folder / "2.gguf").read_bytes() == (folder / "c.gguf").read_bytes() != (folder / "0.gguf").read_bytes()
    with pytest.raises(gguf_kit.RequestError):
        gguf_kit.quantize("tiny.gguf", {"Q4_0": "b.txt"}, recipe=recipe, force=True)


def test_edit():
    edited = gguf_kit.edit("tiny.gguf", set={"general.name": "Other", "my.list": ("u32[]", [1, 2])}, output="e.gguf")
    assert edited.outcome == "rebuilt"
    metadata = gguf_kit.open("e.gguf").metadata
    assert metadata["general.name"] == "Other" and metadata["my.list"].tolist() == [1, 2]
    assert metadata["my.list"].dtype == np.uint32
    gguf_kit.edit("e.gguf", remove=["my.list"], rename={"general.name": "my.name"})
    metadata = gguf_kit.open("e.gguf").metadata
    assert "my.list" not in metadata and metadata["my.name"] == "Other"
    with pytest.raises(gguf_kit.RequestError):
        gguf_kit.edit("e.gguf", remove=["nothing"])


def test_check_hash_diff():
    gguf_kit.quantize("tiny.gguf", {"Q4_0": "small.gguf"})
    assert gguf_kit.diff("tiny.gguf", "small.gguf")["verdict"] != "same tensors and metadata"
    assert gguf_kit.hash("tiny.gguf") == gguf_kit.hash(gguf_kit.open("tiny.gguf"))
    with pytest.raises(gguf_kit.RequestError):
        gguf_kit.hash("tiny.gguf", ["md5"])
    with open("small.gguf", "r+b") as file:
        file.seek(-2, os.SEEK_END)
        file.write(b"\xff\x7f")
    assert all(isinstance(finding, gguf_kit.Finding) for finding in gguf_kit.check("small.gguf", data=True, strict=True))
    template = "{{ messages.__class__.__mro__ }}"
    gguf_kit.edit("tiny.gguf", set={"tokenizer.chat_template": template}, output="poisoned.gguf")
    assert "template-escape" in [finding.code for finding in gguf_kit.check("poisoned.gguf", scan=True)]
    assert "sidecar-kind" in [finding.code for finding in gguf_kit.check("tiny.gguf", with_="small.gguf")]


def test_missing_companion_models_are_reported(checkpoint):
    with pytest.raises(gguf_kit.GgufError, match="vision or audio encoder"):
        gguf_kit.convert(checkpoint, {"f16": "mmproj.gguf"}, mmproj=True)
    with pytest.raises(gguf_kit.GgufError, match="no draft"):
        gguf_kit.convert(checkpoint, {"f16": "draft.gguf"}, target_model_dir=checkpoint)


def test_tokenizer_and_runner():
    tokenizer = gguf_kit.Tokenizer("tiny.gguf")
    ids = tokenizer.encode("In the beginning")
    assert tokenizer.decode(ids).strip() == "In the beginning" and len(tokenizer) == 2048
    assert tokenizer.encode_batch(["In the beginning", ""])[0] == ids
    runner = gguf_kit.Runner("tiny.gguf", exact=True)
    logits = runner.logits("In the beginning")
    assert logits.shape == (len(ids), 2048) and (runner.logits(ids) == logits).all()
    text, made, ended = runner.generate("In the beginning", tokens=5, temperature=0)
    assert len(made) == 5 and ended == "length" and made[0] == logits[-1].argmax()
    # The text continues the prompt.
    assert text.startswith(" ") and tokenizer.encode("In the beginning" + text) == ids + made
    gguf_kit.quantize("tiny.gguf", {"Q8_0": "drafter.gguf"})
    drafting = gguf_kit.Runner("tiny.gguf", exact=True, draft="drafter.gguf")
    plain, drafted = (each.generate("In the beginning", tokens=60, temperature=0, context=128) for each in (runner, drafting))
    assert drafted == plain
    with pytest.raises(gguf_kit.GgufError):
        gguf_kit.Runner("tiny.gguf", draft="missing.gguf")
    pieces = []
    assert runner.generate("In the", tokens=20, temperature=0, on_text=lambda t: pieces.append(t) or len(pieces) < 3)[2] == "reader"
    assert len(pieces) == 3

    def fail(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        runner.generate("In the", tokens=3, on_text=fail)


def test_evaluation():
    gguf_kit.quantize("tiny.gguf", {"Q4_0": "small.gguf"})
    found = gguf_kit.perplexity("tiny.gguf", TEXT, context=128, chunks=2)
    assert 1 < found.perplexity < 2048 and found.chunks == 2
    [result] = gguf_kit.kl_divergence("tiny.gguf", ["small.gguf"], TEXT, context=128, chunks=2)
    assert 0 < result.mean_kld < 1 and result.reference_perplexity == found.perplexity
    matrix = gguf_kit.imatrix("tiny.gguf", TEXT, context=128, chunks=2, dataset="text")
    matrix.save("m.gguf")
    again = gguf_kit.Imatrix("m.gguf")
    name = "blk.0.ffn_down.weight"
    assert again.names == matrix.names and (again.importance(name) == matrix.importance(name)).all()
    assert again.importance("nothing") is None and again.datasets == ["text"]
    rows = gguf_kit.open("tiny.gguf")[name].decode()
    assert gguf_kit.encode(rows, "IQ2_XXS", matrix.importance(name)).shape[0] == len(rows)
    gguf_kit.quantize("tiny.gguf", {"Q4_0": "i.gguf"}, recipe=gguf_kit.Recipe(imatrix="m.gguf"))
    assert gguf_kit.open("i.gguf").metadata["quantize.imatrix.dataset"] == "text"


def test_deprecated_names():
    for old, new in [("Made", "WriteResult"), ("Edited", "EditResult"), ("Divergence", "KLDivergence")]:
        with pytest.warns(DeprecationWarning, match=f"use `{new}`"):
            assert getattr(gguf_kit, old) is getattr(gguf_kit, new)
    with pytest.warns(DeprecationWarning, match="use `kl_divergence`"):
        assert gguf_kit.divergence is gguf_kit.kl_divergence
    with pytest.warns(DeprecationWarning, match="use `chunks`"):
        found = gguf_kit.perplexity("tiny.gguf", TEXT, context=128, windows=1)
    with pytest.warns(DeprecationWarning, match="use `chunks`"):
        assert found.windows == 1
    with pytest.raises(AttributeError):
        gguf_kit.nothing


def test_templates():
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ name }}"
    gguf_kit.edit("tiny.gguf", set={"tokenizer.chat_template": template}, output="chat.gguf")
    messages = [{"role": "user", "content": "hi"}]
    assert gguf_kit.apply_chat_template("chat.gguf", messages, name=None) == "<user>hi"
    gguf_kit.edit(
        "tiny.gguf",
        set={"tokenizer.chat_template": "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}"},
        output="loop.gguf",
    )
    with pytest.raises(gguf_kit.GgufError):
        gguf_kit.apply_chat_template("loop.gguf", messages)


def test_command():
    def gguf(*words, **arguments):
        return subprocess.run([sys.executable, "-m", "gguf_kit", *words], capture_output=True, text=True, **arguments)

    assert gguf("--version").stdout.startswith("gguf ")
    assert gguf("inspect", "tiny.gguf").returncode == 0
    assert gguf("inspect", "none.gguf").returncode == 3
    assert gguf("inspect", "--nothing").returncode == 2
    assert '"code"' in gguf("inspect", "--json", "none.gguf").stdout
    piped = subprocess.run(
        f"{sys.executable} -m gguf_kit inspect --tensors tiny.gguf | head -1; exit ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True,
    )
    assert piped.returncode == 0 and piped.stderr == "", piped.stderr


def test_ctrl_c_stops_the_command():
    process = subprocess.Popen(
        [sys.executable, "-m", "gguf_kit", "view", "tiny.gguf", "--no-open"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) in (-signal.SIGINT, 130, 0)


def test_outputs_in_object_stores(folder, bucket):
    gguf_kit.quantize("tiny.gguf", {"Q8_0": "local.gguf"})
    made = gguf_kit.quantize("tiny.gguf", {"Q8_0": "s3://models/a/remote.gguf", "Q4_0": "four.gguf"})
    assert list(made.objects) == ["s3://models/a/remote.gguf"] and [path.name for path in made.files] == ["four.gguf"]
    remote = bucket.get_object(Bucket="models", Key="a/remote.gguf")["Body"].read()
    assert remote == (folder / "local.gguf").read_bytes()
    with pytest.raises(gguf_kit.OutputExistsError):
        gguf_kit.quantize("tiny.gguf", {"Q4_0": "s3://models/a/remote.gguf"})
    listed = bucket.list_objects_v2(Bucket="models")["Contents"]
    assert [found["Key"] for found in listed] == ["a/remote.gguf"]
    assert not bucket.list_multipart_uploads(Bucket="models").get("Uploads")
    gguf_kit.merge("s3://models/a/remote.gguf", "s3://models/merged.gguf")
    assert bucket.get_object(Bucket="models", Key="merged.gguf")["Body"].read() == remote

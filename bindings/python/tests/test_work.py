import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import gguf_kit
import numpy as np
import pytest

TEXT = "And it came to pass in those days, that there went out a decree. " * 60


def test_progress_is_told_by_the_calling_thread():
    told = []
    gguf_kit.quantize(
        "tiny.gguf", {"Q8_0": "out.gguf"}, progress=lambda *now: told.append((threading.get_ident(), *now))
    )
    assert {thread for thread, *_ in told} == {threading.get_ident()}
    _, what, done, total = told[-1]
    assert isinstance(what, str) and 0 < done <= total


def test_false_ends_the_work_and_leaves_nothing(folder):
    big = np.ones((40000, 1024), np.float32) * np.arange(1024)
    with pytest.raises(gguf_kit.Cancelled) as caught:
        gguf_kit.encode(big, "IQ4_XS", progress=lambda *_: False)
    assert caught.value.code == "interrupted"
    before = sorted(os.listdir(folder))
    with pytest.raises(gguf_kit.Cancelled):
        gguf_kit.perplexity("tiny.gguf", TEXT * 30, context=128, progress=lambda *_: False)
    assert sorted(os.listdir(folder)) == before


def test_an_exception_comes_out():
    def fail(*_):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        gguf_kit.quantize("tiny.gguf", {"Q4_K_M": "out.gguf"}, progress=fail)


def test_control_c_ends_the_work(folder):
    script = textwrap.dedent("""
        import gguf_kit, numpy, os, threading, time, signal
        # Whoever started this may have it ignored.
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


def test_nothing_is_replaced_unless_asked():
    gguf_kit.quantize("tiny.gguf", {"Q8_0": "out.gguf"})
    with pytest.raises(gguf_kit.OutputExistsError):
        gguf_kit.quantize("tiny.gguf", {"Q4_0": "out.gguf"})
    gguf_kit.quantize("tiny.gguf", {"Q4_0": "out.gguf"}, force=True)
    with pytest.raises(gguf_kit.RequestError):
        gguf_kit.quantize("tiny.gguf", {"Q4_0": "tiny.gguf"}, force=True)
    with pytest.raises(gguf_kit.RequestError, match="Q9_Z"):
        gguf_kit.quantize("tiny.gguf", "Q9_Z")


def test_quantize_is_the_commands(folder):
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


def test_edit():
    edited = gguf_kit.edit("tiny.gguf", set={"general.name": "Other", "my.list": ("u32[]", [1, 2])}, output="e.gguf")
    assert edited.how == "rebuilt"
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
    assert all(isinstance(one, gguf_kit.Finding) for one in gguf_kit.check("small.gguf", data=True, strict=True))
    assert "sidecar-kind" in [one.code for one in gguf_kit.check("tiny.gguf", with_="small.gguf")]


def test_what_goes_with_a_model(checkpoint):
    with pytest.raises(gguf_kit.GgufError, match="encoder of images or sound"):
        gguf_kit.convert(checkpoint, {"f16": "mmproj.gguf"}, mmproj=True)
    with pytest.raises(gguf_kit.GgufError, match="no draft"):
        gguf_kit.convert(checkpoint, {"f16": "draft.gguf"}, target_model_dir=checkpoint)


def test_tokens_and_text():
    tokenizer = gguf_kit.Tokenizer("tiny.gguf")
    ids = tokenizer.encode("In the beginning")
    assert tokenizer.decode(ids).strip() == "In the beginning" and len(tokenizer) == 2048
    assert tokenizer.encode_batch(["In the beginning", ""])[0] == ids
    runner = gguf_kit.Runner("tiny.gguf", exact=True)
    logits = runner.logits("In the beginning")
    assert logits.shape == (len(ids), 2048) and (runner.logits(ids) == logits).all()
    text, made, ended = runner.generate("In the beginning", tokens=5, temperature=0)
    assert len(made) == 5 and ended == "length" and made[0] == logits[-1].argmax()
    pieces = []
    assert runner.generate("In the", tokens=20, temperature=0, on_text=lambda t: pieces.append(t) or len(pieces) < 3)[2] == "reader"
    assert len(pieces) == 3

    def fail(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        runner.generate("In the", tokens=3, on_text=fail)


def test_judgements():
    gguf_kit.quantize("tiny.gguf", {"Q4_0": "small.gguf"})
    found = gguf_kit.perplexity("tiny.gguf", TEXT, context=128, windows=2)
    assert 1 < found.perplexity < 2048 and found.windows == 2
    [one] = gguf_kit.divergence("tiny.gguf", ["small.gguf"], TEXT, context=128, windows=2)
    assert 0 < one.divergence < 1 and one.reference_perplexity == found.perplexity
    matrix = gguf_kit.imatrix("tiny.gguf", TEXT, context=128, windows=2, dataset="text")
    matrix.save("m.gguf")
    again = gguf_kit.Imatrix("m.gguf")
    name = "blk.0.ffn_down.weight"
    assert again.names == matrix.names and (again.importance(name) == matrix.importance(name)).all()
    assert again.importance("nothing") is None and again.datasets == ["text"]
    rows = gguf_kit.open("tiny.gguf")[name].decode()
    assert gguf_kit.encode(rows, "IQ2_XXS", matrix.importance(name)).shape[0] == len(rows)
    gguf_kit.quantize("tiny.gguf", {"Q4_0": "i.gguf"}, recipe=gguf_kit.Recipe(imatrix="m.gguf"))
    assert gguf_kit.open("i.gguf").metadata["quantize.imatrix.dataset"] == "text"


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


def test_the_command():
    def gguf(*words, **given):
        return subprocess.run([sys.executable, "-m", "gguf_kit", *words], capture_output=True, text=True, **given)

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


def test_the_command_dies_of_control_c():
    process = subprocess.Popen(
        [sys.executable, "-m", "gguf_kit", "view", "tiny.gguf", "--no-open"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) in (-signal.SIGINT, 130, 0)


def test_outputs_go_to_object_stores(folder, bucket):
    gguf_kit.quantize("tiny.gguf", {"Q8_0": "near.gguf"})
    made = gguf_kit.quantize("tiny.gguf", {"Q8_0": "s3://models/a/far.gguf", "Q4_0": "four.gguf"})
    assert list(made.objects) == ["s3://models/a/far.gguf"] and [path.name for path in made.files] == ["four.gguf"]
    far = bucket.get_object(Bucket="models", Key="a/far.gguf")["Body"].read()
    assert far == (folder / "near.gguf").read_bytes()
    with pytest.raises(gguf_kit.OutputExistsError):
        gguf_kit.quantize("tiny.gguf", {"Q4_0": "s3://models/a/far.gguf"})
    listed = bucket.list_objects_v2(Bucket="models")["Contents"]
    assert [found["Key"] for found in listed] == ["a/far.gguf"]
    assert not bucket.list_multipart_uploads(Bucket="models").get("Uploads")
    gguf_kit.merge("s3://models/a/far.gguf", "s3://models/merged.gguf")
    assert bucket.get_object(Bucket="models", Key="merged.gguf")["Body"].read() == far

"""Tasks of workers, and errors without Ray."""

import os
import subprocess
import sys
import textwrap

import gguf_kit
import pytest
from gguf_kit.ray import tasks
from gguf_kit.ray.jobs import plain_recipe

TEXT = "And it came to pass in those days, that there went out a decree. " * 60


def report(*_):
    return True


def job(folder, kind="Q8_0", source="tiny.gguf"):
    return {
        "function": "quantize",
        "source": str(folder / source),
        "out": str(folder / "out.gguf"),
        "type": kind,
        "recipe": plain_recipe(gguf_kit.Recipe()),
        "options": {},
    }


def plan(folder, **options):
    arguments = {"parts": 2, "merged": True, "resume": True, "force": False, **options}
    return tasks.plan(job(folder), report=report, **arguments)


def part(folder, number, fingerprint, **options):
    arguments = {"parts": 2, "rewrite": False, "force": False, "threads": 1, **options}
    tasks.part(job(folder), number, fingerprint=fingerprint, report=report, **arguments)


def test_missing_ray_is_reported_with_help(folder):
    script = textwrap.dedent("""
        import sys
        sys.modules["ray"] = None
        import gguf_kit.ray
        try:
            gguf_kit.ray.quantize("tiny.gguf", "out.gguf", "Q8_0")
        except gguf_kit.ray.ClusterError as error:
            print(error.code, error)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == 'environment Ray is not installed here: pip install "gguf-kit[ray]"\n', done.stderr
    assert os.listdir(folder) == ["tiny.gguf"]


@pytest.mark.parametrize("command", ["quantize", "convert", "evaluate", "sweep"])
def test_help_has_an_example(command):
    words = [sys.executable, "-m", "gguf_kit.ray", command, "--help"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0 and f"example:\n  python -m gguf_kit.ray {command} " in done.stdout


def test_part_of_another_model_is_rejected(folder):
    fingerprint = plan(folder)["fingerprint"]
    # The same path is another model on this node.
    gguf_kit.edit("tiny.gguf", set={"general.name": "Other"}, output="other.gguf")
    os.replace("other.gguf", "tiny.gguf")
    with pytest.raises(gguf_kit.RequestError, match="is not the same on all nodes") as caught:
        part(folder, 1, fingerprint)
    assert caught.value.code == "part-other-run" and os.listdir(folder) == ["tiny.gguf"]


def test_part_is_written_once(folder):
    fingerprint = plan(folder)["fingerprint"]
    part(folder, 1, fingerprint)
    file = folder / "out-00001-of-00002.gguf"
    made = file.stat()
    part(folder, 1, fingerprint)
    # The time of the last reading may change.
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (made.st_ino, made.st_mtime_ns)
    assert plan(folder)["complete"] == [1]
    with pytest.raises(gguf_kit.OutputExistsError):
        plan(folder, resume=False)
    part(folder, 1, fingerprint, rewrite=True, force=True)
    assert file.stat().st_ino != made.st_ino


def test_parts_are_calibrated_from_any_directory(folder, monkeypatch):
    (folder / "text.txt").write_text(TEXT)
    recipe = plain_recipe(gguf_kit.Recipe(calibrate=["text.txt", "bundled"], calibrate_ctx=64, calibrate_tokens=1024))
    arguments = {**job(folder, "Q4_0"), "recipe": recipe}
    monkeypatch.chdir("/")
    planned = tasks.plan(arguments, 2, True, True, False, report)
    for number in (1, 2):
        fractions = []
        options = {"fingerprint": planned["fingerprint"], "rewrite": False, "force": False, "threads": 1}

        def count(step, done, total):
            fractions.append(done / total if total else 0.0)
            return True

        tasks.part(arguments, number, parts=2, report=count, **options)
        assert fractions == sorted(fractions) and fractions[-1] > 0
    tasks.merge(str(folder / "out.gguf"), 2, False, report)
    with gguf_kit.open(folder / "out.gguf") as model:
        assert model.metadata["gguf_kit.calibration.parts"] == 2


def test_inaccessible_parts_are_not_merged(folder):
    part(folder, 1, plan(folder)["fingerprint"])
    with pytest.raises(gguf_kit.RequestError, match="out-00002-of-00002.gguf was written by another node") as caught:
        tasks.merge(str(folder / "out.gguf"), 2, False, report)
    assert caught.value.code == "part-missing" and not (folder / "out.gguf").exists()


def test_parts_of_different_types_are_not_merged(folder):
    for number, kind in ((1, "Q8_0"), (2, "Q5_0")):
        gguf_kit.quantize("tiny.gguf", {kind: "out.gguf"}, part=f"{number}/2")
    with pytest.raises(gguf_kit.InputError):
        tasks.merge(str(folder / "out.gguf"), 2, False, report)
    assert not (folder / "out.gguf").exists()


def test_dangling_symlink_is_not_replaced(folder):
    os.symlink("nowhere", "out.gguf")
    with pytest.raises(gguf_kit.OutputExistsError):
        plan(folder)


def test_parts_in_an_object_store_are_found(folder, bucket):
    bucket.upload_file("tiny.gguf", "models", "tiny.gguf")
    arguments = {**job(folder), "source": "s3://models/tiny.gguf", "out": "s3://models/out.gguf"}
    options = {"parts": 2, "merged": False, "force": False, "report": report}
    planned = tasks.plan(arguments, resume=True, **options)
    assert planned["complete"] == [] and planned["bytes"] == os.path.getsize("tiny.gguf")
    gguf_kit.quantize("tiny.gguf", {"Q8_0": "out.gguf"}, part="2/2")
    bucket.upload_file("out-00002-of-00002.gguf", "models", "out-00002-of-00002.gguf")
    again = tasks.plan(arguments, resume=True, **options)
    # A remote model has the fingerprint of the local one.
    assert again == {**planned, "complete": [2]}
    with pytest.raises(gguf_kit.OutputExistsError, match="s3://models/out-00002-of-00002.gguf exists"):
        tasks.plan(arguments, resume=False, **options)
    with pytest.raises(gguf_kit.OutputExistsError):
        tasks.plan({**arguments, "type": "Q4_0"}, resume=True, **options)
    with pytest.raises(gguf_kit.FileMissingError, match="the object does not exist"):
        gguf_kit.part_fingerprint("s3://models/none.gguf")


def test_directories_of_killed_workers_are_deleted(folder, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    left, other = folder / f"gguf-kit-ray-{int(ended.stdout)}-x", folder / f"gguf-kit-ray-{os.getpid()}-x"
    for one in (left, other):
        one.mkdir()
        (one / "made.gguf").write_bytes(b"half")
    with tasks._temporary_directory() as mine:
        assert mine.is_dir() and not left.exists() and other.exists()
    assert not mine.exists()


def test_parts_of_evaluations_and_conversions(folder, checkpoint):
    text = "In the beginning God created the heaven and the earth. " * 60
    matrices = []
    for part in ("1/2", "2/2"):
        matrices.append(f"{part[0]}.part")
        gguf_kit.imatrix("tiny.gguf", text, context=64, chunks=4, part=part, keep=matrices[-1])
    gguf_kit.merge_parts(matrices).save("merged.gguf")
    gguf_kit.imatrix("tiny.gguf", text, context=64, chunks=4).save("whole.gguf")
    assert (folder / "merged.gguf").read_bytes() == (folder / "whole.gguf").read_bytes()
    with pytest.raises(gguf_kit.RequestError, match="exists"):
        gguf_kit.imatrix("tiny.gguf", text, context=64, chunks=4, part="1/2", keep="1.part")
    with pytest.raises(gguf_kit.RequestError, match="give `keep`"):
        gguf_kit.perplexity("tiny.gguf", text, part="1/2")
    with pytest.raises(gguf_kit.RequestError):
        gguf_kit.merge_parts(matrices[:1])
    for number in (1, 2, 3):
        made = gguf_kit.convert(checkpoint, {"q8_0": "c.gguf"}, part=f"{number}/3")
        assert gguf_kit.part_fingerprint(made.files[0]) == made.fingerprint
    gguf_kit.merge("c-00001-of-00003.gguf", "c.gguf", delete_shards=True)
    gguf_kit.convert(checkpoint, {"q8_0": "d.gguf"})
    assert (folder / "c.gguf").read_bytes() == (folder / "d.gguf").read_bytes() and not list(folder.glob("c-*"))
    with pytest.raises(gguf_kit.OutputExistsError):
        gguf_kit.merge("d.gguf", "c.gguf")
    assert gguf_kit.part_fingerprint("c.gguf") is None

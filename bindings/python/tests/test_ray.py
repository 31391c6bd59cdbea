"""Jobs on a local cluster of two nodes."""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings

import gguf_kit
import gguf_kit.ray
import pytest
from gguf_kit.ray.cluster import ClusterError
from gguf_kit.ray.results import to_json

# Nodes execute code that they receive over the network, so require a token.
os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))

try:
    import ray
except ImportError:
    warnings.warn("Ray is not installed: cluster tests of gguf_kit.ray are skipped")
    pytest.skip("Ray is not installed", allow_module_level=True)

TEXT = "And it came to pass in those days, that there went out a decree. " * 60


class Cluster:
    """Nodes as local processes."""

    def __init__(self):
        # Socket paths have a length limit.
        self.folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.nodes = []
        self.start("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={self.folder}")
        self.address = f"127.0.0.1:{port}"
        self.alive()

    def add(self, **environment):
        """Start another node with environment variables; returns its id."""
        before = self.alive()
        self.start(f"--address={self.address}", **environment)
        while self.alive() == before:
            time.sleep(0.2)
        [node] = self.alive() - before
        return node

    def alive(self):
        script = "import ray, sys; ray.init(address=sys.argv[1]); print(*[n['NodeID'] for n in ray.nodes() if n['Alive']])"
        for _ in range(60):
            words = [sys.executable, "-c", script, self.address]
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode == 0:
                return set(done.stdout.splitlines()[-1].split())
            time.sleep(1)
        raise AssertionError(done.stderr)

    def start(self, *words, **environment):
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=1", *words]
        command += ["--disable-usage-stats", "--object-store-memory=80000000", "--node-ip-address=127.0.0.1"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
        self.nodes.append(subprocess.Popen(command, env={**os.environ, **environment}, **quiet))

    def stop(self):
        for node in reversed(self.nodes):
            os.killpg(node.pid, signal.SIGKILL)
            node.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster():
    cluster = Cluster()
    cluster.add()
    yield cluster
    cluster.stop()


@pytest.fixture
def address(cluster):
    return cluster.address


def names(folder):
    return sorted(os.listdir(folder))


def test_quantize_is_byte_identical_to_one_run(address, folder):
    gguf_kit.imatrix("tiny.gguf", TEXT, context=128, chunks=2).save("m.gguf")
    # The path of the matrix is stored in the file, so use the absolute one, like the workers.
    recipe = gguf_kit.Recipe(tensor_types=["ffn_down=Q6_K"], imatrix=folder / "m.gguf")
    gguf_kit.quantize("tiny.gguf", {"IQ3_XXS": "whole.gguf"}, recipe=recipe)
    before, progress = names(folder), []
    result = gguf_kit.ray.quantize(
        "tiny.gguf",
        "spread.gguf",
        "IQ3_XXS",
        parts=3,
        recipe=recipe,
        address=address,
        progress=lambda *state: progress.append(state),
    )
    assert (folder / "spread.gguf").read_bytes() == (folder / "whole.gguf").read_bytes()
    assert names(folder) == sorted([*before, "spread.gguf"])
    assert result.files == [str(folder / "spread.gguf")] and (result.written, result.reused) == (3, 0)
    assert "q6_k" in result.recipe
    assert {what for what, *_ in progress} == {"quantizing", "merging"}
    assert progress[0][1] == 0 and progress[-1][1] == progress[-1][2] == os.path.getsize("tiny.gguf")


def test_complete_shards_are_reused(address, folder):
    def run(**options):
        return gguf_kit.ray.quantize("tiny.gguf", "out.gguf", "Q4_0", parts=3, merge=False, address=address, **options)

    result = run()
    parts = [folder / f"out-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    assert result.files == list(map(str, parts))
    gguf_kit.quantize("tiny.gguf", {"Q4_0": "alone.gguf"}, part="2/3")
    assert parts[1].read_bytes() == (folder / "alone-00002-of-00003.gguf").read_bytes()
    stamps = [part.stat().st_mtime_ns for part in parts]
    parts[1].unlink()
    result = run()
    assert (result.written, result.reused) == (1, 2)
    again = [part.stat().st_mtime_ns for part in parts]
    assert again[0] == stamps[0] and again[2] == stamps[2] and again[1] != stamps[1]
    # Parts of another job, and a file that is not a part.
    with pytest.raises(gguf_kit.OutputExistsError, match="out-00001-of-00003.gguf exists"):
        gguf_kit.ray.quantize("tiny.gguf", "out.gguf", "Q8_0", parts=3, address=address)
    with pytest.raises(gguf_kit.OutputExistsError):
        run(resume=False)
    parts[0].write_bytes(b"mine")
    with pytest.raises(gguf_kit.OutputExistsError):
        run()
    assert parts[0].read_bytes() == b"mine" and [part.stat().st_mtime_ns for part in parts[1:]] == again[1:]
    assert run(force=True).written == 1 and run(force=True, resume=False).written == 3


def test_existing_output_is_not_overwritten(address, folder):
    (folder / "out.gguf").write_bytes(b"mine")
    before = names(folder)
    with pytest.raises(gguf_kit.OutputExistsError):
        gguf_kit.ray.quantize("tiny.gguf", "out.gguf", "Q8_0", parts=2, address=address)
    assert (folder / "out.gguf").read_bytes() == b"mine" and names(folder) == before
    gguf_kit.ray.quantize("tiny.gguf", "out.gguf", "Q8_0", parts=2, address=address, force=True)
    gguf_kit.quantize("tiny.gguf", {"Q8_0": "whole.gguf"})
    assert (folder / "out.gguf").read_bytes() == (folder / "whole.gguf").read_bytes()


def test_resume_after_merging_deletes_the_parts(address, folder):
    gguf_kit.quantize("tiny.gguf", {"Q8_0": "out.gguf"})
    gguf_kit.quantize("tiny.gguf", {"Q4_0": "other.gguf"})
    for part in ("1/2", "2/2"):
        gguf_kit.quantize("tiny.gguf", {"Q8_0": "out.gguf"}, part=part)
        gguf_kit.quantize("tiny.gguf", {"Q8_0": "other.gguf"}, part=part)
    before = (folder / "out.gguf").read_bytes()
    gguf_kit.ray.quantize("tiny.gguf", "out.gguf", "Q8_0", parts=2, address=address)
    assert (folder / "out.gguf").read_bytes() == before and not list(folder.glob("out-*"))
    with pytest.raises(gguf_kit.OutputExistsError):
        gguf_kit.ray.quantize("tiny.gguf", "other.gguf", "Q8_0", parts=2, address=address)
    assert len(list(folder.glob("other-*"))) == 2


def test_convert_is_byte_identical_to_one_run(address, folder, checkpoint):
    gguf_kit.convert(checkpoint, {"q8_0": "whole.gguf"}, model_name="Name")
    result = gguf_kit.ray.convert(
        checkpoint, "spread.gguf", "q8_0", parts=4, model_name="Name", address=address
    )
    assert (folder / "spread.gguf").read_bytes() == (folder / "whole.gguf").read_bytes() and result.written == 4


def test_evaluate_is_bit_exact_to_one_run(address, folder):
    gguf_kit.quantize("tiny.gguf", {"Q4_0": "four.gguf", "Q8_0": "eight.gguf"})
    options = {"context": 128, "chunks": 5}
    found = gguf_kit.ray.evaluate(["four.gguf", "tiny.gguf"], TEXT, parts=3, address=address, **options)
    assert found == [gguf_kit.perplexity(model, TEXT, **options) for model in ("four.gguf", "tiny.gguf")]
    models = ["four.gguf", "eight.gguf"]
    arguments = {"reference": "tiny.gguf", "parts": 2, "keep": "parts", "address": address, **options}
    wanted = gguf_kit.kl_divergence("tiny.gguf", models, TEXT, **options)
    assert gguf_kit.ray.evaluate(models, TEXT, **arguments) == wanted
    kept = names("parts")
    assert len(kept) == 2
    # One part is complete, one is missing.
    (folder / "parts" / kept[1]).unlink()
    assert gguf_kit.ray.evaluate(models, TEXT, **arguments) == wanted
    with pytest.raises(gguf_kit.RequestError) as other:
        gguf_kit.ray.evaluate(models, TEXT + "More.", **arguments)
    assert other.value.code == "part-other-run"


def test_sweep(address, folder):
    recipes = {"eight": "Q8_0", "mine": ("Q4_0", gguf_kit.Recipe(tensor_types=["ffn_down=Q8_0"]))}
    arguments = {"context": 128, "chunks": 2, "keep": "sweep.jsonl", "address": address}
    swept = gguf_kit.ray.sweep("tiny.gguf", recipes, TEXT, **arguments)
    assert [(row.name, row.type) for row in swept.rows] == [("mine", "Q4_0"), ("eight", "Q8_0")]
    gguf_kit.quantize("tiny.gguf", {"Q4_0": "mine.gguf"}, recipe=recipes["mine"][1])
    [wanted] = gguf_kit.kl_divergence("tiny.gguf", ["mine.gguf"], TEXT, context=128, chunks=2)
    assert swept.rows[0].divergence == wanted and swept.rows[0].bytes == os.path.getsize("mine.gguf")
    assert f"{wanted.mean_kld:.6f}" in swept.table()
    lines = (folder / "sweep.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["name"] for line in lines) == ["eight", "mine"]
    # An incomplete line: only its recipe is measured again.
    (folder / "sweep.jsonl").write_text(lines[0] + "\n" + lines[1][:-20])
    assert gguf_kit.ray.sweep("tiny.gguf", recipes, TEXT, **arguments) == swept
    assert len((folder / "sweep.jsonl").read_text().splitlines()) == 3


def test_cancelled_job_leaves_complete_parts_only(address, folder):
    before = names(folder)
    with pytest.raises(gguf_kit.Cancelled):
        gguf_kit.ray.quantize(
            "tiny.gguf", "out.gguf", "IQ4_XS", parts=4, address=address, progress=lambda *_: False
        )
    left = set(names(folder)) - set(before)
    fingerprints = {gguf_kit.part_fingerprint(file) for file in left}
    assert len(fingerprints) <= 1 and None not in fingerprints


@pytest.mark.parametrize(
    "source, type, parts, kind, code",
    [
        ("tiny.gguf", "Q9_Z", 2, gguf_kit.RequestError, "request-invalid"),
        ("tiny.gguf", "Q8_0", 5000, gguf_kit.RequestError, "parts-too-many"),
        ("tiny.gguf", "Q8_0", 0, gguf_kit.RequestError, "request-invalid"),
        ("missing.gguf", "Q8_0", 2, gguf_kit.FileMissingError, "environment"),
        ("tiny.gguf", "IQ1_S", 2, gguf_kit.RequestError, "imatrix-needed"),
    ],
)
def test_worker_errors_equal_local_errors(address, folder, source, type, parts, kind, code):
    before = names(folder)
    with pytest.raises(kind) as caught:
        gguf_kit.ray.quantize(source, "out.gguf", type, parts=parts, address=address)
    assert caught.value.code == code and names(folder) == before


def test_missing_credentials_are_reported(address, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with pytest.raises(gguf_kit.GgufError, match="AWS_ACCESS_KEY_ID") as caught:
        gguf_kit.ray.quantize("s3://bucket/model.gguf", "out.gguf", "Q8_0", parts=2, address=address)
    assert not isinstance(caught.value, ClusterError)


def test_excessive_resources_are_rejected(address, folder):
    with pytest.raises(ClusterError, match="needs 64 CPUs"):
        gguf_kit.ray.quantize("tiny.gguf", "out.gguf", "Q8_0", parts=2, cpus=64, address=address)
    with pytest.raises(ClusterError, match="1000000.0 GB of memory"):
        gguf_kit.ray.evaluate("tiny.gguf", TEXT, memory=10**15, address=address)
    with pytest.raises(ClusterError, match="127.0.0.1:1"):
        gguf_kit.ray.quantize("tiny.gguf", "out.gguf", "Q8_0", address="127.0.0.1:1")


def test_command(address, folder):
    def run(*words):
        command = [sys.executable, "-m", "gguf_kit.ray", *words, "--address", address]
        return subprocess.run(command, capture_output=True, text=True)

    done = run("quantize", "tiny.gguf", "out.gguf", "Q4_K_M", "--parts", "2", "--tensor-type", "ffn_down=Q8_0")
    assert done.stdout == f"wrote {folder}/out.gguf\n", done.stderr
    gguf_kit.quantize("tiny.gguf", {"Q4_K_M": "whole.gguf"}, recipe=gguf_kit.Recipe(tensor_types=["ffn_down=Q8_0"]))
    assert (folder / "out.gguf").read_bytes() == (folder / "whole.gguf").read_bytes()
    done = run("quantize", "tiny.gguf", "out.gguf", "Q4_K_M")
    assert done.returncode == 2 and done.stderr.startswith(f"error: {folder}/out.gguf exists\nhelp: "), done.stderr
    (folder / "text.txt").write_text(TEXT)
    words = ["-f", "text.txt", "-c", "128", "--chunks", "2"]
    done = run("evaluate", "out.gguf", "--reference", "tiny.gguf", "--parts", "2", "--json", *words)
    [wanted] = gguf_kit.kl_divergence("tiny.gguf", ["out.gguf"], TEXT, context=128, chunks=2)
    assert json.loads(done.stdout) == [{"model": "out.gguf", **to_json(wanted)}], done.stderr
    (folder / "types.txt").write_text("ffn_down=Q8_0\n")
    done = run("sweep", "tiny.gguf", "Q8_0", "mine=Q4_K_M:types.txt", *words)
    rows = done.stdout.splitlines()
    assert rows[2].startswith(f"| mine | Q4_K_M | {os.path.getsize('out.gguf')} |"), done.stdout + done.stderr
    assert rows[3].startswith("| Q8_0 | Q8_0 |") and len(rows) == 4


def test_models_in_an_object_store(folder, bucket):
    bucket.upload_file("tiny.gguf", "models", "tiny.gguf")
    gguf_kit.quantize("tiny.gguf", {"Q4_K_M": "whole.gguf"})
    cluster = Cluster()
    try:
        result = gguf_kit.ray.quantize(
            "s3://models/tiny.gguf", "out.gguf", "Q4_K_M", parts=3, address=cluster.address
        )
        # Parts in the object store stay shards and are reused.
        words = "s3://models/tiny.gguf", "s3://models/out.gguf", "Q4_K_M"
        first = gguf_kit.ray.quantize(*words, parts=3, address=cluster.address)
        again = gguf_kit.ray.quantize(*words, parts=3, address=cluster.address)
    finally:
        cluster.stop()
    assert result.written == 3 and (folder / "out.gguf").read_bytes() == (folder / "whole.gguf").read_bytes()
    assert (first.written, again.written, again.reused) == (3, 0, 3)
    gguf_kit.merge(first.files[0], "merged.gguf")
    assert (folder / "merged.gguf").read_bytes() == (folder / "whole.gguf").read_bytes()


def fake_package(folder, text):
    """Create a fake `gguf_kit` package."""
    folder.mkdir()
    (folder / "gguf_kit.py").write_text(text)
    return str(folder)


@pytest.mark.parametrize(
    "text, said",
    [
        ("__version__ = '0.0.1'", "has gguf-kit 0.0.1"),
        ("raise ImportError('no')", "has no gguf-kit"),
    ],
)
def test_node_with_another_version_is_rejected(folder, tmp_path, text, said):
    cluster = Cluster()
    try:
        node = cluster.add(PYTHONPATH=fake_package(tmp_path / "other", text))
        before = names(folder)
        wanted = rf"^the node [0-9.]+ \(node {node[:12]}\) {said}: every node needs version {gguf_kit.__version__}"
        with pytest.raises(ClusterError, match=wanted) as caught:
            gguf_kit.ray.quantize("tiny.gguf", "out.gguf", "Q8_0", parts=2, address=cluster.address)
        assert f"gguf-kit[ray]=={gguf_kit.__version__}" in caught.value.help
        assert names(folder) == before
    finally:
        cluster.stop()

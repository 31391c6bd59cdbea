"""A publisher: types in one pass, an importance matrix, a report, digests, shards."""

import hashlib
import os


def run(session, model, demo):
    run = session.run
    run(f"gguf convert {demo} -o f16.gguf --outtype f16", 0, ["wrote f16.gguf"])
    with open(session.path("text.txt"), "w", encoding="utf-8") as file:
        file.write("In the beginning God created the heaven and the earth. And the earth was without form. " * 60)
    run("gguf imatrix f16.gguf -f text.txt -c 64 --chunks 4", 0, ["wrote imatrix.gguf"])
    run("gguf quantize f16.gguf q4_k_m,q8_0,iq4_xs --imatrix imatrix.gguf", 0, ["3 files"])
    q4 = "f16-4.2M-Q4_K_M.gguf"
    assert os.path.exists(session.path(q4))
    run("gguf quality f16.gguf -f text.txt -c 64 --chunks 4 --types q8_0,q4_k_m -o report.html", 0, ["KLD", "Q4_K_M"])
    assert os.path.exists(session.path("report.html"))
    run("gguf card . --repo me/Tiny-KJV-GGUF --quantized-by me", 0, ["wrote ./README.md"])
    with open(session.path("README.md"), encoding="utf-8") as file:
        card = file.read()
    assert f"[`{q4}`]({q4})" in card and "Recommended for" in card and "imatrix.gguf" in card, card
    run("gguf card .", 2, ["README.md exists already"])
    run("gguf quality f16.gguf -f text.txt --types iq2_xxs", 2, ["without importance weights", "and 21 others"])
    run(f"gguf divergence -r f16.gguf {q4} -f text.txt -c 64 --chunks 4", 0)
    # Notes of one kind are one line.
    notes = run(f"gguf quantize {model} small.gguf q4_k_m --allow-requantize", 0, ["of 272 tensors have rows of 576"])
    assert notes.text().count("note:") == 1, notes.text()
    run(f"gguf verify {q4} --source f16.gguf", 1, ["was quantized with an importance matrix", "--imatrix"])
    run(f"gguf verify {q4} --source f16.gguf --imatrix imatrix.gguf", 0, ["39 of 39 tensors match"])
    digests = run(f"gguf hash --file {q4}", 0)
    with open(session.path(q4), "rb") as file:
        assert hashlib.sha256(file.read()).hexdigest() in digests.text().replace("\n", "")
    run(f"gguf split {q4} part --split-max-tensors 20 --no-tensor-first-split", 0)
    os.mkdir(session.path("alone"))
    os.rename(session.path("part-00001-of-00003.gguf"), session.path("alone/part-00001-of-00003.gguf"))
    run(
        "gguf inspect alone/part-00001-of-00003.gguf --keys 'general.*'",
        0,
        ["2 of 3 shards are missing", "general.architecture"],
    )
    run("gguf split f16.gguf s --split-max-size 3MiB --dry-run", 0, ["would write"])
    run("gguf name my-model.gguf", 1, ["no size label"], ["add one", "v1.0"])

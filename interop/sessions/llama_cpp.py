"""A daily user of llama.cpp: its names, its short flags, its output."""

import os


def run(session, model, demo):
    run = session.run
    run(f"gguf links {session.path('bin')}", 0)
    run(f"convert_hf_to_gguf.py {demo} --outfile kjv-{{ftype}}.gguf", 0, ["exported to kjv-f16.gguf"], ["wrote", "auto"])
    assert os.path.exists(session.path("kjv-f16.gguf"))
    run("llama-quantize", 1, ["usage", "model-f32.gguf"])
    run("llama-quantize --help", 0, ["Q4_K_M", "IQ2_XXS"])
    run("llama-quantize --version", 0, ["gguf "])
    run("llama-quantize kjv-f16.gguf q4.gguf q4_k_m", 0, ["quantize time"])
    run("llama-quantize kjv-f16.gguf iq.gguf iq2_xxs", 1, ["--imatrix-missing"])
    run("llama-quantize --imatrix-missing fallback kjv-f16.gguf iq.gguf iq2_xxs", 0)
    with open(session.path("text.txt"), "w", encoding="utf-8") as file:
        file.write("In the beginning God created the heaven and the earth. " * 60)
    run("llama-imatrix -m kjv-f16.gguf -f text.txt -c 64 --chunks 2 -ngl 99", 0, ["ignored"])
    assert os.path.exists(session.path("imatrix.gguf"))
    run("llama-perplexity -m q4.gguf -f text.txt -c 64 --chunks 2", 0, ["Final estimate: PPL ="])
    run("gguf-dump q4.gguf", 0, ["general.architecture"])
    run("llama-gguf-split --split --split-max-tensors 20 q4.gguf part", 0)
    run("llama-gguf-split --merge part-00001-of-00002.gguf whole.gguf", 0)
    run("llama-bench -m q4.gguf -p 8 -n 4 -r 1", 0, ["pp8"])
    run("llama-embedding -m q4.gguf -p Hello --pooling mean", 0, ["embedding"])

    session.answers("llama-cli -m kjv-f16.gguf -p 'In the beginning' -n 12 --temp 0 -no-cnv")
    ask = f"-m {model} -p Hi -n 6 --temp 0"
    run(f"llama-cli {ask} -ngl 99", 0, ["`-ngl` has no effect: models run on the CPU"])
    run(f"gguf generate {ask} -sys 'You are a pirate' -st --jinja", 0)
    run(f"gguf generate {ask} --seed -1", 0)
    run("gguf generate kjv-f16.gguf -p a -n -1 -c 24 --seed -1", 0)
    run("gguf generate -hf org/repo -p Hi", 3, ["the name of the server is not known"])
    run("gguf generate kjv-f16.gguf -p a -hff x", 2, ["'-hff'"])
    run("gguf generate kjv-f16.gguf -p a -md draft.gguf", 2, ["no draft models"])
    run("gguf generate kjv-f16.gguf -p a --json-schema {}", 2, ["llama-cli can"])
    run("gguf generate kjv-f16.gguf -p a --mirostat 2", 2, ["no such sampler"])
    run("gguf llama-server -m x", 2, ["there is no server"])
    run("gguf quantize q4.gguf x.gguf q8_0 --threads two", 2, ["expected a whole number"])
    chat = session.start(f"llama-cli -m {model} -cnv -n 8 --temp 0")
    chat.wait_for("\n>")
    chat.type("Hi\r")
    chat.wait_for("\n>")
    chat.type("\x03")
    chat.wait_for("press Ctrl-C again")
    chat.type("\x03")
    assert chat.end() == 0, chat.text()

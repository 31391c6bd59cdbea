"""Somebody with a broken file: what `check` says, and what repairs it."""


def run(session, model, demo):
    run = session.run
    with open(model, "rb") as file:
        whole = file.read()

    def write(name, content):
        with open(session.path(name), "wb") as file:
            file.write(content)
        return name

    def edited(name, flags):
        run(f"gguf edit {model} {flags} -o {name} --force", 0)
        return name

    run(f"gguf check {model}", 0, ["no errors"])
    run(f"gguf check {write('cut.gguf', whole[: len(whole) * 9 // 10])}", 1, ["MB are there", "tensors are truncated"])
    run(f"gguf check {write('page.gguf', b'<!DOCTYPE html><html>404</html>')}", 1, ["HTML page"])
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1\n"
    run(f"gguf check {write('pointer.gguf', pointer)}", 1, ["git lfs pull"])
    half = len(whole) // 2
    hole = whole[:half] + bytes(10_000_000) + whole[half + 10_000_000 :]
    run(f"gguf check {write('hole.gguf', hole)}", 1, ["10.0 MB of zeros", "download"])
    write("inst.jinja", b"{% for m in messages %}[INST] {{ m.content }} [/INST]{% endfor %}")
    run(f"gguf check {edited('template.gguf', '--chat-template-file inst.jinja')}", 0, ["template-undelimited"])
    run(f"gguf check {edited('eos.gguf', '--special-token-by-id eos=0')}", 0, ["template-end", "<|im_end|>"])
    run(f"gguf check {edited('none.gguf', '--remove tokenizer.ggml.eos_token_id')}", 0, ["eos-missing"])
    run(f"gguf edit {model} --set tokenizer.ggml.pre=nonsense -o x.gguf", 2, ["not a known pre-tokenizer"])
    run(f"gguf check {edited('pre.gguf', '--set tokenizer.ggml.pre=nonsense')}", 1, ["tokenizer-unknown"])
    run("gguf generate pre.gguf -p Hi", 1, ["nonsense"])
    rope = "--set llama.rope.scaling.type=linear --set llama.rope.scaling.factor=0.0"
    run(f"gguf check {edited('rope.gguf', rope)}", 1, ["rope-scaling", "expected a factor above 0"])
    ordinary = edited("word.gguf", "--special-token-by-id eos=5000")
    run(f"gguf check {ordinary} --fix -o fixed.gguf", 0, ["ends answers in the chat template"])
    run("gguf check fixed.gguf", 0, ["no errors, no warnings"])
    run("gguf check rope.gguf --fix -o x.gguf", 1, ["nothing to repair; wrote nothing"])
    run(f"gguf check {demo}", 2, ["is a checkpoint", "gguf convert"])
    run(f"gguf edit {demo} --set general.name=x", 2, ["gguf convert"])
    run("gguf inspect /etc/passwd", 1, ["not a model"])

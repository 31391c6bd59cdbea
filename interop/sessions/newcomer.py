"""A newcomer: converts, checks, asks, chats, and looks for the type to take."""


def run(session, model, demo):
    run = session.run
    run("gguf", 2, ["Usage"])
    run(f"gguf {demo}", 2, ["`gguf inspect"])
    run("gguf demo", 0, ["Next:"])
    run(f"gguf convert {demo}", 0, ["wrote Tiny-KJV-Llama-4M-F16.gguf"])
    kjv = "Tiny-KJV-Llama-4M-F16.gguf"
    run(f"gguf quantize {kjv}", 2, ["TYPE is missing"])
    run(f"gguf quantize {kjv} q4_k_m q8_0", 2, ["q4_k_m,q8_0"])
    run(f"gguf check {kjv}", 0, ["no errors, no warnings"])
    session.answers(f"gguf generate {kjv} 'In the beginning' -n 20 --temp 0")
    session.answers(f"gguf run {kjv} -p 'In the beginning' -n 20 --seed 1")
    run("gguf serve", 2, ["there is no server"])
    run("gguf list", 0, ["gguf pull"])
    run("gguf ps", 2, ["nothing runs in the background"])
    run("gguf generate Qwen/Qwen3-0.6B -p Hi", 2, ["hf:Qwen/Qwen3-0.6B"])
    run(f"gguf chat {kjv}", 1, ["--chat-template chatml"])

    # An instruct model answers, and its answer stays.
    answer = session.answers(f"gguf generate {model} -p 'What is the capital of France?' -n 24 --temp 0")
    assert answer.screen.display, "nothing on the screen"
    long = "In the beginning God created the heaven and the earth. " * 60
    with open(session.path("long.txt"), "w", encoding="utf-8") as file:
        file.write(long)
    # The prompt takes long enough for a bar, which ends with the first token.
    bar = session.answers(f"gguf generate {model} -f long.txt -n 8 --temp 0")
    assert b"tokens" in bar.bytes, "no bar"

    chat = session.start(f"gguf chat {model} -n 12 --temp 0 -v")
    chat.wait_for("/help lists the commands")
    chat.wait_for("\n>")
    chat.type("/help\r")
    chat.wait_for("/regenerate")
    chat.wait_for("\n>")
    # The cursor goes left, and the line is edited.
    chat.type("Hell is red?\x1b[D\x7f\x7f\x7fwarm\r")
    chat.wait_for("Hell is warm?")
    chat.wait_for("tokens/s")
    chat.wait_for("\n>")
    chat.type("\x1b[A")
    chat.wait_for("Hell is warm?")
    chat.type("\x15/clear\r")
    chat.wait_for("\n>")
    chat.type("/bye\r")
    assert chat.end() == 0, chat.text()
    assert "^[[" not in chat.text(), chat.text()

    # The oldest messages go when the context is full.
    chat = session.start(f"gguf chat {model} -c 96 -n 16 --temp 0")
    chat.wait_for("\n>")
    for question in ("What is a cat?", "And a dog?", "And a bird?", "And a fish?"):
        chat.type(question + "\r")
        chat.wait_for(question)
        chat.wait_for("\n>")
    assert "dropped the oldest" in " ".join(chat.text().split()), chat.text()
    chat.type("\x04")
    assert chat.end() == 0, chat.text()

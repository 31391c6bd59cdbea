"""Chat templates that are broken in one way each: what is wrong, the template, and the vocabulary of its file."""

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
# A template that no edit turns into one that Ollama knows.
LONG = "{#- " + "This comment keeps the template away from those that Ollama knows. " * 4 + "-#}\n" + CHATML
CHATML_TOKENS = {"tokens": ["<|im_start|>", "<|im_end|>"], "eos": "<|im_end|>", "bos": "<s>"}
MESSAGE = "message['content'] + "


def said(template, old, new):
    assert old in template, old
    return template.replace(old, new)


def with_filter(expression):
    return said(LONG, MESSAGE, f"{expression} + ")


def broken():
    """Yields name, template (None: none) and vocabulary."""
    def chatml(name, template, **changes):
        return name, template, {**CHATML_TOKENS, **changes}

    bos = "{{ bos_token }}" + LONG
    yield chatml("no template", None)
    yield chatml("not closed", LONG.replace("{% endfor %}", ""))
    yield chatml("unknown filter", with_filter("message['content'] | nosuchfilter"))
    yield chatml("unknown tag", "{% nosuchtag %}" + LONG)
    yield chatml("undefined attribute", with_filter("message.nothing.at_all"))
    yield chatml("refuses users", "{{ raise_exception('no') }}" + LONG)
    yield chatml("refuses system turns", "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}" + LONG)
    yield chatml("fails with several turns", "{% if messages | length > 2 %}{{ 1 + messages }}{% endif %}" + LONG)
    yield chatml("fails with a system turn", "{% if messages[0].role == 'system' %}{{ 1 + messages }}{% endif %}" + LONG)
    yield chatml("fails with tools", "{% if tools %}{{ 1 + messages }}{% endif %}" + LONG)
    yield chatml("fails with thinking off", "{% if enable_thinking is false %}{{ 1 + messages }}{% endif %}" + LONG)
    yield "tokens of another model", LONG, {"tokens": ["<|start_header_id|>", "<|eot_id|>"], "eos": "<|eot_id|>", "bos": "<s>"}
    yield chatml("misspelt token", said(LONG, "<|im_end|>", "<|im_ned|>"))
    yield chatml("missing token in the system turn", said(
        LONG, "'<|im_start|>' + message", "('<|sys|>' if message['role'] == 'system' else '<|im_start|>') + message"))
    yield chatml("missing token with tools", "{% if tools %}<|tools|>{{ tools | tojson }}{% endif %}" + LONG)
    yield chatml("missing token in results of tools", said(
        LONG, "'<|im_start|>' + message", "('<|result|>' if message['role'] == 'tool' else '<|im_start|>') + message"))
    yield chatml("missing token with thinking off", LONG + "{% if enable_thinking is false %}<|nothink|>{% endif %}")
    yield chatml("no EOS", LONG, eos=None)
    yield chatml("EOS out of range", LONG, eos=99999)
    yield chatml("another EOS", LONG, eos="</s>")
    yield chatml("answers without end", said(LONG, "+ '<|im_end|>'", ""))
    yield chatml("answers alone without end", said(LONG, "'<|im_end|>'", "('' if message['role'] == 'assistant' else '<|im_end|>')"))
    yield chatml("BOS twice", "{{ bos_token }}" + bos, add_bos=False)
    yield chatml("BOS of tokenizer and template", bos, add_bos=True)
    yield chatml("BOS twice in the system turn", said(bos, "{% for", "{% if messages[0].role == 'system' %}{{ bos_token }}{% endif %}{% for"), add_bos=False)
    yield chatml("BOS of every turn", said(LONG, "'<|im_start|>' + message", "bos_token + '<|im_start|>' + message"), add_bos=False)
    yield chatml("no generation prompt", LONG.split("{% if add_gen")[0])
    yield chatml("generation prompt always", LONG.replace("{% if add_generation_prompt %}", "{% if true %}"))
    yield chatml("generation prompt misspelt", LONG.replace("add_generation_prompt", "add_generationprompt"))
    yield chatml("empty", "{% if false %}" + LONG + "{% endif %}")
    yield chatml("empty with a system turn", "{% if messages[0].role != 'system' %}" + LONG + "{% endif %}")
    yield chatml("empty with tools", "{% if not tools %}" + LONG + "{% endif %}")
    yield chatml("empty for one turn", "{% if messages | length > 1 %}" + LONG + "{% endif %}")
    yield chatml("only spaces", "   \n")
    yield chatml("ignores messages", "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
    yield chatml("ignores the first turn", said(LONG, "in messages", "in messages[1:]"))
    yield chatml("ignores system turns", said(LONG, "in messages", "in messages if message.role != 'system'"))
    yield "undelimited turns", (
        "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}{#- not that of a known model, which is longer -#}"
    ), CHATML_TOKENS
    # Valid in jinja2, refused or rendered in another way by llama.cpp.
    yield chatml("call of a dictionary method", with_filter("dict(a=message['content']).setdefault('a', 'b')"))
    yield chatml("format", with_filter("'%s' % message['content']"))
    yield chatml("format filter", with_filter("'%s' | format(message['content'])"))
    yield chatml("string method", with_filter("message['content'].swapcase()"))
    yield chatml("wordwrap", with_filter("message['content'] | wordwrap(3)"))
    yield chatml("xmlattr", with_filter("({'a': message['content']} | xmlattr)"))
    yield chatml("groupby", "{% for role, some in messages | groupby('role') %}{{ role }}{% endfor %}" + LONG)
    yield chatml("cycler", "{% set c = cycler('a', 'b') %}{{ c.next() }}" + LONG)
    yield chatml("loop.cycle", said(LONG, "{{ '<|im_start|>'", "{{ loop.cycle('a', 'b') }}{{ '<|im_start|>'"))
    yield chatml("recursive loop", "{% for m in [1] recursive %}{{ m }}{% endfor %}" + LONG)
    yield chatml("include", "{% include 'other' ignore missing %}" + LONG)
    yield chatml("autoescape", "{% autoescape true %}" + LONG + "{% endautoescape %}")
    yield chatml("title", with_filter("message['content'] | title"))
    yield chatml("float", with_filter("(messages | length / 2) | string + message['content']"))
    yield chatml("None as text", with_filter("none | string + message['content']"))
    yield chatml("repr of a list", with_filter("[message['content']] | string"))
    yield chatml("None content", said(LONG, MESSAGE, "(message['content'] | string) + "))
    yield chatml("tools as text", "{% if tools %}{{ tools }}{% endif %}" + LONG)
    yield chatml("tools as sorted JSON", "{% if tools %}{{ tools | tojson(sort_keys=true) }}{% endif %}" + LONG)
    yield chatml("tools as compact JSON", "{% if tools %}{{ tools | tojson(separators=(',', ':')) }}{% endif %}" + LONG)
    yield chatml("thinking by default", LONG + "{% if enable_thinking %}<think>{% endif %}")
    yield chatml("thinking of earlier turns", LONG + "{% if preserve_thinking %}keep{% endif %}")
    # Replaced by Ollama, which has its own template of this name.
    yield chatml("known to Ollama", CHATML)
    yield chatml("nearly known to Ollama", said(CHATML, "'\\n' + message['content']", "'\\n\\n' + message['content']"))
    yield "known to Ollama as zephyr", (
        "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + message['content'] + eos_token }}\n"
        "{% elif message['role'] == 'system' %}\n{{ '<|system|>\n' + message['content'] + eos_token }}\n"
        "{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  + message['content'] + eos_token }}\n{% endif %}\n"
        "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}"
    ), {"tokens": ["<|user|>", "<|system|>", "<|assistant|>"], "eos": "</s>", "bos": "<s>"}


def changed():
    """Yields name, template and the template of the original model."""
    yield "other words", said(LONG, "'<|im_start|>assistant\\n'", "'<|im_start|>assistant\\nSure. '"), LONG
    yield "only spaces", said(LONG, "'\\n' + message['content']", "'\\n\\n' + message['content']"), LONG
    yield "announced", "{#- fixed by the publisher -#}" + said(LONG, "'<|im_start|>assistant\\n'", "'<|im_start|>assistant\\n<think>'"), LONG
    yield "without tools", LONG, "{% if tools %}{{ tools | tojson }}{% endif %}" + LONG
    yield "without system turns", said(LONG, "in messages", "in messages if message.role != 'system'"), LONG
    yield "thinking off", LONG, LONG + "{% if enable_thinking is false %}<think></think>{% endif %}"
    yield "same prompts", "{# other source #}" + LONG, LONG

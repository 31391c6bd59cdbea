"""One-line templates in which llama.cpp's engine differs from jinja2, or could: syntax, values, filters and scopes."""

LINES = r"""
x{% if true %}a{% endif %}
x {% if true %}a{% endif %}
 {% if true %}a{% endif %}
ab {% if true %}a{% endif %}
{{- 'a' -}} b {{- 'c' }}
a {#- comment -#} b
{%+ if true %}a{% endif %}
{%- if true +%}a{% endif %}
{% raw %}{{ x }}{% endraw %}
{% with a = 1 %}{{ a }}{% endwith %}
{% block b %}x{% endblock %}
{% generation %}x{% endgeneration %}
{% do lst.append(1) %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}
{% set a = 1, %}{{ a }}
{% set (a, b) = (1, 2) %}{{ a }}{{ b }}
{% set x | upper %}abc{% endset %}{{ x }}
{% set x %}a{{ 1 }}b{% endset %}{{ x }}|{{ x | length }}
{% for a, b in [[1, 2], [3, 4]] %}{{ a }}{{ b }};{% endfor %}
{% for (a, b) in [[1, 2]] %}{{ a }}{{ b }}{% endfor %}
{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}
{% for a, b in [1] %}{{ a }}{% endfor %}
{% for k, v in d %}{{ k }}={{ v }};{% endfor %}
{% for k in d %}{{ k }};{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
{% for k, v in d | dictsort %}{{ k }}={{ v }};{% endfor %}
{% for k, v in d | items %}{{ k }}={{ v }};{% endfor %}
{% for c in 'abc' %}{{ c }}{% endfor %}
{% for x in nothing %}{{ x }}{% else %}none{% endfor %}
{% for x in none %}{{ x }}{% else %}none{% endfor %}
{% for x in 5 %}{{ x }}{% endfor %}
{% for x in lst if x > 1 %}{{ loop.index }}{{ x }}{% endfor %}
{% for x in lst if x > 9 %}{{ x }}{% else %}none{% endfor %}
{% for x in lst recursive %}{{ x }}{% endfor %}
{% for x in lst %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}
{% for x in lst %}{% if x == 1 %}a{% break %}{% endif %}{{ x }}{% endfor %}
{% for x in lst %}b{% if true %}a{% continue %}{% endif %}{% endfor %}
{% for x in lst %}{% continue %}{% else %}none{% endfor %}
{% for x in lst %}{% set y = x %}{% endfor %}{{ y }}
{% for x in lst %}{{ y }}{% set y = x %}{% endfor %}
{% set y = 0 %}{% for x in lst %}{% set y = y + x %}{{ y }};{% endfor %}{{ y }}
{% for x in lst %}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }};{% endfor %}
{% for x in lst %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}
{% for x in lst %}{{ loop.cycle('a', 'b') }}{% endfor %}
{% for x in lst %}{{ loop.depth }}{{ loop.changed(x) }}{% endfor %}
{% for x in lst %}{{ loop.nothing }}{{ loop['index'] }}{% endfor %}
{{ loop }}
{% for x in range(3) %}{% for y in range(2) %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}
{% break %}
{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ f(1) }} {{ f(1, 3) }} {{ f(1, b=4) }}
{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ f(b=4) }}
{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ f(a=4) }}
{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ f(b=4, a=5) }}
{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ f() }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2) }}
{% macro f() %}{{ x }}{% endmacro %}{% for x in lst %}{{ f() }}{% endfor %}
{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}g{% endmacro %}{{ f() }}
{% macro f() %}{% break %}{% endmacro %}{% for x in lst %}{{ x }}{{ f() }}{% endfor %}
{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}
{% macro f() %}  a {% endmacro %}[{{ f() | trim }}]{{ f() | length }}
{% macro f() %}a{% endmacro %}{{ f.name }}
{% macro f() %}a{% endmacro %}{{ f }}
{% macro f() %}a{% endmacro %}{% if f %}yes{% endif %}
{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}x{% endcall %}
{% macro f(a) %}<{{ caller(a) }}>{% endmacro %}{% call(b) f(1) %}x{{ b }}{% endcall %}
{% macro f() %}<{{ caller() }}>{% endmacro %}{% set y = 5 %}{% call f() %}{{ y }}{% endcall %}
{% call d.items() %}x{% endcall %}
{% filter upper %}abc{% endfilter %}
{% filter replace('a', 'b') %}abc{% endfilter %}
{% filter upper | lower %}abc{% endfilter %}
{{ 'abc'[0] }}{{ 'abc'[-1] }}|{{ 'abc'[1:] }}{{ 'abc'[:-1] }}{{ 'abc'[::-1] }}{{ 'abc'[::2] }}
{{ 'abc'[5] }}|{{ 'abc'[1:9] }}|{{ 'abc'[-9:2] }}
{{ 'äbc' | length }}{{ 'äbc'[2:] }}
{{ 'äbc'[0] }}
{{ lst[0] }}{{ lst[-1] }}{{ lst[9] }}{{ lst[1:] }}{{ lst[::-1] }}{{ lst[:1] }}
{{ lst[0:2:0] }}
{{ lst['a'] }}{{ lst.a }}|{{ lst[true] }}|{{ lst[1.0] }}|{{ lst[none] }}
{{ lst.0 }}{{ lst.1 }}
{{ d['a'] }}{{ d.a }}{{ d.zz }}{{ d['zz'] }}{{ d[0] }}{{ d[none] }}
{{ d[lst] }}
{{ d[nothing] }}
{{ nothing.a }}{{ nothing.a.b }}{{ nothing['a'] }}{{ nothing[0] }}
{{ nothing.a() }}
{{ none.a }}{{ none['a'] }}
{{ none[0] }}
{{ n.a }}{{ f.a }}
{{ n[0] }}
{{ a[] }}{{ lst[] }}
{{ d.items }}
{{ {'items': 1}.items }}{{ {'items': 1}['items'] }}
{{ {'length': 1}.length }}
{{ {'get': 1}.get('get') }}
{{ {'string': 1}.string }}
{{ nothing }}|{{ none }}|{{ true }}|{{ false }}|{{ d }}|{{ lst }}|{{ (1, 2) }}|{{ [none, 'a', true, 1.5] }}
{{ [[1, 2], ['a', none]] }}|{{ [] }}|{{ {} }}|{{ [{'a': 1}] }}
{{ 1.0 }}|{{ 0.1 }}|{{ 1 / 3 }}|{{ 2 / 1 }}|{{ 100000.0 * 1000000 }}|{{ small }}|{{ big }}
{{ [1.0, 0.1, none, true, 'it''s', "it's"] | string }}
{{ 7 % 3 }}|{{ -7 % 3 }}|{{ 7 % -3 }}|{{ 7.5 % 2 }}|{{ 7 // 2 }}
{{ 2 ** 3 }}
{{ 1 + 1 }}|{{ 1 - 2 }}|{{ 3 * 4 }}|{{ 1 + 1.5 }}|{{ 9007199254740993 + 0 }}
{{ 1 / 0 }}|{{ 1 % 0 }}
{{ 1e3 }}
{{ 0x10 }}
{{ 1_000 }}
{{ 99999999999999999999 }}
{{ -n }}|{{ - n }}|{{ +n }}|{{ -2 | abs }}|{{ -2.5 | abs }}|{{ (-2) | abs }}
{{ n -1 }}|{{ n - 1 }}|{{ n-1 }}
{{ 1 if false else -1 }}
{{ not -1 }}
{{ lst[-1:] }}{{ (-1) }}{{ [-1] }}{{ {'a': -1} }}
{{ -'a' }}
{{ 'a' + 'b' }}{{ 'a' ~ 1 ~ none ~ true }}|{{ 1 ~ 'a' }}|{{ 'a' + 1 }}
{{ 'a' ~ nothing }}|{{ nothing ~ 'a' }}|{{ 'a' + nothing }}|{{ 'a' + none }}
{{ 1 ~ 2 }}
{{ nothing + nothing }}
{{ nothing + 1 }}
{{ none + 1 }}
{{ 'a' ~ lst ~ d }}
{{ lst + [4] }}|{{ (1, 2) + [3] }}
{{ lst * 2 }}
{{ 'ab' * 2 }}{{ 2 * 'ab' }}{{ 'ab' * -1 }}
{{ true + 1 }}
{{ '%s' % 'a' }}
{{ 1 == 1.0 }}{{ 1 == true }}{{ '1' == 1 }}{{ none == nothing }}{{ nothing == nothing }}{{ nothing == none }}
{{ [1] == [1] }}{{ [[1]] == [[1]] }}{{ (1, 2) == (1, 2) }}{{ (1, 2) == [1, 2] }}{{ {'a': 1} == {'a': 1} }}{{ {'a': [1]} == {'a': [1]} }}
{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }}
{{ 1 < 2 }}{{ 1 <= 1 }}{{ 2 > 1.5 }}{{ 2 >= 3 }}
{{ 'a' < 'b' }}
{{ 1 < 'b' }}
{{ 1 < 2 < 3 }}
{{ 3 > 2 > 1 }}
{{ 1 == 1 == 1 }}
{{ 'a' in 'abc' }}{{ 'a' not in 'abc' }}{{ 1 in lst }}{{ 9 in lst }}{{ 'a' in d }}{{ 1 in 'abc' }}
{{ 1 in d }}{{ none in lst }}{{ none in d }}{{ 'a' in nothing }}{{ 'a' not in nothing }}{{ nothing in nothing }}
{{ nothing in lst }}
{{ 'a' in none }}
{{ [1] in [[1]] }}
{{ not 'a' in 'abc' }}
{{ lst in d }}
{{ true and 1 }}|{{ 0 or 'x' }}|{{ none and 1 }}|{{ nothing or 'd' }}|{{ '' or none }}
{{ 'x' if nothing }}|{{ 'x' if true }}|{{ 'x' if nothing else 'y' }}|{{ 1 if 0 else 2 if 0 else 3 }}
{{ n is defined }}{{ nothing is defined }}{{ none is defined }}{{ none is none }}{{ nothing is none }}{{ nothing is undefined }}
{{ n is number }}{{ f is number }}{{ true is number }}{{ n is integer }}{{ f is float }}{{ true is boolean }}{{ 's' is string }}
{{ lst is iterable }}{{ d is iterable }}{{ 's' is iterable }}{{ n is iterable }}{{ nothing is iterable }}{{ none is iterable }}
{{ lst is sequence }}{{ d is sequence }}{{ 's' is sequence }}{{ d is mapping }}{{ lst is mapping }}{{ (1, 2) is sequence }}
{{ range is callable }}{{ d.items is callable }}{{ n is callable }}
{{ n is odd }}{{ n is even }}{{ n is divisibleby 7 }}{{ n is divisibleby(2) }}
{{ 's' is odd }}
{{ n is divisibleby 0 }}
{{ 'abc' is lower }}{{ 'ABC' is upper }}{{ '12' is lower }}{{ '12' is upper }}{{ 'Ä' is lower }}
{{ true is true }}{{ 1 is true }}{{ false is false }}{{ none is false }}
{{ 1 is eq 1 }}{{ 1 is equalto 2 }}{{ 1 is ne 2 }}{{ 1 is lt 2 }}{{ 2 is gt 1 }}{{ 2 is ge 2 }}{{ 1 is greaterthan 0 }}{{ 1 is lessthan 0 }}
{{ 2 is le 2 }}
{{ 1 is eq '1' }}{{ 2 is lt '10' }}{{ none is eq none }}{{ [1] is eq [1] }}
{{ true is lt false }}
{{ 1 is in lst }}{{ 'a' is in 'abc' }}{{ 1 is not in lst }}
{{ n is sameas n }}{{ lst is sameas lst }}{{ 1 is sameas 1 }}{{ 300 is sameas 300 }}{{ [1] is sameas [1] }}{{ 'a' is sameas 'a' }}
{{ 'x' is filter }}
{{ 'odd' is test }}{{ 'odd' is test and true }}
{{ 'x' is escaped }}
{{ n is nosuchtest }}
{{ n is not none }}{{ n is not defined }}{{ not n is defined }}
{{ n is number is true }}
{{ s | trim }}|{{ s.strip() }}|{{ s.lstrip() }}|{{ s.rstrip() }}|{{ 'xaxx'.strip('x') }}|{{ 'xax' | trim('x') }}|{{ 'abc'.strip('') }}
{{ s | upper }}|{{ s | lower }}|{{ s | title }}|{{ s | capitalize }}|{{ 'äÖ' | upper }}|{{ "it's a dog-house" | title }}
{{ ('ab' ~ 'cd') | capitalize }}{{ ('ab' ~ 'cd') | title }}{{ ('ab' + 'cd').capitalize() }}
{{ ('ab ' ~ ' cd') | trim | title }}{{ ('ab' ~ 'cd')[0:3] | title }}
{{ n | upper }}{{ none | upper }}{{ true | lower }}{{ lst | upper }}
{{ nothing | upper }}|{{ nothing | trim }}|{{ nothing | length }}|{{ nothing | list }}|{{ nothing | join }}|{{ nothing | first }}
{{ none | length }}
{{ n | length }}
{{ lst | length }}{{ d | length }}{{ 'abc' | length }}{{ 'abc' | count }}{{ lst.length }}{{ 'abc'.length }}
{{ 'a b c'.split() }}{{ 'a  b'.split() }}{{ 'a,b,c'.split(',') }}{{ 'a,b,c'.split(',', 1) }}{{ 'abc'.split('') }}
{{ 'a,b,c'.split(',') | last }}{{ 'a,b,c'.rsplit(',', 1) }}{{ 'a,b'.rsplit(',') }}{{ ''.split(',') }}
{{ 'a\nb'.splitlines() }}
{{ 'a,b' | split(',') }}
{{ 'abcabc' | replace('b', 'x') }}{{ 'abc'.replace('b', '') }}{{ 'abc' | replace('', '-') }}{{ 'äb' | replace('', '-') | length }}
{{ 'abcabc' | replace('b', 'x', 1) }}
{{ 'aaa'.replace('a', 'b', count=1) }}
{{ n | replace('7', '8') }}
{{ 'abc'.startswith('a') }}{{ 'abc'.endswith('bc') }}{{ 'abc'.startswith(('a', 'b')) }}
{{ 'abc'.startswith('a') }}{{ 'abc'.endswith('') }}
{{ '{} and {}'.format(1, 'b') }}
{{ '{0}'.format(1) }}
{{ '{}'.format() }}
{{ 'abc'.find('b') }}
{{ 'abc'.index('b') }}
{{ 'a'.join(['x', 'y']) }}
{{ ['x', 'y'] | join(', ') }}{{ ['x', 1, 1.5] | join }}{{ objs | join(',', attribute='k') }}{{ objs | join(',', 'v') }}
{{ ['x', none] | join }}
{{ ['x', true] | join }}
{{ 'abc' | join(',') }}
{{ d | join(',') }}
{{ 'abc' | list }}
{{ 'abc' | reverse }}
{{ 'abc' | first }}
{{ lst | list }}{{ lst | first }}{{ lst | last }}{{ [] | first }}{{ lst | reverse }}{{ lst | sort }}{{ lst | sort(reverse=true) }}{{ lst | min }}{{ lst | max }}
{{ d | list }}
{{ d | first }}
{{ strs | sort }}{{ strs | sort(case_sensitive=true) }}{{ [1, 'a', 0, none, true] | sort }}
{{ objs | sort(attribute='v', reverse=true) }}{{ objs | max(attribute='v') }}{{ objs | min(attribute='v') }}
{{ [true, false] | sort }}
{{ lst | sum }}
{{ lst | unique }}
{{ lst | random }}
{{ lst | batch(2) }}
{{ lst | slice(2) }}
{{ lst | slice(0, 2, 1) }}{{ 'abc' | slice(0, 2, 1) }}
{{ lst | map('upper') }}
{{ objs | map(attribute='k') }}{{ objs | map(attribute='zz') }}{{ objs | map(attribute='zz', default=1) }}{{ [[1, 2]] | map(attribute=1) }}{{ [[1, 2]] | map(attribute='0') }}
{{ objs | map(attribute='k') | join }}
{{ objs | selectattr('k') }}{{ objs | rejectattr('zz') | length }}
{{ objs | selectattr('k', 'equalto', 'a') }}{{ objs | rejectattr('k', 'eq', 'a') }}{{ objs | selectattr('v', 'gt', 1) }}
{{ objs | selectattr('k', 'defined') }}
{{ objs | selectattr('k', '==', 'a') }}
{{ lst | select('gt', 1) }}{{ lst | reject('equalto', 1) }}
{{ lst | select('odd') }}
{{ lst | select }}
{{ objs | selectattr('k', 'in', ['a']) }}
{{ objs | groupby('k') }}
{{ d | dictsort }}{{ d | dictsort(reverse=true) }}{{ {'b': 1, 'a': 2} | dictsort(by='value') }}
{{ d | items }}{{ d.keys() }}{{ d.values() }}{{ d.items() }}{{ d.get('a') }}{{ d.get('zz') }}{{ d.get('zz', 1) }}
{{ d.get(1) }}
{{ d.keys() | list }}{{ d.items() | list | length }}{{ d.keys() | first }}{{ d.keys()[0] }}
{{ d.update({'c': 1}) }}
{{ d.pop('a') }}
{{ d.copy() }}
{{ nothing | default('x') }}{{ none | default('x') }}{{ '' | default('x') }}{{ '' | default('x', true) }}{{ 0 | default('x', boolean=true) }}{{ n | default('x') }}{{ nothing | d('y') }}
{{ nothing | default }}
{{ d | default('x') }}
{{ lst | default('x') }}
{{ nothing | default(default_value='x') }}
{{ n | int }}{{ f | int }}{{ '12' | int }}{{ '12abc' | int }}{{ 'x' | int }}{{ 'x' | int(3) }}{{ 'ff' | int(base=16) }}{{ '0x1f' | int(0, 16) }}{{ '99999999999' | int }}{{ ' 5' | int }}{{ '-5' | int }}{{ true | int }}
{{ '1.5' | int }}{{ '1.5' | float }}{{ 'x' | float }}{{ 'x' | float(2.5) }}{{ n | float }}{{ '1e3' | float }}{{ '1.5x' | float }}{{ '.5' | float }}{{ true | float }}
{{ none | int }}
{{ lst | int }}
{{ f | round }}
{{ n | string }}{{ f | string }}{{ 0.1 | string }}{{ true | string }}{{ none | string }}{{ lst | string }}{{ d | string }}{{ nothing | string }}
{{ n | abs }}{{ -3 | abs }}{{ -1.5 | abs }}
{{ d | tojson }}{{ lst | tojson }}{{ s | tojson }}{{ n | tojson }}{{ f | tojson }}{{ true | tojson }}{{ none | tojson }}{{ (1, 2) | tojson }}
{{ nothing | tojson }}
{{ big | tojson }}{{ small | tojson }}{{ 0.1 | tojson }}{{ 1234567.5 | tojson }}{{ 100000.5 | tojson }}{{ (1 / 3) | tojson }}
{{ d | tojson(indent=2) }}
{{ d | tojson(indent=0) }}
{{ {} | tojson(indent=2) }}{{ [] | tojson(indent=2) }}
{{ u | tojson }}{{ u | tojson(ensure_ascii=true) }}{{ u | tojson(true) }}
{{ d | tojson(separators=(',', ':')) }}{{ d | tojson(separators=[' ; ', '=']) }}
{{ d | tojson(sort_keys=true) }}
{{ 'a"b\\c/<>&' | tojson }}
{{ {1: 2, none: 3, true: 4, 1.5: 5} | tojson }}
{{ {1: 'a', 1.0: 'b', true: 'c'} }}
{{ {(1, 2): 3} }}{{ {(1, 2): 3}[(1, 2)] }}
{{ {[1]: 3} }}
{{ {nothing: 3} }}
{{ tojson(lst) }}
{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb' | indent(2) }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb' | indent(2, false, true) }}|{{ 'a\nb\n' | indent('> ') }}
{{ '\n\na\nb' | indent(2) }}|{{ '\na' | indent(2, first=true) }}
{{ 'a' | center(5) }}
{{ '<a>' | escape }}
{{ '<a>' | e }}
{{ '<a>' | safe }}{{ n | safe }}{{ none | safe }}{{ true | safe }}
{{ lst | safe }}
{{ 'a b' | wordcount }}
{{ 'abc' | truncate(2) }}
{{ s | urlencode }}
{{ s | striptags }}
{{ s | pprint }}
{{ d | xmlattr }}
{{ s | nosuchfilter }}
{{ s.nosuchmethod() }}
{{ s.upper() }}{{ s.lower() }}{{ s.title() }}{{ s.capitalize() }}{{ 's'.isupper() }}
{{ n.bit_length() }}
{{ s.upper }}|{{ s.upper() | trim }}
{% set l = [] %}{% set _ = l.append(1) %}{% set _ = l.append(2) %}{{ l }}{{ l.pop() }}{{ l }}{{ l.pop(0) }}{{ l }}
{% set l = [] %}{{ l.append(1) }}{{ l.append(2) }}
{% set l = [] %}{% set m = l %}{% set _ = l.append(1) %}{{ m }}
{% set l = [1, 2] %}{{ l.pop(5) }}
{% set _ = (1, 2).append(3) %}
{% set l = [3, 1] %}{{ l.sort() }}{{ l }}{{ l.reverse() }}{{ l }}
{{ lst.index(1) }}
{{ lst.count(1) }}
{{ lst.extend([1]) }}
{{ lst.insert(0, 1) }}
{% set ns = namespace(a=1) %}{% set ns.a = 2 %}{% set ns.b = 3 %}{{ ns.a }}{{ ns.b }}{{ ns }}
{% set ns = namespace() %}{% for x in lst %}{% set ns.a = x %}{% endfor %}{{ ns.a }}{{ ns.zz }}
{% set ns = namespace({'a': 1}, b=2) %}{{ ns }}{{ ns.items() }}
{% set x = {} %}{% set x.a = 1 %}{{ x }}
{% set x = {} %}{% set x['a'] = 1 %}{{ x }}
{% set x = 1 %}{% set x.a = 1 %}{{ x }}
{{ dict(a=1, b=2) }}{{ dict([('a', 1)]) }}{{ dict([['a', 1]], b=2) }}{{ dict({'a': 1}) }}
{{ dict(1) }}
{{ dict([1]) }}
{{ range(3) }}{{ range(1, 3) }}{{ range(3, 0, -1) }}{{ range(0) }}{{ range(3) | list }}{{ range(3)[1] }}
{{ range(1, 3, 0) }}
{{ range('a') }}
{{ range(2.5) }}
{{ lipsum() }}
{{ cycler('a') }}
{{ joiner(',') }}
{{ raise_exception('no') }}
{{ raise_exception(1) }}
{{ nosuchfunction() }}
{{ f(1) }}
{{ [1 2 3] }}{{ [1, 2,] }}{{ {'a': 1 'b': 2} }}
{{ (1,) }}
{{ () }}
{{ 1, 2 }}
{{ range(1 3) }}
{{ dict(*[]) }}
{{ dict(**{}) }}
{{ 'a' 'b' }}{{ "a" 'b' "c" }}
{{ 'it\'s' }}{{ "\"" }}{{ '\n\t\\' | tojson }}
{{ '\x41' }}
{{ '\u00e9' }}
{{ '\d' }}
{{ 'a
b' }}
{{ 'unclosed }}
{{ "}}" }}{{ '{%' }}{{ {'a': {'b': 1}}['a'] }}{{ {'a': {'b': 1}} }}
{{ ä }}
{{ a!b }}
{{ n & 1 }}
{{ true }}{{ True }}{{ false }}{{ False }}{{ none }}{{ None }}{{ null }}
{% set true = 5 %}{{ true }}
{% set none = 5 %}{{ none }}
{{ if }}{{ for }}
{% if lst %}a{% endif %}{% if [] %}b{% endif %}{% if {} %}c{% endif %}{% if 0.0 %}d{% endif %}{% if '0' %}e{% endif %}
{% if range %}x{% endif %}
{% if n == 7 %}a{% elif n == 8 %}b{% else %}c{% endif %}{% if n == 8 %}a{% elif n == 7 %}b{% else %}c{% endif %}
{% if %}a{% endif %}
{% if n %}
{% endif %}
{% for x in lst %}
{% elif %}
{% nosuchtag %}
{{ }}
{{ n
{% if n
{# unclosed
{{ n }} } }} %}
{# a #}b{# c #}
{{ strftime_now('%Y-%m-%d') | length }}
{{ strftime_now('') }}
{{ strftime_now('%Z%z %f %%f') }}
{{ strftime_now('%d ' * 60) }}
{{ datetime | length }}{{ date_string | length }}
{{ bos_token }}{{ eos_token }}{{ unk_token }}{{ pad_token }}
{{ add_generation_prompt }}{{ enable_thinking }}{{ tools }}{{ documents }}{{ tools is defined }}
{{ messages[0].content }}{{ messages[0].tool_calls }}{{ messages | length }}{{ messages[0].keys() }}
{{ messages }}
{{ messages | tojson }}
{{ messages[0]['content'] is string }}{{ messages[0].content | length }}
{{ namespace }}|{{ range }}
{{ range == dict }}
{{ test_is_odd(3) }}
{{ n | default(1) | string | upper | length }}
{{ (n | string).zfill(3) }}
{{ n == 7 and f == 2 or false }}{{ not n == 7 }}{{ not (n == 7) }}
{{ n if n is odd else 0 }}{{ n if n is even }}
{{ [n if n is odd else 0, 1] }}
{{ -n | abs }}{{ -n + 1 }}{{ 2 * -n }}
{{ 1 - -1 }}{{ 1 + +1 }}{{ (1) -1 }}{{ lst[0] -1 }}{{ {} -1 }}
{{ 'a' is string and 'b' is string }}{{ 'a' is string or x }}
{{ 'a' | upper is string }}{{ 'a' ~ 'b' | upper }}{{ 'a' + 'b' | upper }}
{{ 'abc' | upper | lower[0] }}
{{ ('abc' | upper)[0] }}{{ d.a[1] }}{{ d['a'][1:] }}{{ d.get('a')[0] }}
{{ lst | length - 1 }}{{ lst | length > 2 }}{{ lst[lst | length - 1] }}
{{ lst[(lst | length) - 1] }}
{%- for x in lst -%} {{ x }} {%- endfor -%}
{% for x in lst -%}
 a
{%- endfor %}
""".strip("\n").split("\n")

#!/usr/bin/env python3
"""Writes chats.json: chat templates and conversations with the text that transformers' apply_chat_template renders.

usage: make_chats.py MODEL.gguf chats.json        (tests/golden/reference has an environment with what this imports)

Besides the model's own template there are templates in the manner of other families, written here: they use what
such templates use (namespaces, loops, slices, string methods, tojson, raise_exception, macros, whitespace control).
"rendered" is null where the template refuses the conversation.
"""
import json
import sys

from gguf import GGUFReader
from jinja2.exceptions import TemplateError
from transformers.utils.chat_template_utils import render_jinja_template

TEMPLATES = {
    "alternating": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] | trim %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set system = '' %}
    {%- set loop_messages = messages %}
{%- endif %}
{% for message in loop_messages %}
    {% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
    {% endif %}
    {% if loop.index0 == 0 and system %}
[INST] <<SYS>>
{{ system }}
<</SYS>>

{{ message.content.strip() }} [/INST]
    {% elif message.role == 'user' %}
[INST] {{ message.content.strip() }} [/INST]
    {% else %}
 {{ message.content | trim }} {{ eos_token }}
    {% endif %}
{% endfor %}""",
    "tools": """{%- macro show(tool, depth=0) -%}
{{ '  ' * depth }}{{ tool.function.name }}({% for name, spec in tool.function.parameters.properties.items() %}{{ name }}: {{ spec.type | upper }}{{ ', ' if not loop.last }}{% endfor %})
{% endmacro -%}
{%- set ns = namespace(calls=0, last='none') %}
{%- if tools is defined and tools %}
# Tools ({{ tools | length }})
{% for tool in tools %}{{ show(tool, loop.index) }}{{ tool | tojson }}
{{ tool | tojson(indent=2) }}
{% endfor %}
{%- endif %}
{%- for message in messages %}
{%- if message.tool_calls is defined and message.tool_calls is not none %}
{%- for call in message.tool_calls %}{% set ns.calls = ns.calls + 1 %}
<call id="{{ ns.calls }}">{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</call>
{%- endfor %}
{%- elif message.role == 'tool' %}
<result>{{ message.content }}</result>
{%- else %}
{%- if '</think>' in message.content %}{% set content = message.content.split('</think>')[-1].lstrip('\\n') %}{% else %}{% set content = message.content %}{% endif %}
<|{{ message['role'] }}|>{{ content }}<|end|>
{%- endif %}
{%- set ns.last = message.role %}
{%- endfor %}
last={{ ns.last }}{% if add_generation_prompt %}
<|assistant|>
{% endif %}""",
    "oddities": """{% set flags = [true, false, none] -%}
{{ flags[0] }} {{ flags[1] }} {{ flags[2] }} {{ missing }}|{{ missing is defined }} {{ enable_thinking | default(true) }}
{% for m in messages if m.role != 'system' %}{{ loop.index }}/{{ loop.length }} {{ m.role.title() }}: {{ m.content.replace('a', 'A').upper()[:20] }} {{ m.content | length }} {{ m.content.startswith('H') }}{{ '' if loop.last else ';' }}
{% else %}nobody
{% endfor %}
{{ messages | map(attribute='role') | join(',') }} {{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ (messages | last).role }} {{ messages[::-1] | length }}
{{ {'b': 1, 'a': [1, 2.5, "q\\"<'&", none, true], 'u': 'é😀'} | tojson }} {{ 'x' ~ 1 ~ 2.0 }} {{ 7 // 2 }} {{ 7 % 3 }} {{ 2 ** 3 }} {{ 1e20 | tojson }}
{%- if name is string and name not in ['a', 'b'] %} name={{ name }}{% endif %}{# comment #}
{% for i in range(3) %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}

""",
}

TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Weather <now> & \"later\"",
          "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}},
         {"type": "function", "function": {"name": "time", "parameters": {"type": "object", "properties": {}}}}]
CALL = [{"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 2}}}]


def say(role, content, **extra):
    return {"role": role, "content": content, **extra}


CHATS = {
    "one": dict(messages=[say("user", "What is the capital of France?")]),
    "no prompt": dict(messages=[say("user", "Hi")], add_generation_prompt=False),
    "system": dict(messages=[say("system", "  Be brief. "), say("user", " Hello\n"), say("assistant", "Hi there!\n"), say("user", "a banana")]),
    "not alternating": dict(messages=[say("user", "a"), say("user", "b")]),
    "tools": dict(messages=[say("user", "Weather?"), say("assistant", "", tool_calls=CALL), say("tool", "{\"t\": 20}"), say("assistant", "<think>\nhm\n</think>\n\n20 degrees")], tools=TOOLS),
    "arguments": dict(messages=[say("user", "Hé 中文 🙂")], arguments={"enable_thinking": False, "name": "quire"}),
    "continue": dict(messages=[say("user", "Count"), say("assistant", "one, two,")], continue_final_message=True),
    "continue spaced": dict(messages=[say("user", "Count"), say("assistant", "one, two, ")], continue_final_message=True),
    "whitespace": dict(messages=[say("user", "\n\n  indented\n\ttab \r\nend\n\n")]),
    "empty": dict(messages=[say("user", "")]),
}


def render(template, chat):
    args = dict(chat.get("arguments", {}), bos_token="<|im_start|>", eos_token="<|im_end|>")
    goes_on = chat.get("continue_final_message", False)
    try:
        rendered, _ = render_jinja_template(
            conversations=[chat["messages"]], chat_template=template, tools=chat.get("tools"),
            continue_final_message=goes_on, add_generation_prompt=chat.get("add_generation_prompt", not goes_on), **args)
        return rendered[0]
    except (TemplateError, ValueError):
        return None


def main():
    own = GGUFReader(sys.argv[1]).fields["tokenizer.chat_template"].contents()
    cases = []
    for template_name, template in [("smollm2", own)] + list(TEMPLATES.items()):
        for name, chat in CHATS.items():
            cases.append({"name": template_name + "/" + name, "template": template, "chat": chat, "rendered": render(template, chat)})
    with open(sys.argv[2], "w", encoding="ascii") as out:
        out.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()

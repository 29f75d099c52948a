#!/usr/bin/env python3
"""Writes ids.json: texts with the ids that Hugging Face's `tokenizers` gives them.

usage: make_ids.py MODEL.gguf ids.json        (tests/golden/reference has an environment with what this imports)

The tokenizer is built here from the GGUF vocabulary, as SmolLM2's own tokenizer.json builds it: BPE without an
unknown token, Digits(individual_digits=True) then ByteLevel(add_prefix_space=False). "gpt2" is the same vocabulary
with ByteLevel alone. "parsed" are the smollm ids with control tokens read in the text; it is left out where they
equal "smollm".
"""
import json
import random
import sys

from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

SEED = 20251129
RANDOM_TEXTS = 320

CORPUS = {
    "empty": "",
    "english": "The quick brown fox jumps over the lazy dog. It didn't stop; we've seen it, I'm sure they'll agree he'd go.",
    "contractions": "I'm you're he's we'll they'd I've don't 'tis 'twas I'M YOU'RE it''s 's's 'x'",
    "question": "What is the capital of France?",
    "chinese": "法国的首都是哪里?今天天气很好,我们去公园散步吧。",
    "japanese": "吾輩は猫である。名前はまだ無い。カタカナとひらがな",
    "korean": "안녕하세요, 세계! 만나서 반갑습니다.",
    "arabic": "مرحبا بالعالم، كيف حالك؟ ١٢٣٤",
    "hebrew": "שָׁלוֹם עוֹלָם",
    "hindi": "नमस्ते दुनिया, आप कैसे हैं? १२३",
    "thai": "สวัสดีชาวโลก ๑๒๓",
    "russian": "Привет, мир! Как дела? Ёлки-палки.",
    "greek": "Γειά σου Κόσμε· ὕβρις",
    "emoji": "Hi 👋🏽! 👩‍👩‍👧‍👦 family, 🏳️‍🌈 flag, ❤️ heart, 🇫🇷🇩🇪, 1️⃣",
    "combining": "e\u0301 n\u0303 a\u0308\u0323 Z\u0351\u036b\u0343a\u030a\u0332lgo; \u0301 alone",
    "code": "def f(x: int) -> str:\n    if x >= 10:\n        return f\"{x:>8}\"\n\treturn '\\n'\n\n\nclass A:\n    pass\n",
    "cpp": "for (size_t i = 0; i < n; ++i) { a[i] <<= 2; }  // ->*\n#include <vector>\n",
    "json": '{"a": [1, 2.5e-10, null], "b": {"c": "\\u00e9"}}',
    "spaces": "a  b   c    d     e      f        g                 h",
    "space runs": "  leading and trailing   ",
    "only spaces": "       ",
    "one space": " ",
    "newlines": "a\nb\n\nc\n\n\nd\n\n\n\n",
    "tabs": "\t\ta\t b \tc\t\t",
    "crlf": "line one\r\nline two\r\n\r\nline four\rold mac\r",
    "unicode spaces": "a\u00a0b\u2003c\u3000d\u200be\u2028f\u0085g\ufeffh\u1680i",
    "digits": "0 1 12 123 1234567890 3.14159 1,000,000 1e10 v2.0 007 ½ ² Ⅷ ٣",
    "digits and letters": "a1b22c333 x86_64 H2O 2nd 3rd int32_t",
    "punctuation": "...!!! ??? --- *** (((a))) [b] {c} <d> \"e\" 'f' `g` #h @i &j %k ~l ^m |n \\o /p",
    "url": "https://example.com/a/b?c=d&e=%20f#g user@example.com",
    "long word": "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
    "repeated letter": "a" * 300,
    "repeated mixed": "abAB12 " * 40,
    "upper": "HELLO WORLD ÄÖÜ ß ẞ İı",
    "math": "∀x∈ℝ: ⌈x⌉ = −⌊−x⌋, α∧¬β → ∑ᵢ₌₀ⁿ 𝑥ᵢ² ≤ ∞",
    "box": "┌─┬─┐\n│ │ │\n└─┴─┘ ▁▂▃▄▅▆▇█",
    "controls": "\x00\x01\x02a\x07\x08b\x0b\x0cc\x1b[31md\x7fe\x13f\x14g",
    "bytes without a piece": "a\x04b th\x06e \x13\x14 \U00040000 x\U000bffffy in\x04g",
    "rare planes": "\U00020000\U0002f800 \U000e0041 \U000f0000 \U0010ffff",
    "noncharacters": "\ufdd0 \ufffe \uffff \U0001ffff",
    "replacement": "bad \ufffd byte \ufffd\ufffd",
    "special spellings": "<|im_start|>user\nhi<|im_end|>\n<|endoftext|>",
    "special in words": "a<|im_end|>b <repo_name>c<filename> <|im_start|><|im_start|> <|im_end",
    "special prefixes": "<|im_<|im_start|>|> <|im_end|<|im_end|> <<|im_end|>>",
    "special spaces": " <|im_end|> \n <|endoftext|>  ",
    "chat literal": "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n",
    "mixed": "Zürich 東京 Москва 🗼 C++23 — naïve café, 50 % off…",
}


def load(path):
    reader = GGUFReader(path)
    get = lambda key: reader.fields["tokenizer.ggml." + key].contents()
    vocab = {piece: i for i, piece in enumerate(get("tokens"))}
    merges = [tuple(m.split(" ")) for m in get("merges")]
    control = [p for p, kind in zip(get("tokens"), get("token_type")) if kind == 3]
    return vocab, merges, control


def make(vocab, merges, control, pre):
    t = Tokenizer(models.BPE(vocab=vocab, merges=merges, fuse_unk=False, byte_fallback=False))
    t.pre_tokenizer = pre
    t.add_special_tokens([AddedToken(c, special=True, normalized=False) for c in control])
    return t


def random_texts(rng, control):
    """Random code points of every plane, and mixtures that meet at class edges."""
    ranges = [(0x20, 0x7E), (0, 0x1F), (0x80, 0x24F), (0x300, 0x36F), (0x370, 0x1FFF), (0x2000, 0x2BFF),
              (0x3000, 0xD7FF), (0xE000, 0xFFFD), (0x1F000, 0x1FAFF), (0x10000, 0x10FFFF)]
    words = ["the", " the", "'s", "'re", " ", "  ", "\n", "\r\n", "\t", "12", "3.5", "é", "中", "🙂", "\u0301", "_", "=="]
    for i in range(RANDOM_TEXTS):
        out = []
        for _ in range(rng.randint(1, 24)):
            kind = rng.random()
            if kind < 0.45:
                low, high = rng.choice(ranges)
                out.append(chr(rng.randint(low, high)))
            elif kind < 0.95:
                out.append(rng.choice(words))
            else:
                out.append(rng.choice(control))
        text = "".join(out)
        yield "random %d" % i, "".join(c for c in text if not 0xD800 <= ord(c) <= 0xDFFF)


def main():
    vocab, merges, control = load(sys.argv[1])
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    smollm = make(vocab, merges, control, pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level]))
    gpt2 = make(vocab, merges, control, byte_level)
    cases = []
    for name, text in list(CORPUS.items()) + list(random_texts(random.Random(SEED), control)):
        case = {"name": name, "text": text}
        smollm.encode_special_tokens = gpt2.encode_special_tokens = True
        case["smollm"] = smollm.encode(text, add_special_tokens=False).ids
        case["gpt2"] = gpt2.encode(text, add_special_tokens=False).ids
        if case["gpt2"] == case["smollm"]:
            del case["gpt2"]
        smollm.encode_special_tokens = False
        parsed = smollm.encode(text, add_special_tokens=False).ids
        if parsed != case["smollm"]:
            case["parsed"] = parsed
        cases.append(case)
    with open(sys.argv[2], "w", encoding="ascii") as out:
        out.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()

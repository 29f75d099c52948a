"""Makes the seeded tiny llamas of tests/golden/data and their reference logits, by transformers.

usage: reference/in-root /opt/ref/bin/python tests/golden/make_tiny_llama.py
Writes tiny-f32.gguf (untied, all F32), tiny-q4.gguf (tied; Q4_1 layers, Q8_0 embedding, as the default model) and, for
each, a .json with token ids and a .f32 with the logits of every position. The weights come from numpy's PCG64 with a
fixed seed; the reference is what transformers computes in float32 from the GGUF file itself. tiny-q4-int8.f32 is the
same with the input of every linear layer rounded once to int8 with one scale per 32 values: how far it is from
tiny-q4.f32 is what plain int8 activations cost, the measure for our kernels.
Shape: 2 layers, hidden 64, 4 query heads of 32 on 2 KV heads (so heads x head_dim is not hidden), ffn 96, and a
vocabulary of 261 (no multiple of 16): three control tokens, the 256 letters of byte-level BPE, two merges.
"""
import os

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Q
from transformers import AutoModelForCausalLM

from golden_io import DATA, write_json, write_rows

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, FFN, CONTEXT = 64, 2, 4, 2, 32, 96, 512
TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def byte_letters():
    """The alphabet of GPT-2's byte-level BPE, by byte."""
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, extra = {}, 0
    for b in range(256):
        letters[b] = chr(b) if b in keep else chr(256 + extra)
        extra += b not in keep
    return [letters[b] for b in range(256)]


def weights(tied, vocab):
    rng = np.random.Generator(np.random.PCG64(20261129))

    def matrix(rows, cols):
        return (rng.standard_normal((rows, cols)) * (1.6 / np.sqrt(cols))).astype(np.float32)

    def norm():
        return (1 + 0.2 * rng.standard_normal(HIDDEN)).astype(np.float32)

    yield 'token_embd.weight', matrix(vocab, HIDDEN)
    for i in range(LAYERS):
        p = f'blk.{i}.'
        yield p + 'attn_norm.weight', norm()
        yield p + 'attn_q.weight', matrix(HEADS * HEAD_DIM, HIDDEN)
        yield p + 'attn_k.weight', matrix(KV_HEADS * HEAD_DIM, HIDDEN)
        yield p + 'attn_v.weight', matrix(KV_HEADS * HEAD_DIM, HIDDEN)
        yield p + 'attn_output.weight', matrix(HIDDEN, HEADS * HEAD_DIM)
        yield p + 'ffn_norm.weight', norm()
        yield p + 'ffn_gate.weight', matrix(FFN, HIDDEN)
        yield p + 'ffn_up.weight', matrix(FFN, HIDDEN)
        yield p + 'ffn_down.weight', matrix(HIDDEN, FFN)
    yield 'output_norm.weight', norm()
    if not tied:
        yield 'output.weight', matrix(vocab, HIDDEN)


def write_gguf(path, tied, quantised):
    w = gguf.GGUFWriter(path, 'llama')
    w.add_name('tiny llama of the golden tests')
    w.add_block_count(LAYERS)
    w.add_context_length(CONTEXT)
    w.add_embedding_length(HIDDEN)
    w.add_feed_forward_length(FFN)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_key_length(HEAD_DIM)
    w.add_value_length(HEAD_DIM)
    w.add_rope_dimension_count(HEAD_DIM)
    w.add_rope_freq_base(10000.0)
    w.add_layer_norm_rms_eps(1e-5)
    pieces = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', *byte_letters(), 'th', 'in']
    w.add_vocab_size(len(pieces))
    w.add_tokenizer_model('gpt2')
    w.add_tokenizer_pre('smollm')
    w.add_token_list(pieces)
    w.add_token_types([3] * 3 + [1] * 258)
    w.add_token_merges(['t h', 'i n'])
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_add_bos_token(False)
    w.add_chat_template(TEMPLATE)
    for name, values in weights(tied, len(pieces)):
        if not quantised or values.ndim == 1:
            w.add_tensor(name, values)
        else:
            kind = Q.Q8_0 if name == 'token_embd.weight' else Q.Q4_1
            w.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return len(pieces)


def round_to_int8(x):
    blocks = x.reshape(-1, 32)
    scale = blocks.abs().amax(1, keepdim=True) / 127
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    return (torch.round(blocks / scale) * scale).reshape(x.shape)


def logits_of(model, all_ids):
    with torch.no_grad():
        return np.concatenate([model(torch.tensor(ids[None])).logits[0].numpy() for ids in all_ids])


def main():
    os.makedirs(DATA, exist_ok=True)
    rng = np.random.Generator(np.random.PCG64(7))
    for name, tied, quantised in (('tiny-f32', False, False), ('tiny-q4', True, True)):
        path = os.path.join(DATA, name + '.gguf')
        vocab = write_gguf(path, tied, quantised)
        model = AutoModelForCausalLM.from_pretrained(DATA, gguf_file=name + '.gguf', dtype=torch.float32).eval()
        assert model.config.head_dim == HEAD_DIM and model.config.num_key_value_heads == KV_HEADS
        assert model.config.rms_norm_eps < 2e-5 and model.config.tie_word_embeddings == tied
        all_ids = [rng.integers(0, vocab, length) for length in (1, 5, 70)]  # the last crosses a KV block's edge
        first = np.cumsum([0] + [len(ids) for ids in all_ids])
        cases = [{'ids': ids.tolist(), 'first_row': int(row)} for ids, row in zip(all_ids, first)]
        rows = logits_of(model, all_ids)
        write_json(name + '.json', {'model': name + '.gguf', 'vocab': vocab, 'cases': cases})
        write_rows(name + '.f32', rows, '<f4')
        if quantised:
            for module in model.modules():
                if isinstance(module, torch.nn.Linear):
                    module.register_forward_pre_hook(lambda _, inputs: (round_to_int8(inputs[0]),))
            write_rows(name + '-int8.f32', logits_of(model, all_ids), '<f4')
        print(name, os.path.getsize(path), 'bytes; logits std', float(rows.std()))


if __name__ == '__main__':
    main()

"""Writes tests/fuzz/gguf: small GGUF files, one fault each (valid-* have none). Standard library only.

usage: python3 tests/fuzz/make_gguf_corpus.py
"""
import os
import struct

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'gguf')
U8, U32, I32, F32, BOOL, STRING, ARRAY, U64 = 0, 4, 5, 6, 7, 8, 9, 10
MAX = 2**64 - 1


def s(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack('<Q', len(data)) + data


def key(name, kind, value):
    return s(name) + struct.pack('<I', kind) + value


def u32(name, value):
    return key(name, U32, struct.pack('<I', value))


def f32(name, value):
    return key(name, F32, struct.pack('<f', value))


def strings(name, values):
    return key(name, ARRAY, struct.pack('<IQ', STRING, len(values)) + b''.join(s(v) for v in values))


def tensor(name, dims, kind, offset):
    return s(name) + struct.pack('<I', len(dims)) + b''.join(struct.pack('<Q', d) for d in dims) + struct.pack(
        '<IQ', kind, offset)


def model(keys=None, tensors=None, tail=b'', head=None, cut=None, pad=32):
    """A one-layer llama of hidden 32, one head, ffn 32, 4 tokens; `keys` replaces or adds, None removes."""
    table = {
        'general.architecture': key('general.architecture', STRING, s('llama')),
        'llama.block_count': u32('llama.block_count', 1),
        'llama.context_length': u32('llama.context_length', 64),
        'llama.embedding_length': u32('llama.embedding_length', 32),
        'llama.feed_forward_length': u32('llama.feed_forward_length', 32),
        'llama.attention.head_count': u32('llama.attention.head_count', 1),
        'llama.attention.layer_norm_rms_epsilon': f32('llama.attention.layer_norm_rms_epsilon', 1e-5),
        'tokenizer.ggml.model': key('tokenizer.ggml.model', STRING, s('gpt2')),
        'tokenizer.ggml.pre': key('tokenizer.ggml.pre', STRING, s('smollm')),
        'tokenizer.ggml.tokens': strings('tokenizer.ggml.tokens', ['a', 'b', 'c', 'd']),
        'tokenizer.ggml.merges': strings('tokenizer.ggml.merges', []),
    }
    for name, value in (keys or {}).items():
        if value is None:
            table.pop(name, None)
        else:
            table[name] = value
    if tensors is None:
        tensors, offset = [], 0
        p = 'blk.0.'
        for name, dims in [('token_embd.weight', (32, 4)), (p + 'attn_norm.weight', (32,)),
                           *[(p + f'attn_{x}.weight', (32, 32)) for x in ('q', 'k', 'v', 'output')],
                           (p + 'ffn_norm.weight', (32,)),
                           *[(p + f'ffn_{x}.weight', (32, 32)) for x in ('gate', 'up', 'down')],
                           ('output_norm.weight', (32,))]:
            matrix = len(dims) == 2
            size = dims[1] * 34 if matrix else 128
            tensors.append((tensor(name, dims, 8 if matrix else 0, offset), size))
            offset += (size + 31) // 32 * 32
    body = (head or b'GGUF' + struct.pack('<IQQ', 3, len(tensors), len(table))) + b''.join(table.values()) + b''.join(
        t for t, _ in tensors)
    for _, size in tensors:
        body += b'\0' * (-len(body) % pad) + b'\0' * size
    return (body + tail)[:cut]


def files():
    yield 'valid-q8', model()
    yield 'valid-trailing-padding', model(tail=b'\0' * 20)
    yield 'valid-unknown-key', model({'x': u32('x', 5)})
    yield 'empty', b''
    yield 'magic-alone', b'GGUF'
    yield 'ggml', b'lmgg' + model()[4:]
    yield 'version-1', b'GGUF' + struct.pack('<III', 1, 0, 0)
    yield 'version-big-endian', b'GGUF' + struct.pack('>IQQ', 3, 0, 0)
    yield 'no-keys', b'GGUF' + struct.pack('<IQQ', 3, 0, 0)
    yield 'key-count-max', b'GGUF' + struct.pack('<IQQ', 3, 0, MAX) + b'\0' * 64
    yield 'tensor-count-max', b'GGUF' + struct.pack('<IQQ', 3, MAX, 0) + b'\0' * 64
    yield 'string-length-max', model({'x': key('x', STRING, struct.pack('<Q', MAX))})
    yield 'array-count-max', model({'x': key('x', ARRAY, struct.pack('<IQ', U64, MAX))})
    yield 'array-count-wraps', model({'x': key('x', ARRAY, struct.pack('<IQ', U64, 2**61 + 1))})
    yield 'array-of-strings-max', model({'x': key('x', ARRAY, struct.pack('<IQ', STRING, 2**61))})
    yield 'array-nested', model({'x': key('x', ARRAY, struct.pack('<IQ', ARRAY, 1) * 1000)})
    yield 'bool-2', model({'x': key('x', BOOL, b'\2')})
    yield 'value-type-13', model({'x': key('x', 13, b'\0' * 8)})
    yield 'key-empty', model({'x': u32('', 1)})
    yield 'key-twice', model({'x': u32('llama.block_count', 1)})
    yield 'alignment-0', model({'x': u32('general.alignment', 0)})
    yield 'alignment-13', model({'x': u32('general.alignment', 13)})
    yield 'alignment-i32', model({'x': key('general.alignment', I32, struct.pack('<i', 32))})
    yield 'token-types-u8', model({'x': key('tokenizer.ggml.token_type', ARRAY, struct.pack('<IQ', U8, 4) + b'\1' * 4)})
    yield 'no-architecture', model({'general.architecture': None})
    yield 'other-architecture', model({'general.architecture': key('general.architecture', STRING, s('gpt2'))})
    yield 'layers-2-31', model({'llama.block_count': u32('llama.block_count', 2**31)})
    yield 'heads-0', model({'llama.attention.head_count': u32('llama.attention.head_count', 0)})
    yield 'eps-nan', model({'llama.attention.layer_norm_rms_epsilon':
                            f32('llama.attention.layer_norm_rms_epsilon', float('nan'))})
    yield 'tokens-5', model({'tokenizer.ggml.tokens': strings('tokenizer.ggml.tokens', list('abcde'))})
    yield 'bos-4', model({'x': u32('tokenizer.ggml.bos_token_id', 4)})
    yield 'dims-0', model(tensors=[(tensor('t', (), 0, 0), 4)])
    yield 'dims-5', model(tensors=[(tensor('t', (1,) * 5, 0, 0), 4)])
    yield 'dim-max', model(tensors=[(tensor('t', (MAX,), 0, 0), 4)])
    yield 'size-wraps', model(tensors=[(tensor('t', (2**32, 2**32), 0, 0), 4)])
    yield 'tensor-type-99', model(tensors=[(tensor('t', (32,), 99, 0), 128)])
    yield 'row-not-block', model(tensors=[(tensor('t', (33, 1), 8, 0), 68)])
    yield 'offset-unaligned', model(tensors=[(tensor('t', (8,), 0, 1), 32)])
    yield 'offset-max', model(tensors=[(tensor('t', (8,), 0, MAX - 31), 32)])
    yield 'tensor-twice', model(tensors=[(tensor('t', (8,), 0, 0), 32), (tensor('t', (8,), 0, 32), 32)])
    yield 'one-byte-short', model(cut=-1)


def main():
    os.makedirs(FOLDER, exist_ok=True)
    for name in os.listdir(FOLDER):
        os.remove(os.path.join(FOLDER, name))
    for name, data in files():
        with open(os.path.join(FOLDER, name + '.gguf'), 'wb') as f:
            f.write(data)


if __name__ == '__main__':
    main()

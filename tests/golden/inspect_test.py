"""quire inspect as a process: what it says of the golden models, and exit 78 for every broken file of the corpus.

usage: inspect_test.py QUIRE GOLDEN_DATA GGUF_CORPUS
"""
import json
import os
import subprocess
import sys
import unittest

QUIRE, DATA, CORPUS = sys.argv[1:4]


def inspect(*args):
    done = subprocess.run([QUIRE, 'inspect', *args], capture_output=True, timeout=60)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Inspect(unittest.TestCase):
    def test_tells_shape_cost_and_tokenizer_as_json(self):
        code, out, err = inspect(os.path.join(DATA, 'tiny-q4.gguf'), '--json', '--tensors', '--tokenizer', '--template')
        self.assertEqual((code, err), (0, ''))
        j = json.loads(out)
        self.assertEqual(j['model']['quantization'], 'Q4_1')
        self.assertEqual((j['model']['hidden'], j['model']['heads'], j['model']['kv_heads'], j['model']['head_dim']),
                         (64, 4, 2, 32))
        self.assertTrue(j['model']['tied_embedding'])
        layer = 2 * (4 + 2) * 32 * 64 + 3 * 64 * 96
        self.assertEqual(j['cost']['macs_per_token'], 2 * layer + 261 * 64)
        self.assertEqual(j['cost']['kv_bytes_per_token'], {'bf16': 2 * 2 * 2 * 32 * 2, 'f32': 2 * 2 * 2 * 32 * 4,
                                                           'int8': 2 * 2 * 2 * (32 + 2), 'int16': 2 * 2 * 2 * (64 + 2)})
        self.assertEqual(len(j['tensors']), j['format']['tensors'])
        self.assertEqual(sum(t['bytes'] for t in j['tensors']), sum(t['bytes'] for t in j['types']))
        self.assertEqual(j['tokenizer']['eos'], {'id': 2, 'piece': '<|im_end|>'})
        self.assertEqual(len(j['tokenizer']['special']), 3)
        self.assertIn('<|im_start|>', j['chat_template'])

    def test_prints_text(self):
        code, out, err = inspect(os.path.join(DATA, 'tiny-f32.gguf'), '--tensors', '--template')
        self.assertEqual((code, err), (0, ''))
        for line in ('  architecture: llama', '  quantization: F32', '  tied_embedding: false', 'chat_template:'):
            self.assertIn(line + '\n', out)
        self.assertIn('name=blk.1.ffn_down.weight  type=F32  shape=[96  64]', out)

    def test_verifies_weights_and_digest(self):
        path = os.path.join(DATA, 'tiny-q4.gguf')
        code, out, _ = inspect(path, '--verify', '--json')
        self.assertEqual(code, 0)
        digest = subprocess.run(['sha256sum', path], capture_output=True, check=True).stdout.split()[0].decode()
        self.assertEqual(json.loads(out)['sha256'], digest)

    def test_exits_78_for_every_broken_file(self):
        names = sorted(os.listdir(CORPUS))
        self.assertGreater(len(names), 30)
        for name in names:
            path = os.path.join(CORPUS, name)
            code, out, err = inspect(path)
            if name.startswith('valid-'):
                self.assertEqual(code, 0, name)
            else:
                self.assertEqual((code, out), (78, ''), name)
                self.assertTrue(err.startswith('quire: ' + path + ': '), err)
                self.assertEqual(err.count('\n'), 1, err)

    def test_tells_bad_usage_from_bad_files(self):
        self.assertEqual(inspect('/no/such/file')[0], 78)
        self.assertEqual(inspect('/')[0], 78)
        self.assertEqual(inspect()[0], 64)
        self.assertEqual(inspect('--nonsense', 'x')[0], 64)
        self.assertEqual(inspect('--help')[0], 0)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)

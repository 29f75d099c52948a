"""serving.py measures what it says on a tiny model: the keys are there and add up.

usage: serving_test.py QUIRE LOAD MODEL
"""
import json
import pathlib
import subprocess
import sys

quire, load, model = sys.argv[1:]
run = subprocess.run([sys.executable, pathlib.Path(__file__).parent / 'serving.py', quire, load, model, '--streams', '1',
                      '--rounds', '1', '--prompt-tokens', '9', '--output-tokens', '100', '--vocabulary', '200',
                      '--probes', '2', '--gap', '0.1'], stdout=subprocess.PIPE, text=True, check=True)
result = json.loads(run.stdout.splitlines()[-1])
assert result['streams'] == 1 and result['engine_tps'] > 0 and result['streamed_tps'] > 0, result
assert abs(result['stream_fraction'] - result['streamed_tps'] / result['engine_tps']) < 1e-9, result
assert [m['gap_s'] for m in result['first_message_ms']] == [0.0, 0.1], result
assert all(0 < m['p50'] <= m['p90'] for m in result['first_message_ms']), result
assert 0 <= result['itl_ms']['p50'] <= result['itl_ms']['p99'], result
print('ok')

#!/usr/bin/env python3
"""Compares streaming over gRPC with the engine alone, in one run: what a server costs beside its model.

usage: serving.py QUIRE LOAD MODEL [--streams 32] [--rounds 3] [--prompt-tokens 128] [--output-tokens 128] [--probes 20]
QUIRE and LOAD are the binaries `quire` and `serving_load` of one build. Each round runs `quire bench` and then
`quire serve` under load. The last line is one JSON object: the medians, `stream_fraction` (streamed over engine
throughput) and `first_message_ms` of lone calls, back to back and after an idle gap.
"""
import argparse
import json
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

ap = argparse.ArgumentParser()
ap.add_argument('quire')
ap.add_argument('load')
ap.add_argument('model')
ap.add_argument('--streams', type=int, default=32)
ap.add_argument('--rounds', type=int, default=3)
ap.add_argument('--prompt-tokens', type=int, default=128)
ap.add_argument('--output-tokens', type=int, default=128)
ap.add_argument('--vocabulary', type=int, default=1000)
ap.add_argument('--probes', type=int, default=20)
ap.add_argument('--gap', type=float, default=1.05)
a = ap.parse_args()
sizes = ['--prompt-tokens', str(a.prompt_tokens), '--output-tokens', str(a.output_tokens)]


def last_json(command):
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def engine():
    result = last_json([a.quire, 'bench', '--model', a.model, '--batch', str(a.streams), '--prefill-tokens', '0',
                        '--repetitions', '1', *sizes])
    return result['decode_tps'][str(a.streams)]


def served(probes):
    with tempfile.TemporaryDirectory() as folder:
        address = f'unix:{folder}/socket'
        log = pathlib.Path(folder) / 'log'
        with log.open('w') as out:
            server = subprocess.Popen([a.quire, 'serve', '--model', a.model, '--listen', address, '--http-listen', 'off',
                                       '--max-running', str(a.streams)], stdout=out, stderr=out)
        try:
            while 'ready after' not in log.read_text():
                if server.poll() is not None:
                    raise SystemExit(f'the server ended:\n{log.read_text()}')
                time.sleep(0.05)
            return last_json([a.load, '--addr', address, '--streams', str(a.streams), '--vocabulary', str(a.vocabulary),
                              '--probes', str(probes), '--gap', str(a.gap), *sizes])
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)


alone, loads = [], []
for i in range(a.rounds):
    alone.append(engine())
    loads.append(served(a.probes if i == a.rounds - 1 else 0))
streamed = [load['streaming']['decode_tps'] for load in loads]
result = {'streams': a.streams, 'engine_tps': statistics.median(alone), 'streamed_tps': statistics.median(streamed),
          'stream_fraction': statistics.median(s / e for s, e in zip(streamed, alone)),
          'rounds': {'engine_tps': alone, 'streamed_tps': streamed},
          'ttft_ms': loads[-1]['streaming']['ttft_ms'], 'itl_ms': loads[-1]['streaming']['itl_ms'],
          'first_message_ms': loads[-1]['first_message_ms']}
print(json.dumps(result))

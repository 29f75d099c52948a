"""The real process with the real model, driven by Python's gRPC, the command line and signals."""
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import grpc

from process_util import MODEL, SYSTEM, Server, chat, in_threads, pb, run

LATENCIES = ["time_to_first_token_seconds", "inter_token_latency_seconds", "time_per_output_token_seconds",
             *(f"request_{stage}duration_seconds" for stage in ("", "intake_", "queue_", "prefill_", "decode_"))]
QUESTION = "What is the capital of France?"


class Serving(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--max-running", "64", "--metrics-buckets",
                            ",".join(f"quire_{name}=0.0{i + 1},60" for i, name in enumerate(LATENCIES)))

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        cls.server.__exit__()
        if code != 0:
            raise AssertionError(f"SIGTERM ended the server with {code}")

    def test_answers(self):
        self.assertIn("Paris", self.server.text(chat(QUESTION)))

    def test_streams_what_it_sends_at_once(self):
        request = chat("Tell me about rivers.", max_tokens=48)
        stream = self.server.text(request)
        request.output.mode = pb.STREAM_MODE_FINAL
        self.assertEqual(self.server.text(request), stream)

    def test_gives_twelve_streams_the_text_they_get_alone(self):
        requests = []
        for i in range(12):
            request = chat(f"Count to {10 + i}, then tell a story about the number {i}. " * (1 + i % 4),
                           max_tokens=8 + 6 * i)
            if i % 2:
                request.sampling.temperature = 1
                request.sampling.seed = i
            requests.append(request)
        alone = [self.server.text(request) for request in requests]
        together = in_threads([lambda r=r: self.server.text(r) for r in requests])
        self.assertEqual(together, alone)

    def test_returns_the_blocks_of_cancelled_streams_within_a_second(self):
        calls = [self.server.generate(chat(f"Story {i}", max_tokens=2000, ignore_eos=True)) for i in range(32)]
        for call in calls:
            next(call)
        for call in calls:
            call.cancel()
        end = time.monotonic() + 1
        while self.server.load().used_blocks > 0 and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(self.server.load().used_blocks, 0)

    def test_ends_at_the_clients_deadline(self):
        with self.assertRaises(grpc.RpcError) as raised:
            for _ in self.server.generate(chat("Go on.", max_tokens=2000, ignore_eos=True), timeout=0.5):
                pass
        self.assertEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)

    def test_keeps_its_books(self):
        self.server.text(chat("Hello", max_tokens=4))
        end = time.monotonic() + 10
        while self.server.metrics()["quire_requests_live"] > 0 and time.monotonic() < end:
            time.sleep(0.05)
        m = self.server.metrics()
        get = lambda name: m[f"quire_{name}"]
        self.assertEqual(get("requests_received_total"),
                         get("requests_accepted_total") + get("requests_rejected_total") + get("requests_intake"))
        self.assertEqual(get("requests_accepted_total"), get("requests_finished_total") + get("requests_live"))
        self.assertEqual(get("sequences_started_total"), get("sequences_finished_total") + get("sequences_running")
                         + get("sequences_waiting"))
        self.assertEqual(get("computed_tokens_total"), get("step_tokens_sum"))
        self.assertEqual(get("request_duration_seconds_count"), get("requests_finished_total"))
        self.assertEqual(get("requests_live"), 0)
        unknown = [v for k, v in m.items() if 'code="UNKNOWN"' in k]
        self.assertEqual(sum(unknown), 0)

    def test_holds_no_more_memory_than_the_weights_and_the_plan_say(self):
        in_threads([lambda i=i: self.server.text(chat(f"Story {i}", max_tokens=40)) for i in range(16)])
        with open(f"/proc/{self.server.process.pid}/status", encoding="utf-8") as status:
            held = {key: int(value.split()[0]) / 1024 for key, value in re.findall(r"^(\w+):\s+(\d+ kB)$", status.read(), re.M)}
        kv = float(re.search(r"KV cache ([\d.]+) MiB", self.server.log()).group(1))
        file = os.path.getsize(MODEL) / (1 << 20)
        self.assertLessEqual(held["RssAnon"], 1.15 * file + kv + 64)
        self.assertLess(held["RssFile"], 0.7 * file, "pages of the model file were not dropped")

    def test_histograms_have_the_buckets_of_the_flag(self):
        self.server.text(chat("Hello", max_tokens=4))
        end = time.monotonic() + 10
        while self.server.metrics()["quire_request_duration_seconds_count"] == 0 and time.monotonic() < end:
            time.sleep(0.05)
        metrics = self.server.metrics()
        for i, name in enumerate(LATENCIES):
            buckets = {float(re.search(r'le="(.*?)"', key).group(1)): value for key, value in metrics.items()
                       if key.startswith(f"quire_{name}_bucket{{")}
            self.assertEqual(list(buckets), [float(f"0.0{i + 1}"), 60, math.inf], name)
            self.assertGreater(buckets[math.inf], 0, name)
            self.assertEqual(buckets[math.inf], metrics[f"quire_{name}_count"], name)
            self.assertEqual(buckets[60], buckets[math.inf], name)

    def test_exposes_metrics_that_promtool_accepts(self):
        body = self.server.http("/metrics")
        self.assertLessEqual(len(body), 64 << 10)
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed")
        lint = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True, text=True, check=False)
        self.assertEqual((lint.returncode, lint.stdout + lint.stderr), (0, ""))

    def test_serves_the_command_line(self):
        done = run("generate", "--addr", self.server.address, "--chat", "--system", SYSTEM, "-p", QUESTION,
                   "--temperature", "0", "--stats")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Paris", done.stdout)
        self.assertRegex(done.stderr, r"prompt \d+ tokens, generated \d+ tokens; first token after [\d.]+ ms; "
                                      r"[\d.]+ tokens/s; \d+ KV blocks? of \d+")
        talk = run("chat", "--addr", self.server.address, "--system", SYSTEM, "--temperature", "0", "--max-tokens", "16",
                   input=f"{QUESTION}\n/tokens\nAnd of Spain?\n/exit\n")
        self.assertEqual(talk.returncode, 0, talk.stderr)
        self.assertIn("Paris", talk.stdout)
        self.assertEqual(run("healthcheck", "--addr", self.server.address).stdout, "SERVING\n")
        self.assertEqual(run("healthcheck", "--addr", self.server.address, "--service", "quire.live").returncode, 0)
        tokens = run("generate", "--addr", self.server.address, "-p", "The capital of France is", "--temperature", "0",
                     "--max-tokens", "2", "--logprobs", "2")
        self.assertEqual(tokens.returncode, 0, tokens.stderr)
        text, header, *lines = tokens.stdout.splitlines()
        self.assertRegex(header, r"^token +logprob +rank +id  alternatives$")
        self.assertEqual(len(lines), 2, tokens.stdout)
        for line in lines:  # the drawn one, the likeliest again, another
            self.assertRegex(line, r"^('.*?') +(-\d+\.\d+) +1 +\d+  \1 +\2  '.*' +-\d+\.\d+$")
        self.assertIn("Paris", text)
        bad = run("generate", "--addr", self.server.address, "-p", "x", "--top-p", "7")
        self.assertEqual(bad.returncode, 1)
        self.assertIn("sampling.top_p", bad.stderr)


    def test_takes_tenant_priority_and_window_from_the_command_line(self):
        done = run("generate", "--addr", self.server.address, "-p", "Once", "--tenant", "team-7", "--priority", "2",
                   "--window-tokens", "64", "--sink-tokens", "2", "--max-tokens", "4")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(self.server.wait_for(r'.*"tenant":"team-7".*').group(0), r'"code":"OK"')
        for flag in (["--window-tokens", "3"], ["--priority", "11"]):  # the server sees them
            bad = run("generate", "--addr", self.server.address, "-p", "x", *flag)
            self.assertEqual(bad.returncode, 1, bad.stderr)
            self.assertIn(flag[0][2:].replace("-", "_"), bad.stderr)


class Generate(unittest.TestCase):
    def test_runs_the_engine_in_process(self):
        done = run("generate", "--model", MODEL, "-p", "The capital of France is", "--temperature", "0",
                   "--max-tokens", "8")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Paris", done.stdout)


class Signals(unittest.TestCase):
    def test_sigterm_drains_running_streams_and_exits_0(self):
        with Server() as server:
            call = server.generate(chat("A long story.", max_tokens=150, ignore_eos=True))
            next(call)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual([m.finished.reason for m in call][-1], pb.FINISH_REASON_LENGTH)
            self.assertEqual(server.process.wait(60), 0)

    def test_drain_timeout_cuts_streams_off_with_a_status(self):
        with Server("--drain-timeout", "200ms") as server:
            call = server.generate(chat("A long story.", max_tokens=4000, ignore_eos=True))
            next(call)
            server.process.send_signal(signal.SIGINT)
            with self.assertRaises(grpc.RpcError) as raised:
                for _ in call:
                    pass
            self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAVAILABLE)
            self.assertEqual(server.process.wait(60), 0)

    def test_second_signal_ends_at_once_with_130(self):
        with Server() as server:
            call = server.generate(chat("A long story.", max_tokens=4000, ignore_eos=True))
            next(call)
            server.process.send_signal(signal.SIGTERM)
            server.wait_for("draining")
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(10), 130)

    def test_second_signal_logs_each_live_request_once(self):
        with Server("--max-running", "2") as server:
            calls = []
            for i in range(4):  # two run, two wait
                request = chat("A long story.", max_tokens=4000, ignore_eos=True)
                request.request_id = f"job-{i}"
                calls.append(server.generate(request))
                if i < 2:
                    next(calls[i])
            deadline = time.monotonic() + 60
            while server.load().waiting < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertEqual(server.load().waiting, 2)
            server.process.send_signal(signal.SIGTERM)
            server.wait_for("draining")
            server.process.send_signal(signal.SIGINT)
            self.assertEqual(server.process.wait(10), 130)
            lines = [json.loads(line) for line in server.log().splitlines() if line.startswith('{"event":"request"')]
            self.assertEqual(sorted(line["request_id"] for line in lines), [f"job-{i}" for i in range(4)])
            for line in lines:
                running = line["request_id"] in ("job-0", "job-1")
                self.assertEqual((line["code"], line["reason"]), ("UNAVAILABLE", "SHUTDOWN" if running else "DRAINING"))
                self.assertEqual(line["completion_tokens"] > 0, running, line)

    def test_sigterm_while_loading_exits_0(self):
        with Server(wait=False) as server:
            server.wait_for("loading|ready after")
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(60), 0)


if __name__ == "__main__":
    if not MODEL:
        print("SKIPPED: QUIRE_TEST_MODEL names no model file")
        sys.exit(77)
    unittest.main()

"""Starts the real `quire` binary and talks to it with Python's gRPC, as any client would."""
import importlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import grpc

QUIRE = os.environ["QUIRE_BINARY"]
PROTO = os.environ["QUIRE_PROTO_DIR"]
MODEL = os.environ.get("QUIRE_TEST_MODEL", "")
READY_S = 120
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("QUIRE_")}


def load_messages(folder):
    files = ["quire/v1/intervention.proto", "quire/v1/inference.proto", "quire/v1/model.proto"]
    subprocess.run(["protoc", f"-I{PROTO}", f"--python_out={folder}", *files], check=True)
    sys.path.insert(0, folder)
    return importlib.import_module("quire.v1.inference_pb2"), importlib.import_module("quire.v1.model_pb2")


STUBS = tempfile.TemporaryDirectory()
pb, model_pb = load_messages(STUBS.name)


def run(*args, **kwargs):
    return subprocess.run([QUIRE, *args], capture_output=True, text=True, timeout=READY_S, env=ENVIRONMENT, **kwargs)


class Server:
    """`quire serve` on a private socket; ready when constructed unless wait=False."""

    def __init__(self, *flags, wait=True):
        self.folder = tempfile.TemporaryDirectory()
        self.address = f"unix:{self.folder.name}/quire.sock"
        self.log_path = f"{self.folder.name}/log"
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [QUIRE, "serve", "--model", MODEL, "--listen", self.address, "--http-listen", "127.0.0.1:0", *flags],
                stderr=log, stdout=log, env=ENVIRONMENT)
        self.channel = grpc.insecure_channel(self.address)
        if wait:
            self.wait_for(r"ready after")

    def log(self):
        with open(self.log_path, encoding="utf-8") as log:
            return log.read()

    def wait_for(self, pattern):
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            found = re.search(pattern, self.log())
            if found:
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"no '{pattern}' from the server; exit {self.process.poll()}; log:\n{self.log()}")

    def stop(self, sig=signal.SIGTERM, timeout=60):
        if self.process.poll() is None:
            self.process.send_signal(sig)
        return self.process.wait(timeout)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.channel.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()

    def generate(self, request, timeout=None):
        call = self.channel.unary_stream("/quire.v1.InferenceService/Generate",
                                         request_serializer=pb.GenerateRequest.SerializeToString,
                                         response_deserializer=pb.GenerateResponse.FromString)
        return call(request, timeout=timeout)

    def text(self, request):
        return "".join(message.delta.text for message in self.generate(request, timeout=READY_S))

    def load(self):
        call = self.channel.unary_unary("/quire.v1.ModelService/GetLoad",
                                        request_serializer=model_pb.GetLoadRequest.SerializeToString,
                                        response_deserializer=model_pb.GetLoadResponse.FromString)
        return call(model_pb.GetLoadRequest(), timeout=10)

    def http(self, path):
        base = self.wait_for(r"(http://[0-9.:]+)/metrics").group(1)
        with urllib.request.urlopen(base + path, timeout=10) as reply:
            return reply.read().decode()

    def metrics(self):
        """Values by name and sorted labels, sums by name alone."""
        values = {}
        for line in self.http("/metrics").splitlines():
            if line.startswith("#"):
                continue
            series, value = line.rsplit(" ", 1)
            name = series.split("{", 1)[0]
            values[series] = float(value)
            if series != name:
                values[name] = values.get(name, 0) + float(value)
        return values


# Under the template's own system message the small default model wavers between two first words of an answer by
# less than the rounding of activations; under this one it does not.
SYSTEM = "Answer in one sentence."


def chat(text, **stopping):
    messages = [pb.ChatMessage(role="system", content=SYSTEM), pb.ChatMessage(role="user", content=text)]
    return pb.GenerateRequest(prompt=pb.Prompt(chat=pb.Chat(messages=messages)), sampling=pb.Sampling(temperature=0),
                              stopping=pb.Stopping(**stopping))


def in_threads(functions):
    results = [None] * len(functions)

    def call(i):
        results[i] = functions[i]()

    threads = [threading.Thread(target=call, args=(i,)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results

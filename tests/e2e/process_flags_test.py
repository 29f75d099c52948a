"""Exit codes of the real process that need no model."""
import os
import resource
import socket
import tempfile
import unittest

from process_util import run


class ServeExits(unittest.TestCase):
    def test_64_for_an_unknown_flag(self):
        self.assertEqual(run("serve", "--no-such-flag").returncode, 64)

    def test_64_for_a_flag_out_of_range(self):
        done = run("serve", "--model", "x.gguf", "--max-running", "0")
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("max-running", done.stderr)

    def test_69_for_a_taken_port_before_the_model_is_read(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            done = run("serve", "--model", "/no/such/file.gguf", "--listen", address, "--http-listen", "off")
            self.assertEqual(done.returncode, 69, done.stderr)
            self.assertIn(address, done.stderr)
            done = run("serve", "--model", "/no/such/file.gguf", "--listen", "127.0.0.1:0", "--http-listen", address)
            self.assertEqual(done.returncode, 69, done.stderr)

    def test_69_for_a_unix_path_that_is_no_socket(self):
        with tempfile.NamedTemporaryFile() as file:
            done = run("serve", "--model", "/no/such/file.gguf", "--listen", "unix:" + file.name, "--http-listen", "off")
            self.assertEqual(done.returncode, 69, done.stderr)
            self.assertIn(file.name, done.stderr)
            self.assertTrue(os.path.exists(file.name))

    def test_78_for_too_few_files(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        done = run("serve", "--model", "/no/such/file.gguf", "--listen", "127.0.0.1:0", "--http-listen", "off",
                   preexec_fn=limit)
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("64, wanted at least 256", done.stderr)

    def test_78_for_an_open_network_and_says_what_to_add(self):
        done = run("serve", "--model", "x.gguf", "--listen", "0.0.0.0:0")
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("--trusted-network", done.stderr)

    def test_78_for_a_missing_or_broken_model(self):
        listen = ("--listen", "127.0.0.1:0", "--http-listen", "off")
        self.assertEqual(run("serve", *listen).returncode, 78)
        self.assertEqual(run("serve", "--model", "/no/such/file.gguf", *listen).returncode, 78)
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run("serve", "--model", folder, *listen).returncode, 78)
            path = os.path.join(folder, "m.gguf")
            with open(path, "wb") as file:
                file.write(b"GGUF" + bytes(12))
            done = run("serve", "--model", folder, *listen)
            self.assertEqual(done.returncode, 78, done.stderr)
            self.assertIn("m.gguf", done.stderr)


class PrintConfig(unittest.TestCase):
    def test_prints_what_is_known_without_a_model_and_says_what_is_missing(self):
        done = run("serve", "--print-config", "--max-running", "3")
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("max-running = 3  (--max-running)\n", done.stdout)
        self.assertIn("max-waiting = 256  (default)\n", done.stdout)
        self.assertEqual(done.stderr, "quire: no model: give --model FILE (or QUIRE_MODEL)\n")

    def test_exits_0_if_serve_would_start(self):
        done = run("serve", "--print-config", "--model", "m.gguf")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("model = m.gguf  (--model)\n", done.stdout)

    def test_prints_nothing_of_a_configuration_that_cannot_be_read(self):
        done = run("serve", "--print-config", "--model", "m.gguf", "--threads", "many")
        self.assertEqual((done.returncode, done.stdout), (64, ""))
        self.assertIn("--threads", done.stderr)


class Command(unittest.TestCase):
    def test_prints_version_and_help(self):
        self.assertRegex(run("--version").stdout, r"^quire \d+\.\d+\.\d+ ")
        self.assertIn("serve", run("--help").stdout)
        self.assertEqual(run().returncode, 64)
        self.assertEqual(run("nonsense").returncode, 64)
        for command in ("serve", "generate", "chat", "healthcheck", "inspect", "bench"):
            self.assertEqual(run(command, "--help").returncode, 0, command)

    def test_healthcheck_fails_with_1_without_a_server(self):
        self.assertEqual(run("healthcheck", "--addr", "unix:/no/such/socket", "--timeout", "300ms").returncode, 1)

    def test_generate_fails_with_69_without_a_server(self):
        self.assertEqual(run("generate", "--addr", "unix:/no/such/socket", "-p", "x").returncode, 69)
        self.assertEqual(run("generate", "--addr", "unix:/no/such/socket").returncode, 64)


if __name__ == "__main__":
    unittest.main()

"""Lists processes as the host does: JSON in, JSON out."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent.parent
SCRIPT = FOLDER / "run.py"


def load():
    """Loads the script as a module."""
    spec = importlib.util.spec_from_file_location("ps_run", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(text):
    """Runs the script and returns its exit code, its result and its errors."""
    done = subprocess.run(
        [str(SCRIPT)], input=text.encode(), capture_output=True, timeout=30, check=False
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def listed(**arguments):
    """Runs the script and returns its result."""
    code, out, err = run(json.dumps(arguments))
    assert code == 0, err
    return json.loads(out)


@unittest.skipUnless(os.path.isdir("/proc/self"), "there is no /proc here")
class Listing(unittest.TestCase):
    """Processes of this machine."""

    def test_the_defaults_are_ten_by_processor(self):
        result = listed()
        shares = [one["cpu_percent"] for one in result["processes"]]
        self.assertLessEqual(len(shares), 10)
        self.assertEqual(shares, sorted(shares, reverse=True))

    def test_every_order_holds(self):
        memory = [one["memory_bytes"] for one in listed(sort="memory", limit=200)["processes"]]
        self.assertEqual(memory, sorted(memory, reverse=True))
        pids = [one["pid"] for one in listed(sort="pid", limit=200)["processes"]]
        self.assertEqual(pids, sorted(pids))

    def test_a_filter_finds_a_process_by_its_command_line(self):
        word = f"needle-{os.getpid()}"
        code = "import sys; print('up', flush=True); sys.stdin.read()"
        with subprocess.Popen(
            [sys.executable, "-c", code, word], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            child.stdout.readline()
            result = listed(filter=word.upper(), limit=1)
            child.stdin.close()
        self.assertEqual(result["total"], 1)
        self.assertEqual(result["processes"][0]["pid"], child.pid)
        self.assertGreater(result["processes"][0]["memory_bytes"], 0)

    def test_nothing_matches_nonsense(self):
        self.assertEqual(listed(filter="\u0000no such process"), {"processes": [], "total": 0})

    def test_the_limit_cuts_the_list_and_not_the_count(self):
        result = listed(limit=1)
        self.assertEqual(len(result["processes"]), 1)
        self.assertGreater(result["total"], 1)


class Refusals(unittest.TestCase):
    """Arguments that make no sense."""

    def test_each_is_told_with_an_exit_code(self):
        rows = {
            "{": "not JSON",
            "[]": "not a JSON object",
            "[" * 100_000: "too long",
            "[" * 60_000: "not JSON",
            '{"sort":"size"}': "sort is one of",
            '{"sort":["cpu"]}': "sort is one of",
            '{"limit":0}': "from 1 to 200",
            '{"limit":201}': "from 1 to 200",
            '{"limit":true}': "from 1 to 200",
            '{"limit":"9"}': "from 1 to 200",
            '{"filter":7}': "filter is a text",
            '{"kill":1}': "unknown argument: kill",
        }
        for text, words in rows.items():
            code, out, err = run(text)
            self.assertEqual((code, out), (1, ""), text[:40])
            self.assertIn(words, err)
            self.assertNotIn("Traceback", err)


class Lines(unittest.TestCase):
    """What stands in /proc may be anything."""

    def test_a_name_may_hold_anything(self):
        ps = load()
        tail = b"S " + b" ".join(str(n).encode() for n in range(1, 40))
        with tempfile.TemporaryDirectory() as folder:
            ps.PROC = folder
            os.mkdir(os.path.join(folder, "7"))
            with open(os.path.join(folder, "7", "stat"), "wb") as file:
                file.write(b"7 (a) b (c\xff)) " + tail)
            os.mkdir(os.path.join(folder, "8"))
            found = ps.process("7", 1.5)
            self.assertEqual(found["name"], "a) b (c\ufffd)")
            self.assertEqual((found["state"], found["cpu_percent"]), ("S", 1.5))
            self.assertEqual(ps.ticks(), {"7": 11 + 12})
            self.assertIsNone(ps.process("8", 0))
            self.assertIsNone(ps.process("9", 0))

    def test_the_definition_says_what_the_script_does(self):
        definition = json.loads((FOLDER / "definition.json").read_text())
        properties = definition["parameters"]["properties"]
        ps = load()
        self.assertEqual(definition["name"], "ps")
        self.assertEqual(tuple(properties["sort"]["enum"]), ps.SORTS)
        self.assertEqual(properties["limit"]["maximum"], ps.LIMIT_MAX)
        self.assertEqual(properties["limit"]["default"], ps.LIMIT_DEFAULT)


if __name__ == "__main__":
    unittest.main()

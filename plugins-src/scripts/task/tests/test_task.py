"""Works on tasks as the host does: JSON in, JSON out, with the real program where it is installed."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent.parent
SCRIPT = FOLDER / "run.py"


def load():
    """Loads the script as a module."""
    spec = importlib.util.spec_from_file_location("task_run", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Case(unittest.TestCase):
    """A folder of tasks of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.env = {"PATH": os.environ["PATH"], "HOME": self.folder, "LANG": "C.UTF-8"}
        self.env["TASKDATA"] = os.path.join(self.folder, "data")

    def run_text(self, text):
        """Runs the script and returns its exit code, its result and its errors."""
        done = subprocess.run(
            [str(SCRIPT)],
            input=text.encode("utf-8", "surrogatepass"),
            capture_output=True,
            timeout=60,
            check=False,
            env=self.env,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def do(self, action, **arguments):
        """Runs the script and returns its result."""
        code, out, err = self.run_text(json.dumps({"action": action, **arguments}))
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def refused(self, words, text):
        """Runs the script, which has to refuse with these words."""
        code, out, err = self.run_text(text)
        self.assertEqual((code, out), (1, ""), text[:60])
        self.assertIn(words, err)
        self.assertNotIn("Traceback", err)


@unittest.skipUnless(shutil.which("task"), "SKIPPED: the program `task` is not installed")
class Tasks(Case):
    """Real tasks."""

    def descriptions(self, **arguments):
        """Lists tasks and returns what they say."""
        return [one["description"] for one in self.do("list", **arguments)["tasks"]]

    def test_a_task_lives_from_its_addition_to_its_end(self):
        added = self.do("add", description="Call the plumber", due="tomorrow")["added"]
        self.assertEqual((added["id"], added["status"]), (1, "pending"))
        self.assertRegex(added["due"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.do("add", description="Buy milk", project="Home", priority="H", tags=["shop"])
        self.assertEqual(self.descriptions(), ["Call the plumber", "Buy milk"])
        changed = self.do("modify", id=1, description="Call Kim", due="", tags=["phone"])["modified"]
        self.assertEqual((changed["description"], changed["tags"]), ("Call Kim", ["phone"]))
        self.assertNotIn("due", changed)
        done = self.do("complete", id=added["uuid"])["completed"]
        self.assertEqual(done["status"], "completed")
        self.assertEqual(self.descriptions(), ["Buy milk"])
        self.assertEqual(self.descriptions(status="completed"), ["Call Kim"])
        self.assertEqual(self.do("delete", id="1")["deleted"]["description"], "Buy milk")
        self.assertEqual(self.do("list"), {"tasks": [], "total": 0})
        self.assertEqual(self.descriptions(status="all"), ["Call Kim"])

    def test_lists_can_be_narrowed(self):
        self.do("add", description="Paint the FENCE", project="Home.Garden", tags=["summer"])
        self.do("add", description="Paint a picture", tags=["summer", "art"])
        self.do("add", description="Sleep")
        for arguments, want in [
            ({"search": "fence"}, 1),
            ({"search": "paint"}, 2),
            ({"tags": ["summer"]}, 2),
            ({"tags": ["summer", "art"]}, 1),
            ({"project": "Home"}, 1),
            ({"project": "Work"}, 0),
        ]:
            self.assertEqual(self.do("list", **arguments)["total"], want, arguments)
        some = self.do("list", limit=1)
        self.assertEqual((len(some["tasks"]), some["total"]), (1, 3))

    def test_a_text_stays_a_text(self):
        for text in [
            "rc.data.location=/tmp/elsewhere",
            "rc:/etc/passwd now",
            "project:Other due:yesterday +tag",
            "-- export",
            "a (b or c) /x/y/ 'q\" $(id) `id`; ls",
            "Ünïcode 🦊 \\u0041 U+0041 \\n \\\\ \\",
            "U+0041",
            "1",
            "+LATEST",
        ]:
            added = self.do("add", description=text)["added"]
            self.assertEqual(added["description"], text)
            self.assertEqual({*added} - {"id", "uuid", "description", "status", "urgency"}, set())
            changed = self.do("modify", id=added["uuid"], description=f"{text} again")["modified"]
            self.assertEqual(changed["description"], f"{text} again")
        self.assertFalse(os.path.exists("/tmp/elsewhere"))

    def test_what_does_not_exist_is_refused(self):
        for action in ["complete", "modify", "delete"]:
            for which in [9, "00000000-0000-0000-0000-000000000000"]:
                asked = {"action": action, "id": which, "description": "x"}
                self.refused("there is no task", json.dumps(asked))
        self.refused("not a valid date", json.dumps({"action": "add", "description": "x", "due": "blurgh"}))

    def test_the_users_own_configuration_does_not_matter(self):
        with open(os.path.join(self.folder, ".taskrc"), "w", encoding="utf-8") as file:
            file.write("confirmation=on\ndefault.command=delete\n")
        self.do("add", description="x")
        self.assertEqual(self.descriptions(), ["x"])


class Refusals(Case):
    """What is refused before the program is asked."""

    def test_each_is_told_with_an_exit_code(self):
        for text, words in [
            ("", "not JSON"),
            ("[]", "not a JSON object"),
            ("[" * 60_000, "not JSON"),
            ("{}", "action is one of"),
            ('{"action":"purge"}', "action is one of"),
            ('{"action":["list"]}', "wrong type"),
            ('{"action":"add"}', "say its description"),
            ('{"action":"add","description":" "}', "description is empty"),
            ('{"action":"add","description":"a\\nb"}', "one line"),
            ('{"action":"add","description":"a\\u0000b"}', "one line"),
            ('{"action":"add","description":"a","due":"tomorrow rc.hooks=on"}', "due is one word"),
            ('{"action":"add","description":"a","priority":"X"}', "priority is H, M, L"),
            ('{"action":"add","description":"a","tags":["a b"]}', "a tag is one word"),
            ('{"action":"add","description":"a","tags":["-x"]}', "a tag is one word"),
            ('{"action":"add","description":"a","tags":[7]}', "a tag is one word"),
            ('{"action":"complete"}', "say its id"),
            ('{"action":"complete","id":true}', "wrong type"),
            ('{"action":"complete","id":0}', "id is a number"),
            ('{"action":"complete","id":-1}', "id is a number"),
            ('{"action":"delete","id":"1-99"}', "id is a number"),
            ('{"action":"delete","id":"+PENDING"}', "id is a number"),
            ('{"action":"modify","id":1}', "say what shall be different"),
            ('{"action":"list","limit":0}', "from 1 to 500"),
            ('{"action":"list","status":"waiting"}', "status is one of"),
            ('{"action":"list","filter":"x"}', "unknown argument: filter"),
        ]:
            self.refused(words, text)

    def test_a_character_that_cannot_be_passed_on_is_refused(self):
        self.refused("cannot be passed on", '{"action":"add","description":"a\\ud800b"}')

    def test_without_a_folder_nothing_is_made_up(self):
        task = load()
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        os.environ.pop("TASKDATA", None)
        os.environ["HOME"] = self.folder
        task.pwd.getpwuid = lambda _: (_ for _ in ()).throw(KeyError())
        with self.assertRaisesRegex(task.Refused, "TASKDATA"):
            task.location()
        os.mkdir(os.path.join(self.folder, ".task"))
        self.assertEqual(task.location(), os.path.join(self.folder, ".task"))

    def test_without_the_program_it_says_so(self):
        self.env["PATH"] = os.path.dirname(shutil.which("python3")) + "-none"
        done = subprocess.run(
            [shutil.which("python3"), str(SCRIPT)],
            input=b'{"action":"list"}',
            capture_output=True,
            timeout=60,
            check=False,
            env=self.env,
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"(Taskwarrior) is not installed", done.stderr)

    def test_the_definition_says_what_the_script_does(self):
        definition = json.loads((FOLDER / "definition.json").read_text())
        properties = definition["parameters"]["properties"]
        task = load()
        self.assertEqual(definition["name"], "task")
        self.assertEqual(set(properties), set(task.TYPES))
        self.assertEqual(tuple(properties["action"]["enum"]), task.ACTIONS)
        self.assertEqual(tuple(properties["status"]["enum"]), task.STATUSES)
        self.assertEqual(properties["limit"]["maximum"], task.LIMIT_MAX)
        self.assertEqual(properties["limit"]["default"], task.LIMIT_DEFAULT)


if __name__ == "__main__":
    unittest.main()

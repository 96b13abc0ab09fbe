"""The tools as the host calls them: arguments and data as JSON."""

import json
from typing import Any

from interpreter import tools
from interpreter.refusal import Kind, Refusal
from support import InterpreterTest


class ToolsTest(InterpreterTest):
    """One call, from JSON to JSON."""

    def call(self, name: str, arguments: object) -> Any:
        """Calls a tool."""
        return json.loads(tools.call(self.session, name, json.dumps(arguments)))

    def test_data_holds_what_there_is_to_say(self) -> None:
        for code, data in (
            ("1 + 1", {"result": 2, "fresh": True}),
            ("1 + 1", {"result": 2}),
            ("print('ü')", {"stdout": "ü\n", "result": None}),
            ("{1}", {"result": [1], "notes": ["set as a list"]}),
            ("raise SystemExit", {"result": None, "ended": 0}),
        ):
            self.assertEqual(
                self.call("execute", {"code": code}), {"stdout": "", "stderr": "", **data}
            )
        failed = self.call("execute", {"code": "1 / 0", "dependencies": []})
        self.assertIn("ZeroDivisionError", failed["exception"])

    def test_code_that_replaces_parts_of_json_is_answered(self) -> None:
        self.addCleanup(self.session.reset)
        for part in "json.dumps", "json.loads", "json.JSONEncoder", "json.encoder":
            code = f"import json; {part} = None; [1, 'a']"
            answer = tools.call(self.session, "execute", f'{{"code": "{code}"}}')
            self.assertIn('"result": [1, "a"]', answer)

    def test_a_reset_says_what_it_did(self) -> None:
        self.call("execute", {"code": "x = 1"})
        done = "variables, imports and packages are forgotten"
        self.assertEqual(self.call("reset", {}), {"done": done})
        self.assertIn("NameError", self.call("execute", {"code": "x"})["exception"])

    def test_calls_that_make_no_sense_are_refused(self) -> None:
        for name, arguments, kind in (
            ("execute", {}, Kind.INVALID_ARGUMENTS),
            ("execute", {"code": 1}, Kind.INVALID_ARGUMENTS),
            ("execute", {"code": "1", "dependencies": "a==1"}, Kind.INVALID_ARGUMENTS),
            ("execute", [], Kind.INVALID_ARGUMENTS),
            ("run", {}, Kind.NOT_FOUND),
        ):
            with self.assertRaises(Refusal) as caught:
                self.call(name, arguments)
            self.assertEqual(caught.exception.kind, kind)

    def test_data_keeps_to_its_schema(self) -> None:
        known = tools.TOOLS[0].output["properties"].keys()
        seen: set[str] = set()
        self.index["a", "1"] = {"a-1.dist-info/METADATA": b"Requires-Dist: b\n\n"}
        for code in ("{1}", "1 / 0", "raise SystemExit"):
            seen |= self.call("execute", {"code": code, "dependencies": ["a==1"]}).keys()
        self.assertEqual(seen, set(known))

    def test_schemas_are_closed(self) -> None:
        for tool in tools.TOOLS:
            for schema in (tool.parameters, tool.output):
                self.assertEqual(schema["additionalProperties"], False)
                self.assertLessEqual(set(schema["required"]), schema["properties"].keys())

"""The event loop that waits for nothing but the time."""

import asyncio
import unittest
from collections.abc import Coroutine
from typing import Any

from interpreter.loop import Loop


class LoopTest(unittest.TestCase):
    """What `asyncio` can do without sockets and threads."""

    def run_in_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Runs work to its end."""
        with asyncio.Runner(loop_factory=Loop) as runner:
            return runner.run(work)

    def test_tasks_take_turns(self) -> None:
        async def work() -> list[int]:
            async def late(number: int) -> int:
                await asyncio.sleep(0.001 * number)
                return number

            return await asyncio.gather(*map(late, (2, 0, 1)))

        self.assertEqual(self.run_in_loop(work()), [2, 0, 1])

    def test_a_time_out_ends_what_waits(self) -> None:
        async def work() -> None:
            await asyncio.wait_for(asyncio.Event().wait(), 0.001)

        self.assertRaises(TimeoutError, self.run_in_loop, work())

    def test_what_would_wait_for_ever_ends(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "everything waits"):
            self.run_in_loop(asyncio.Event().wait())

    def test_there_is_nothing_else_to_wait_for(self) -> None:
        async def work() -> None:
            asyncio.get_running_loop().add_reader(0, print)

        with self.assertRaisesRegex(OSError, "but the time"):
            self.run_in_loop(work())

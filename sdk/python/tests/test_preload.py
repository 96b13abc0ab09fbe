"""What a component has to hold because it cannot be loaded later."""

import codecs
import subprocess
import sys
from pathlib import Path

from sallyport._preload import CODECS, MODULES

SDK = Path(__file__).parents[1]
PROGRAM = """
import sys
sys.path.insert(0, {sdk!r})
from sallyport import _preload
_preload.preload()
import datetime
# As in a component: nothing can be loaded from here on.
sys.path[:], sys.meta_path[:] = [], []
for name in _preload.CODECS:
    if name != "hex":
        "a".encode(name)
print(b"\\xef\\xbb\\xbfa".decode("utf-8-sig"), datetime.datetime.strptime("2026", "%Y").year)
"""


def test_a_byte_order_mark_is_read_although_no_module_can_be_loaded():
    program = PROGRAM.format(sdk=str(SDK))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("a 2026\n", "")


def test_every_name_exists():
    for name in CODECS:
        codecs.lookup(name)
    for name in MODULES:
        __import__(name)

"""The wire from a switch's own CMIS software to a simulated module.

The software is SONiC's (sonic_platform_base of sonic-platform-common, found by
PYTHONPATH). The wire is one line a question on standard output, one line an
answer on standard input, and the clock, which is the module's. The last line
is what was seen, as JSON.
"""
import json
import sys
import time
from unittest.mock import MagicMock


def ask(*words):
    print(*words, flush=True)
    return sys.stdin.readline().strip()


time.sleep = lambda seconds: ask("sleep", int(seconds * 1e6))
time.time = lambda: int(ask("now")) / 1e6

# The rest of SONiC, loggers above all, is asked for nothing that matters here.
for name in ("", ".logger", ".syslogger"):
    sys.modules["sonic_py_common" + name] = MagicMock()

from sonic_platform_base.sonic_xcvr.xcvr_api_factory import XcvrApiFactory  # noqa: E402


def read(offset, size):
    got = ask("read", offset, size)
    return bytearray.fromhex(got) if got else None


def write(offset, size, data):
    return ask("write", offset, bytes(data[:size]).hex()) == "ok"


def api():
    return XcvrApiFactory(read, write).create_xcvr_api()


def tell(seen):
    dark = json.dumps(seen, default=str).replace("-Infinity", '"dark"')  # dBm of no light
    print("seen", dark, flush=True)

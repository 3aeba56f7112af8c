"""A switch's own CMIS software brings a simulated module up.

The software is SONiC's (sonic_platform_base of sonic-platform-common, found by
PYTHONPATH); this file is the wire to the module, which is one line a question
on standard output, one line an answer on standard input, and the clock, which
is the module's. The order of steps is that of SONiC's transceiver daemon. The
last line is what was seen, as JSON.
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


def lanes(values):
    return [values[k] for k in sorted(values)]


ALL = 0xFF
api = XcvrApiFactory(read, write).create_xcvr_api()
seen = {"api": type(api).__name__, "advertised": api.get_application_advertisement(), "applicationAtStart": api.get_application(0)}
seen["stateAtStart"] = api.get_module_state()
seen["highPower"] = api.set_lpmode(False)
seen["state"] = api.get_module_state()
api.tx_disable_channel(ALL, True)
seen["deinit"] = api.decommission_all_datapaths()
seen["down"] = lanes(api.get_datapath_state())
api.set_application(ALL, 1)
api.scs_apply_datapath_init(ALL)
seen["config"] = lanes(api.get_config_datapath_hostlane_status())
seen["pending"] = lanes(api.get_dpinit_pending())
api.set_datapath_init(ALL)
time.sleep(api.get_datapath_init_duration() / 1000)
seen["initialized"] = lanes(api.get_datapath_state())
api.tx_disable_channel(ALL, False)
time.sleep(api.get_datapath_tx_turnon_duration() / 1000)
seen["activated"] = lanes(api.get_datapath_state())
seen["status"] = api.get_transceiver_status()
seen["statusFlags"] = api.get_transceiver_status_flags()
seen["domFlags"] = api.get_transceiver_dom_flags()
seen["moduleFlags"] = api.get_module_level_flag()
seen["info"] = api.get_transceiver_info()
seen["dom"] = api.get_transceiver_dom_real_value()
ask("warm")
seen["hot"] = api.get_module_level_flag()["case_temp_flags"]
dark = json.dumps(seen, default=str).replace("-Infinity", '"dark"')  # dBm of no light
print("seen", dark, flush=True)

"""A switch's own CMIS software brings a simulated module up.

The order of steps is that of SONiC's transceiver daemon.
"""
import time

import cmis_wire


def lanes(values):
    return [values[k] for k in sorted(values)]


ALL = 0xFF
api = cmis_wire.api()
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
seen["loopback"] = api.get_loopback_capability()
seen["vdm"] = api.get_vdm(api.vdm.VDM_REAL_VALUE | api.vdm.VDM_THRESHOLD)
cmis_wire.ask("warm")
seen["hot"] = api.get_module_level_flag()["case_temp_flags"]
cmis_wire.tell(seen)

"""A switch's own CMIS software gives a simulated module other firmware.

Three images on the command line: one to run and commit, one that is broken, one
that is begun and given up. The steps are those of sfputil.
"""
import sys
import time

import cmis_wire

good, broken, left = sys.argv[1:]
api = cmis_wire.api()


def info():
    return api.get_module_fw_info()["result"]


seen = {"before": info(), "features": api.get_module_fw_mgmt_feature()["feature"]}
head, block, lpl_only, paging, length = seen["features"]
seen["download"] = api.module_fw_download(head, block, lpl_only, paging, length, good)[0]
seen["downloaded"] = info()
seen["run"] = api.module_fw_run(mode=0x00)[0]
time.sleep(5)
seen["ran"] = info()
seen["commit"] = api.module_fw_commit()[0]
seen["committed"] = info()
seen["broken"] = api.module_fw_download(head, block, lpl_only, paging, length, broken)[0]
seen["afterBroken"] = info()
seen["runBroken"] = api.module_fw_run(mode=0x00)[0]
seen["begun"] = api.module_fw_start_download(left)[0]
seen["aborted"] = api.cdb_fw_hdlr.abort_fw_download()
seen["complete"] = api.module_fw_complete_download()[0]
seen["upgrade"] = api.module_fw_upgrade(left)[0]
seen["after"] = info()
seen["active"] = api.get_transceiver_info_firmware_versions()
cmis_wire.tell(seen)

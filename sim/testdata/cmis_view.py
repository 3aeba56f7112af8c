"""What a reader of CMIS sees in a linear module image.

It knows nothing of the simulator: offsets and scales are those of the
specification as public host software has them. Prints JSON.
"""
import json
import struct
import sys

MODULE = {1: "ModuleLowPwr", 2: "ModulePwrUp", 3: "ModuleReady", 4: "ModulePwrDn", 5: "ModuleFault"}
PATH = {1: "DPDeactivated", 2: "DPInit", 3: "DPDeinit", 4: "DPActivated", 5: "DPTxTurnOn", 6: "DPTxTurnOff", 7: "DPInitialized"}


def applications(descriptors):
    """Host and media interface, lanes of each, and where they may begin."""
    rows = [descriptors[i:i + 4] for i in range(0, 32, 4)]
    end = next((i for i, r in enumerate(rows) if r[0] in (0, 255)), len(rows))
    return [[r[0], r[1], r[2] >> 4, r[2] & 15, r[3]] for r in rows[:end]]


def view(image):
    def at(page, offset, bank=0):
        return offset if offset < 128 else (bank * 256 + page) * 128 + offset

    def number(page, offset, form):
        return struct.unpack_from(form, image, at(page, offset))[0]

    def text(offset, length):
        return image[at(0, offset):at(0, offset) + length].decode("ascii").rstrip()

    def checked(page, first, last):
        return sum(image[at(page, first):at(page, last) + 1]) & 255 == number(page, last + 1, "B")

    def four(kind, scale, offset, form):
        names = ("highAlarm", "lowAlarm", "highWarning", "lowWarning")
        return {kind + n[0].upper() + n[1:]: number(2, offset + 2 * i, form) / scale for i, n in enumerate(names)}

    thresholds = {}
    for row in (("temperature", 256, 128, ">h"), ("supply", 10000, 136, ">H"), ("txPower", 10000, 176, ">H"), ("rxPower", 10000, 192, ">H")):
        thresholds.update(four(*row))
    states = image[at(0x11, 128):at(0x11, 128) + 4]
    return {
        "bytes": len(image),
        "identifier": image[0],
        "revision": "%d.%d" % (image[1] >> 4, image[1] & 15),
        "flat": bool(image[2] & 128),
        "state": MODULE.get(image[3] >> 1 & 7),
        "temperature": number(0, 14, ">h") / 256,
        "supply": number(0, 16, ">H") / 10000,
        "vendor": text(129, 16),
        "part": text(148, 16),
        "serial": text(166, 16),
        "maxPower": number(0, 201, "B") / 4,
        "clockKilohertz": {0: 400, 1: 1000, 2: 3400}.get(image[2] >> 2 & 15),
        "optional": [p for bit, p in ((2, 0x03), (3, 0x05), (5, 0x13), (6, 0x20), (7, 0x16)) if number(1, 142, "B") >> bit & 1],
        "flagsOnPages": [p for bit, p in enumerate((0x11, 0x12, 0x14, 0x2C)) if image[4] >> bit & 1],
        "interrupt": not image[3] & 1,
        "applications": applications(image[86:118]),
        "checksums": [checked(0, 128, 221), checked(1, 130, 254), checked(2, 128, 254)],
        "thresholds": thresholds,
        "lanes": [PATH.get(states[i // 2] >> 4 * (i % 2) & 15) for i in range(8)],
        "txOutput": [bool(image[at(0x11, 133)] >> i & 1) for i in range(8)],
        "txPowerMilliwatt": [number(0x11, 154 + 2 * i, ">H") / 10000 for i in range(8)],
        "cdbInstances": image[at(1, 163)] >> 6,
    }


if __name__ == "__main__":
    json.dump(view(open(sys.argv[1], "rb").read()), sys.stdout)

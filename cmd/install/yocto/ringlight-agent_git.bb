SUMMARY = "Agent of optically switched GPU rings, one a node"
DESCRIPTION = "Drives the optical switches of a node over I2C, SPI and GPIO. Put the binary of \
`make cross` for the machine beside this recipe: it is static and needs no library."
LICENSE = "Apache-2.0"
LIC_FILES_CHKSUM = "file://${COMMON_LICENSE_DIR}/Apache-2.0;md5=89aea4e17d99a7cacdbeed46a0096b10"

SRC_URI = "file://ocs-agent file://ocs-agent.service file://ocs-bmc file://ocs-bmc.service file://ocs-bmc.conf"
# Where files of a recipe land: UNPACKDIR, which releases before styhead do not have.
S = "${@d.getVar('UNPACKDIR') or d.getVar('WORKDIR')}"

inherit systemd

# Nothing is compiled: no compiler, no library is waited for.
INHIBIT_DEFAULT_DEPS = "1"

# The optics on D-Bus, for bmcweb, are a package of their own (`make bmc`).
PACKAGES =+ "${PN}-bmc"
FILES:${PN}-bmc = "${bindir}/ocs-bmc ${systemd_system_unitdir}/ocs-bmc.service ${datadir}/dbus-1/system.d"
INSANE_SKIP:${PN}-bmc += "already-stripped ldflags"
SYSTEMD_PACKAGES = "${PN} ${PN}-bmc"
SYSTEMD_SERVICE:${PN}-bmc = "ocs-bmc.service"

SYSTEMD_SERVICE:${PN} = "ocs-agent.service"
# Without /etc/ringlight/agent.json the unit's condition keeps it from starting.
SYSTEMD_AUTO_ENABLE = "enable"

# A static Go binary: already stripped, linked against nothing.
INSANE_SKIP:${PN} += "already-stripped ldflags"
INHIBIT_PACKAGE_STRIP = "1"

# Journal and calibrations must outlive an image: /var/lib/ocs-agent belongs on the
# persistent partition.
do_install() {
	install -D -m 0755 ${S}/ocs-agent ${D}${bindir}/ocs-agent
	install -D -m 0644 ${S}/ocs-agent.service ${D}${systemd_system_unitdir}/ocs-agent.service
	install -D -m 0755 ${S}/ocs-bmc ${D}${bindir}/ocs-bmc
	install -D -m 0644 ${S}/ocs-bmc.service ${D}${systemd_system_unitdir}/ocs-bmc.service
	install -D -m 0644 ${S}/ocs-bmc.conf ${D}${datadir}/dbus-1/system.d/xyz.openbmc_project.Ringlight.conf
}


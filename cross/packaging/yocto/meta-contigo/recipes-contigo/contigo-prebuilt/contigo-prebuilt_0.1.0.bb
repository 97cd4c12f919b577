SUMMARY = "Contigo's tool and board tests, as 'cargo cross package' built them"
DESCRIPTION = "For series whose Rust is older than 1.88. The programs need glibc 2.27 or newer."
SECTION = "utils"
LICENSE = "MIT | Apache-2.0"
LIC_FILES_CHKSUM = "file://LICENSE-MIT;md5=8f5efd8c1067b6533b9465dc59899832 \
                    file://LICENSE-APACHE;md5=1836efb2eb779966696f473ee8540542"

require recipes-contigo/contigo.inc

CONTIGO_TRIPLE[arm] = "armv7-unknown-linux-gnueabihf"
CONTIGO_TRIPLE[aarch64] = "aarch64-unknown-linux-gnu"
CONTIGO_TRIPLE[x86_64] = "x86_64-unknown-linux-gnu"
CONTIGO_NAME = "contigo-${PV}-${@d.getVarFlag('CONTIGO_TRIPLE', d.getVar('TARGET_ARCH')) or 'none'}"

FILESEXTRAPATHS:prepend := "${CONTIGO_PACKAGES}:${CONTIGO_SOURCES}/kernel-helpers:"
SRC_URI = "file://${CONTIGO_NAME}.tar.gz \
           file://udev/60-contigo.rules"

S = "${CONTIGO_UNPACKED}/${CONTIGO_NAME}"

inherit bin_package useradd

# nooelint: oelint.task.noanonpython - the missing file shall be named, before anything is built
python () {
    package = d.expand("${CONTIGO_PACKAGES}/${CONTIGO_NAME}.tar.gz")
    # bitbake remembers a skipped recipe until one of its files changes.
    bb.parse.mark_dependency(d, package)
    if not os.path.exists(package):
        raise bb.parse.SkipRecipe("%s is not there: `cargo cross package` makes it" % package)
}

do_install () {
    install -D -m 0755 "${S}/usr/bin/contigo" "${D}${bindir}/contigo"
    install -D -m 0755 "${S}/usr/bin/contigo-board-tests" "${D}${bindir}/contigo-board-tests"
    install -D -m 0644 "${CONTIGO_UNPACKED}/udev/60-contigo.rules" "${D}${nonarch_base_libdir}/udev/rules.d/60-contigo.rules"
}

FILES:${PN} += "${nonarch_base_libdir}/udev/rules.d"

USERADD_PACKAGES = "${PN}"
GROUPADD_PARAM:${PN} = "--system dma"

RPROVIDES:${PN} += "contigo"
RCONFLICTS:${PN} += "contigo"
# nooelint: oelint.vars.insaneskip - they were stripped where they were built
INSANE_SKIP:${PN} += "already-stripped"

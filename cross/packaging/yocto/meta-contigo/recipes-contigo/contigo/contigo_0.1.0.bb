SUMMARY = "DMA memory and jobs for FPGA and SoC accelerators, from user space"
DESCRIPTION = "The tool contigo, its board tests, the C library, the udev rules and the group dma."
SECTION = "utils"
LICENSE = "MIT | Apache-2.0"
LIC_FILES_CHKSUM = "file://LICENSE-MIT;md5=8f5efd8c1067b6533b9465dc59899832 \
                    file://LICENSE-APACHE;md5=1836efb2eb779966696f473ee8540542"

require recipes-contigo/contigo.inc
require contigo-crates.inc

inherit cargo externalsrc useradd

EXTERNALSRC = "${CONTIGO_SOURCES}"
CARGO_BUILD_FLAGS:append = " --package contigo-cli --package contigo-tests --package contigo-c"

# nooelint: oelint.task.noanonpython - an older series shall be told why, before it builds
python () {
    have = (d.getVar("RUSTVERSION") or "").rstrip("%")
    if have and tuple(int(part) for part in have.split(".")[:2]) < (1, 88):
        raise bb.parse.SkipRecipe("it needs Rust 1.88, and RUSTVERSION is %s: take contigo-prebuilt" % have)
}

do_install () {
    built="${B}/target/${CARGO_TARGET_SUBDIR}"
    install -D -m 0755 "$built/contigo" "${D}${bindir}/contigo"
    install -D -m 0755 "$built/contigo-board-tests" "${D}${bindir}/contigo-board-tests"
    install -D -m 0644 "${S}/kernel-helpers/udev/60-contigo.rules" "${D}${nonarch_base_libdir}/udev/rules.d/60-contigo.rules"
    oe_runmake -C "${S}/bindings/c" install PREFIX="${prefix}" LIBDIR="${baselib}" BUILT="$built" DESTDIR="${D}"
}

PACKAGES =+ "${PN}-lib ${PN}-board-tests"
FILES:${PN} += "${nonarch_base_libdir}/udev/rules.d"
FILES:${PN}-board-tests += "${bindir}/contigo-board-tests"
FILES:${PN}-lib += "${libdir}/libcontigo.so.*"

USERADD_PACKAGES = "${PN}"
GROUPADD_PARAM:${PN} = "--system dma"

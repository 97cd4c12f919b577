SUMMARY = "Device tree overlays of boards, for DMA from user space"
DESCRIPTION = "Memory for DMA, and a DMA controller for user space, on the boards of CONTIGO_BOARDS. The boot loader applies one before the kernel starts."
SECTION = "bsp"
LICENSE = "MIT | Apache-2.0"
LIC_FILES_CHKSUM = "file://LICENSE-MIT;md5=8f5efd8c1067b6533b9465dc59899832 \
                    file://LICENSE-APACHE;md5=1836efb2eb779966696f473ee8540542"

require recipes-contigo/contigo.inc

# The class devicetree says it, and it is the board's own tree.
PROVIDES:remove = "virtual/dtb"

FILESEXTRAPATHS:prepend := "${CONTIGO_SOURCES}/boards:"
SRC_URI = "file://LICENSE-APACHE \
           file://LICENSE-MIT \
           ${@' '.join('file://%s/overlay.dtso' % board for board in d.getVar('CONTIGO_BOARDS').split())}"

inherit devicetree

COMPATIBLE_MACHINE = ".*"
# They include nothing of the kernel's.
KERNEL_INCLUDE = ""
DT_FILES_PATH = "${WORKDIR}/overlays"

# Each is called overlay.dtso in its board's folder.
do_configure () {
    rm -rf "${DT_FILES_PATH}"
    install -d "${DT_FILES_PATH}"
    for board in ${CONTIGO_BOARDS}; do
        install -m 0644 "${CONTIGO_UNPACKED}/$board/overlay.dtso" "${DT_FILES_PATH}/$board.dts"
    done
}

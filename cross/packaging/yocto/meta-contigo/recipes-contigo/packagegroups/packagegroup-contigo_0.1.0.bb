SUMMARY = "Contigo: the tool, the module and overlays"
DESCRIPTION = "All that an image needs for DMA from user space: IMAGE_FEATURES has it as contigo."
SECTION = "utils"

inherit packagegroup

PACKAGE_ARCH = "${MACHINE_ARCH}"

RDEPENDS:${PN} = "contigo \
                  contigo-module \
                  contigo-overlays"

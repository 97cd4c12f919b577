################################################################################
#
# contigo-module
#
################################################################################

CONTIGO_MODULE_VERSION = 0.1.0
CONTIGO_MODULE_SITE = $(realpath $(BR2_EXTERNAL_CONTIGO_PATH)/../../../kernel-helpers)
CONTIGO_MODULE_SITE_METHOD = local
CONTIGO_MODULE_LICENSE = GPL-2.0
CONTIGO_MODULE_LICENSE_FILES = LICENSE-GPL-2.0
CONTIGO_MODULE_MODULE_SUBDIRS = module

# Memory by dma-heap, from a pool that is contiguous.
define CONTIGO_MODULE_LINUX_CONFIG_FIXUPS
	$(call KCONFIG_ENABLE_OPT,CONFIG_CMA)
	$(call KCONFIG_ENABLE_OPT,CONFIG_DMA_CMA)
	$(call KCONFIG_ENABLE_OPT,CONFIG_DMABUF_HEAPS)
	$(call KCONFIG_ENABLE_OPT,CONFIG_DMABUF_HEAPS_SYSTEM)
	$(call KCONFIG_ENABLE_OPT,CONFIG_DMABUF_HEAPS_CMA)
endef

ifeq ($(BR2_PACKAGE_CONTIGO_MODULE_UNPRIVILEGED),y)
define CONTIGO_MODULE_ALLOW_GROUP
	$(SED) 's/^#\(options contigo unprivileged=1\)$$/\1/' \
		$(TARGET_DIR)/usr/lib/modprobe.d/contigo.conf
endef
endif

# A node contigo,engine loads the module by itself, by udev or mdev. Without
# systemd a device that is bound by hand needs a modprobe by hand.
define CONTIGO_MODULE_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 0644 $(@D)/modprobe.d/contigo.conf \
		$(TARGET_DIR)/usr/lib/modprobe.d/contigo.conf
	$(CONTIGO_MODULE_ALLOW_GROUP)
endef

define CONTIGO_MODULE_INSTALL_INIT_SYSTEMD
	$(INSTALL) -D -m 0644 $(@D)/modules-load.d/contigo.conf \
		$(TARGET_DIR)/usr/lib/modules-load.d/contigo.conf
endef

$(eval $(kernel-module))
$(eval $(generic-package))

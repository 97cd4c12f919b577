################################################################################
#
# contigo-overlays
#
################################################################################

CONTIGO_OVERLAYS_VERSION = 0.1.0
CONTIGO_OVERLAYS_SITE = $(realpath $(BR2_EXTERNAL_CONTIGO_PATH)/../../../boards)
CONTIGO_OVERLAYS_SITE_METHOD = local
# The licences are links to those of the whole sources.
CONTIGO_OVERLAYS_OVERRIDE_SRCDIR_RSYNC_EXCLUSIONS = --copy-links
CONTIGO_OVERLAYS_LICENSE = MIT or Apache-2.0
CONTIGO_OVERLAYS_LICENSE_FILES = LICENSE-MIT LICENSE-APACHE
CONTIGO_OVERLAYS_DEPENDENCIES = host-dtc
CONTIGO_OVERLAYS_INSTALL_IMAGES = YES
CONTIGO_OVERLAYS_BOARDS = $(call qstrip,$(BR2_PACKAGE_CONTIGO_OVERLAYS_BOARDS))

define CONTIGO_OVERLAYS_BUILD_CMDS
	$(foreach board,$(CONTIGO_OVERLAYS_BOARDS), \
		$(HOST_DIR)/bin/dtc -@ -W no-avoid_unnecessary_addr_size -I dts -O dtb \
			-o $(@D)/$(board).dtbo $(@D)/$(board)/overlay.dtso$(sep))
endef

define CONTIGO_OVERLAYS_INSTALL_IMAGES_CMDS
	$(foreach board,$(CONTIGO_OVERLAYS_BOARDS), \
		$(INSTALL) -D -m 0644 $(@D)/$(board).dtbo $(BINARIES_DIR)/$(board).dtbo$(sep))
endef

define CONTIGO_OVERLAYS_INSTALL_TARGET_CMDS
	$(foreach board,$(CONTIGO_OVERLAYS_BOARDS), \
		$(INSTALL) -D -m 0644 $(@D)/$(board).dtbo \
			$(TARGET_DIR)/usr/share/contigo/overlays/$(board).dtbo$(sep))
endef

$(eval $(generic-package))

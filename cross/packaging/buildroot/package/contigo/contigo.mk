################################################################################
#
# contigo
#
################################################################################

CONTIGO_VERSION = 0.1.0
# This tree is a part of Contigo's sources.
CONTIGO_SITE = $(realpath $(BR2_EXTERNAL_CONTIGO_PATH)/../../..)
CONTIGO_SITE_METHOD = local
CONTIGO_LICENSE = MIT or Apache-2.0
CONTIGO_LICENSE_FILES = LICENSE-MIT LICENSE-APACHE
CONTIGO_OVERRIDE_SRCDIR_RSYNC_EXCLUSIONS = \
	--exclude /target --exclude /bindings/python/target --exclude /rtl/cores/*/made
CONTIGO_CARGO_BUILD_OPTS = --config .cargo/vendor.toml --package contigo-cli
CONTIGO_BUILT = $(@D)/target/$(RUSTC_TARGET_NAME)/$(if $(BR2_ENABLE_DEBUG),debug,release)

# Buildroot vendors crates when it downloads a package. A local one has no
# download, so it happens before the build, with Cargo.lock's checksums. For
# a build without a network the sources have both files already, made by the
# same command.
define CONTIGO_VENDOR
	cd $(@D) && { test -e .cargo/vendor.toml || { \
		$(TARGET_MAKE_ENV) $(PKG_CARGO_ENV) \
			cargo vendor --locked VENDOR > .cargo/vendor.part && \
		mv .cargo/vendor.part .cargo/vendor.toml; }; }
endef
CONTIGO_PRE_BUILD_HOOKS += CONTIGO_VENDOR

ifeq ($(BR2_PACKAGE_CONTIGO_BOARD_TESTS),y)
CONTIGO_CARGO_BUILD_OPTS += --package contigo-tests
define CONTIGO_INSTALL_BOARD_TESTS
	$(INSTALL) -D -m 0755 $(CONTIGO_BUILT)/contigo-board-tests \
		$(TARGET_DIR)/usr/bin/contigo-board-tests
endef
endif

ifeq ($(BR2_PACKAGE_CONTIGO_LIBRARY),y)
CONTIGO_INSTALL_STAGING = YES
CONTIGO_CARGO_BUILD_OPTS += --package contigo-c
define CONTIGO_INSTALL_STAGING_CMDS
	$(MAKE) -C $(@D)/bindings/c install PREFIX=/usr BUILT=$(CONTIGO_BUILT) \
		DESTDIR=$(STAGING_DIR)
endef
define CONTIGO_INSTALL_LIBRARY
	$(MAKE) -C $(@D)/bindings/c install PREFIX=/usr BUILT=$(CONTIGO_BUILT) \
		DESTDIR=$(TARGET_DIR)
endef
endif

ifeq ($(BR2_PACKAGE_HAS_UDEV),y)
define CONTIGO_INSTALL_UDEV
	$(INSTALL) -D -m 0644 $(@D)/kernel-helpers/udev/60-contigo.rules \
		$(TARGET_DIR)/usr/lib/udev/rules.d/60-contigo.rules
endef
endif

define CONTIGO_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 0755 $(CONTIGO_BUILT)/contigo $(TARGET_DIR)/usr/bin/contigo
	$(CONTIGO_INSTALL_BOARD_TESTS)
	$(CONTIGO_INSTALL_LIBRARY)
	$(CONTIGO_INSTALL_UDEV)
endef

# The group of kernel-helpers/sysusers.d/contigo.conf.
define CONTIGO_USERS
	- - dma -1 - - - - DMA memory and devices
endef

$(eval $(cargo-package))

SUMMARY = "The kernel module contigo: a device in one file"
DESCRIPTION = "One file serves a device's registers, interrupts and memory, and its end stops the device. It is for kernels from 5.10 on."
SECTION = "kernel"
LICENSE = "GPL-2.0-only"
LIC_FILES_CHKSUM = "file://../LICENSE-GPL-2.0;md5=b234ee4d69f5fce4486a80fdaf4a4263"

require recipes-contigo/contigo.inc

FILESEXTRAPATHS:prepend := "${CONTIGO_SOURCES}/kernel-helpers:"
SRC_URI = "file://LICENSE-GPL-2.0 \
           file://module \
           file://uapi"

S = "${CONTIGO_UNPACKED}/module"

inherit module

EXTRA_OEMAKE += "KDIR=${STAGING_KERNEL_DIR}"
MODULES_INSTALL_TARGET = "install"

# A node contigo,engine loads it by itself; a device that is bound by hand does not.
KERNEL_MODULE_AUTOLOAD += "contigo"
KERNEL_MODULE_PROBECONF += "${@'contigo' if d.getVar('CONTIGO_UNPRIVILEGED') == '1' else ''}"
# Set and not listed above is an error of kernel-module-split.
module_conf_contigo = "${@'options contigo unprivileged=1' if d.getVar('CONTIGO_UNPRIVILEGED') == '1' else ''}"

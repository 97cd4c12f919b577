/* The interface between TVM's runtime for VTA and a driver: the same functions, types and numbers
 * as vta/driver.h of apache/tvm-vta, so that either header serves. A build for TVM takes TVM's.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */

#ifndef VTA_DRIVER_H_
#define VTA_DRIVER_H_

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For VTAMemAlloc: the CPU's caches may hold the bytes, or not. This driver treats both alike. */
#define VTA_CACHED 1
#define VTA_NOT_CACHED 0

/* The longest buffer, in bytes. */
#ifndef VTA_MAX_XFER
#define VTA_MAX_XFER (1 << 25)
#endif

#define VTA_PAGE_BITS 12
#define VTA_PAGE_BYTES (1 << VTA_PAGE_BITS)

typedef void *VTADeviceHandle;

/* A bus address. */
#ifdef USE_VTA64
typedef uint64_t vta_phy_addr_t;
#else
typedef uint32_t vta_phy_addr_t;
#endif

/* Opens the device; NULL where that is refused. */
VTADeviceHandle VTADeviceAlloc(void);

/* Gives the handle up. Memory stays as it is. */
void VTADeviceFree(VTADeviceHandle handle);

/* Runs insn_count instructions from insn_phy_addr on, and waits for their end. 0: they ended. */
int VTADeviceRun(VTADeviceHandle device, vta_phy_addr_t insn_phy_addr, uint32_t insn_count, uint32_t wait_cycles);

/* Memory that the device reaches, at a multiple of a page; NULL where there is none. */
void *VTAMemAlloc(size_t size, int cached);

/* Gives the memory back. */
void VTAMemFree(void *buf);

/* The bus address of a byte of that memory; 0 where it is elsewhere. */
vta_phy_addr_t VTAMemGetPhyAddr(void *buf);

/* Copies into, and out of, that memory. */
void VTAMemCopyFromHost(void *dst, const void *src, size_t size);
void VTAMemCopyToHost(void *dst, const void *src, size_t size);

/* Makes the CPU's writes visible to the device, and the device's to the CPU. */
void VTAFlushCache(void *vir_addr, vta_phy_addr_t phy_addr, int size);
void VTAInvalidateCache(void *vir_addr, vta_phy_addr_t phy_addr, int size);

#ifdef __cplusplus
}
#endif

#endif

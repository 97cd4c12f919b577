/* The driver of TVM's accelerator VTA over contigo.h, beside vta/driver.h: where its device and its
 * memory are, and the functions of registers that VTA's own programs use.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */

#ifndef CONTIGO_VTA_H
#define CONTIGO_VTA_H

#include <stdint.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where the device and its memory are. TVM has no place to say that, so the driver reads these
 * variables of the environment when its first function is called. contigo_vta_use says the same
 * from a program, before that. A field that is NULL or 0 leaves the variable, or its default. */
struct contigo_vta_options {
    /* CONTIGO_VTA_DEVICE: "uio:vta@43c00000", "contigo:vta@43c00000", "sim:vta". One node with all
     * of its stages. */
    const char *device;
    /* CONTIGO_VTA_PORT: the device's way to memory: "zynq-acp", "zynq-hp0", "cyclone-v-acp". None:
     * the kernel or the simulated board says it. */
    const char *port;
    /* CONTIGO_VTA_MEMORY: "u-dma-buf:udmabuf0", "contigo:vta@43c00000", "sim". */
    const char *memory;
    /* CONTIGO_VTA_BYTES: how much of it; 96 MiB. TVM takes 64 MiB for its two queues. */
    size_t bytes;
    /* CONTIGO_VTA_TIMEOUT_US: the longest run; 10 seconds. */
    uint32_t timeout_us;
};

/* Says where the device and its memory are. 0: it was done; -1: they are open already, or a text is
 * too long. */
int contigo_vta_use(const struct contigo_vta_options *options);

/* The text of the last refusal of any thread, also after a later call that succeeded. */
const char *contigo_vta_last_error(void);

/* Counts since the device was opened. */
struct contigo_vta_stats {
    /* Runs that ended well, and others. */
    uint64_t runs, failed;
    /* Bytes that runs handed to the device: those that their instructions name. */
    uint64_t bytes_given;
    /* Buffers that are out, and buffers that were freed and wait to be used again. */
    uint64_t blocks, free_blocks;
    /* Accesses of a simulated device to bytes that it was not given are not counted here: the board
     * does that. */
};
void contigo_vta_get_stats(struct contigo_vta_stats *stats);

/* Closes all: the memory, the registers, the device. -1 while the device may still have memory. */
int contigo_vta_close(void);

/* Registers, as pynq_driver.h and de10nano_driver.h have them. addr is a bus address of the CPU
 * inside the device's window, such as VTA_FETCH_ADDR. A write that starts the device hands the
 * memory over that its instructions name, and a read that tells of the end takes it back. */
void *VTAMapRegister(uint32_t addr);
void VTAUnmapRegister(void *vta);
void VTAWriteMappedReg(void *base_addr, uint32_t offset, uint32_t val);
uint32_t VTAReadMappedReg(void *base_addr, uint32_t offset);

/* Loads a bitstream from /lib/firmware through /sys/class/fpga_manager/fpga0, before anything is
 * open. CONTIGO_VTA_FPGA_MANAGER is another folder. */
void VTAProgram(const char *bitstream);

#ifdef __cplusplus
}
#endif

#endif

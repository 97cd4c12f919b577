/* docs/memories.md: a block of u-dma-buf that a contigo device holds. Compiled and not run. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../kernel-helpers/uapi/contigo.h"

/* From u-dma-buf-ioctl.h, which u-dma-buf's README has. */
struct export {
    uint64_t flags, size, offset, addr;
    int fd;
};
#define U_DMA_BUF_IOCTL_EXPORT _IOWR('U', 10, struct export)

/* The engine's registers: GO starts it, and reads as 0 when it has stopped. */
enum { CONTROL = 0x00, SOURCE = 0x10, LENGTH = 0x18, GO = 1 };

static int run(uint32_t len)
{
    int block = open("/dev/udmabuf0", O_RDWR | O_CLOEXEC);
    struct export all = {.flags = O_CLOEXEC | O_RDWR, .size = len};
    if (block < 0 || ioctl(block, U_DMA_BUF_IOCTL_EXPORT, &all) < 0)
        return perror("u-dma-buf"), 1;

    /* Opening resets the engine, if its node has a reset, and turns its clocks on. */
    int dev_node = open("/dev/contigo/40000000.copy", O_RDWR | O_CLOEXEC);
    struct contigo_info info = {.argsz = sizeof info};
    if (dev_node < 0 || ioctl(dev_node, CONTIGO_GET_INFO, &info) < 0)
        return perror("contigo"), 1;
    volatile uint32_t *registers = mmap(NULL, info.window[0].len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
        dev_node, (off_t)info.window[0].mmap_offset);

    /* Stop it: clear GO, and wait up to 0.1 s. Armed before the engine gets an address. */
    struct contigo_step steps[] = {
        {.kind = CONTIGO_STEP_WRITE, .offset_bytes = CONTROL, .mask = GO},
        {.kind = CONTIGO_STEP_POLL, .offset_bytes = CONTROL, .mask = GO, .timeout_us = 100000},
    };
    struct contigo_stop_sequence stop = {.count = 2, .ptr = (uintptr_t)steps};
    struct contigo_import import = {.fd = all.fd};
    if (registers == MAP_FAILED || ioctl(dev_node, CONTIGO_ARM, &stop) < 0 || ioctl(dev_node, CONTIGO_IMPORT, &import) < 0)
        return perror("import"), 1;
    if (import.segments != 1)
        return fputs("the block is in pieces on the bus\n", stderr), 1;
    close(all.fd); /* the contigo device holds the block from here on */

    unsigned char *bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, block, 0);
    if (bytes == MAP_FAILED)
        return perror("mmap"), 1;
    bytes[0] = 7;
    struct contigo_range range = {.handle = import.handle, .flags = CONTIGO_SYNC_FOR_DEVICE, .len_bytes = len};
    struct contigo_sync sync = {.count = 1, .ptr = (uintptr_t)&range};
    if (ioctl(dev_node, CONTIGO_SYNC, &sync) < 0)
        return perror("sync"), 1;
    registers[SOURCE / 4] = (uint32_t)import.addr;
    registers[LENGTH / 4] = len;
    registers[CONTROL / 4] = GO;
    return 0; /* killed here, the engine is stopped before the block is let go */
}

int main(void)
{
    return run(1 << 20);
}

/* VTA's memory: pieces of one region, of whole pages. The CPU owns each piece, and it is mapped,
 * except for while a run has it. So the pointers that TVM keeps are good between runs.
 *
 * A region's pieces stay carved. A freed one waits for the next VTAMemAlloc that needs as much, or
 * half as much at least. TVM asks for the same sizes again and again. */

#include "internal.h"
#include <inttypes.h>
#include <string.h>

struct block *vta_block_of(const void *bytes, size_t len_bytes)
{
    for (struct block *block = vta.blocks; block < vta.blocks + vta.n_blocks; block++) {
        uintptr_t at = (uintptr_t)bytes - (uintptr_t)block->bytes;
        if (block->live && at < block->len_bytes && len_bytes <= block->len_bytes - at)
            return block;
    }
    return NULL;
}

struct block *vta_block_at(uint64_t addr, uint64_t len_bytes)
{
    for (struct block *block = vta.blocks; block < vta.blocks + vta.n_blocks; block++) {
        uint64_t at = addr - block->addr;
        if (block->live && at < block->len_bytes && len_bytes <= block->len_bytes - at)
            return block;
    }
    return NULL;
}

/* The smallest block that was freed and is not too large. */
static struct block *freed(size_t len_bytes)
{
    struct block *best = NULL;
    for (struct block *block = vta.blocks; block < vta.blocks + vta.n_blocks; block++)
        if (!block->live && !block->given && block->len_bytes >= len_bytes && block->len_bytes / 2 <= len_bytes)
            best = best == NULL || block->len_bytes < best->len_bytes ? block : best;
    return best;
}

static struct block *carved(size_t len_bytes)
{
    struct block block = {.len_bytes = len_bytes};
    void *bytes;
    contigo_status status;
    if (vta.n_blocks == MAX_BLOCKS) {
        vta_refuse("VTAMemAlloc: %d buffers are there already", MAX_BLOCKS);
        return NULL;
    }
    status = contigo_carve(vta.region, len_bytes, VTA_PAGE_BYTES, &block.buf);
    if (status != CONTIGO_OK) {
        vta_refused_by("VTAMemAlloc: contigo_carve", status);
        return NULL;
    }
    status = contigo_buf_map(block.buf, CONTIGO_WRITE, &bytes, NULL);
    if (status == CONTIGO_OK)
        status = contigo_dev_addr_of(vta.region, vta.port, bytes, len_bytes, &block.addr);
    if (status != CONTIGO_OK) {
        /* Its bytes stay carved. */
        vta_refused_by("VTAMemAlloc: the address", status);
        return NULL;
    }
    /* VTA's registers and its instructions have 32 bits for an address, also with USE_VTA64. */
    if (block.addr + len_bytes - 1 > UINT32_MAX) {
        vta_refuse("VTAMemAlloc: 0x%" PRIx64 " has more than the 32 bits of VTA's registers; take memory below 4 GiB", block.addr);
        return NULL;
    }
    block.bytes = bytes;
    vta.blocks[vta.n_blocks] = block;
    return &vta.blocks[vta.n_blocks++];
}

void *VTAMemAlloc(size_t size, int cached)
{
    void *bytes = NULL;
    /* A run maintains what its instructions name, cached or not. */
    (void)cached;
    if (!vta_lock(0))
        return NULL;
    if (size == 0 || size > VTA_MAX_XFER) {
        vta_refuse("VTAMemAlloc: %zu bytes; 1 to %d can be had", size, VTA_MAX_XFER);
    } else if (vta_open()) {
        size_t len_bytes = (size + VTA_PAGE_BYTES - 1) / VTA_PAGE_BYTES * VTA_PAGE_BYTES;
        struct block *block = freed(len_bytes);
        if (block == NULL)
            block = carved(len_bytes);
        if (block != NULL) {
            block->live = true;
            bytes = block->bytes;
        }
    }
    vta_unlock();
    return bytes;
}

void VTAMemFree(void *buf)
{
    if (buf == NULL || !vta_lock(0))
        return;
    struct block *block = vta_block_of(buf, 1);
    if (block == NULL || block->bytes != buf) {
        vta_refuse("VTAMemFree: %p is no buffer of VTAMemAlloc, or was freed before", buf);
        vta_give_up();
    }
    /* A buffer that a device may own is never used again: `given` keeps it from VTAMemAlloc. */
    if (block->given)
        vta_refuse("VTAMemFree: a run that did not end has %p, and keeps it", buf);
    block->live = false;
    vta_unlock();
}

vta_phy_addr_t VTAMemGetPhyAddr(void *buf)
{
    vta_phy_addr_t addr = 0;
    if (!vta_lock(0))
        return 0;
    const struct block *block = vta_block_of(buf, 1);
    if (block == NULL)
        vta_refuse("VTAMemGetPhyAddr: %p is in no buffer of VTAMemAlloc", buf);
    else
        addr = (vta_phy_addr_t)(block->addr + (uint64_t)((unsigned char *)buf - block->bytes));
    vta_unlock();
    return addr;
}

/* The CPU has all of these bytes, or the program ends. The lock is held. */
static void cpu_has(const char *function, const void *bytes, size_t len_bytes)
{
    const struct block *block = vta_block_of(bytes, len_bytes);
    if (block == NULL)
        vta_refuse("%s: %zu bytes at %p are not in one buffer of VTAMemAlloc", function, len_bytes, bytes);
    else if (block->given)
        vta_refuse("%s: a run has the buffer at %p", function, bytes);
    else
        return;
    vta_give_up();
}

void VTAMemCopyFromHost(void *dst, const void *src, size_t size)
{
    if (size == 0)
        return;
    if (!vta_lock(0))
        vta_give_up();
    cpu_has("VTAMemCopyFromHost", dst, size);
    memcpy(dst, src, size);
    vta_unlock();
}

void VTAMemCopyToHost(void *dst, const void *src, size_t size)
{
    if (size == 0)
        return;
    if (!vta_lock(0))
        vta_give_up();
    cpu_has("VTAMemCopyToHost", src, size);
    memcpy(dst, src, size);
    vta_unlock();
}

/* Both only compare: the run cleans, before it starts, the lines that its instructions name, and
 * invalidates them after its end. A call that TVM leaves out does no harm. */
static void compare(const char *function, const void *bytes, vta_phy_addr_t addr, int size)
{
    if (size == 0)
        return;
    if (!vta_lock(0))
        vta_give_up();
    cpu_has(function, bytes, size < 0 ? SIZE_MAX : (size_t)size);
    const struct block *block = vta_block_of(bytes, 1);
    uint64_t expected = block->addr + (uint64_t)((const unsigned char *)bytes - block->bytes);
    if (addr != (vta_phy_addr_t)expected) {
        vta_refuse("%s: %p is at 0x%" PRIx64 ", not at 0x%" PRIx64, function, bytes, expected, (uint64_t)addr);
        vta_give_up();
    }
    vta_unlock();
}

void VTAFlushCache(void *vir_addr, vta_phy_addr_t phy_addr, int size)
{
    compare("VTAFlushCache", vir_addr, phy_addr, size);
}

void VTAInvalidateCache(void *vir_addr, vta_phy_addr_t phy_addr, int size)
{
    compare("VTAInvalidateCache", vir_addr, phy_addr, size);
}

bool vta_close_blocks(void)
{
    for (struct block *block = vta.blocks; block < vta.blocks + vta.n_blocks; block++) {
        contigo_status status = contigo_buf_unmap(block->buf);
        if (status == CONTIGO_OK)
            status = contigo_buf_release(block->buf);
        if (status != CONTIGO_OK)
            return vta_refused_by("contigo_vta_close: contigo_buf_release", status);
    }
    vta.n_blocks = 0;
    return true;
}

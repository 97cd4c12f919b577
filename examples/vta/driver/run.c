/* The device: its registers, and runs. A write that starts it hands over the bytes that its
 * instructions name. The look that sees the end takes them back. Between the two, the CPU has none
 * of these buffers.
 *
 * References: apache/tvm-vta, src/pynq/pynq_driver.cc and src/de10nano/de10nano_driver.cc for the
 * order of the writes; hardware/chisel VCR.scala; UG1399, "S_AXILITE Control Register Map". */

#define _GNU_SOURCE
#include "internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Between two looks. */
enum { STEP_US = 20 };

static contigo_register at(uint32_t offset)
{
    return (contigo_register){.offset_bytes = offset, .access = CONTIGO_READ_WRITE};
}

/* All ones where the library refuses, as a device that is gone answers. */
static uint32_t raw_read(uint32_t offset)
{
    uint32_t value = UINT32_MAX;
    contigo_status status = contigo_registers_read(vta.registers, at(offset), &value);
    if (status != CONTIGO_OK)
        vta_refused_by("contigo_registers_read", status);
    return value;
}

static bool raw_write(uint32_t offset, uint32_t value)
{
    contigo_status status = contigo_registers_write(vta.registers, at(offset), value);
    return status == CONTIGO_OK || vta_refused_by("contigo_registers_write", status);
}

/* The address that a register holds for one of the memories, or the stream; NULL: another one. */
static uint32_t *shadow(uint32_t offset)
{
    switch (offset) {
    case INSN_COUNT:
        return &vta.insn_count;
    case INSN_ADDR:
        return &vta.insn_addr;
    case UOP_ADDR:
        return &vta.bases.of[UOP];
    case INP_ADDR:
        return &vta.bases.of[INP];
    case WGT_ADDR:
        return &vta.bases.of[WGT];
    case ACC_ADDR:
        return &vta.bases.of[ACC];
    case OUT_ADDR:
        return &vta.bases.of[OUT];
    default:
        return NULL;
    }
}

/* The device may start: it gets the bytes that it will touch. */
static bool hand_over(void)
{
    if (vta.runs)
        return vta_refuse("a run is under way, or did not end; nothing more is started");
    if (!vta_mark(vta.insn_addr, vta.insn_count, &vta.bases) || !vta_give())
        return false;
    vta.runs = true;
#ifdef VTA_TARGET_DE10NANO
    vta.fresh = true;
#else
    /* `done` is 1 of the run before until the first instruction of this one. Both bits say that the
     * compute stage has worked since; reading clears them. */
    (void)raw_read(DONE_VALID);
    (void)raw_read(COMPUTE);
    vta.fresh = false;
#endif
    return true;
}

bool vta_write(uint32_t offset, uint32_t value)
{
    uint32_t *address = shadow(offset);
    if (vta.runs && address != NULL)
        return vta_refuse("the register at 0x%" PRIx32 " cannot change during a run", offset);
    if (offset == CONTROL && (value & START) != 0 && !hand_over())
        return false;
    if (address != NULL) {
        *address = value;
        vta.bases.of[ACC_8BIT] = vta.bases.of[ACC];
    }
    return raw_write(offset, value);
}

/* Has the run ended? */
static bool ended(void)
{
#ifdef VTA_TARGET_DE10NANO
    uint32_t control = raw_read(CONTROL);
    return control != UINT32_MAX && (control & FINISHED) != 0;
#else
    if (!vta.fresh) {
        uint32_t control = raw_read(COMPUTE);
        vta.fresh = control != UINT32_MAX && ((control & AP_DONE) != 0 || (raw_read(DONE_VALID) & 1) != 0);
    }
    return vta.fresh && raw_read(DONE) == 1;
#endif
}

uint32_t vta_read(uint32_t offset)
{
    if (!vta.runs || offset != TELLS)
        return raw_read(offset);
    /* Its memory comes back before anybody hears of the end. */
    if (!ended() || !vta_take_back())
        return NOT_YET;
    vta.runs = false;
    vta.stats.runs++;
    return FINISHED;
}

/* The writes that start a run. */
static bool start(uint32_t insn_addr, uint32_t insn_count)
{
    static const uint32_t BASES[] = {UOP_ADDR, INP_ADDR, WGT_ADDR, ACC_ADDR, OUT_ADDR};
    bool done = vta_write(INSN_COUNT, insn_count) && vta_write(INSN_ADDR, insn_addr);
    for (size_t index = 0; done && index < sizeof BASES / sizeof *BASES; index++)
        done = vta_write(BASES[index], 0);
    done = done && vta_write(CONTROL, START);
#ifndef VTA_TARGET_DE10NANO
    /* They wait for instructions, and run again and again. */
    done = done && vta_write(LOADER, START | AUTO_RESTART) && vta_write(COMPUTE, START | AUTO_RESTART) &&
           vta_write(STORER, START | AUTO_RESTART);
#endif
    return done;
}

/* The run took too long. A device that was reset touches nothing; another one keeps its memory. */
static void stop(uint32_t waited_us)
{
    contigo_status status = contigo_device_reset(vta.device);
    if (status == CONTIGO_OK && vta_take_back()) {
        vta.runs = false;
        memset(&vta.bases, 0, sizeof vta.bases);
        vta_refuse("a run of %" PRIu32 " instructions did not end in %" PRIu32 " us; the device was reset", vta.insn_count, waited_us);
    } else {
        vta_refuse("a run of %" PRIu32 " instructions did not end in %" PRIu32 " us, and nothing resets the device: it keeps its buffers",
                   vta.insn_count, waited_us);
    }
}

int VTADeviceRun(VTADeviceHandle device, vta_phy_addr_t insn_phy_addr, uint32_t insn_count, uint32_t wait_cycles)
{
    bool done = false;
    if (!vta_lock(0))
        return 1;
    if (device != &vta || !vta.open) {
        vta_refuse("VTADeviceRun: %p is no handle of VTADeviceAlloc", device);
#ifdef USE_VTA64
    } else if (insn_phy_addr > UINT32_MAX) {
        vta_refuse("VTADeviceRun: 0x%" PRIx64 " has more than 32 bits", insn_phy_addr);
#endif
    } else if (start((uint32_t)insn_phy_addr, insn_count)) {
        /* A turn of the loop that this number came from took a microsecond at least. */
        uint32_t limit_us = wait_cycles < vta_options.timeout_us ? wait_cycles : vta_options.timeout_us;
        uint64_t begin_us = vta_now_us();
        do {
            (void)vta_read(TELLS);
            done = !vta.runs;
        } while (!done && vta_now_us() - begin_us < limit_us && contigo_registers_wait(vta.registers, STEP_US) == CONTIGO_OK);
        if (!done)
            stop(limit_us);
    }
    vta.stats.failed += !done;
    vta_unlock();
    return done ? 0 : 1;
}

VTADeviceHandle VTADeviceAlloc(void)
{
    if (!vta_lock(0))
        return NULL;
    bool open = vta_open();
    vta_unlock();
    return open ? &vta : NULL;
}

void VTADeviceFree(VTADeviceHandle handle)
{
    /* Memory and registers stay: TVM frees its buffers after this. */
    (void)handle;
}

/* Handles of VTAMapRegister: the window's words. No pointer leads to a register. */
static char window[WINDOW_BYTES];

void *VTAMapRegister(uint32_t addr)
{
    uint32_t offset = addr - VTA_FETCH_ADDR;
    char *handle = NULL;
    if (!vta_lock(0))
        return NULL;
    if (offset >= WINDOW_BYTES)
        vta_refuse("VTAMapRegister: 0x%" PRIx32 " is not in the %d bytes from 0x%x on", addr, WINDOW_BYTES, (unsigned)VTA_FETCH_ADDR);
    else if (vta_open())
        handle = window + offset;
    vta_unlock();
    return handle;
}

void VTAUnmapRegister(void *vta_handle)
{
    (void)vta_handle;
}

/* The register; false: it is none. */
static bool offset_of(const void *base, uint32_t offset, uint32_t *found)
{
    uintptr_t at_base = (uintptr_t)base - (uintptr_t)window;
    if (at_base >= WINDOW_BYTES || offset >= WINDOW_BYTES - at_base || (offset & 3) != 0)
        return vta_refuse("a register at 0x%" PRIx32 " from %p is not in the device's window", offset, base);
    *found = (uint32_t)at_base + offset;
    return true;
}

void VTAWriteMappedReg(void *base_addr, uint32_t offset, uint32_t val)
{
    uint32_t found = 0;
    if (!vta_lock(0) || !offset_of(base_addr, offset, &found) || !vta_write(found, val))
        vta_give_up();
    vta_unlock();
}

uint32_t VTAReadMappedReg(void *base_addr, uint32_t offset)
{
    uint32_t found = 0, value = UINT32_MAX;
    if (!vta_lock(0))
        return value;
    if (offset_of(base_addr, offset, &found))
        value = vta_read(found);
    vta_unlock();
    return value;
}

/* One attribute of the kernel's FPGA manager. */
static bool attribute(const char *folder, const char *name, const char *text)
{
    char path[512];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "w") : NULL;
    if (file == NULL)
        return false;
    bool written = fputs(text, file) >= 0;
    return fclose(file) == 0 && written;
}

void VTAProgram(const char *bitstream)
{
    const char *folder = getenv("CONTIGO_VTA_FPGA_MANAGER"), *slash = strrchr(bitstream, '/');
    const char *name = slash != NULL ? slash + 1 : bitstream;
    if (!vta_lock(0))
        vta_give_up();
    if (folder == NULL)
        folder = "/sys/class/fpga_manager/fpga0";
    if (vta.open)
        vta_refuse("VTAProgram: the device is open, and memory may be with it; load the bitstream first");
    else if (!attribute(folder, "flags", "0") || !attribute(folder, "firmware", name))
        vta_refuse("VTAProgram: %s/firmware does not take %s; put it under /lib/firmware, or load it with the board's own tool", folder, name);
    else {
        vta_unlock();
        return;
    }
    vta_give_up();
}

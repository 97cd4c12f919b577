/* A driver in a shared library, for programs in C and Python. It is linked with nothing:
 *
 *     cc -shared -fPIC -o libcopier.so copier.c
 *
 * The core copies: it has two addresses, a length, and HLS's control register. loaded.c uses it. */

#include <contigo.h>
#include <stdlib.h>

/* The register map, by the core's manual (UG1399, "S_AXILITE Control Register Map"). */
enum { CTRL = 0x00, FROM = 0x18, TO = 0x24, LENGTH = 0x30, WINDOW = 0x34 };
enum { START = 1 << 0, DONE = 1 << 1, IDLE = 1 << 2, CONTINUE = 1 << 4 };

typedef struct {
    const contigo_driver_device *device;
    int is_busy;
    uint64_t stop_us; /* a setting */
} copier;

static void write64(const contigo_driver_device *device, size_t offset, uint64_t value)
{
    device->write32(device, offset, (uint32_t)value);
    device->write32(device, offset + 4, (uint32_t)(value >> 32));
}

/* Waits until one of `bits` is set in CTRL, which clears DONE when it is read. A device that is
 * gone answers ones. */
static contigo_status wait_for(const contigo_driver_device *device, uint32_t bits, uint64_t timeout_us, uint32_t *seen)
{
    uint64_t end = device->now_us(device) + timeout_us;
    for (;;) {
        uint64_t now = device->now_us(device);
        uint32_t ctrl = device->read32(device, CTRL);
        *seen = ctrl == UINT32_MAX ? 0 : ctrl & bits;
        if (*seen != 0 || now >= end)
            return 0;
        contigo_status status = device->wait(device, (uint32_t)(end - now));
        if (status != 0)
            return status;
    }
}

static contigo_status copier_check(void *context, const contigo_dev_slice *operands, size_t n, const uint32_t *args, size_t args_words)
{
    copier *core = context;
    (void)n, (void)args, (void)args_words;
    if (operands[1].len_bytes >= operands[0].len_bytes)
        return 0;
    core->device->say(core->device, "operand 1 is shorter than operand 0");
    return 1;
}

static contigo_status copier_submit(void *context, uint32_t slot, const contigo_dev_slice *operands, size_t n, const uint32_t *args,
                                    size_t args_words)
{
    copier *core = context;
    (void)slot, (void)n, (void)args, (void)args_words;
    write64(core->device, FROM, operands[0].addr);
    write64(core->device, TO, operands[1].addr);
    core->device->write32(core->device, LENGTH, (uint32_t)operands[0].len_bytes);
    core->device->write32(core->device, CTRL, START);
    core->is_busy = 1;
    return 0;
}

static contigo_status copier_poll(void *context, uint32_t timeout_us, contigo_completion *done, uint32_t *ended)
{
    copier *core = context;
    uint32_t seen = 0;
    if (!core->is_busy)
        return 0;
    contigo_status status = wait_for(core->device, DONE, timeout_us, &seen);
    if (status == 0 && seen != 0) {
        *ended = 1;
        done->slot = 0; /* and the core tells nothing more */
        core->is_busy = 0;
        core->device->write32(core->device, CTRL, CONTINUE);
        core->device->read32(core->device, CTRL); /* DONE of this job is gone */
    }
    return status;
}

static contigo_status copier_stop(void *context)
{
    copier *core = context;
    uint32_t seen = 0;
    /* This core cannot be aborted: no restart, and wait for its end. */
    core->device->write32(core->device, CTRL, 0);
    contigo_status status = wait_for(core->device, IDLE, core->stop_us, &seen);
    if (status != 0 || seen == 0)
        return status != 0 ? status : 1;
    if (core->is_busy) {
        core->device->write32(core->device, CTRL, CONTINUE);
        core->device->read32(core->device, CTRL);
    }
    core->is_busy = 0;
    return 0;
}

static contigo_status copier_open(const contigo_driver_device *device, contigo_driver_ops *ops, void **context)
{
    static const contigo_operand_spec operands[2] = {{.use = CONTIGO_READS, .max_bytes = UINT32_MAX}, {.use = CONTIGO_WRITES}};
    uint64_t stop_us;
    contigo_status status = device->setting(device, "stop_us", 1, 1000000, 1000, &stop_us);
    if (status != 0)
        return status;
    if (device->len_bytes < WINDOW)
        return 1;
    copier *core = malloc(sizeof *core);
    if (core == NULL)
        return 2;
    *core = (copier){.device = device, .stop_us = stop_us};
    *context = core;
    *ops = (contigo_driver_ops){.struct_size = sizeof *ops, .n_operands = 2, .operands = operands, .check = copier_check,
                                .submit = copier_submit, .poll = copier_poll, .stop = copier_stop};
    return 0;
}

const contigo_driver_library contigo_driver = {
    .struct_size = sizeof(contigo_driver_library),
    .name = "copier",
    .help = "a kernel that copies operand 0 to operand 1",
    .settings = "stop_us",
    .open = copier_open,
    .close = free,
};

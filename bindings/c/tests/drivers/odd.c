/* A driver of four functions that do nothing, and what is wrong with it by -D. */
#include <contigo.h>
#include <stdlib.h>

#ifndef NAME
#define NAME "odd"
#endif
#ifndef OPEN
#define OPEN open
#endif
#ifndef OPERANDS
#define OPERANDS 1
#endif
#ifndef RESERVED
#define RESERVED 0
#endif
#ifndef SIZE
#define SIZE sizeof(contigo_driver_library)
#endif

/* The context: is there a job, and the answer of `stop`. */
static contigo_status submit(void *c, uint32_t slot, const contigo_dev_slice *operands, size_t n,
                             const uint32_t *args, size_t words)
{
    (void)slot, (void)operands, (void)n, (void)args, (void)words;
    ((int *)c)[0] = 1;
    return 0;
}

static contigo_status poll(void *c, uint32_t timeout_us, contigo_completion *done, uint32_t *ended)
{
#ifdef NEWER
    for (size_t at = sizeof *done; at < 256; at++)
        ((unsigned char *)done)[at] = 0xFF;
#endif
    (void)timeout_us;
    done->status = 42;
    *ended = (uint32_t)((int *)c)[0];
    ((int *)c)[0] = 0;
    return 0;
}

static contigo_status stop(void *c)
{
    return ((int *)c)[1];
}

static contigo_status open(const contigo_driver_device *d, contigo_driver_ops *ops, void **context)
{
    static contigo_operand_spec spec = {.use = CONTIGO_READS};
    uint64_t at, stuck;
    contigo_status status;

    if ((status = d->setting(d, "at", 0, UINT32_MAX, 0, &at)) != 0 ||
        (status = d->setting(d, "stuck", 0, 1, 0, &stuck)) != 0)
        return status;
    if (d->struct_size < sizeof *d || d->read32(d, d->len_bytes) != UINT32_MAX ||
        d->port_addr_bits == 0)
        return 3;
    if (d->memory_bytes != 0) {
        uint32_t words[2] = {0x12345678, 9}, back[2] = {0, 0};
        if (d->memory_write(d, 0, NULL, 0) != 0 || d->memory_write(d, 0, NULL, 1) == 0 ||
            d->memory_write(d, 0, words, (size_t)-1) == 0)
            return 7;
        if (d->memory_stride_bytes < 32 || (status = d->memory_write(d, at, words, 2)) != 0)
            return status != 0 ? status : 4;
        if ((status = d->memory_read(d, at, back, 2)) != 0 || back[0] != words[0] || back[1] != 9)
            return status != 0 ? status : 5;
    }
#ifdef TABLE
    /* One table for all of its engines, written slowly. */
    spec.max_bytes = (size_t)at;
    for (int times = 0; times < 1000; times++)
        (void)d->read32(d, 0x10);
#else
    if ((status = d->setting(d, "unlisted", 0, 1, 0, &at)) == 0)
        return 6;
#endif
    *ops = (contigo_driver_ops){.struct_size = sizeof *ops, .n_operands = OPERANDS,
                                .operands = &spec, .submit = submit, .poll = poll, .stop = stop};
    *context = calloc(2, sizeof(int));
    ((int *)*context)[1] = (int)stuck;
    return 0;
}

const contigo_driver_library contigo_driver = {
    .struct_size = SIZE, .name = NAME, .help = "does nothing", .settings = "at, stuck",
    .memory_bytes = 4096, .reserved = RESERVED, .open = OPEN, .close = free};

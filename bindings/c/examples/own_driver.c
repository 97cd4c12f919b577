/* A driver for a core of one's own, in C: four functions and a table. The library handles
 * ownership, caches, reach, time limits and recovery, as it does for its built-in drivers.
 *
 * The core copies: it has two addresses, a length, and HLS's control register. Here it belongs to
 * the simulated board. */

#include "check.h"
#include <contigo.h>
#include <stdio.h>
#include <string.h>

enum { PACKET = 256, PACKETS = 1000, SLOTS = 4, TIMEOUT_US = 10 * 1000 };

/* The register map, by the core's manual (UG1399, "S_AXILITE Control Register Map"). */
static const contigo_register CTRL = {0x00, CONTIGO_READ_CLEARS}, FROM = {0x18, 0}, FROM_HIGH = {0x1C, 0}, TO = {0x24, 0},
                              TO_HIGH = {0x28, 0}, LENGTH = {0x30, 0};
enum { START = 1 << 0, DONE = 1 << 1, IDLE = 1 << 2, CONTINUE = 1 << 4 };

typedef struct {
    contigo_registers registers;
    contigo_engine engine; /* to show that it is refused */
    int is_busy;
    unsigned refused;
} copier;

static contigo_status copier_check(void *context, const contigo_dev_slice *operands, size_t n, const uint32_t *args, size_t args_words)
{
    (void)context, (void)n, (void)args, (void)args_words;
    return operands[1].len_bytes < operands[0].len_bytes ? 1 : CONTIGO_OK;
}

static contigo_status copier_submit(void *context, uint32_t slot, const contigo_dev_slice *operands, size_t n, const uint32_t *args,
                                    size_t args_words)
{
    copier *core = context;
    const struct {
        contigo_register reg;
        uint32_t value;
    } writes[] = {
        {FROM, (uint32_t)operands[0].addr},         {FROM_HIGH, (uint32_t)(operands[0].addr >> 32)},
        {TO, (uint32_t)operands[1].addr},           {TO_HIGH, (uint32_t)(operands[1].addr >> 32)},
        {LENGTH, (uint32_t)operands[0].len_bytes},  {CTRL, START},
    };
    (void)slot, (void)n, (void)args, (void)args_words;
    for (size_t at = 0; at < sizeof writes / sizeof writes[0]; at++) {
        contigo_status status = contigo_registers_write(core->registers, writes[at].reg, writes[at].value);
        if (status != CONTIGO_OK)
            return status;
    }
    core->is_busy = 1;
    /* A function cannot re-enter its engine. */
    core->refused += contigo_queue_stop(core->engine) == CONTIGO_E_IN_CALL;
    return CONTIGO_OK;
}

/* Takes a job's end. The next look may still show that end, so it is done here. */
static contigo_status go_on(const copier *core)
{
    uint32_t before;
    contigo_status status = contigo_registers_write(core->registers, CTRL, CONTINUE);
    return status == CONTIGO_OK ? contigo_registers_read(core->registers, CTRL, &before) : status;
}

static contigo_status copier_poll(void *context, uint32_t timeout_us, contigo_completion *done, uint32_t *ended)
{
    copier *core = context;
    (void)done; /* slot 0, and it tells nothing more */
    if (!core->is_busy)
        return CONTIGO_OK;
    contigo_status status = contigo_registers_wait_until(core->registers, CTRL, DONE, DONE, timeout_us, NULL);
    if (status == CONTIGO_E_TIMEOUT)
        return CONTIGO_OK; /* nothing came, and nothing is wrong */
    if (status == CONTIGO_OK) {
        *ended = 1;
        core->is_busy = 0;
        status = go_on(core);
    }
    return status;
}

static contigo_status copier_stop(void *context)
{
    copier *core = context;
    /* This core cannot be aborted: wait for its end. */
    contigo_status status = contigo_registers_wait_until(core->registers, CTRL, IDLE, IDLE, 1000, NULL);
    if (status == CONTIGO_OK && core->is_busy)
        status = go_on(core);
    core->is_busy = status == CONTIGO_OK ? 0 : core->is_busy;
    return status;
}

int main(void)
{
    static const contigo_operand_spec operand_specs[2] = {{.use = CONTIGO_READS}, {.use = CONTIGO_WRITES}};
    const contigo_driver_ops ops = {.struct_size = sizeof ops, .name = "copier", .n_operands = 2, .operands = operand_specs,
                                    .check = copier_check, .submit = copier_submit, .poll = copier_poll, .stop = copier_stop};
    contigo_device device = 0;
    contigo_port port = 0;
    contigo_region region = 0;
    contigo_pool pool = 0;
    copier core = {0};
    unsigned wrong = 0;

    CHECK(contigo_device_open("sim:ap_ctrl", &device));
    CHECK(contigo_device_port(device, 0, &port));
    CHECK(contigo_device_memory(device, "sim", 64 * 1024, &region));
    CHECK(contigo_pool_open(region, PACKET, SLOTS, 0, &pool));
    CHECK(contigo_device_attach(device, port, 0, 1, &core.registers));
    CHECK(contigo_engine_open_driver(&ops, &core, port, &core.engine));

    for (unsigned packet = 0; packet < PACKETS; packet++) {
        contigo_operand operands[2] = {{.len_bytes = PACKET}, {.len_bytes = PACKET}};
        contigo_job job = 0;
        void *bytes;
        CHECK(contigo_pool_take(pool, &operands[0].buf));
        CHECK(contigo_pool_take(pool, &operands[1].buf));
        CHECK(contigo_buf_map(operands[0].buf, CONTIGO_WRITE, &bytes, NULL));
        memset(bytes, (int)(packet % 251), PACKET);
        CHECK(contigo_buf_unmap(operands[0].buf));
        CHECK(contigo_job_start(core.engine, operands, 2, NULL, 0, 0, &job));
        CHECK(contigo_job_wait(job, TIMEOUT_US, NULL));
        CHECK(contigo_buf_map(operands[1].buf, CONTIGO_READ, &bytes, NULL));
        for (int at = 0; at < PACKET; at++)
            wrong += ((const unsigned char *)bytes)[at] != packet % 251;
        CHECK(contigo_buf_unmap(operands[1].buf));
        CHECK(contigo_buf_release(operands[0].buf));
        CHECK(contigo_buf_release(operands[1].buf));
    }
    printf("%d packets, %u wrong bytes, %u calls of its own engine refused\n", PACKETS, wrong, core.refused);

    CHECK(contigo_engine_close(core.engine));
    CHECK(contigo_registers_close(core.registers));
    CHECK(contigo_pool_close(pool));
    CHECK(contigo_region_close(region));
    CHECK(contigo_port_close(port));
    CHECK(contigo_device_close(device));
    return wrong == 0 && core.refused == PACKETS ? EXIT_SUCCESS : EXIT_FAILURE;
}

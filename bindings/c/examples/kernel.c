/* A kernel that Vitis HLS made, by its map: open, set its scalars by their names, run, compare,
 * close.
 *
 *     cc -std=c11 kernel.c $(pkg-config --cflags --libs contigo) -o kernel && ./kernel
 *
 * On a board three lines differ: the region's name, the device's name ("contigo:copy@40000000"),
 * and its port. The map is the tool's file: x<name>_hw.h, the .hwh of the design, or JSON as here. */

#include "check.h"
#include <contigo.h>
#include <inttypes.h>
#include <stdio.h>

enum { BYTES = 1000, SLOT = 4096, JOBS = 8, TIMEOUT_US = 20 * 1000 };

/* int copy(const char *from, char *to, unsigned n), which returns n: the kernel of the simulated
 * board. */
static const char MAP[] = "{\"name\": \"copy\", \"protocol\": \"ap_ctrl_chain\", \"interrupt\": true,"
                          " \"pointers\": [{\"name\": \"from\", \"offset\": \"0x18\", \"direction\": \"in\", \"bytes\": \"n\"},"
                          "                {\"name\": \"to\", \"offset\": \"0x24\", \"direction\": \"out\", \"bytes\": \"n\"}],"
                          " \"scalars\": [{\"name\": \"n\", \"offset\": \"0x30\"}],"
                          " \"results\": [{\"name\": \"ap_return\", \"offset\": \"0x10\"}]}";

int main(void)
{
    contigo_device device = 0;
    contigo_region region = 0;
    contigo_pool pool = 0;
    contigo_engine engine = 0;
    contigo_kernel kernel = 0;
    contigo_operand operands[2] = {{0}, {0}};
    uint32_t from, to, args[1];
    int wrong = 0;

    CHECK(contigo_device_open("sim:ap_ctrl", &device));
    CHECK(contigo_device_memory(device, "sim", 64 * 1024, &region));
    CHECK(contigo_pool_open(region, SLOT, 2 * JOBS, 256, &pool));
    contigo_engine_options options = {.struct_size = sizeof options, .driver = "ap_ctrl", .device = device,
                                      .map = (const uint8_t *)MAP, .map_bytes = sizeof MAP - 1};
    CHECK(contigo_engine_open(&options, &engine));

    /* The map says which operand or which argument word a name is. */
    CHECK(contigo_kernel_open((const uint8_t *)MAP, sizeof MAP - 1, &kernel));
    CHECK(contigo_kernel_operand(kernel, "from", &from));
    CHECK(contigo_kernel_operand(kernel, "to", &to));
    CHECK(contigo_kernel_set(kernel, "n", BYTES, args, 1));

    /* One after the other, and as many at once as the kernel takes. */
    contigo_engine_info info = {.struct_size = sizeof info};
    CHECK(contigo_engine_get_info(engine, &info));
    unsigned started = 0, ended = 0;
    contigo_operand taken[JOBS][2];
    contigo_job jobs[JOBS];
    while (ended < JOBS) {
        contigo_job job = 0;
        contigo_completion said = {.struct_size = sizeof said};
        while (started < JOBS && started - ended < info.depth) {
            for (int at = 0; at < 2; at++) {
                CHECK(contigo_pool_take(pool, &operands[at].buf));
                operands[at].len_bytes = BYTES;
            }
            unsigned char *bytes = map(operands[from].buf, CONTIGO_WRITE);
            for (int at = 0; at < BYTES; at++)
                bytes[at] = (unsigned char)(started + at);
            CHECK(contigo_buf_unmap(operands[from].buf));
            /* This call does the cache maintenance that these bytes need on this port, and no
             * other. */
            CHECK(contigo_job_start(engine, operands, 2, args, 1, 0, &jobs[started]));
            taken[started][0] = operands[0];
            taken[started][1] = operands[1];
            started++;
        }
        CHECK(contigo_queue_next(engine, TIMEOUT_US, &job, &said));
        wrong += job != jobs[ended] || said.words[0] != BYTES;
        const unsigned char *bytes = map(taken[ended][to].buf, CONTIGO_READ);
        for (int at = 0; at < BYTES; at++)
            wrong += bytes[at] != (unsigned char)(ended + at);
        CHECK(contigo_buf_unmap(taken[ended][to].buf));
        for (int at = 0; at < 2; at++)
            CHECK(contigo_buf_release(taken[ended][at].buf));
        ended++;
    }
    printf("%u jobs of %d bytes, %" PRIu32 " at once, %d wrong\n", ended, BYTES, info.depth, wrong);

    contigo_region_info counts = {.struct_size = sizeof counts};
    CHECK(contigo_region_get_info(region, &counts));
    printf("bytes copied: %" PRIu64 "\n", counts.bytes_copied);

    CHECK(contigo_kernel_close(kernel));
    CHECK(contigo_engine_close(engine));
    CHECK(contigo_pool_close(pool));
    CHECK(contigo_region_close(region));
    CHECK(contigo_device_close(device));
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* A driver of one's own in a file (copier.c), which is named where a built-in one's name would be:
 *
 *     ./loaded ./libcopier.so */

#include "check.h"
#include <contigo.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 4096, JOBS = 1000, TIMEOUT_US = 10 * 1000 };

int main(int argc, char **argv)
{
    contigo_device device = 0;
    contigo_region region = 0;
    contigo_engine engine = 0;
    contigo_operand operands[2] = {{.len_bytes = BYTES}, {.len_bytes = BYTES}};
    unsigned wrong = 0;

    CHECK(contigo_device_open("sim:ap_ctrl", &device));
    CHECK(contigo_device_memory(device, "sim", 64 * 1024, &region));
    CHECK(contigo_carve(region, BYTES, 64, &operands[0].buf));
    CHECK(contigo_carve(region, BYTES, 64, &operands[1].buf));
    const contigo_engine_options options = {
        .struct_size = sizeof options,
        .driver = argc > 1 ? argv[1] : "./libcopier.so",
        .device = device,
        .settings = "stop_us=2000",
    };
    CHECK(contigo_engine_open(&options, &engine));

    for (unsigned job = 0; job < JOBS; job++) {
        contigo_job started = 0;
        void *bytes;
        CHECK(contigo_buf_map(operands[0].buf, CONTIGO_WRITE, &bytes, NULL));
        memset(bytes, (int)(job % 251), BYTES);
        CHECK(contigo_buf_unmap(operands[0].buf));
        CHECK(contigo_job_start(engine, operands, 2, NULL, 0, 0, &started));
        CHECK(contigo_job_wait(started, TIMEOUT_US, NULL));
        CHECK(contigo_buf_map(operands[1].buf, CONTIGO_READ, &bytes, NULL));
        for (int at = 0; at < BYTES; at++)
            wrong += ((const unsigned char *)bytes)[at] != job % 251;
        CHECK(contigo_buf_unmap(operands[1].buf));
    }
    printf("%d jobs, %u wrong bytes\n", JOBS, wrong);

    CHECK(contigo_engine_close(engine));
    CHECK(contigo_buf_release(operands[0].buf));
    CHECK(contigo_buf_release(operands[1].buf));
    CHECK(contigo_region_close(region));
    CHECK(contigo_device_close(device));
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

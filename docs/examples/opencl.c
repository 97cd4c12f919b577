/* docs/gpus.md: a kernel of OpenCL on memory that the CPU sees too.
 *
 *     cc -std=c11 opencl.c $(pkg-config --cflags --libs contigo) -o opencl && ./opencl
 *
 * Without a driver of OpenCL it reports that, and ends well. */

#include <contigo.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char SOURCE[] =
    "kernel void scale(global const float *from, global float *to, uint count, float by) {"
    "    uint i = get_global_id(0);"
    "    if (i < count) to[i] = from[i] * by;"
    "}";

enum { COUNT = 1000, BYTES = COUNT * sizeof(float), TIMEOUT_US = 10 * 1000 * 1000 };

static void say(FILE *to, const char *what, contigo_status status)
{
    char text[1024];
    contigo_last_error(text, sizeof text);
    fprintf(to, "%s: %s: %s\n", what, contigo_status_name(status), text);
}

/* Ends the program where a call was refused. */
static void check(contigo_status status)
{
    if (status != CONTIGO_OK) {
        say(stderr, "opencl", status);
        exit(EXIT_FAILURE);
    }
}

static float *map(contigo_buf buf, uint32_t access)
{
    void *bytes = NULL;
    check(contigo_buf_map(buf, access, &bytes, NULL));
    return bytes;
}

int main(void)
{
    contigo_port port = 0;
    contigo_region region = 0;
    contigo_module module = 0;
    contigo_engine engine = 0;
    contigo_buf from = 0, to = 0;
    contigo_job job = 0;
    const float by = 0.5f;
    uint32_t by_word;
    memcpy(&by_word, &by, sizeof by_word);

    contigo_status status = contigo_port_find("opencl", &port);     /* or opencl:1, the second GPU */
    if (status == CONTIGO_E_NO_LIBRARY || status == CONTIGO_E_NOT_FOUND) {
        say(stdout, "no GPU here", status);
        return EXIT_SUCCESS;
    }
    check(status);

    check(contigo_region_open("opencl", 1 << 20, &region));
    check(contigo_module_load(port, (const uint8_t *)SOURCE, sizeof SOURCE - 1, &module));
    const contigo_parameter parameters[] = {{.operand = {.use = CONTIGO_READS}},
        {.operand = {.use = CONTIGO_WRITES}}, {.words = 1}, {.words = 1}};
    check(contigo_engine_open_kernel(module, "scale", parameters, 4, &engine));
    check(contigo_carve(region, BYTES, 0, &from));
    check(contigo_carve(region, BYTES, 0, &to));

    float *numbers = map(from, CONTIGO_WRITE);                      /* the CPU has the buffer */
    for (int at = 0; at < COUNT; at++)
        numbers[at] = (float)at;
    check(contigo_buf_unmap(from));

    /* The launch is seven words: grid x, y, z, block x, y, z, and 0. Then the kernel's own. */
    const uint32_t words[] = {4, 1, 1, 256, 1, 1, 0, COUNT, by_word};
    const contigo_operand operands[] = {{.buf = from, .len_bytes = BYTES}, {.buf = to, .len_bytes = BYTES}};
    check(contigo_job_start(engine, operands, 2, words, 9, 0, &job));  /* the GPU has them */
    check(contigo_job_wait(job, TIMEOUT_US, NULL));                 /* and the CPU again */

    const float last = map(to, CONTIGO_READ)[COUNT - 1];
    check(contigo_buf_unmap(to));
    contigo_region_info counts = {.struct_size = sizeof counts};
    check(contigo_region_get_info(region, &counts));
    printf("%.1f, bytes copied: %" PRIu64 "\n", last, counts.bytes_copied);

    check(contigo_buf_release(from));
    check(contigo_buf_release(to));
    check(contigo_engine_close(engine));
    check(contigo_module_close(module));
    check(contigo_region_close(region));
    check(contigo_port_close(port));
    return last == 499.5f && counts.bytes_copied == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* README: a kernel of Vitis HLS in ten lines, on a simulated board.
 * Each call answers a contigo_status, which a program looks at. */

#include <contigo.h>
#include <stdio.h>
#include <string.h>

static const char MAP[] = "{\"name\": \"copy\", \"protocol\": \"ap_ctrl_chain\", \"interrupt\": true,"
                          " \"results\": [{\"name\": \"ap_return\", \"offset\": \"0x10\"}],"
                          " \"pointers\": [{\"name\": \"from\", \"offset\": \"0x18\", \"direction\": \"in\", \"bytes\": \"n\"},"
                          "                {\"name\": \"to\", \"offset\": \"0x24\", \"direction\": \"out\", \"bytes\": \"n\"}],"
                          " \"scalars\": [{\"name\": \"n\", \"offset\": \"0x30\"}]}";

int main(void)
{
    contigo_device device = 0;
    contigo_region region = 0;
    contigo_pool pool = 0;
    contigo_engine engine = 0;
    contigo_job job = 0;
    contigo_operand from = {.len_bytes = 1000}, to = {.len_bytes = 1000};
    unsigned char input[1000];
    void *bytes = NULL;
    memset(input, 7, sizeof input);

    contigo_device_open("sim:ap_ctrl", &device);                    /* "contigo:copy@40000000" */
    contigo_device_memory(device, "sim", 1 << 16, &region);         /* "contigo" */
    contigo_pool_open(region, 4096, 8, 256, &pool);
    contigo_engine_options options = {.struct_size = sizeof options, .driver = "ap_ctrl",
        .device = device, .map = (const uint8_t *)MAP, .map_bytes = sizeof MAP - 1};
    contigo_engine_open(&options, &engine);
    contigo_pool_take(pool, &from.buf), contigo_pool_take(pool, &to.buf);
    contigo_buf_write(from.buf, input, 1000);
    contigo_job_start(engine, (contigo_operand[]){from, to}, 2, (uint32_t[]){1000}, 1, 0, &job);
    contigo_job_wait(job, 20 * 1000, NULL);                         /* microseconds */
    contigo_buf_map(to.buf, CONTIGO_READ, &bytes, NULL);            /* the result */

    int wrong = bytes == NULL || memcmp(bytes, input, sizeof input) != 0;
    printf("first: %s\n", wrong ? "wrong bytes" : "1000 bytes are right");
    return wrong;
}

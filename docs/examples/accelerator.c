/* docs/my-accelerator.md, on a simulated board.
 * Each call answers a contigo_status, which a program looks at. */

#include <contigo.h>
#include <stdio.h>
#include <string.h>

static const char MAP[] = "{\"name\": \"copy\", \"protocol\": \"ap_ctrl_chain\", \"interrupt\": true,"
                          " \"results\": [{\"name\": \"ap_return\", \"offset\": \"0x10\"}],"
                          " \"pointers\": [{\"name\": \"from\", \"offset\": \"0x18\", \"direction\": \"in\", \"bytes\": \"n\"},"
                          "                {\"name\": \"to\", \"offset\": \"0x24\", \"direction\": \"out\", \"bytes\": \"n\"}],"
                          " \"scalars\": [{\"name\": \"n\", \"offset\": \"0x30\"}]}";
static const unsigned char input[1000] = {7, 7, 7};

static int kernel(void)
{
    contigo_device device = 0;
    contigo_region region = 0;
    contigo_pool pool = 0;
    contigo_engine copy = 0;
    contigo_job job = 0;
    contigo_operand a = {.len_bytes = 1000}, b = {.len_bytes = 1000};
    contigo_completion done = {.struct_size = sizeof done};
    void *bytes = NULL;

    contigo_device_open("sim:ap_ctrl", &device);
    contigo_device_memory(device, "sim", 1 << 16, &region);
    contigo_pool_open(region, 4096, 8, 256, &pool);
    contigo_engine_options options = {.struct_size = sizeof options, .driver = "ap_ctrl", .device = device,
        .map = (const uint8_t *)MAP, .map_bytes = sizeof MAP - 1};  /* on a board: xcopy_hw.h, from Vitis */
    contigo_engine_open(&options, &copy);
    contigo_pool_take(pool, &a.buf), contigo_pool_take(pool, &b.buf);
    contigo_buf_write(a.buf, input, 1000);
    contigo_job_start(copy, (contigo_operand[]){a, b}, 2, (uint32_t[]){1000}, 1, 0, &job);
    contigo_job_wait(job, 20 * 1000, &done);                        /* microseconds */
    contigo_buf_map(b.buf, CONTIGO_READ, &bytes, NULL);             /* done.words[0]: what it returned */
    return bytes == NULL || memcmp(bytes, input, 1000) != 0 || done.words[0] != 1000;
}

static int stream(void)
{
    contigo_device dma = 0;
    contigo_region memory = 0;
    contigo_pool pool = 0;
    contigo_engine stream = 0;
    contigo_job job = 0;
    contigo_operand packet = {.len_bytes = 1000}, answer = {.len_bytes = 4096};
    contigo_completion done = {.struct_size = sizeof done};
    void *bytes = NULL;

    contigo_device_open("sim:axi_dma", &dma);
    contigo_device_memory(dma, "sim", 1 << 20, &memory);
    contigo_pool_open(memory, 4096, 8, 256, &pool);
    contigo_engine_options options = {.struct_size = sizeof options, .driver = "axi_dma", .device = dma,
        .region = memory};                                          /* its descriptors are in it too */
    contigo_engine_open(&options, &stream);
    contigo_pool_take(pool, &packet.buf), contigo_pool_take(pool, &answer.buf);
    contigo_buf_write(packet.buf, input, 1000);
    contigo_job_start(stream, (contigo_operand[]){packet, answer}, 2, NULL, 0, 0, &job);
    contigo_job_wait(job, 20 * 1000, &done);
    contigo_buf_map(answer.buf, CONTIGO_READ, &bytes, NULL);        /* done.bytes: so much came */
    return bytes == NULL || memcmp(bytes, input, 1000) != 0 || done.bytes != 1000;
}

static int own_registers(void)
{
    const contigo_register CTRL = {0x00, CONTIGO_READ_CLEARS}, N = {0x30, 0};
    const contigo_register FROM = {0x18, 0}, FROM_HIGH = {0x1C, 0}, TO = {0x24, 0}, TO_HIGH = {0x28, 0};
    contigo_device device = 0;
    contigo_region region = 0;
    contigo_port port = 0;
    contigo_pool pool = 0;
    contigo_registers core = 0;
    contigo_buf x = 0, y = 0;
    uint64_t from, to;
    void *bytes = NULL;

    contigo_device_open("sim:ap_ctrl", &device);
    contigo_device_memory(device, "sim", 1 << 16, &region);
    contigo_device_port(device, 0, &port);
    contigo_pool_open(region, 4096, 8, 256, &pool);
    contigo_device_attach(device, 0, 0, 0, &core);
    contigo_pool_take(pool, &x), contigo_pool_take(pool, &y);
    contigo_buf_write(x, input, 1000);
    contigo_buf_give(x, port, 0, 1000, CONTIGO_READS, &from);       /* from here on they are the core's */
    contigo_buf_give(y, port, 0, 1000, CONTIGO_WRITES, &to);
    contigo_registers_write(core, FROM, (uint32_t)from), contigo_registers_write(core, FROM_HIGH, (uint32_t)(from >> 32));
    contigo_registers_write(core, TO, (uint32_t)to), contigo_registers_write(core, TO_HIGH, (uint32_t)(to >> 32));
    contigo_registers_write(core, N, 1000);
    contigo_registers_write(core, CTRL, 1);                         /* go */
    if (contigo_registers_wait_until(core, CTRL, 2, 2, 20 * 1000, NULL) != CONTIGO_OK)
        return 1;                                                   /* the core may still write: keep both */
    contigo_buf_take_back(x), contigo_buf_take_back(y);             /* yours again */
    contigo_buf_map(y, CONTIGO_READ, &bytes, NULL);
    return bytes == NULL || memcmp(bytes, input, 1000) != 0;
}

int main(void)
{
    int wrong = kernel() + stream() + own_registers();
    printf("accelerator: %d wrong\n", wrong);
    return wrong;
}

/* docs/my-accelerator.md: a kernel of one's own, before there is a bitstream.
 * Each call answers a contigo_status, which a program looks at. */

#include "fir_map.h" /* contigo map xfir_hw.h --reads x --writes y --length x=4*n,y=4*n --as c */
#include <contigo.h>
#include <stdio.h>

/* What the C++ does: the kernel is int fir(const int *x, int *y, unsigned n). */
static int fir(void *context, contigo_kernel_job *job)
{
    const int32_t *x = (const int32_t *)job->operands[FIR_X].bytes;
    int32_t *y = (int32_t *)job->operands[FIR_Y].bytes, most = 0;
    (void)context;
    for (uint64_t i = 0; i < job->scalars[FIR_N]; i++) {
        y[i] = x[i] + 2 * (i > 0 ? x[i - 1] : 0) + (i > 1 ? x[i - 2] : 0);
        most = y[i] > most ? y[i] : most;
    }
    job->results[0] = (uint32_t)most;
    return 0;
}

int main(void)
{
    contigo_kernel kernel = 0;
    contigo_device device = 0;
    contigo_region region = 0;
    contigo_pool pool = 0;
    contigo_engine engine = 0;
    contigo_job job = 0;
    contigo_operand x = {.len_bytes = 400}, y = {.len_bytes = 400};
    contigo_completion done = {.struct_size = sizeof done};
    int32_t input[100], wrong = 0;
    void *bytes = NULL;
    for (int i = 0; i < 100; i++)
        input[i] = i;

    contigo_kernel_open((const uint8_t *)FIR_MAP, sizeof FIR_MAP - 1, &kernel);
    contigo_kernel_simulate(kernel, 0, fir, NULL, &device);     /* contigo_device_open("contigo:fir", &device) */
    contigo_device_memory(device, "sim", 1 << 16, &region);     /* "contigo" */
    contigo_pool_open(region, 4096, 8, 256, &pool);
    contigo_engine_options options = {.struct_size = sizeof options, .driver = "ap_ctrl",
        .device = device, .map = (const uint8_t *)FIR_MAP, .map_bytes = sizeof FIR_MAP - 1};
    contigo_engine_open(&options, &engine);
    contigo_pool_take(pool, &x.buf), contigo_pool_take(pool, &y.buf);
    contigo_buf_write(x.buf, input, sizeof input);
    contigo_job_start(engine, (contigo_operand[]){x, y}, 2, (uint32_t[]){100}, 1, 0, &job);
    contigo_job_wait(job, 20 * 1000, &done);                    /* microseconds */
    contigo_buf_map(y.buf, CONTIGO_READ, &bytes, NULL);
    for (int i = 2; i < 100; i++)
        wrong += bytes == NULL || ((int32_t *)bytes)[i] != 4 * (i - 1);

    printf("fir: %u, %d wrong\n", done.words[0], wrong);
    return wrong != 0;
}

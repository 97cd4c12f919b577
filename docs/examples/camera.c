/* docs/jobs.md: frames of an AXI DMA, lent as tensors, with no copy.
 * Each call answers a contigo_status, which a program looks at. */

#include <contigo.h>
#include <stdio.h>

enum { FRAME = 4096, FRAMES = 10, WITH_THE_CORE = 8 };

/* dlpack.h's DLManagedTensorVersioned, as a framework brings it along. */
struct tensor {
    uint32_t version[2];
    void *manager;
    void (*deleter)(struct tensor *self);
    uint64_t flags;
    const unsigned char *data;
};

/* A model, which looks at the core's bytes and lets go of its tensor. */
static unsigned model(void *lent)
{
    struct tensor *tensor = lent;
    unsigned brightest = 0;
    for (size_t at = 0; at < FRAME; at++)
        brightest = tensor->data[at] > brightest ? tensor->data[at] : brightest;
    tensor->deleter(tensor);
    return brightest;
}

int main(void)
{
    contigo_device device = 0;
    contigo_region region = 0;
    contigo_pool pool = 0;
    contigo_engine engine = 0;
    contigo_buf with[FRAMES] = {0};
    uint32_t lost = 0, expected = 0, bright = 0;
    contigo_device_open("sim:axi_dma_camera", &device);             /* "contigo:axi_dma@40400000" */
    contigo_device_memory(device, "sim", 1 << 20, &region);         /* "contigo" */
    contigo_pool_open(region, FRAME, FRAMES, 4096, &pool);
    contigo_engine_options options = {.struct_size = sizeof options, .driver = "axi_dma", .device = device,
                                      .region = region, .settings = "channel=1,depth=8"};
    contigo_engine_open(&options, &engine);

    contigo_job jobs[WITH_THE_CORE], ended;
    for (int at = 0; at < WITH_THE_CORE; at++) {
        contigo_pool_take(pool, &with[at]);
        contigo_job_start(engine, &(contigo_operand){.buf = with[at], .len_bytes = FRAME}, 1, NULL, 0, 0, &jobs[at]);
    }
    for (int at = 0; expected < 2000; at = (at + 1) % WITH_THE_CORE) { /* they end in their order */
        const uint32_t *pixels = NULL;
        if (contigo_queue_next(engine, 100 * 1000, &ended, NULL) != CONTIGO_OK || ended != jobs[at])
            return 1;
        contigo_buf_map(with[at], CONTIGO_READ, (void **)&pixels, NULL);
        lost += pixels[0] - expected;                               /* this camera counts */
        expected = pixels[0] + 1;
        contigo_buf_unmap(with[at]);
        void *tensor = NULL;
        contigo_tensor_options picture = {.struct_size = sizeof picture, .shape = (const int64_t[]){64, 64},
                                          .ndim = 2, .dtype_code = 1, .dtype_bits = 8, .align_bytes = 64};
        contigo_buf_lend(with[at], &picture, &tensor);              /* for a model's from_dlpack */
        bright += model(tensor) > 100;
        contigo_buf_unlend(with[at]);
        contigo_job_start(engine, &(contigo_operand){.buf = with[at], .len_bytes = FRAME}, 1, NULL, 0, 0, &jobs[at]);
    }
    contigo_region_info counts = {.struct_size = sizeof counts};
    contigo_region_get_info(region, &counts);
    printf("camera: %u frames, %u lost, %u bright, %u bytes copied\n", expected, lost, bright, (unsigned)counts.bytes_copied);
    return contigo_queue_stop(engine) != CONTIGO_OK || lost != 0;
}

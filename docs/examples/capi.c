/* bindings/c/README.md, and a driver of the program's own: compiled, and not run. */

#include <contigo.h>

enum { FRAME = 4096 };
static const unsigned char xcopy_hw_h[1];

int main(void)
{
    contigo_device device = 0;
    contigo_region region = 0;
    contigo_pool frames = 0;
    contigo_port port = 0;
    contigo_engine engine = 0;
    contigo_buf input = 0;
    contigo_job job = 0;
    contigo_operand operands[2] = {{.len_bytes = FRAME}, {.len_bytes = FRAME}};
    uint32_t args[1] = {FRAME};
    void *bytes;
    size_t len;

    contigo_device_open("contigo:copy@40000000", &device);              /* or uio:…, vfio:…, sim:ap_ctrl */
    contigo_device_memory(device, "contigo", 1 << 20, &region);
    contigo_pool_open(region, FRAME, 8, 256, &frames);
    contigo_port_find("zynq-hp0", &port);
    contigo_engine_options options = {.struct_size = sizeof options, .driver = "ap_ctrl", .device = device,
                                      .port = port, .map = xcopy_hw_h, .map_bytes = sizeof xcopy_hw_h};
    contigo_engine_open(&options, &engine);

    contigo_pool_take(frames, &input);                              /* no system call, no heap */
    contigo_buf_map(input, CONTIGO_WRITE, &bytes, &len);            /* the CPU's: pointers, no bus address */
    contigo_buf_unmap(input);                                       /* while it is mapped, no other code gets it */
    contigo_job_start(engine, operands, 2, args, 1, 0, &job);          /* the device's: reach checked, caches cleaned */
    contigo_job_wait(job, 20 * 1000, NULL);                         /* bounded; then the CPU sees what was written */
    return 0;
}

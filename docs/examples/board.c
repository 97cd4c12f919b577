/* docs/boards.md and docs/stopping.md: compiled, and not run. */

#include <contigo.h>

static const unsigned char xcopy_hw_h[1];

int main(void)
{
    contigo_device device = 0;
    contigo_region region = 0;
    contigo_port port = 0;
    contigo_engine engine = 0;

    contigo_device_open("contigo:copy@40000000", &device);
    contigo_device_memory(device, "contigo", 1 << 20, &region);
    contigo_port_find("zynq-hp0", &port);
    contigo_engine_options options = {.struct_size = sizeof options, .driver = "ap_ctrl",
        .device = device, .port = port, .map = xcopy_hw_h, .map_bytes = sizeof xcopy_hw_h,
        .settings = "stop_us=2000000"};                             /* its longest job: 2 s */
    contigo_engine_open(&options, &engine);
    contigo_engine_arm(engine, 0);                                  /* the kernel stops it, too; window 0 */
    return 0;
}

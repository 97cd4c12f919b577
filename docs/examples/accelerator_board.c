/* docs/my-accelerator.md, on a PYNQ-Z2: compiled, and not run. */

#include <contigo.h>

int main(void)
{
    contigo_device dma = 0;
    contigo_region memory = 0;
    contigo_port port = 0;
    contigo_engine stream = 0;

    contigo_device_open("contigo:axi_dma@40400000", &dma);
    contigo_device_memory(dma, "contigo", 1 << 20, &memory);
    contigo_port_find("zynq-hp0", &port);
    contigo_engine_options options = {.struct_size = sizeof options, .driver = "axi_dma", .device = dma,
        .port = port, .region = memory, .settings = "length_bits=23"}; /* as in the block design */
    contigo_engine_open(&options, &stream);
    contigo_engine_arm(stream, 0);                                  /* the kernel stops it, too */
    return 0;
}

/* Page "GPUs of every maker": it is compiled, and not run, because it wants SPIR-V of its own. */

#include <contigo.h>

static const unsigned char spirv[4];

int main(void)
{
    contigo_port port;
    contigo_region region;
    contigo_module module;
    contigo_engine engine;
    contigo_parameter parameters[4] = {{.operand = {.use = CONTIGO_READS}},
        {.operand = {.use = CONTIGO_WRITES}}, {.words = 1}, {.words = 1}};

    contigo_port_find("vulkan", &port);                             /* or opencl:1, the second GPU */
    contigo_region_open("vulkan", 16 << 20, &region);
    contigo_module_load(port, spirv, sizeof spirv, &module);
    contigo_engine_open_kernel(module, "main", parameters, 4, &engine);
    return 0;
}

/* docs/gpus.md: it is compiled, and not run, because it wants a GPU. */

#include <contigo.h>

static const unsigned char ptx[1];

int main(void)
{
    contigo_port port = 0;
    contigo_region region = 0;
    contigo_module module = 0;
    contigo_engine engine = 0;
    contigo_parameter parameters[4] = {{.operand = {.use = CONTIGO_READS}},
        {.operand = {.use = CONTIGO_WRITES}}, {.words = 1}, {.words = 1}};

    contigo_port_find("cuda:0", &port);                             /* loads NVIDIA's driver */
    contigo_region_open("cuda:0", 16 << 20, &region);
    contigo_module_load(port, ptx, sizeof ptx, &module);
    contigo_engine_open_kernel(module, "scale", parameters, 4, &engine);
    return 0;
}

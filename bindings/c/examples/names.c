/* Memory and devices by their names: a list of those of this machine, and one opening that serves
 * registers and memory.
 *
 *   names                                       lists
 *   names MEMORY [DEVICE]                       opens memory, of a device if named, and uses it
 *   names vfio:0000:00:01.0 vfio:0000:00:01.0   with the registers of the same opening
 */
#include <contigo.h>
#include <stdio.h>
#include <string.h>

static int refused(const char *what)
{
    char text[1024];
    contigo_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s\n", what, text);
    return 1;
}

static int list(void)
{
    static char text[16384];
    size_t len;
    if (contigo_inventory(text, sizeof text, &len))
        return refused("inventory");
    fputs(text, stdout);
    return 0;
}

int main(int argc, char **argv)
{
    contigo_device device = 0;
    contigo_region memory = 0;
    contigo_region_info info = { .struct_size = sizeof info };
    contigo_registers registers = 0;
    contigo_buf buf = 0;
    void *bytes;
    uint32_t word = 0;
    const contigo_register first = { 0, CONTIGO_READ_ONLY };

    if (argc < 2)
        return list();
    if (argc > 2 && contigo_device_open(argv[2], &device))
        return refused(argv[2]);
    if (device ? contigo_device_memory(device, argv[1], 1 << 16, &memory) : contigo_region_open(argv[1], 1 << 16, &memory))
        return refused(argv[1]);
    if (contigo_region_get_info(memory, &info) || contigo_carve(memory, 4096, 4096, &buf))
        return refused("the memory");
    if (contigo_buf_map(buf, CONTIGO_WRITE, &bytes, NULL))
        return refused("the buffer");
    memset(bytes, 0x5a, 4096);
    if (contigo_buf_unmap(buf) || contigo_buf_release(buf))
        return refused("the buffer");
    printf("%s: %zu bytes at 0x%llx\n", argv[1], info.len_bytes, (unsigned long long)info.base);
    /* Only where the kernel says how the device reaches memory. Elsewhere the program names the
     * port. */
    if (device && !contigo_device_attach(device, 0, 0, 1, &registers)) {
        if (contigo_registers_read(registers, first, &word) || contigo_registers_close(registers))
            return refused("the registers");
        printf("%s: its first register is 0x%08x\n", argv[2], word);
    }
    /* The device is the last to be closed. */
    if (contigo_region_close(memory) || (device && contigo_device_close(device)))
        return refused("close");
    return 0;
}

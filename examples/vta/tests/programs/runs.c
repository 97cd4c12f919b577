/* Layers of a network through vta/driver.h on the simulated board, as TVM would run them: a matrix
 * product with a bias, a ReLU, a shift and a clip. Inputs come out of a larger picture with zeros
 * around it, and outputs go into a larger one. Every byte is compared with plain C.
 *
 * The CPU writes through the pointers that it kept, and flushes nothing: a run does. */

#include "stream.h"
#include <contigo_vta.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <vta/driver.h>

int contigo_vta_model(void);

/* In blocks of 16: the product has ROWS rows, IN blocks in, OUT blocks out. Pictures are wider. */
enum { ROWS = 12, IN = 3, OUT = 2, INSIDE = ROWS - 2, IN_STRIDE = 5, OUT_STRIDE = 4, ROUNDS = 40 };
enum { INP_BYTES = INSIDE * IN_STRIDE * BLOCK, WGT_BYTES = OUT * IN * BLOCK * BLOCK, ACC_BYTES = ROWS * OUT * BLOCK * 4,
       OUT_BYTES = ROWS * OUT_STRIDE * BLOCK, UOPS = OUT * IN + OUT, TURNS = 1000 * 1000 };

static uint32_t seed = 1;
static uint32_t draw(void)
{
    seed = seed * 1664525 + 1013904223;
    return seed >> 8;
}

static void *memory(size_t bytes)
{
    void *at = VTAMemAlloc(bytes, VTA_CACHED);
    if (at == NULL)
        exit(2);
    return at;
}

/* The same in plain C. */
static int8_t expected(const int8_t *inp, const int8_t *wgt, const int32_t *bias, int row, int column)
{
    int32_t sum = bias[row * OUT * BLOCK + column];
    for (int k = 0; row > 0 && row <= INSIDE && k < IN * BLOCK; k++)
        sum += inp[(row - 1) * IN_STRIDE * BLOCK + k] *
               wgt[((column / BLOCK * IN + k / BLOCK) * BLOCK + column % BLOCK) * BLOCK + k % BLOCK];
    sum = (sum > 0 ? sum : 0) >> 3;
    return (int8_t)(sum < 100 ? sum : 100);
}

#ifdef VTA_TARGET_DE10NANO
#define NAME "sim:vta_de10nano"
#else
#define NAME "sim:vta"
#endif

int main(void)
{
    const struct contigo_vta_options options = {.device = NAME, .memory = "sim", .bytes = 1 << 20, .timeout_us = 200 * 1000};
    if (contigo_vta_model() != 0 || contigo_vta_use(&options) != 0)
        return 2;
    VTADeviceHandle device = VTADeviceAlloc();
    if (device == NULL)
        return 2;
    insn *stream = memory(4096);
    uint32_t *uops = memory(UOPS * 4);
    int8_t *inp = memory(INP_BYTES), *wgt = memory(WGT_BYTES), *out = memory(OUT_BYTES);
    int32_t *bias = memory(ACC_BYTES);
    int8_t before[OUT_BYTES], after[OUT_BYTES];
    unsigned wrong = 0, failed = 0;

    unsigned n = 0;
    for (unsigned dst = 0; dst < OUT; dst++)
        for (unsigned src = 0; src < IN; src++)
            uops[n++] = uop(dst, src, dst * IN + src);
    for (unsigned dst = 0; dst < OUT; dst++)
        uops[n++] = uop(dst, dst, 0);
    for (unsigned round = 0; round < ROUNDS && failed < 3; round++) {
        for (int at = 0; at < INP_BYTES; at++)
            inp[at] = (int8_t)draw();
        for (int at = 0; at < WGT_BYTES; at++)
            wgt[at] = (int8_t)draw();
        for (int at = 0; at < ACC_BYTES / 4; at++)
            bias[at] = (int32_t)(draw() & 0xFFF) - 0x800;
        for (int at = 0; at < OUT_BYTES; at++)
            before[at] = (int8_t)draw();
        VTAMemCopyFromHost(out, before, OUT_BYTES);
        const insn run[] = {
            access2d(OP_LOAD, 0, MEM_UOP, 0, VTAMemGetPhyAddr(uops) / 4, 1, UOPS, UOPS),
            access2d(OP_LOAD, 0, MEM_ACC, 0, VTAMemGetPhyAddr(bias) / 64, ROWS, OUT, OUT),
            access2d(OP_LOAD, 0, MEM_WGT, 0, VTAMemGetPhyAddr(wgt) / 256, 1, OUT * IN, OUT * IN),
            padded(access2d(OP_LOAD, PUSH_NEXT, MEM_INP, 0, VTAMemGetPhyAddr(inp) / 16, INSIDE, IN, IN_STRIDE), 1, 1, 0, 0),
            gemm(POP_PREV, 0, 0, OUT * IN, ROWS, OUT, IN),
            alu(0, OUT * IN, UOPS, ROWS, OUT, OUT, ALU_MAX, 1, 0),
            alu(0, OUT * IN, UOPS, ROWS, OUT, OUT, ALU_SHR, 1, 3),
            alu(PUSH_NEXT, OUT * IN, UOPS, ROWS, OUT, OUT, ALU_MIN, 1, 100),
            access2d(OP_STORE, POP_PREV | PUSH_PREV, MEM_OUT, 0, VTAMemGetPhyAddr(out) / 16, ROWS, OUT, OUT_STRIDE),
            finish(POP_NEXT),
        };
        memcpy(stream, run, sizeof run);
        failed += VTADeviceRun(device, VTAMemGetPhyAddr(stream), sizeof run / sizeof *run, TURNS) != 0;
        VTAMemCopyToHost(after, out, OUT_BYTES);
        for (int row = 0; row < ROWS; row++)
            for (int column = 0; column < OUT_STRIDE * BLOCK; column++) {
                int at = row * OUT_STRIDE * BLOCK + column;
                wrong += after[at] != (column < OUT * BLOCK ? expected(inp, wgt, bias, row, column) : before[at]);
            }
    }
    struct contigo_vta_stats stats = {0};
    contigo_vta_get_stats(&stats);
    printf("%d layers, %u failed, %u wrong bytes; %" PRIu64 " bytes given a run\n", ROUNDS, failed, wrong, stats.bytes_given / ROUNDS);
    void *all[] = {stream, uops, inp, wgt, out, bias};
    for (unsigned at = 0; at < sizeof all / sizeof *all; at++)
        VTAMemFree(all[at]);
    VTADeviceFree(device);
    return contigo_vta_close() == 0 && wrong == 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The driver refuses bad streams before the device starts, and survives a device that hangs. With
 * an argument, a function that cannot answer ends the program. */

#include "stream.h"
#include <contigo_vta.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <vta/driver.h>

int contigo_vta_model(void);

enum { TURNS = 1000 * 1000, THREADS = 4, EACH = 20 };

static VTADeviceHandle device;
static unsigned missed;

static int run_of(insn *stream, const insn *insns, unsigned count)
{
    memcpy(stream, insns, count * sizeof *insns);
    return VTADeviceRun(device, VTAMemGetPhyAddr(stream), count, TURNS);
}
#define RUN(stream, ...) run_of(stream, (const insn[]){__VA_ARGS__}, sizeof((const insn[]){__VA_ARGS__}) / sizeof(insn))

/* It is refused, and the error contains `text`. */
static void refused(int answer, const char *text)
{
    int right = answer != 0 && strstr(contigo_vta_last_error(), text) != NULL;
    if (!right)
        printf("missed: %d, \"%s\" is not in \"%s\"\n", answer, text, contigo_vta_last_error());
    missed += !right;
}

static void expect(int holds, const char *what)
{
    if (!holds)
        printf("wrong: %s\n", what);
    missed += !holds;
}

/* A copy of 64 bytes through the accumulator, 16 of which are kept. */
static int copy(insn *stream, int32_t *from, int8_t *to)
{
    return RUN(stream, access2d(OP_LOAD, 0, MEM_ACC, 0, VTAMemGetPhyAddr(from) / 64, 1, 1, 1),
               access2d(OP_LOAD, 0, MEM_UOP, 0, VTAMemGetPhyAddr(from) / 4 + 16, 1, 1, 1),
               alu(PUSH_NEXT, 0, 1, 1, 0, 0, ALU_ADD, 1, 1),
               access2d(OP_STORE, POP_PREV | PUSH_PREV, MEM_OUT, 0, VTAMemGetPhyAddr(to) / 16, 1, 1, 1), finish(POP_NEXT));
}

/* Random LOADs and STOREs: those that are not refused change the buffer that they name, and no
 * other. */
static unsigned draws(insn *stream, const char *buf)
{
    static char before[4096];
    uint32_t seed = 7, base = VTAMemGetPhyAddr((void *)buf);
    unsigned ran = 0;
    char *beside = VTAMemAlloc(4096, 1), *target = VTAMemAlloc(4096, 1);
    memset(beside, 0x5A, 4096);
    memcpy(before, beside, sizeof before);
    for (int at = 0; at < 2000; at++) {
        uint32_t of[6];
        for (int each = 0; each < 6; each++)
            of[each] = (seed = seed * 1664525 + 1013904223) >> 8;
        /* Near the target, near the first buffer, or anywhere. */
        uint32_t where = of[0] % 3 == 0 ? of[1] : of[0] % 3 == 1 ? base + of[1] % 8192 : VTAMemGetPhyAddr(target) + of[1] % 4096;
        unsigned rows = of[2] % 6, columns = of[3] % 40, stride = of[4] % 64;
        insn access = of[5] % 2 == 0 ? access2d(OP_STORE, PUSH_PREV, MEM_OUT, 0, where / 16, rows, columns, stride)
                                     : access2d(OP_LOAD, PUSH_NEXT, MEM_INP, 0, where / 16, rows, columns, stride);
        uint32_t end = where / 16 * 16 + (rows > 0 ? (rows - 1) * stride + columns : 0) * 16, first = VTAMemGetPhyAddr(beside);
        int names_beside = where / 16 * 16 < first + 4096 && end > first;
        ran += RUN(stream, access, finish(of[5] % 2 == 0 ? POP_NEXT : POP_PREV)) == 0;
        if (!names_beside && memcmp(beside, before, sizeof before) != 0)
            missed++;
        memcpy(beside, before, sizeof before);
    }
    VTAMemFree(beside);
    VTAMemFree(target);
    return ran;
}

/* Each thread has buffers of its own; they share the device. */
static void *many(void *argument)
{
    uintptr_t wrong = 0;
    insn *stream = VTAMemAlloc(4096, 1);
    int32_t *from = VTAMemAlloc(4096, 1);
    int8_t *to = VTAMemAlloc(4096, 1);
    (void)argument;
    from[16] = 0;
    for (int at = 0; at < EACH; at++) {
        from[3] = at;
        wrong += copy(stream, from, to) != 0 || to[3] != at + 1;
    }
    VTAMemFree(stream);
    VTAMemFree(from);
    VTAMemFree(to);
    return (void *)wrong;
}

static void ends_the_program(const char *how, char *buf)
{
    if (strcmp(how, "free") == 0)
        VTAMemFree(buf + 1);
    else if (strcmp(how, "copy") == 0)
        VTAMemCopyFromHost(buf, buf, 4097);
    else if (strcmp(how, "flush") == 0)
        VTAFlushCache(buf, VTAMemGetPhyAddr(buf) + 64, 64);
    else if (strcmp(how, "register") == 0)
        VTAWriteMappedReg(VTAMapRegister(0x43C00000), 0x4000, 0);
    else if (strcmp(how, "start") == 0)
        VTAWriteMappedReg(VTAMapRegister(0x43C00000), 0, 1);
    else if (strcmp(how, "program") == 0)
        VTAProgram("vta.bit");
    puts("it went on");
    exit(EXIT_SUCCESS);
}

int main(int argc, char **argv)
{
    const struct contigo_vta_options options = {.device = "sim:vta", .memory = "sim", .bytes = 1 << 20, .timeout_us = 100 * 1000};
    setvbuf(stdout, NULL, _IOLBF, 0);
    expect(VTADeviceAlloc() == NULL && strstr(contigo_vta_last_error(), "CONTIGO_VTA_DEVICE=") != NULL, "it says where to say it");
    if (contigo_vta_model() != 0 || contigo_vta_use(&options) != 0 || (device = VTADeviceAlloc()) == NULL)
        return 2;
    expect(contigo_vta_use(&options) != 0, "options come before the first call");
    insn *stream = VTAMemAlloc(4096, VTA_NOT_CACHED);
    char *buf = VTAMemAlloc(4000, VTA_CACHED);
    uint32_t addr = VTAMemGetPhyAddr(buf);
    expect(((uintptr_t)stream & 4095) == 0 && (addr & 4095) == 0, "buffers begin with a page");
    if (argc > 1)
        ends_the_program(argv[1], buf);

    /* Memory. */
    expect(VTAMemAlloc(0, 1) == NULL && VTAMemAlloc((size_t)VTA_MAX_XFER + 1, 1) == NULL, "sizes");
    refused(VTAMemAlloc(2 << 20, 1) == NULL, "CONTIGO_E_EXHAUSTED");
    refused(VTAMemGetPhyAddr(&addr) == 0, "no buffer of VTAMemAlloc");
    expect(VTAMemGetPhyAddr(buf + 100) == addr + 100, "an address inside");
    void *other = VTAMemAlloc(8192, 1);
    VTAMemFree(other);
    expect(VTAMemAlloc(16384, 1) != other && VTAMemAlloc(5000, 1) == other, "a freed buffer serves again, where it fits");

    /* Streams. The device has seen none of them. */
    const insn stored = access2d(OP_STORE, PUSH_PREV, MEM_OUT, 0, addr / 16, 1, 1, 1);
    refused(VTADeviceRun(device, VTAMemGetPhyAddr(stream), 0, TURNS), "no instructions");
    refused(VTADeviceRun(device, 64, 1, TURNS), "the stream of 16 bytes at 0x40");
    refused(VTADeviceRun(NULL, VTAMemGetPhyAddr(stream), 1, TURNS), "no handle");
    refused(VTADeviceRun(device, VTAMemGetPhyAddr(stream), 300, TURNS), "the stream of 4800 bytes");
    refused(RUN(stream, access2d(OP_LOAD, PUSH_NEXT, MEM_INP, 0, addr / 16, 1, 257, 1), finish(POP_PREV)), "a LOAD of 4112 bytes");
    refused(RUN(stream, access2d(OP_LOAD, PUSH_NEXT, MEM_INP, 0, addr / 16, 3, 1, 200), finish(POP_PREV)), "a LOAD of 6416 bytes");
    refused(RUN(stream, access2d(OP_LOAD, PUSH_NEXT, MEM_WGT, 0, 0, 1, 1, 1), finish(POP_PREV)), "at 0x0 is not inside one buffer");
    refused(RUN(stream, access2d(OP_STORE, PUSH_PREV, MEM_OUT, 0, addr / 16 - 1, 1, 2, 1), finish(POP_NEXT)), "a STORE of 32 bytes");
    refused(RUN(stream, access2d(OP_LOAD, 0, MEM_UOP, 0, 0xFFFFFFFF, 1, 1, 1), finish(0)), "at 0x3fffffffc");
    refused(RUN(stream, access2d(OP_LOAD, 0, 7, 0, 0, 1, 1, 1), finish(0)), "memory 7");
    refused(RUN(stream, {5, 0}, finish(0)), "opcode 5");
    refused(RUN(stream, finish(0), finish(0)), "the last one is FINISH, and no other");
    refused(RUN(stream, stored), "the last one is FINISH, and no other");
    refused(RUN(stream, stored, finish(0)), "does not wait for the last STORE: 1 tokens to the compute stage, 0 taken");
    refused(RUN(stream, stored, access2d(OP_STORE, 0, MEM_OUT, 0, addr / 16, 1, 1, 1), finish(POP_NEXT)), "the last STORE sends none");
    refused(RUN(stream, access2d(OP_LOAD, 0, MEM_INP, 0, addr / 16, 1, 1, 1), finish(0)), "does not wait for the last LOAD");
    struct contigo_vta_stats stats = {0};
    contigo_vta_get_stats(&stats);
    expect(stats.runs == 0 && stats.bytes_given == 0 && stats.failed == 16, "nothing was started");

    /* A stream that waits for a token for ever: the device is reset, and serves again. */
    refused(RUN(stream, access2d(OP_STORE, POP_PREV | PUSH_PREV, MEM_OUT, 0, addr / 16, 1, 1, 1), finish(POP_NEXT)), "the device was reset");
    buf[0] = 1;
    int32_t *from = VTAMemAlloc(4096, 1);
    from[3] = 41;
    from[16] = 0;
    expect(copy(stream, from, (int8_t *)buf) == 0 && buf[3] == 42, "it serves again");

    /* By its registers, as VTA's own test does; `done` of the run before is no end. */
    char *fetch = VTAMapRegister(0x43C00000), *compute = VTAMapRegister(0x43C02000);
    from[3] = 50;
    VTAWriteMappedReg(fetch, 0x10, 5);
    VTAWriteMappedReg(fetch, 0, 1);
    expect(VTAReadMappedReg(compute, 0x18) == 0, "done is not the last run's");
    refused(VTADeviceRun(device, VTAMemGetPhyAddr(stream), 5, TURNS), "during a run");
    refused(contigo_vta_close() != 0, "a run did not end");
    unsigned turns = 0;
    while (VTAReadMappedReg(compute, 0x18) != 1 && turns < 10000)
        turns++;
    expect(turns > 0 && turns < 10000 && buf[3] == 51, "a run by registers");
    refused(VTAMapRegister(0x43C04000) == NULL, "is not in the 16384 bytes");
    expect(VTAReadMappedReg(fetch, 0x4000) == UINT32_MAX, "outside is all ones");

    unsigned ran = draws(stream, buf);
    expect(ran > 100 && ran < 1900, "some random streams are refused, and some run");

    pthread_t threads[THREADS];
    for (int at = 0; at < THREADS; at++)
        pthread_create(&threads[at], NULL, many, NULL);
    for (int at = 0; at < THREADS; at++) {
        void *wrong;
        pthread_join(threads[at], &wrong);
        expect(wrong == NULL, "a thread's runs");
    }
    contigo_vta_get_stats(&stats);
    expect(stats.runs == 2 + ran + THREADS * EACH, "every run is counted");
    expect(contigo_vta_close() == 0, "it closes");
    printf("%u missed\n", missed);
    return missed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Builds streams of VTA's instructions, by the fields of hw_spec.h for pynq_sample.json. The driver
 * and the model have theirs from the same page, each by itself. */

#ifndef STREAM_H
#define STREAM_H

#include <stdint.h>
#include <string.h>

enum { BLOCK = 16, OP_LOAD = 0, OP_STORE = 1, OP_GEMM = 2, OP_FINISH = 3, OP_ALU = 4 };
enum { MEM_UOP = 0, MEM_WGT = 1, MEM_INP = 2, MEM_ACC = 3, MEM_OUT = 4 };
enum { ALU_MIN = 0, ALU_MAX = 1, ALU_ADD = 2, ALU_SHR = 3 };
/* Tokens, as an instruction's bits 3 to 6. */
enum { POP_PREV = 1, POP_NEXT = 2, PUSH_PREV = 4, PUSH_NEXT = 8 };

typedef struct {
    uint64_t low, high;
} insn;

static inline insn access2d(unsigned opcode, unsigned tokens, unsigned memory, unsigned sram, uint32_t dram, unsigned rows, unsigned columns,
                            unsigned stride)
{
    return (insn){opcode | tokens << 3 | (uint64_t)memory << 7 | (uint64_t)sram << 10 | (uint64_t)dram << 26,
                  rows | (uint64_t)columns << 16 | (uint64_t)stride << 32};
}

static inline insn padded(insn load, unsigned top, unsigned bottom, unsigned left, unsigned right)
{
    load.high |= (uint64_t)top << 48 | (uint64_t)bottom << 52 | (uint64_t)left << 56 | (uint64_t)right << 60;
    return load;
}

static inline uint64_t loops(unsigned opcode, unsigned tokens, unsigned resets, unsigned uop_begin, unsigned uop_end, unsigned outer,
                             unsigned inner)
{
    return opcode | tokens << 3 | resets << 7 | (uint64_t)uop_begin << 8 | (uint64_t)uop_end << 21 | (uint64_t)outer << 35 |
           (uint64_t)inner << 49;
}

/* Outer factors alone. */
static inline insn gemm(unsigned tokens, unsigned resets, unsigned begin, unsigned end, unsigned outer, unsigned dst, unsigned src)
{
    return (insn){loops(OP_GEMM, tokens, resets, begin, end, outer, 1), dst | (uint64_t)src << 22};
}

static inline insn alu(unsigned tokens, unsigned begin, unsigned end, unsigned outer, unsigned dst, unsigned src, unsigned operation,
                       int use_imm, int imm)
{
    return (insn){loops(OP_ALU, tokens, 0, begin, end, outer, 1), dst | (uint64_t)src << 22 | (uint64_t)operation << 44 |
                                                                      (uint64_t)(use_imm != 0) << 47 | (uint64_t)(uint16_t)imm << 48};
}

static inline insn finish(unsigned tokens)
{
    return (insn){OP_FINISH | tokens << 3, 0};
}

static inline uint32_t uop(unsigned dst, unsigned src, unsigned wgt)
{
    return dst | src << 11 | wgt << 22;
}

#endif

/* A run's instructions say which bytes it touches: LOAD and STORE name them, and nothing else does.
 * So the driver reads them first. A byte outside of VTAMemAlloc's buffers is refused before the
 * start. The device gets the named ranges of each buffer, and the CPU gets them back at the end.
 *
 * References: apache/tvm-vta, include/vta/hw_spec.h, VTAMemInsn, VTAGenericInsn. */

#include "internal.h"
#include <inttypes.h>
#include <string.h>

static const uint32_t ELEMENT[MEMORIES] = {
    [UOP] = UOP_BYTES, [WGT] = WGT_BYTES, [INP] = INP_BYTES, [ACC] = ACC_BYTES, [OUT] = OUT_BYTES, [ACC_8BIT] = ACC_BYTES / 4};

/* The fields that this file needs, of an instruction's two words. */
struct insn {
    unsigned opcode, memory;
    bool pops_prev, pops_next, pushes_prev, pushes_next;
    uint64_t dram_base;
    uint32_t y_size, x_size, x_stride;
};

static uint64_t word(const unsigned char *bytes)
{
    uint64_t value = 0;
    for (int at = 7; at >= 0; at--)
        value = value << 8 | bytes[at];
    return value;
}

static struct insn decoded(const unsigned char *bytes)
{
    uint64_t low = word(bytes), high = word(bytes + 8);
    return (struct insn){
        .opcode = low & 7,
        .pops_prev = low >> 3 & 1,
        .pops_next = low >> 4 & 1,
        .pushes_prev = low >> 5 & 1,
        .pushes_next = low >> 6 & 1,
        .memory = low >> 7 & 7,
        .dram_base = low >> 26 & UINT32_MAX,
        .y_size = high & 0xFFFF,
        .x_size = high >> 16 & 0xFFFF,
        .x_stride = high >> 32 & 0xFFFF,
    };
}

/* The run uses these bytes so. */
static bool mark(uint64_t addr, uint64_t len_bytes, contigo_use use, const char *what, uint32_t at)
{
    struct block *block = vta_block_at(addr, len_bytes);
    if (block == NULL)
        return vta_refuse("instruction %" PRIu32 ": %s of %" PRIu64 " bytes at 0x%" PRIx64 " is not inside one buffer of VTAMemAlloc", at,
                          what, len_bytes, addr);
    size_t first = (size_t)(addr - block->addr), end = first + (size_t)len_bytes;
    if (block->use == 0 || first < block->first)
        block->first = first;
    if (block->use == 0 || end > block->end)
        block->end = end;
    block->use |= use;
    return true;
}

/* A 2D access: y_size rows of x_size elements, x_stride elements from one to the next. */
static bool mark_access(const struct insn *insn, uint32_t at, const struct bases *bases)
{
    bool stores = insn->opcode == STORE;
    /* The store stage has one memory, and does not look at the field. */
    unsigned memory = stores ? OUT : insn->memory;
    if (memory >= MEMORIES || (!stores && memory == OUT))
        return vta_refuse("instruction %" PRIu32 ": a LOAD of memory %u, which VTA does not have", at, memory);
    uint64_t rows = memory == UOP ? 1 : insn->y_size;
    if (rows == 0 || insn->x_size == 0)
        return true;
    uint64_t elements = (rows - 1) * insn->x_stride + insn->x_size;
    uint64_t first = bases->of[memory] + insn->dram_base * ELEMENT[memory];
    /* Bytes between the rows of a store stay as they are, so they are written back first. */
    contigo_use use = stores ? CONTIGO_READS | CONTIGO_WRITES : CONTIGO_READS;
    return mark(first, elements * ELEMENT[memory], use, stores ? "a STORE" : "a LOAD", at);
}

/* A stage that touches memory by itself, and its tokens to the compute stage, which has FINISH.
 * When FINISH was reached, the others may be at work. The last token of each says that it ended. */
struct stage {
    const char *what;
    uint32_t pushed, popped;
    bool last_pushes;
};

static void count_tokens(const struct insn *insn, struct stage *loads, struct stage *stores)
{
    if (insn->opcode == STORE) {
        stores->pushed += stores->last_pushes = insn->pushes_prev;
    } else if (insn->opcode == LOAD && (insn->memory == INP || insn->memory == WGT)) {
        loads->pushed += loads->last_pushes = insn->pushes_next;
    } else {
        loads->popped += insn->pops_prev;
        stores->popped += insn->pops_next;
    }
}

static bool ends(const struct stage *stage)
{
    if (stage->last_pushes && stage->pushed == stage->popped)
        return true;
    return vta_refuse("FINISH does not wait for the last %s: %" PRIu32 " tokens to the compute stage, %" PRIu32
                      " taken there, and the last %s sends %s",
                      stage->what, stage->pushed, stage->popped, stage->what, stage->last_pushes ? "one" : "none");
}

bool vta_mark(uint64_t addr, uint32_t count, const struct bases *bases)
{
    struct stage loads = {.what = "LOAD", .last_pushes = true}, stores = {.what = "STORE", .last_pushes = true};
    for (struct block *block = vta.blocks; block < vta.blocks + vta.n_blocks; block++)
        block->use = 0;
    if (count == 0)
        return vta_refuse("a run of no instructions never finishes");
    uint64_t len_bytes = (uint64_t)count * INSN_BYTES;
    if (!mark(addr, len_bytes, CONTIGO_READS, "the stream", 0))
        return false;
    const struct block *stream = vta_block_at(addr, len_bytes);
    const unsigned char *bytes = stream->bytes + (addr - stream->addr);
    for (uint32_t at = 0; at < count; at++) {
        struct insn insn = decoded(bytes + (size_t)at * INSN_BYTES);
        if (insn.opcode > ALU)
            return vta_refuse("instruction %" PRIu32 ": opcode %u, which VTA does not have", at, insn.opcode);
        if ((insn.opcode == FINISH) != (at == count - 1))
            return vta_refuse("instruction %" PRIu32 " of %" PRIu32 ": the last one is FINISH, and no other", at, count);
        if ((insn.opcode == LOAD || insn.opcode == STORE) && !mark_access(&insn, at, bases))
            return false;
        count_tokens(&insn, &loads, &stores);
    }
    return ends(&loads) && ends(&stores);
}

bool vta_give(void)
{
    for (struct block *block = vta.blocks; block < vta.blocks + vta.n_blocks; block++) {
        if (block->use == 0)
            continue;
        contigo_status status = contigo_buf_unmap(block->buf);
        if (status == CONTIGO_OK)
            status = contigo_buf_give(block->buf, vta.port, block->first, block->end - block->first, block->use, NULL);
        if (status != CONTIGO_OK) {
            void *bytes;
            vta_refused_by("a run: contigo_buf_give", status);
            contigo_buf_map(block->buf, CONTIGO_WRITE, &bytes, NULL);
            vta_take_back();
            return false;
        }
        block->given = true;
        vta.stats.bytes_given += block->end - block->first;
    }
    return true;
}

bool vta_take_back(void)
{
    bool all = true;
    for (struct block *block = vta.blocks; block < vta.blocks + vta.n_blocks; block++) {
        void *bytes = NULL;
        if (!block->given)
            continue;
        contigo_status status = contigo_buf_take_back(block->buf);
        if (status == CONTIGO_OK)
            status = contigo_buf_map(block->buf, CONTIGO_WRITE, &bytes, NULL);
        if (status != CONTIGO_OK || bytes != block->bytes) {
            all = vta_refused_by("a run's end: contigo_buf_take_back", status);
            continue;
        }
        block->given = false;
    }
    return all;
}

/* The files of this driver share this. */

#ifndef CONTIGO_VTA_INTERNAL_H
#define CONTIGO_VTA_INTERNAL_H

#include "config.h"
#include <contigo.h>
#include <contigo_vta.h>
#include <stdbool.h>
#include <stdint.h>
#include <vta/driver.h>

/* Buffers that exist at once, the freed ones included. */
enum { MAX_BLOCKS = 1024 };

/* A buffer of VTAMemAlloc. The CPU owns it, and it is mapped, except for while a run has it. */
struct block {
    contigo_buf buf;
    unsigned char *bytes;
    /* Whole pages. */
    size_t len_bytes;
    uint64_t addr;
    bool live;
    /* The device has it. */
    bool given;
    /* The bytes of it that the next run names: from first to end, and how. */
    size_t first, end;
    contigo_use use;
};

/* The addresses that the instructions count from, as the registers have them. */
struct bases {
    uint32_t of[MEMORIES];
};

/* All state. One lock guards it. */
struct vta {
    contigo_device device;
    contigo_port port;
    contigo_region region;
    contigo_registers registers;
    struct block blocks[MAX_BLOCKS];
    size_t n_blocks;
    struct contigo_vta_stats stats;
    /* As the device's registers have them. */
    struct bases bases;
    uint32_t insn_count, insn_addr;
    /* Memory is the device's: a run is under way, or one never ended. */
    bool runs;
    /* The end of this run can be told from the end of the one before. */
    bool fresh;
    bool open;
};
extern struct vta vta;
extern struct contigo_vta_options vta_options;

/* settings.c */
bool vta_lock(uint32_t timeout_us);
void vta_unlock(void);
/* Keeps a text, and prints it. It answers false. */
bool vta_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, with the text of the library's last refusal. */
bool vta_refused_by(const char *call, contigo_status status);
/* For a function that cannot answer: what TVM asked for was not done, and it would go on. */
_Noreturn void vta_give_up(void);
/* Opens everything, once. */
bool vta_open(void);
uint64_t vta_now_us(void);

/* memory.c */
/* The block that has all of these bytes, by the CPU's pointer or by the bus address; NULL. */
struct block *vta_block_of(const void *bytes, size_t len_bytes);
struct block *vta_block_at(uint64_t addr, uint64_t len_bytes);
bool vta_close_blocks(void);

/* stream.c */
/* Marks the bytes that the instructions name in their blocks; false where one is not right. */
bool vta_mark(uint64_t addr, uint32_t count, const struct bases *bases);
/* Hands the marked bytes to the device, and takes all of them back. */
bool vta_give(void);
bool vta_take_back(void);

/* run.c */
bool vta_write(uint32_t offset, uint32_t value);
uint32_t vta_read(uint32_t offset);

#endif

/* VTA's configuration: the sizes of its elements and where its registers are.
 *
 * TVM's build passes the first of these to the compiler (vta_config.py --cflags) and the driver
 * must be compiled with the same ones. The defaults are those of pynq_sample.json.
 *
 * References: apache/tvm-vta, include/vta/hw_spec_const.h, hw_spec.h; config/pkg_config.py;
 * hardware/chisel VCR.scala (the registers of the DE10-Nano). */

#ifndef CONTIGO_VTA_CONFIG_H
#define CONTIGO_VTA_CONFIG_H

#ifndef VTA_LOG_INP_WIDTH
#define VTA_LOG_INP_WIDTH 3
#endif
#ifndef VTA_LOG_WGT_WIDTH
#define VTA_LOG_WGT_WIDTH 3
#endif
#ifndef VTA_LOG_ACC_WIDTH
#define VTA_LOG_ACC_WIDTH 5
#endif
#ifndef VTA_LOG_OUT_WIDTH
#define VTA_LOG_OUT_WIDTH VTA_LOG_INP_WIDTH
#endif
#ifndef VTA_LOG_BATCH
#define VTA_LOG_BATCH 0
#endif
#ifndef VTA_LOG_BLOCK_IN
#define VTA_LOG_BLOCK_IN 4
#endif
#ifndef VTA_LOG_BLOCK_OUT
#define VTA_LOG_BLOCK_OUT 4
#endif

/* Bytes of an element of each memory. Widths are in bits, so 3 is a byte. */
#define INSN_BYTES 16
#define UOP_BYTES 4
#define INP_BYTES (1u << (VTA_LOG_INP_WIDTH + VTA_LOG_BATCH + VTA_LOG_BLOCK_IN - 3))
#define WGT_BYTES (1u << (VTA_LOG_WGT_WIDTH + VTA_LOG_BLOCK_OUT + VTA_LOG_BLOCK_IN - 3))
#define ACC_BYTES (1u << (VTA_LOG_ACC_WIDTH + VTA_LOG_BATCH + VTA_LOG_BLOCK_OUT - 3))
#define OUT_BYTES (1u << (VTA_LOG_OUT_WIDTH + VTA_LOG_BATCH + VTA_LOG_BLOCK_OUT - 3))

/* Opcodes, and the memories that LOAD and STORE name. */
enum { LOAD = 0, STORE = 1, GEMM = 2, FINISH = 3, ALU = 4 };
enum { UOP = 0, WGT = 1, INP = 2, ACC = 3, OUT = 4, ACC_8BIT = 5, MEMORIES = 6 };

#ifdef VTA_TARGET_DE10NANO
/* One block of registers: VCR.scala. */
#ifndef VTA_FETCH_ADDR
#define VTA_FETCH_ADDR 0xFF220000
#endif
#define WINDOW_BYTES 0x28
enum { CONTROL = 0x00, INSN_COUNT = 0x08, INSN_ADDR = 0x0C, UOP_ADDR = 0x10, INP_ADDR = 0x14, WGT_ADDR = 0x18, ACC_ADDR = 0x1C, OUT_ADDR = 0x20 };
/* CONTROL: 1 starts it, and it becomes 2 when FINISH was reached. */
enum { START = 1, FINISHED = 2, TELLS = CONTROL, NOT_YET = START };
#else
/* Four kernels of HLS, a page each, from the fetch stage on. */
#ifndef VTA_FETCH_ADDR
#define VTA_FETCH_ADDR 0x43C00000
#endif
#ifndef VTA_LOAD_ADDR
#define VTA_LOAD_ADDR 0x43C01000
#endif
#ifndef VTA_COMPUTE_ADDR
#define VTA_COMPUTE_ADDR 0x43C02000
#endif
#ifndef VTA_STORE_ADDR
#define VTA_STORE_ADDR 0x43C03000
#endif
#define WINDOW_BYTES 0x4000
enum {
    FETCH = 0,
    LOADER = VTA_LOAD_ADDR - VTA_FETCH_ADDR,
    COMPUTE = VTA_COMPUTE_ADDR - VTA_FETCH_ADDR,
    STORER = VTA_STORE_ADDR - VTA_FETCH_ADDR,
    CONTROL = FETCH,
    INSN_COUNT = FETCH + 0x10,
    INSN_ADDR = FETCH + 0x18,
    INP_ADDR = LOADER + 0x10,
    WGT_ADDR = LOADER + 0x18,
    /* done: 1 when FINISH was reached, 0 from the next instruction on; and its ap_vld. */
    DONE = COMPUTE + 0x18,
    DONE_VALID = COMPUTE + 0x1C,
    UOP_ADDR = COMPUTE + 0x20,
    ACC_ADDR = COMPUTE + 0x28,
    OUT_ADDR = STORER + 0x10
};
/* UG1399: AP_START, AP_DONE (cleared when read), AP_IDLE, auto-restart. */
enum { START = 1 << 0, AP_DONE = 1 << 1, AP_IDLE = 1 << 2, AUTO_RESTART = 1 << 7, FINISHED = 1, TELLS = DONE, NOT_YET = 0 };
#endif

#endif

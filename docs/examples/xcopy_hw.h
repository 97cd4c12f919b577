// ==============================================================
// What Vitis HLS writes of: int copy(const char *from, char *to, unsigned n)
// ==============================================================
// control
// 0x00 : Control signals
//        bit 0  - ap_start (Read/Write/COH)
//        bit 1  - ap_done (Read)
//        bit 2  - ap_idle (Read)
//        bit 3  - ap_ready (Read/COR)
//        bit 4  - ap_continue (Read/Write/SC)
//        others - reserved
// 0x04 : Global Interrupt Enable Register
//        bit 0  - Global Interrupt Enable (Read/Write)
//        others - reserved
// 0x08 : IP Interrupt Enable Register (Read/Write)
// 0x0c : IP Interrupt Status Register (Read/TOW)
// 0x10 : Data signal of ap_return
//        bit 31~0 - ap_return[31:0] (Read)
// 0x18 : Data signal of from
//        bit 31~0 - from[31:0] (Read/Write)
// 0x1c : Data signal of from
//        bit 31~0 - from[63:32] (Read/Write)
// 0x20 : reserved
// 0x24 : Data signal of to
//        bit 31~0 - to[31:0] (Read/Write)
// 0x28 : Data signal of to
//        bit 31~0 - to[63:32] (Read/Write)
// 0x2c : reserved
// 0x30 : Data signal of n
//        bit 31~0 - n[31:0] (Read/Write)
// 0x34 : reserved
// (SC = Self Clear, COR = Clear on Read, TOW = Toggle on Write, COH = Clear on Handshake)

#define XCOPY_CONTROL_ADDR_AP_CTRL   0x00
#define XCOPY_CONTROL_ADDR_GIE       0x04
#define XCOPY_CONTROL_ADDR_IER       0x08
#define XCOPY_CONTROL_ADDR_ISR       0x0c
#define XCOPY_CONTROL_ADDR_AP_RETURN 0x10
#define XCOPY_CONTROL_BITS_AP_RETURN 32
#define XCOPY_CONTROL_ADDR_FROM_DATA 0x18
#define XCOPY_CONTROL_BITS_FROM_DATA 64
#define XCOPY_CONTROL_ADDR_TO_DATA   0x24
#define XCOPY_CONTROL_BITS_TO_DATA   64
#define XCOPY_CONTROL_ADDR_N_DATA    0x30
#define XCOPY_CONTROL_BITS_N_DATA    32

// ==============================================================
// A header of the shape that Vitis HLS 2022.1 writes.
// ==============================================================
// control
// 0x00 : Control signals
//        bit 0  - ap_start (Read/Write/COH)
//        bit 1  - ap_done (Read)
//        bit 2  - ap_idle (Read)
//        bit 3  - ap_ready (Read/COR)
//        bit 4  - ap_continue (Read/Write/SC)
//        bit 7  - auto_restart (Read/Write)
//        bit 9  - interrupt (Read)
//        others - reserved
// 0x04 : Global Interrupt Enable Register
//        bit 0  - Global Interrupt Enable (Read/Write)
//        others - reserved
// 0x08 : IP Interrupt Enable Register (Read/Write)
//        bit 0 - enable ap_done interrupt (Read/Write)
//        bit 1 - enable ap_ready interrupt (Read/Write)
//        others - reserved
// 0x0c : IP Interrupt Status Register (Read/TOW)
//        bit 0 - ap_done (Read/TOW)
//        bit 1 - ap_ready (Read/TOW)
//        others - reserved
// 0x10 : Data signal of ap_return
//        bit 31~0 - ap_return[31:0] (Read)
// 0x18 : Data signal of from_r
//        bit 31~0 - from_r[31:0] (Read/Write)
// 0x1c : Data signal of from_r
//        bit 31~0 - from_r[63:32] (Read/Write)
// 0x20 : reserved
// 0x24 : Data signal of to_r
//        bit 31~0 - to_r[31:0] (Read/Write)
// 0x28 : Data signal of to_r
//        bit 31~0 - to_r[63:32] (Read/Write)
// 0x2c : reserved
// 0x30 : Data signal of n
//        bit 31~0 - n[31:0] (Read/Write)
// 0x34 : reserved
// 0x38 : Data signal of mode
//        bit 2~0 - mode[2:0] (Read/Write)
//        others  - reserved
// 0x3c : reserved
// 0x40 : Data signal of peak
//        bit 15~0 - peak[15:0] (Read)
//        others   - reserved
// 0x44 : Control signal of peak
//        bit 0  - peak_ap_vld (Read/COR)
//        others - reserved
// (SC = Self Clear, COR = Clear on Read, TOW = Toggle on Write, COH = Clear on Handshake)

#define XFILTER_CONTROL_ADDR_AP_CTRL     0x00
#define XFILTER_CONTROL_ADDR_GIE         0x04
#define XFILTER_CONTROL_ADDR_IER         0x08
#define XFILTER_CONTROL_ADDR_ISR         0x0c
#define XFILTER_CONTROL_ADDR_AP_RETURN   0x10
#define XFILTER_CONTROL_BITS_AP_RETURN   32
#define XFILTER_CONTROL_ADDR_FROM_R_DATA 0x18
#define XFILTER_CONTROL_BITS_FROM_R_DATA 64
#define XFILTER_CONTROL_ADDR_TO_R_DATA   0x24
#define XFILTER_CONTROL_BITS_TO_R_DATA   64
#define XFILTER_CONTROL_ADDR_N_DATA      0x30
#define XFILTER_CONTROL_BITS_N_DATA      32
#define XFILTER_CONTROL_ADDR_MODE_DATA   0x38
#define XFILTER_CONTROL_BITS_MODE_DATA   3
#define XFILTER_CONTROL_ADDR_PEAK_DATA   0x40
#define XFILTER_CONTROL_BITS_PEAK_DATA   16
#define XFILTER_CONTROL_ADDR_PEAK_CTRL   0x44

// The ports of a core, as `src/ports.rs` has them: words of 32 bits, the lowest first.
#pragma once
#include <cstdint>

constexpr int MASTERS = 3;
constexpr int DATA_WORDS = 16;

struct LiteIn {
    uint32_t awvalid, awaddr, wvalid, wdata, wstrb, bready, arvalid, araddr, rready;
};
struct LiteOut {
    uint32_t awready, wready, bvalid, bresp, arready, rvalid, rdata, rresp;
};
struct AxiIn {
    uint32_t awready, wready, bvalid, bid, bresp, arready, rvalid, rid, rresp, rlast;
    uint32_t rdata[DATA_WORDS];
};
struct AxiAddress {
    uint32_t valid, id, addr[2], len, size, burst;
};
struct AxiOut {
    AxiAddress aw, ar;
    uint32_t wvalid, wlast, wdata[DATA_WORDS], wstrb[2], bready, rready;
};
struct Beat {
    uint32_t valid, last, keep[2], data[DATA_WORDS];
};
struct In {
    uint32_t rst_n;
    LiteIn lite;
    AxiIn axi[MASTERS];
    Beat stream;
    uint32_t stream_ready;
};
struct Out {
    uint32_t irq, idle, stream_rst_n;
    LiteOut lite;
    AxiOut axi[MASTERS];
    Beat stream;
    uint32_t stream_ready;
};
// The runtime beside the core, for a trace: signals of 32 bits, as `Marks` in src/trace.rs.
constexpr const char* MARK_NAMES[] = {"job", "runs", "stops", "bytes_for_device", "bytes_for_cpu",
    "access", "offset", "value", "waits"};
constexpr int MARKS = sizeof(MARK_NAMES) / sizeof(MARK_NAMES[0]);
// The ports that the core has.
struct Shape {
    uint32_t data_bits[MASTERS], stream_in_bits, stream_out_bits, has_lite, has_idle, has_stream_rst;
};

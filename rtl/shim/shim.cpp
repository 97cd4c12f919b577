// One core behind six functions of C. The build writes a file for each core that defines CORE and
// TOP, and includes this one. A port that the core lacks is left out: its words stay zero.
// No exception leaves: `new` and `trace` say that there is no memory, the others end the program.
#include "ports.h"
#include "verilated.h"
#include "verilated_vcd_c.h"
#include <algorithm>
#include <memory>
#include <mutex>

// A port of Verilator's is an integer, or an array of words where it has more than 64 bits. The
// words in ports.h are one word or an array, and have room for the whole port.
template <class Port, class Words> void set(Port& port, const Words& from) {
    static_assert(sizeof(Port) <= sizeof(Words), "the port has more bits than ports.h");
    const uint32_t* words = reinterpret_cast<const uint32_t*>(&from);
    if constexpr (requires { port.m_storage; }) {
        for (size_t n = 0; n < sizeof(Port) / 4; ++n) port.m_storage[n] = words[n];
    } else if constexpr (sizeof(Port) == 8) {
        port = words[0] | uint64_t{words[1]} << 32;
    } else {
        port = static_cast<Port>(words[0]);
    }
}
template <class Port, class Words> void get(Words& to, const Port& port) {
    static_assert(sizeof(Port) <= sizeof(Words), "the port has more bits than ports.h");
    uint32_t* words = reinterpret_cast<uint32_t*>(&to);
    if constexpr (requires { port.m_storage; }) {
        for (size_t n = 0; n < sizeof(Port) / 4; ++n) words[n] = port.m_storage[n];
    } else if constexpr (sizeof(Port) == 8) {
        words[0] = static_cast<uint32_t>(port);
        words[1] = static_cast<uint32_t>(uint64_t{port} >> 32);
    } else {
        words[0] = port;
    }
}

#define SET(port, from) if constexpr (requires { t.port; }) set(t.port, from)
#define GET(to, port) if constexpr (requires { t.port; }) get(to, t.port)

#define AXI_IN(m, a) \
    SET(m##_awready, a.awready); SET(m##_wready, a.wready); SET(m##_bvalid, a.bvalid); SET(m##_bid, a.bid); \
    SET(m##_bresp, a.bresp); SET(m##_arready, a.arready); SET(m##_rvalid, a.rvalid); SET(m##_rid, a.rid); \
    SET(m##_rresp, a.rresp); SET(m##_rlast, a.rlast); SET(m##_rdata, a.rdata)
#define ADDRESS_OUT(m, a) \
    GET(a.valid, m##valid); GET(a.id, m##id); GET(a.addr, m##addr); GET(a.len, m##len); GET(a.size, m##size); \
    GET(a.burst, m##burst)
#define AXI_OUT(m, a) \
    ADDRESS_OUT(m##_aw, a.aw); ADDRESS_OUT(m##_ar, a.ar); GET(a.wvalid, m##_wvalid); GET(a.wlast, m##_wlast); \
    GET(a.wdata, m##_wdata); GET(a.wstrb, m##_wstrb); GET(a.bready, m##_bready); GET(a.rready, m##_rready)

template <class Top> void drive(Top& t, const In& in) {
    SET(rst_n, in.rst_n);
    const LiteIn& l = in.lite;
    SET(s_axil_awvalid, l.awvalid); SET(s_axil_awaddr, l.awaddr); SET(s_axil_wvalid, l.wvalid); SET(s_axil_wdata, l.wdata);
    SET(s_axil_wstrb, l.wstrb); SET(s_axil_bready, l.bready); SET(s_axil_arvalid, l.arvalid); SET(s_axil_araddr, l.araddr);
    SET(s_axil_rready, l.rready);
    AXI_IN(m0_axi, in.axi[0]);
    AXI_IN(m1_axi, in.axi[1]);
    AXI_IN(m2_axi, in.axi[2]);
    SET(s_axis_tvalid, in.stream.valid); SET(s_axis_tlast, in.stream.last); SET(s_axis_tkeep, in.stream.keep);
    SET(s_axis_tdata, in.stream.data); SET(m_axis_tready, in.stream_ready);
}

template <class Top> void look(const Top& t, Out& out) {
    GET(out.irq, irq); GET(out.idle, idle); GET(out.stream_rst_n, stream_rst_n);
    LiteOut& l = out.lite;
    GET(l.awready, s_axil_awready); GET(l.wready, s_axil_wready); GET(l.bvalid, s_axil_bvalid); GET(l.bresp, s_axil_bresp);
    GET(l.arready, s_axil_arready); GET(l.rvalid, s_axil_rvalid); GET(l.rdata, s_axil_rdata); GET(l.rresp, s_axil_rresp);
    AXI_OUT(m0_axi, out.axi[0]);
    AXI_OUT(m1_axi, out.axi[1]);
    AXI_OUT(m2_axi, out.axi[2]);
    GET(out.stream.valid, m_axis_tvalid); GET(out.stream.last, m_axis_tlast); GET(out.stream.keep, m_axis_tkeep);
    GET(out.stream.data, m_axis_tdata); GET(out.stream_ready, s_axis_tready);
}

#define BITS(to, port) if constexpr (requires { t.port; }) to = sizeof(t.port) * 8

template <class Top> void shape(const Top& t, Shape& shape) {
    // A master may only read, or only write.
    BITS(shape.data_bits[0], m0_axi_rdata); BITS(shape.data_bits[0], m0_axi_wdata);
    BITS(shape.data_bits[1], m1_axi_rdata); BITS(shape.data_bits[1], m1_axi_wdata);
    BITS(shape.data_bits[2], m2_axi_rdata); BITS(shape.data_bits[2], m2_axi_wdata);
    BITS(shape.stream_in_bits, s_axis_tdata); BITS(shape.stream_out_bits, m_axis_tdata);
    shape.has_lite = requires { t.s_axil_awvalid; };
    shape.has_idle = requires { t.idle; };
    shape.has_stream_rst = requires { t.stream_rst_n; };
}

// Verilator's globals are the last context of the program and of each thread, and the seeds: under
// this lock. Nothing clears them when a context goes, so each function sets them first.
inline std::mutex verilators;
// The context that Verilator has for this thread, if it was set here.
inline thread_local const VerilatedContext* here = nullptr;

inline void enter(VerilatedContext& context) {
    if (here == &context) return;
    Verilated::threadContextp(&context);
    here = &context;
}
inline void leave() {
    Verilated::threadContextp(Verilated::defaultContextp());
    here = nullptr;
}

namespace {
struct Sim {
    // It goes after the context: Verilator knows that no longer, also where `new` fails.
    struct Left {
        ~Left() { leave(); }
    } left;
    VerilatedContext context;
    std::unique_ptr<TOP> top;
    // The trace, its time in picoseconds, half a cycle, and the runtime's signals.
    std::unique_ptr<VerilatedVcdC> trace;
    uint64_t now = 0, half = 0;
    uint32_t marks[MARKS] = {}, code = 0;

    static void declare(void* self, VerilatedVcd* vcd, uint32_t code) {
        static_cast<Sim*>(self)->code = code;
        vcd->pushNamePrefix("runtime.");
        for (int n = 0; n < MARKS; ++n) vcd->declBus(code + n, MARK_NAMES[n], false, -1, 31, 0);
        vcd->popNamePrefix();
    }
    static void write(void* self, VerilatedVcd::Buffer* to) {
        Sim* sim = static_cast<Sim*>(self);
        for (int n = 0; n < MARKS; ++n) to->fullIData(to->oldp(sim->code) + n, sim->marks[n], 32);
    }
    static void change(void* self, VerilatedVcd::Buffer* to) {
        Sim* sim = static_cast<Sim*>(self);
        for (int n = 0; n < MARKS; ++n) to->chgIData(to->oldp(sim->code) + n, sim->marks[n], 32);
    }
    static void nothing(void*, VerilatedVcd*) {}
    void dump(uint64_t at) {
        if (trace) trace->dump(at);
    }
};
}

#define GLUE_(core, what) core##_##what
#define GLUE(core, what) GLUE_(core, what)

// `fill`: what registers hold that nothing has set: 0 zeros, 1 ones, 2 and more chance. Null: there
// is no memory.
extern "C" Sim* GLUE(CORE, new)(uint32_t fill) noexcept try {
    const std::lock_guard lock{verilators};
    auto sim = std::make_unique<Sim>();
    enter(sim->context);
    sim->context.randReset(fill < 2 ? static_cast<int>(fill) : 2);
    sim->context.randSeed(static_cast<int>(fill));
    sim->context.traceEverOn(true);
    sim->top = std::make_unique<TOP>(&sim->context, "top");
    return sim.release();
} catch (...) {
    return nullptr;
}
extern "C" void GLUE(CORE, free)(Sim* sim) noexcept {
    const std::lock_guard lock{verilators};
    enter(sim->context);
    sim->top->final();
    if (sim->trace) sim->trace->close();
    delete sim;
}
extern "C" void GLUE(CORE, shape)(const Sim* sim, Shape* to) noexcept {
    *to = Shape{};
    shape(*sim->top, *to);
}
// One cycle: inputs, the outputs as they are before the edge, the edge.
extern "C" void GLUE(CORE, step)(Sim* sim, const In* in, Out* out) noexcept {
    if (here != &sim->context) {
        const std::lock_guard lock{verilators};
        enter(sim->context);
    }
    TOP& top = *sim->top;
    top.clk = 0;
    drive(top, *in);
    top.eval();
    *out = Out{};
    look(top, *out);
    sim->dump(sim->now);
    top.clk = 1;
    top.eval();
    sim->dump(sim->now + sim->half);
    sim->context.timeInc(1);
}
// Every signal goes into the file from here on; false: it cannot be made.
extern "C" bool GLUE(CORE, trace)(Sim* sim, const char* path) noexcept try {
    const std::lock_guard lock{verilators};
    enter(sim->context);
    sim->trace = std::make_unique<VerilatedVcdC>();
    sim->trace->set_time_unit("1ps");
    sim->trace->set_time_resolution("1ps");
    sim->top->trace(sim->trace.get(), 99);
    VerilatedVcd* vcd = sim->trace->spTrace();
    vcd->addInitCb(Sim::declare, sim);
    vcd->addFullCb(Sim::write, sim);
    vcd->addChgCb(Sim::change, sim);
    vcd->addCleanupCb(Sim::nothing, sim);
    sim->trace->open(path);
    if (sim->trace->isOpen()) return true;
    sim->trace.reset();
    return false;
} catch (...) {
    sim->trace.reset();
    return false;
}
// The time of the next cycle, and the runtime beside it.
extern "C" void GLUE(CORE, mark)(Sim* sim, uint64_t now, uint64_t half, const uint32_t* marks) noexcept {
    sim->now = now;
    sim->half = half;
    std::copy(marks, marks + MARKS, sim->marks);
}

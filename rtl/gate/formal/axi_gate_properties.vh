// SPDX-License-Identifier: MIT OR Apache-2.0
// What is proved of the gate. Nothing is assumed of the core, nor of the interconnect's answers;
// only the bound on progress, at the end, assumes that the side that is asked answers at some time.
//
// What is owed is counted here anew, from the signals towards the interconnect alone.

reg p_past = 1'b0;
always @(posedge aclk) p_past <= 1'b1;
initial assume (!aresetn);

// ---- The interconnect's view. An address counts from the cycle in which it is offered.
reg p_aw_shown, p_ar_shown;
reg [COUNT_BITS:0] p_writes, p_reads;
reg [9:0] p_beats;
wire p_aw_new = m_axi_awvalid & !p_aw_shown;
wire p_ar_new = m_axi_arvalid & !p_ar_shown;
wire p_b = m_axi_bvalid & m_axi_bready;
wire p_r = m_axi_rvalid & m_axi_rready;
wire p_w = m_axi_wvalid & m_axi_wready;
// An answer without a request ends nothing; `owed_hits` proves when it does.
wire [COUNT_BITS:0] p_writes_now = p_writes + p_aw_new;
wire [COUNT_BITS:0] p_reads_now = p_reads + p_ar_new;
wire [9:0] p_beats_now = p_beats + (p_aw_new ? m_axi_awlen + 10'd1 : 10'd0);
wire p_idle = p_writes_now == 0 & p_reads_now == 0 & p_beats_now == 0 & !m_axi_awvalid & !m_axi_arvalid;
always @(posedge aclk)
    if (!aresetn) begin
        {p_aw_shown, p_ar_shown} <= 2'b0;
        p_writes <= 0;
        p_reads <= 0;
        p_beats <= 0;
    end else begin
        p_aw_shown <= m_axi_awvalid & !m_axi_awready;
        p_ar_shown <= m_axi_arvalid & !m_axi_arready;
        p_writes <= p_writes_now - (p_b & b_hit);
        p_reads <= p_reads_now - (p_r & m_axi_rlast & r_hit);
        p_beats <= p_beats_now - p_w;
    end

// ---- The core's view.
reg p_held, p_last;                // a beat that the core gave is not passed on yet
reg [DATA_BITS-1:0] p_data;
reg [DATA_BITS/8-1:0] p_strb;
reg [COUNT_BITS:0] p_life_writes, p_life_reads; // asked since the core left its reset, and not answered
reg [4:0] p_reset_cycles, p_let; // of the core's reset; of them without hold
always @(posedge aclk)
    if (!aresetn) begin
        p_held <= 1'b0;
        p_life_writes <= 0;
        p_life_reads <= 0;
        p_reset_cycles <= 5'd0;
        p_let <= 5'd0;
    end else begin
        if (s_axi_wvalid & s_axi_wready) begin
            p_held <= 1'b1;
            p_data <= s_axi_wdata;
            p_strb <= s_axi_wstrb;
            p_last <= s_axi_wlast;
        end else if (p_w | (!core_aresetn & p_beats_now == 0)) p_held <= 1'b0;
        p_life_writes <= core_aresetn ? p_life_writes + (s_axi_awvalid & s_axi_awready) - (s_axi_bvalid & s_axi_bready & b_hit) : 0;
        p_life_reads <= core_aresetn ? p_life_reads + (s_axi_arvalid & s_axi_arready) - (s_axi_rvalid & s_axi_rready & s_axi_rlast & r_hit) : 0;
        p_reset_cycles <= core_aresetn ? 5'd0 : p_reset_cycles == 5'd31 ? 5'd31 : p_reset_cycles + 5'd1;
        p_let <= core_aresetn | hold ? 5'd0 : p_let == 5'd31 ? 5'd31 : p_let + 5'd1;
    end

wire p_open = core_aresetn & !stop;
wire [ASK_BITS-1:0] p_s_aw = {s_axi_awid, s_axi_awaddr, s_axi_awlen, s_axi_awsize, s_axi_awburst, s_axi_awlock, s_axi_awcache, s_axi_awprot, s_axi_awqos};
wire [ASK_BITS-1:0] p_m_aw = {m_axi_awid, m_axi_awaddr, m_axi_awlen, m_axi_awsize, m_axi_awburst, m_axi_awlock, m_axi_awcache, m_axi_awprot, m_axi_awqos};
wire [ASK_BITS-1:0] p_s_ar = {s_axi_arid, s_axi_araddr, s_axi_arlen, s_axi_arsize, s_axi_arburst, s_axi_arlock, s_axi_arcache, s_axi_arprot, s_axi_arqos};
wire [ASK_BITS-1:0] p_m_ar = {m_axi_arid, m_axi_araddr, m_axi_arlen, m_axi_arsize, m_axi_arburst, m_axi_arlock, m_axi_arcache, m_axi_arprot, m_axi_arqos};

always @(posedge aclk)
    if (p_past & aresetn) begin
        // Counters are what is owed.
        counts_writes: assert (writes == p_writes_now & p_writes_now <= DEPTH);
        counts_reads: assert (reads == p_reads_now & p_reads_now <= DEPTH);
        counts_beats: assert (beats == p_beats_now & p_beats_now <= 256);
        // The lists of bursts refuse rather than overflow.
        owed_refuses: assert (!(aw_taken & writes == DEPTH) & !(ar_taken & reads == DEPTH));
        // A burst's data are complete before the next address is offered.
        if (p_aw_new) one_burst: assert (p_beats == 0);
        // Exactly the beats that are owed, the last one marked.
        if (m_axi_wvalid) owed_beats: assert (p_beats_now != 0);
        if (m_axi_wvalid) last_right: assert (m_axi_wlast == (p_beats_now == 1));
        // A beat is the core's, or writes nothing.
        if (m_axi_wvalid & p_held) beat_kept: assert (m_axi_wdata == p_data & m_axi_wstrb == p_strb);
        if (m_axi_wvalid & !p_held) beat_empty: assert (m_axi_wstrb == 0);
        if (m_axi_wvalid & core_aresetn) beat_owned: assert (p_held);
        // WLAST is compared for the core's beats, when they are passed on.
        framing: assert (misframed == (p_w & p_held & p_last != (p_beats_now == 1)));
        // Idle is when nothing is owed, and nothing else.
        idle_exact: assert (idle == p_idle);
        if (idle) idle_silent: assert (!m_axi_awvalid & !m_axi_arvalid & !m_axi_wvalid);
        // A core is let go only after its last life was paid for.
        if (core_aresetn) life_writes: assert (p_life_writes == p_writes_now);
        if (core_aresetn) life_reads: assert (p_life_reads == p_reads_now);
        if (core_aresetn) reset_length: assert (p_reset_cycles == 0 | p_reset_cycles >= RESET_CYCLES);
        if (!core_aresetn) dead_silent: assert (!s_axi_bvalid & !s_axi_rvalid & !s_axi_awready & !s_axi_arready & !s_axi_wready);
        // Answers pass as they are, to a core that lives.
        b_passes: assert (s_axi_bvalid == (m_axi_bvalid & core_aresetn) & m_axi_bready == (s_axi_bready | !core_aresetn));
        r_passes: assert (s_axi_rvalid == (m_axi_rvalid & core_aresetn) & m_axi_rready == (s_axi_rready | !core_aresetn));
        if (s_axi_bvalid) b_same: assert (s_axi_bid == m_axi_bid & s_axi_bresp == m_axi_bresp);
        if (s_axi_rvalid)
            r_same: assert ({s_axi_rid, s_axi_rdata, s_axi_rresp, s_axi_rlast} == {m_axi_rid, m_axi_rdata, m_axi_rresp, m_axi_rlast});
        // An open gate takes addresses: below its depth, where the next one has a place, and those
        // of writes with or after the last beat that is owed.
        if (p_open & p_beats_now == p_w & p_writes_now != DEPTH & (!m_axi_awvalid | m_axi_awready)) aw_open: assert (s_axi_awready);
        if (p_open & p_reads_now != DEPTH & (!m_axi_arvalid | m_axi_arready)) ar_open: assert (s_axi_arready);
        // It takes a beat wherever none waits, and offers the one that waits to a burst.
        if (core_aresetn & (!p_held | p_w)) w_open: assert (s_axi_wready);
        if (p_held & p_beats_now != 0) w_offered: assert (m_axi_wvalid);
        // For the induction.
        w_held: assert (w_full == p_held & (!w_full | (w_data == p_data & w_strb == p_strb & w_last == p_last)) & (w_full | w_strb == 0));
        cycles_bounded: assert (core_aresetn ? cycles == 0 : p_let <= p_reset_cycles & cycles == (p_let < CYCLES ? CYCLES - p_let : 0));
    end

always @(posedge aclk)
    if (p_past & aresetn & $past(aresetn)) begin
        // A valid stays until it is taken, and its payload does not change.
        if ($past(m_axi_awvalid & !m_axi_awready)) aw_stable: assert (m_axi_awvalid & p_m_aw == $past(p_m_aw));
        if ($past(m_axi_arvalid & !m_axi_arready)) ar_stable: assert (m_axi_arvalid & p_m_ar == $past(p_m_ar));
        if ($past(m_axi_wvalid & !m_axi_wready))
            w_stable: assert (m_axi_wvalid & m_axi_wlast == $past(m_axi_wlast) & m_axi_wdata == $past(m_axi_wdata) & m_axi_wstrb == $past(m_axi_wstrb));
        // An address is offered where the core gave one, unchanged; none is lost.
        aw_passes: assert (p_aw_new == $past(s_axi_awvalid & s_axi_awready) & (!p_aw_new | p_m_aw == $past(p_s_aw)));
        ar_passes: assert (p_ar_new == $past(s_axi_arvalid & s_axi_arready) & (!p_ar_new | p_m_ar == $past(p_s_ar)));
        // None after stop, or in the core's reset.
        if ($past(stop | !core_aresetn)) stopped: assert (!p_aw_new & !p_ar_new);
        if ($past((stop | !core_aresetn) & idle)) stays_silent: assert (idle);
        // The core's reset follows CONTROL.
        if ($past(hold)) held_dead: assert (!core_aresetn);
        if ($past(core_aresetn & !hold)) alive_stays: assert (core_aresetn);
        // It ends as soon as nothing is owed, hold is off and the cycles are over; never before.
        if ($past(!core_aresetn)) released: assert (core_aresetn == $past(p_idle & !hold & p_let >= RESET_CYCLES - 1));
    end

`ifdef FORMAL_PROGRESS
`include "axi_gate_progress.vh"
`endif

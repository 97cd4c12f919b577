// SPDX-License-Identifier: MIT OR Apache-2.0
// Idle comes within a bound. Assumed: a side that is asked answers within FAIR cycles. That is the
// interconnect alone where the core is in reset. No stall counter looks at a signal that the gate
// makes wrong: a gate that does not take, or does not offer, lets p_quiet grow beyond all of them.

localparam FAIR = 4;
// Steps that are left: a beat that the core has to give is two, one that it gave is one; addresses
// that are offered, and bursts without their last answer, are one each.
wire [10:0] p_write_steps = {p_beats_now, 1'b0} - (w_full & p_beats_now != 0) + m_axi_awvalid + p_writes_now;
wire [10:0] p_read_steps = m_axi_arvalid + p_reads_now;
localparam [10:0] WRITE_STEPS = 2 * 256 + 1 + DEPTH;
localparam [10:0] READ_STEPS = 1 + DEPTH;
wire p_closed = stop | !core_aresetn;

// Cycles since the gate closed, and since the last step of each side.
reg [11:0] p_time;
reg [2:0] p_write_quiet, p_read_quiet;
wire p_write_step = p_w | (m_axi_awvalid & m_axi_awready) | (p_b & b_hit) | (s_axi_wvalid & s_axi_wready & p_beats_now != 0);
wire p_read_step = (m_axi_arvalid & m_axi_arready) | (p_r & m_axi_rlast & r_hit);

// Which side of each handshake has let the other wait, for how long.
reg [2:0] p_aw_stall, p_w_stall, p_b_stall, p_ar_stall, p_r_stall;
wire p_w_stalls = (m_axi_wvalid & !m_axi_wready) | (s_axi_wready & !s_axi_wvalid & p_beats_now != 0);
// Answers that can come: those of bursts whose address and data are complete.
wire p_b_due = p_writes_now > (m_axi_awvalid | p_beats_now != 0);
wire p_r_due = p_reads_now > m_axi_arvalid;
wire p_b_stalls = (p_b_due & !(m_axi_bvalid & b_hit)) | (s_axi_bvalid & !s_axi_bready);
wire p_r_stalls = (p_r_due & !(m_axi_rvalid & m_axi_rlast & r_hit)) | (s_axi_rvalid & !s_axi_rready);

always @(posedge aclk)
    if (!aresetn | !p_closed) begin
        p_time <= 12'd0;
        {p_write_quiet, p_read_quiet} <= 6'b0;
        {p_aw_stall, p_w_stall, p_b_stall, p_ar_stall, p_r_stall} <= 15'b0;
    end else begin
        p_time <= p_idle ? 12'd0 : p_time + 12'd1;
        p_write_quiet <= p_write_step | p_write_steps == 0 ? 3'd0 : p_write_quiet + 3'd1;
        p_read_quiet <= p_read_step | p_read_steps == 0 ? 3'd0 : p_read_quiet + 3'd1;
        p_aw_stall <= m_axi_awvalid & !m_axi_awready ? p_aw_stall + 3'd1 : 3'd0;
        p_w_stall <= p_w_stalls ? p_w_stall + 3'd1 : 3'd0;
        p_b_stall <= p_b_stalls ? p_b_stall + 3'd1 : 3'd0;
        p_ar_stall <= m_axi_arvalid & !m_axi_arready ? p_ar_stall + 3'd1 : 3'd0;
        p_r_stall <= p_r_stalls ? p_r_stall + 3'd1 : 3'd0;
    end

always @(posedge aclk)
    if (p_past & aresetn) begin
        fair_aw: assume (p_aw_stall < FAIR);
        fair_w: assume (p_w_stall < FAIR);
        fair_b: assume (p_b_stall < FAIR);
        fair_ar: assume (p_ar_stall < FAIR);
        fair_r: assume (p_r_stall < FAIR);
        // For the induction: quiet is a stall of one side.
        if (p_closed & p_beats_now != 0) quiet_w: assert (p_write_quiet <= p_w_stall);
        if (p_closed & p_beats_now == 0 & m_axi_awvalid) quiet_aw: assert (p_write_quiet <= p_aw_stall);
        if (p_closed & p_beats_now == 0 & !m_axi_awvalid & p_writes_now != 0) quiet_b: assert (p_write_quiet <= p_b_stall);
        if (p_closed & m_axi_arvalid) quiet_ar: assert (p_read_quiet <= p_ar_stall);
        if (p_closed & !m_axi_arvalid & p_reads_now != 0) quiet_r: assert (p_read_quiet <= p_r_stall);
        steps_bounded: assert (p_write_steps <= WRITE_STEPS & p_read_steps <= READ_STEPS);
        // The bound: idle comes within FAIR cycles for each step.
        if (p_write_steps != 0) progress_writes: assert (p_time <= {WRITE_STEPS - p_write_steps, 2'b0} + p_write_quiet);
        if (p_read_steps != 0) progress_reads: assert (p_time <= {READ_STEPS - p_read_steps, 2'b0} + p_read_quiet);
        bounded: assert (p_time <= FAIR * WRITE_STEPS + FAIR);
    end

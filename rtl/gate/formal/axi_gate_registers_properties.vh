// SPDX-License-Identifier: MIT OR Apache-2.0
// What is proved of the registers, by what a read answers, whatever comes in. The gate's and the
// lists' properties prove that what comes in is true.

reg p_past = 1'b0;
always @(posedge aclk) p_past <= 1'b1;
initial assume (!aresetn);

wire p_write = s_axil_awvalid & s_axil_awready & s_axil_wvalid & s_axil_wready;
wire p_control = p_write & s_axil_awaddr[11:2] == 10'h03 & s_axil_wstrb[0];
wire p_clear = p_write & s_axil_awaddr[11:2] == 10'h06 & s_axil_wstrb[0] & s_axil_wdata[0];
wire p_b_bad = b_taken & b_resp >= 2'd2;
wire p_r_bad = r_taken & r_resp >= 2'd2;
reg p_stop, p_hold, p_error, p_framing, p_stray;
reg [ADDR_BITS+ID_BITS+2:0] p_first; // address, ID, direction, response
reg [31:0] p_read_bursts, p_read_beats, p_write_bursts, p_write_beats, p_errors;
always @(posedge aclk)
    if (!aresetn) begin
        {p_stop, p_hold, p_error, p_framing, p_stray} <= 5'b0;
        {p_read_bursts, p_read_beats, p_write_bursts, p_write_beats, p_errors} <= 160'b0;
    end else begin
        if (p_control) {p_hold, p_stop} <= s_axil_wdata[1:0];
        p_framing <= p_framing & !p_clear | misframed;
        p_stray <= p_stray & !p_clear | b_taken & !b_hit | r_taken & !r_hit;
        p_error <= p_error & !p_clear | p_b_bad | p_r_bad;
        // The first one stays: a later one changes nothing before it is cleared.
        if (!p_error | p_clear) begin
            if (p_b_bad) p_first <= {b_addr, b_id, 1'b1, b_resp};
            else if (p_r_bad) p_first <= {r_addr, r_id, 1'b0, r_resp};
        end
        p_write_bursts <= p_write_bursts + aw_taken;
        p_write_beats <= p_write_beats + w_given;
        p_read_bursts <= p_read_bursts + ar_taken;
        p_read_beats <= p_read_beats + r_taken;
        p_errors <= p_errors + p_b_bad + p_r_bad;
    end

// What a read of this cycle must answer in the next one.
wire p_read = s_axil_arvalid & s_axil_arready;
wire [63:0] p_addr64 = p_first[ADDR_BITS+ID_BITS+2:ID_BITS+3];
wire [11:0] p_id12 = p_first[ID_BITS+2:3];
wire [7:0] p_reads8 = reads, p_writes8 = writes;
reg [31:0] p_answer, p_answers; // the value, and which of its bits are told
always @* begin
    p_answers = {32{1'b1}};
    case (s_axil_araddr[11:2])
        10'h00: p_answer = 32'h47415445;
        10'h01: p_answer = 32'h00010000;
        10'h02: p_answer = DATA_BITS | ID_BITS << 10 | ADDR_BITS << 16 | DEPTH << 24;
        10'h03: p_answer = {30'b0, p_hold, p_stop};
        10'h04: p_answer = {26'b0, p_stray, p_framing, p_error, held, p_stop & idle, idle};
        10'h05: p_answer = {7'b0, beats, p_writes8, p_reads8};
        10'h06: begin
            p_answer = {4'b0, p_id12, 10'b0, p_stray, p_framing, p_first[2:0], p_error};
            if (!p_error) p_answers = 32'hF000_FFF1; // nothing was latched yet
        end
        10'h07: begin p_answer = p_addr64[31:0]; if (!p_error) p_answers = 32'b0; end
        10'h08: begin p_answer = p_addr64[63:32]; if (!p_error) p_answers = 32'b0; end
        10'h09: p_answer = p_read_bursts;
        10'h0A: p_answer = p_read_beats;
        10'h0B: p_answer = p_write_bursts;
        10'h0C: p_answer = p_write_beats;
        10'h0D: p_answer = p_errors;
        default: p_answer = 32'b0;
    endcase
end

always @(posedge aclk)
    if (p_past & aresetn) begin
        // CONTROL is what was written, from the next cycle on.
        control_written: assert (stop == p_stop & hold == p_hold);
        error_latched: assert (latched == p_error & framing == p_framing & stray == p_stray);
        // The first error, with its direction, response, ID and address.
        if (p_error) error_first: assert ({addr, id, by_write, resp} == p_first);
        counters_count: assert (read_bursts == p_read_bursts & read_beats == p_read_beats & write_bursts == p_write_bursts
            & write_beats == p_write_beats & errors == p_errors);
        // One answer for each question.
        one_answer: assert (s_axil_awready == s_axil_wready & !(s_axil_bvalid & s_axil_awready) & !(s_axil_rvalid & s_axil_arready));
    end

always @(posedge aclk)
    if (p_past & aresetn & $past(aresetn)) begin
        if ($past(p_read)) read_answers: assert (((s_axil_rdata ^ $past(p_answer)) & $past(p_answers)) == 0 & s_axil_rresp == 0);
        read_valid: assert (s_axil_rvalid == $past(p_read | (s_axil_rvalid & !s_axil_rready)));
        if ($past(s_axil_rvalid & !s_axil_rready)) read_stable: assert (s_axil_rdata == $past(s_axil_rdata));
        // A write is taken in the cycle after it waits, whole; inputs of this cycle do not matter.
        write_taken: assert (s_axil_awready == $past(s_axil_awvalid & s_axil_wvalid & !s_axil_awready & !s_axil_bvalid));
        write_valid: assert (s_axil_bvalid == $past(p_write | (s_axil_bvalid & !s_axil_bready)) & s_axil_bresp == 0);
    end

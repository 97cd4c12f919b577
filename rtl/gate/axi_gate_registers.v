// SPDX-License-Identifier: MIT OR Apache-2.0
// The registers of `axi_gate`, by AXI4-Lite: registers.md beside this file has their table.
module axi_gate_registers #(
    parameter DATA_BITS = 64,
    parameter ID_BITS = 4,
    parameter ADDR_BITS = 32,
    parameter DEPTH = 8,
    parameter COUNT_BITS = 4
) (
    input  wire        aclk,
    input  wire        aresetn,
    input  wire [11:0] s_axil_awaddr,
    input  wire        s_axil_awvalid,
    output wire        s_axil_awready,
    input  wire [31:0] s_axil_wdata,
    input  wire [3:0]  s_axil_wstrb,
    input  wire        s_axil_wvalid,
    output wire        s_axil_wready,
    output wire [1:0]  s_axil_bresp,
    output reg         s_axil_bvalid,
    input  wire        s_axil_bready,
    input  wire [11:0] s_axil_araddr,
    input  wire        s_axil_arvalid,
    output wire        s_axil_arready,
    output reg  [31:0] s_axil_rdata,
    output wire [1:0]  s_axil_rresp,
    output reg         s_axil_rvalid,
    input  wire        s_axil_rready,
    // CONTROL.
    output reg         stop,
    output reg         hold,
    // STATUS and OWED.
    input  wire        idle,
    input  wire        held,
    input  wire [COUNT_BITS-1:0] reads,
    input  wire [COUNT_BITS-1:0] writes,
    input  wire [8:0]  beats,
    // A write's answer, a beat of a read's answer, and the address of the burst it belongs to.
    input  wire        b_taken,
    input  wire [1:0]  b_resp,
    input  wire [ID_BITS-1:0] b_id,
    input  wire        b_hit,
    input  wire [ADDR_BITS-1:0] b_addr,
    input  wire        r_taken,
    input  wire [1:0]  r_resp,
    input  wire [ID_BITS-1:0] r_id,
    input  wire        r_hit,
    input  wire [ADDR_BITS-1:0] r_addr,
    // Events to count.
    input  wire        aw_taken,
    input  wire        ar_taken,
    input  wire        w_given,
    input  wire        misframed
);
    localparam [31:0] ID = 32'h47415445; // "GATE"
    localparam [31:0] VERSION = 32'h0001_0000;
    /* verilator lint_off WIDTH */ // parameters have 32 bits
    localparam [6:0]  ADDR_WIDTH = ADDR_BITS;
    localparam [3:0]  ID_WIDTH = ID_BITS;
    localparam [9:0]  DATA_WIDTH = DATA_BITS;
    localparam [7:0]  DEPTH_WIDTH = DEPTH;
    /* verilator lint_on WIDTH */

    // A write is taken in the cycle after its address and its data are there and the last one was
    // answered. No output depends on an input of the same cycle (A3.1.1).
    reg  ready;
    wire write = ready & s_axil_awvalid & s_axil_wvalid;
    wire read = s_axil_arvalid & !s_axil_rvalid;
    assign s_axil_awready = ready;
    assign s_axil_wready = ready;
    assign s_axil_arready = !s_axil_rvalid;
    assign s_axil_bresp = 2'b00;
    assign s_axil_rresp = 2'b00;

    wire control = write & s_axil_awaddr[11:2] == 10'h03 & s_axil_wstrb[0];
    wire clear = write & s_axil_awaddr[11:2] == 10'h06 & s_axil_wstrb[0] & s_axil_wdata[0];

    // The first error, until it is cleared. EXOKAY, 1, is none.
    wire b_bad = b_taken & b_resp[1];
    wire r_bad = r_taken & r_resp[1];
    reg        latched, by_write, framing, stray;
    reg [1:0]  resp;
    reg [ID_BITS-1:0] id;
    reg [ADDR_BITS-1:0] addr;
    /* verilator lint_off WIDTH */ // zeros above
    wire [11:0] id12 = id;
    wire [63:0] addr64 = addr;
    wire [7:0]  reads8 = reads, writes8 = writes;
    /* verilator lint_on WIDTH */

    reg [31:0] read_bursts, read_beats, write_bursts, write_beats, errors;

    always @(posedge aclk)
        if (!aresetn) begin
            {stop, hold, ready, s_axil_bvalid, s_axil_rvalid} <= 5'b0;
            {latched, framing, stray} <= 3'b0;
            {read_bursts, read_beats, write_bursts, write_beats, errors} <= 160'b0;
        end else begin
            ready <= s_axil_awvalid & s_axil_wvalid & !ready & !s_axil_bvalid;
            if (control) {hold, stop} <= s_axil_wdata[1:0];
            if (write) s_axil_bvalid <= 1'b1;
            else if (s_axil_bready) s_axil_bvalid <= 1'b0;
            if (read) s_axil_rvalid <= 1'b1;
            else if (s_axil_rready) s_axil_rvalid <= 1'b0;

            if (clear) {latched, framing, stray} <= 3'b0;
            if (b_bad | r_bad) latched <= 1'b1;
            if (misframed) framing <= 1'b1;
            if (b_taken & !b_hit | r_taken & !r_hit) stray <= 1'b1;

            read_bursts <= read_bursts + {31'b0, ar_taken};
            read_beats <= read_beats + {31'b0, r_taken};
            write_bursts <= write_bursts + {31'b0, aw_taken};
            write_beats <= write_beats + {31'b0, w_given};
            errors <= errors + {31'b0, b_bad} + {31'b0, r_bad};
        end

    always @(posedge aclk)
        if ((b_bad | r_bad) & (!latched | clear)) begin
            by_write <= b_bad;
            resp <= b_bad ? b_resp : r_resp;
            id <= b_bad ? b_id : r_id;
            addr <= b_bad ? b_addr : r_addr;
        end

    always @(posedge aclk)
        if (read)
            case (s_axil_araddr[11:2])
                10'h00: s_axil_rdata <= ID;
                10'h01: s_axil_rdata <= VERSION;
                10'h02: s_axil_rdata <= {DEPTH_WIDTH, 1'b0, ADDR_WIDTH, 2'b0, ID_WIDTH, DATA_WIDTH};
                10'h03: s_axil_rdata <= {30'b0, hold, stop};
                10'h04: s_axil_rdata <= {26'b0, stray, framing, latched, held, stop & idle, idle};
                10'h05: s_axil_rdata <= {7'b0, beats, writes8, reads8};
                10'h06: s_axil_rdata <= {4'b0, id12, 10'b0, stray, framing, by_write, resp, latched};
                10'h07: s_axil_rdata <= addr64[31:0];
                10'h08: s_axil_rdata <= addr64[63:32];
                10'h09: s_axil_rdata <= read_bursts;
                10'h0A: s_axil_rdata <= read_beats;
                10'h0B: s_axil_rdata <= write_bursts;
                10'h0C: s_axil_rdata <= write_beats;
                10'h0D: s_axil_rdata <= errors;
                default: s_axil_rdata <= 32'b0;
            endcase

`ifdef FORMAL_REGISTERS
`include "axi_gate_registers_properties.vh"
`endif
endmodule

// A core that reads and writes without end in sight, as HLS makes them, with the gate before its
// master where GATED is 1. Its own reset, register 0x10, ends it at once, in the middle of a burst,
// and forgets what it is owed. Data may come before their address.
//
// Registers: 0x00 start, and busy; 0x04 destination; 0x08 source; 0x0C bursts of 16 words; 0x10
// reset. The gate's are at 0x1000.
module top #(
    parameter GATED = 1
) (
    input  wire        clk,
    input  wire        rst_n,
    input  wire [15:0] s_axil_awaddr,
    input  wire        s_axil_awvalid,
    output wire        s_axil_awready,
    input  wire [31:0] s_axil_wdata,
    input  wire [3:0]  s_axil_wstrb,
    input  wire        s_axil_wvalid,
    output wire        s_axil_wready,
    output wire [1:0]  s_axil_bresp,
    output wire        s_axil_bvalid,
    input  wire        s_axil_bready,
    input  wire [15:0] s_axil_araddr,
    input  wire        s_axil_arvalid,
    output wire        s_axil_arready,
    output wire [31:0] s_axil_rdata,
    output wire [1:0]  s_axil_rresp,
    output wire        s_axil_rvalid,
    input  wire        s_axil_rready,
    output wire [11:0] m0_axi_awid,
    output wire [63:0] m0_axi_awaddr,
    output wire [7:0]  m0_axi_awlen,
    output wire [2:0]  m0_axi_awsize,
    output wire [1:0]  m0_axi_awburst,
    output wire        m0_axi_awvalid,
    input  wire        m0_axi_awready,
    output wire [31:0] m0_axi_wdata,
    output wire [3:0]  m0_axi_wstrb,
    output wire        m0_axi_wlast,
    output wire        m0_axi_wvalid,
    input  wire        m0_axi_wready,
    input  wire [11:0] m0_axi_bid,
    input  wire [1:0]  m0_axi_bresp,
    input  wire        m0_axi_bvalid,
    output wire        m0_axi_bready,
    output wire [11:0] m0_axi_arid,
    output wire [63:0] m0_axi_araddr,
    output wire [7:0]  m0_axi_arlen,
    output wire [2:0]  m0_axi_arsize,
    output wire [1:0]  m0_axi_arburst,
    output wire        m0_axi_arvalid,
    input  wire        m0_axi_arready,
    input  wire [11:0] m0_axi_rid,
    input  wire [31:0] m0_axi_rdata,
    input  wire [1:0]  m0_axi_rresp,
    input  wire        m0_axi_rlast,
    input  wire        m0_axi_rvalid,
    output wire        m0_axi_rready
);
    // ---- Registers; the core's reset does not reach them. Bit 12 of an address is the gate.
    reg         own_bvalid, own_rvalid, start, reset;
    reg  [31:0] own_rdata, to, from, bursts;
    wire        gate_awready, gate_wready, gate_bvalid, gate_arready, gate_rvalid;
    wire [1:0]  gate_bresp, gate_rresp;
    wire [31:0] gate_rdata;
    wire write = s_axil_awvalid & s_axil_wvalid & !s_axil_awaddr[12] & !own_bvalid;
    wire read = s_axil_arvalid & !s_axil_araddr[12] & !own_rvalid;
    assign s_axil_awready = s_axil_awaddr[12] ? gate_awready : write;
    assign s_axil_wready = s_axil_awaddr[12] ? gate_wready : write;
    assign s_axil_arready = s_axil_araddr[12] ? gate_arready : read;
    assign s_axil_bvalid = own_bvalid | gate_bvalid;
    assign s_axil_rvalid = own_rvalid | gate_rvalid;
    assign s_axil_rdata = own_rvalid ? own_rdata : gate_rdata;
    assign s_axil_bresp = own_bvalid ? 2'b00 : gate_bresp;
    assign s_axil_rresp = own_rvalid ? 2'b00 : gate_rresp;
    wire busy;
    always @(posedge clk)
        if (!rst_n) {own_bvalid, own_rvalid, start, reset} <= 4'b0;
        else begin
            {start, reset} <= 2'b0;
            if (write) begin
                own_bvalid <= 1'b1;
                case (s_axil_awaddr[4:2])
                    3'd0: start <= s_axil_wdata[0];
                    3'd1: to <= s_axil_wdata;
                    3'd2: from <= s_axil_wdata;
                    3'd3: bursts <= s_axil_wdata;
                    default: reset <= 1'b1;
                endcase
            end else if (s_axil_bready) own_bvalid <= 1'b0;
            if (read) begin
                own_rvalid <= 1'b1;
                own_rdata <= {31'b0, busy | start};
            end else if (s_axil_rready) own_rvalid <= 1'b0;
        end

    // ---- The core.
    wire        gate_aresetn;
    wire        core_rst_n = rst_n & gate_aresetn & !reset;
    reg  [15:0] aw_left, b_left, ar_left, r_left;
    reg  [19:0] w_left;
    reg  [31:0] aw_addr, ar_addr;
    wire c_awready, c_wready, c_bvalid, c_arready, c_rvalid, c_rlast;
    assign busy = aw_left != 0 | w_left != 0 | b_left != 0 | ar_left != 0 | r_left != 0;
    always @(posedge clk)
        if (!core_rst_n) begin
            {aw_left, b_left, ar_left, r_left} <= 64'b0;
            w_left <= 20'b0;
        end else if (start & !busy) begin
            {aw_left, b_left, ar_left, r_left} <= {4{bursts[15:0]}};
            w_left <= {bursts[15:0], 4'b0};
            {aw_addr, ar_addr} <= {to, from};
        end else begin
            if (aw_left != 0 & c_awready) {aw_left, aw_addr} <= {aw_left - 16'd1, aw_addr + 32'd64};
            if (w_left != 0 & c_wready) w_left <= w_left - 20'd1;
            if (b_left != 0 & c_bvalid) b_left <= b_left - 16'd1;
            if (ar_left != 0 & c_arready) {ar_left, ar_addr} <= {ar_left - 16'd1, ar_addr + 32'd64};
            if (r_left != 0 & c_rvalid & c_rlast) r_left <= r_left - 16'd1;
        end
    wire [11:0] c_awid = {10'b0, aw_left[1:0]};
    wire [11:0] c_arid = {10'b0, ar_left[1:0]};
    wire [31:0] c_wdata = {12'hC0D, w_left};
    wire        c_wlast = w_left[3:0] == 4'd1;

    /* verilator lint_off PINCONNECTEMPTY */ // this core looks at no response
    generate
        if (GATED != 0) begin : gated
            axi_gate #(.DATA_BITS(32), .ID_BITS(12), .ADDR_BITS(64), .DEPTH(8)) gate (
                .aclk(clk), .aresetn(rst_n), .core_aresetn(gate_aresetn),
                .s_axil_awaddr(s_axil_awaddr[11:0]), .s_axil_awprot(3'd0), .s_axil_awvalid(s_axil_awvalid & s_axil_awaddr[12]), .s_axil_awready(gate_awready),
                .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb), .s_axil_wvalid(s_axil_wvalid & s_axil_awaddr[12]),
                .s_axil_wready(gate_wready), .s_axil_bresp(gate_bresp), .s_axil_bvalid(gate_bvalid), .s_axil_bready(s_axil_bready),
                .s_axil_araddr(s_axil_araddr[11:0]), .s_axil_arprot(3'd0), .s_axil_arvalid(s_axil_arvalid & s_axil_araddr[12]), .s_axil_arready(gate_arready),
                .s_axil_rdata(gate_rdata), .s_axil_rresp(gate_rresp), .s_axil_rvalid(gate_rvalid), .s_axil_rready(s_axil_rready),
                .s_axi_awid(c_awid), .s_axi_awaddr({32'b0, aw_addr}), .s_axi_awlen(8'd15), .s_axi_awsize(3'd2), .s_axi_awburst(2'd1),
                .s_axi_awlock(1'b0), .s_axi_awcache(4'd3), .s_axi_awprot(3'd0), .s_axi_awqos(4'd0),
                .s_axi_awvalid(aw_left != 0), .s_axi_awready(c_awready),
                .s_axi_wdata(c_wdata), .s_axi_wstrb(4'hF), .s_axi_wlast(c_wlast), .s_axi_wvalid(w_left != 0), .s_axi_wready(c_wready),
                .s_axi_bid(), .s_axi_bresp(), .s_axi_bvalid(c_bvalid), .s_axi_bready(1'b1),
                .s_axi_arid(c_arid), .s_axi_araddr({32'b0, ar_addr}), .s_axi_arlen(8'd15), .s_axi_arsize(3'd2), .s_axi_arburst(2'd1),
                .s_axi_arlock(1'b0), .s_axi_arcache(4'd3), .s_axi_arprot(3'd0), .s_axi_arqos(4'd0),
                .s_axi_arvalid(ar_left != 0), .s_axi_arready(c_arready),
                .s_axi_rid(), .s_axi_rdata(), .s_axi_rresp(), .s_axi_rlast(c_rlast), .s_axi_rvalid(c_rvalid), .s_axi_rready(1'b1),
                .m_axi_awid(m0_axi_awid), .m_axi_awaddr(m0_axi_awaddr), .m_axi_awlen(m0_axi_awlen), .m_axi_awsize(m0_axi_awsize),
                .m_axi_awburst(m0_axi_awburst), .m_axi_awlock(), .m_axi_awcache(), .m_axi_awprot(), .m_axi_awqos(),
                .m_axi_awvalid(m0_axi_awvalid), .m_axi_awready(m0_axi_awready),
                .m_axi_wdata(m0_axi_wdata), .m_axi_wstrb(m0_axi_wstrb), .m_axi_wlast(m0_axi_wlast),
                .m_axi_wvalid(m0_axi_wvalid), .m_axi_wready(m0_axi_wready),
                .m_axi_bid(m0_axi_bid), .m_axi_bresp(m0_axi_bresp), .m_axi_bvalid(m0_axi_bvalid), .m_axi_bready(m0_axi_bready),
                .m_axi_arid(m0_axi_arid), .m_axi_araddr(m0_axi_araddr), .m_axi_arlen(m0_axi_arlen), .m_axi_arsize(m0_axi_arsize),
                .m_axi_arburst(m0_axi_arburst), .m_axi_arlock(), .m_axi_arcache(), .m_axi_arprot(), .m_axi_arqos(),
                .m_axi_arvalid(m0_axi_arvalid), .m_axi_arready(m0_axi_arready),
                .m_axi_rid(m0_axi_rid), .m_axi_rdata(m0_axi_rdata), .m_axi_rresp(m0_axi_rresp), .m_axi_rlast(m0_axi_rlast),
                .m_axi_rvalid(m0_axi_rvalid), .m_axi_rready(m0_axi_rready)
            );
        end else begin : bare
            assign gate_aresetn = 1'b1;
            assign {gate_awready, gate_wready, gate_bvalid, gate_arready, gate_rvalid} = 5'b0;
            assign {gate_bresp, gate_rresp, gate_rdata} = 36'b0;
            assign {m0_axi_awid, m0_axi_awaddr, m0_axi_awlen} = {c_awid, 32'b0, aw_addr, 8'd15};
            assign {m0_axi_awsize, m0_axi_awburst, m0_axi_awvalid} = {3'd2, 2'd1, aw_left != 0};
            assign {m0_axi_wdata, m0_axi_wstrb, m0_axi_wlast, m0_axi_wvalid} = {c_wdata, 4'hF, c_wlast, w_left != 0};
            assign {m0_axi_arid, m0_axi_araddr, m0_axi_arlen} = {c_arid, 32'b0, ar_addr, 8'd15};
            assign {m0_axi_arsize, m0_axi_arburst, m0_axi_arvalid} = {3'd2, 2'd1, ar_left != 0};
            assign {m0_axi_bready, m0_axi_rready} = 2'b11;
            assign {c_awready, c_wready, c_bvalid} = {m0_axi_awready, m0_axi_wready, m0_axi_bvalid};
            assign {c_arready, c_rvalid, c_rlast} = {m0_axi_arready, m0_axi_rvalid, m0_axi_rlast};
        end
    endgenerate
endmodule

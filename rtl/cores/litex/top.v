// LiteX's DMA (generate.py), with the port names that every core here has. Its reader's master and its
// writer's are one here: the one has the channels of reads, the other those of writes. Each burst is
// one beat, of 32 bits, at an address of 32 bits, with one ID. Where GATED is 1, the gate is before
// this master, and the gate's registers are at 0x1000.
module top #(
    parameter GATED = 0
) (
    input  wire        clk,
    input  wire        rst_n,
    output wire        idle,

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
    // ---- Registers: bit 12 of an address is the gate. The processor makes one access at a time; the
    // data of a write wait for its address.
    reg  asked, asked_gate;
    wire gate_write = s_axil_awvalid ? s_axil_awaddr[12] : asked_gate;
    wire w_valid = s_axil_wvalid & (s_axil_awvalid | asked);
    always @(posedge clk)
        if (!rst_n) asked <= 1'b0;
        else if (s_axil_awvalid) {asked, asked_gate} <= {1'b1, s_axil_awaddr[12]};
        else if (s_axil_bvalid & s_axil_bready) asked <= 1'b0;
    wire        core_awready, core_wready, core_bvalid, core_arready, core_rvalid;
    wire        gate_awready, gate_wready, gate_bvalid, gate_arready, gate_rvalid;
    wire [1:0]  core_bresp, core_rresp, gate_bresp, gate_rresp;
    wire [31:0] core_rdata, gate_rdata;
    assign s_axil_awready = s_axil_awaddr[12] ? gate_awready : core_awready;
    assign s_axil_wready = w_valid & (gate_write ? gate_wready : core_wready);
    assign s_axil_arready = s_axil_araddr[12] ? gate_arready : core_arready;
    assign {s_axil_bvalid, s_axil_rvalid} = {core_bvalid | gate_bvalid, core_rvalid | gate_rvalid};
    assign s_axil_bresp = core_bvalid ? core_bresp : gate_bresp;
    assign {s_axil_rdata, s_axil_rresp} = core_rvalid ? {core_rdata, core_rresp} : {gate_rdata, gate_rresp};

    // ---- The core.
    wire        gate_aresetn, gate_idle, busy;
    wire [31:0] awaddr, araddr, wdata, rdata;
    wire [1:0]  bresp, rresp;
    wire [3:0]  wstrb;
    wire        awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready;
    assign idle = !busy & gate_idle;

    litex_dma core (
        .sys_clk(clk), .sys_rst(!(rst_n & gate_aresetn)), .busy(busy),
        .m_awaddr(awaddr), .m_awvalid(awvalid), .m_awready(awready),
        .m_wdata(wdata), .m_wstrb(wstrb), .m_wvalid(wvalid), .m_wready(wready),
        .m_bresp(bresp), .m_bvalid(bvalid), .m_bready(bready),
        .m_araddr(araddr), .m_arvalid(arvalid), .m_arready(arready),
        .m_rdata(rdata), .m_rresp(rresp), .m_rvalid(rvalid), .m_rready(rready),
        .s_axil_awaddr({16'd0, s_axil_awaddr}), .s_axil_awvalid(s_axil_awvalid & !s_axil_awaddr[12]), .s_axil_awready(core_awready),
        .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb), .s_axil_wvalid(w_valid & !gate_write), .s_axil_wready(core_wready),
        .s_axil_bresp(core_bresp), .s_axil_bvalid(core_bvalid), .s_axil_bready(s_axil_bready),
        .s_axil_araddr({16'd0, s_axil_araddr}), .s_axil_arvalid(s_axil_arvalid & !s_axil_araddr[12]), .s_axil_arready(core_arready),
        .s_axil_rdata(core_rdata), .s_axil_rresp(core_rresp), .s_axil_rvalid(core_rvalid), .s_axil_rready(s_axil_rready)
    );

    // ---- Its way to memory.
    assign {m0_axi_awid[11:1], m0_axi_arid[11:1], m0_axi_awaddr[63:32], m0_axi_araddr[63:32]} = 86'd0;
    generate
        if (GATED != 0) begin : gated
            axi_gate #(.DATA_BITS(32), .ID_BITS(1), .ADDR_BITS(32)) gate (
                .aclk(clk), .aresetn(rst_n), .core_aresetn(gate_aresetn),
                .s_axil_awaddr(s_axil_awaddr[11:0]), .s_axil_awprot(3'd0), .s_axil_awvalid(s_axil_awvalid & s_axil_awaddr[12]), .s_axil_awready(gate_awready),
                .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb), .s_axil_wvalid(w_valid & gate_write), .s_axil_wready(gate_wready),
                .s_axil_bresp(gate_bresp), .s_axil_bvalid(gate_bvalid), .s_axil_bready(s_axil_bready),
                .s_axil_araddr(s_axil_araddr[11:0]), .s_axil_arprot(3'd0), .s_axil_arvalid(s_axil_arvalid & s_axil_araddr[12]), .s_axil_arready(gate_arready),
                .s_axil_rdata(gate_rdata), .s_axil_rresp(gate_rresp), .s_axil_rvalid(gate_rvalid), .s_axil_rready(s_axil_rready),
                .s_axi_awid(1'b0), .s_axi_awaddr(awaddr), .s_axi_awlen(8'd0), .s_axi_awsize(3'd2), .s_axi_awburst(2'd1),
                .s_axi_awlock(1'b0), .s_axi_awcache(4'd3), .s_axi_awprot(3'd0), .s_axi_awqos(4'd0),
                .s_axi_awvalid(awvalid), .s_axi_awready(awready),
                .s_axi_wdata(wdata), .s_axi_wstrb(wstrb), .s_axi_wlast(1'b1), .s_axi_wvalid(wvalid), .s_axi_wready(wready),
                .s_axi_bid(), .s_axi_bresp(bresp), .s_axi_bvalid(bvalid), .s_axi_bready(bready),
                .s_axi_arid(1'b0), .s_axi_araddr(araddr), .s_axi_arlen(8'd0), .s_axi_arsize(3'd2), .s_axi_arburst(2'd1),
                .s_axi_arlock(1'b0), .s_axi_arcache(4'd3), .s_axi_arprot(3'd0), .s_axi_arqos(4'd0),
                .s_axi_arvalid(arvalid), .s_axi_arready(arready),
                .s_axi_rid(), .s_axi_rdata(rdata), .s_axi_rresp(rresp), .s_axi_rlast(), .s_axi_rvalid(rvalid), .s_axi_rready(rready),
                .m_axi_awid(m0_axi_awid[0]), .m_axi_awaddr(m0_axi_awaddr[31:0]), .m_axi_awlen(m0_axi_awlen), .m_axi_awsize(m0_axi_awsize),
                .m_axi_awburst(m0_axi_awburst), .m_axi_awlock(), .m_axi_awcache(), .m_axi_awprot(), .m_axi_awqos(),
                .m_axi_awvalid(m0_axi_awvalid), .m_axi_awready(m0_axi_awready),
                .m_axi_wdata(m0_axi_wdata), .m_axi_wstrb(m0_axi_wstrb), .m_axi_wlast(m0_axi_wlast),
                .m_axi_wvalid(m0_axi_wvalid), .m_axi_wready(m0_axi_wready),
                .m_axi_bid(m0_axi_bid[0]), .m_axi_bresp(m0_axi_bresp), .m_axi_bvalid(m0_axi_bvalid), .m_axi_bready(m0_axi_bready),
                .m_axi_arid(m0_axi_arid[0]), .m_axi_araddr(m0_axi_araddr[31:0]), .m_axi_arlen(m0_axi_arlen), .m_axi_arsize(m0_axi_arsize),
                .m_axi_arburst(m0_axi_arburst), .m_axi_arlock(), .m_axi_arcache(), .m_axi_arprot(), .m_axi_arqos(),
                .m_axi_arvalid(m0_axi_arvalid), .m_axi_arready(m0_axi_arready),
                .m_axi_rid(m0_axi_rid[0]), .m_axi_rdata(m0_axi_rdata), .m_axi_rresp(m0_axi_rresp), .m_axi_rlast(m0_axi_rlast),
                .m_axi_rvalid(m0_axi_rvalid), .m_axi_rready(m0_axi_rready)
            );
            assign gate_idle = gate.idle;
        end else begin : bare
            assign {gate_aresetn, gate_idle} = 2'b11;
            assign {gate_awready, gate_wready, gate_bvalid, gate_arready, gate_rvalid} = 5'b0;
            assign {gate_bresp, gate_rresp, gate_rdata} = 36'b0;
            assign {m0_axi_awid[0], m0_axi_awaddr[31:0], m0_axi_awlen, m0_axi_awsize} = {1'b0, awaddr, 8'd0, 3'd2};
            assign {m0_axi_awburst, m0_axi_awvalid, m0_axi_bready} = {2'd1, awvalid, bready};
            assign {m0_axi_wdata, m0_axi_wstrb, m0_axi_wlast, m0_axi_wvalid} = {wdata, wstrb, 1'b1, wvalid};
            assign {m0_axi_arid[0], m0_axi_araddr[31:0], m0_axi_arlen, m0_axi_arsize} = {1'b0, araddr, 8'd0, 3'd2};
            assign {m0_axi_arburst, m0_axi_arvalid, m0_axi_rready} = {2'd1, arvalid, rready};
            assign {awready, wready, bresp, bvalid} = {m0_axi_awready, m0_axi_wready, m0_axi_bresp, m0_axi_bvalid};
            assign {arready, rdata, rresp, rvalid} = {m0_axi_arready, m0_axi_rdata, m0_axi_rresp, m0_axi_rvalid};
        end
    endgenerate
endmodule

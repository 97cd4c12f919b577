// gemm8 (examples/gemm8), with the ports of README.md. Where GATED is 1 the gate (rtl/gate/README.md)
// stands before its master, resets it, and has its registers at 0x1000.
module top #(
    parameter GATED = 0
) (
    input  wire         clk,
    input  wire         rst_n,
    output wire         irq,
    output wire         idle,

    input  wire [15:0]  s_axil_awaddr,
    input  wire         s_axil_awvalid,
    output wire         s_axil_awready,
    input  wire [31:0]  s_axil_wdata,
    input  wire [3:0]   s_axil_wstrb,
    input  wire         s_axil_wvalid,
    output wire         s_axil_wready,
    output wire [1:0]   s_axil_bresp,
    output wire         s_axil_bvalid,
    input  wire         s_axil_bready,
    input  wire [15:0]  s_axil_araddr,
    input  wire         s_axil_arvalid,
    output wire         s_axil_arready,
    output wire [31:0]  s_axil_rdata,
    output wire [1:0]   s_axil_rresp,
    output wire         s_axil_rvalid,
    input  wire         s_axil_rready,

    output wire [11:0]  m0_axi_awid,
    output wire [63:0]  m0_axi_awaddr,
    output wire [7:0]   m0_axi_awlen,
    output wire [2:0]   m0_axi_awsize,
    output wire [1:0]   m0_axi_awburst,
    output wire         m0_axi_awvalid,
    input  wire         m0_axi_awready,
    output wire [127:0] m0_axi_wdata,
    output wire [15:0]  m0_axi_wstrb,
    output wire         m0_axi_wlast,
    output wire         m0_axi_wvalid,
    input  wire         m0_axi_wready,
    input  wire [11:0]  m0_axi_bid,
    input  wire [1:0]   m0_axi_bresp,
    input  wire         m0_axi_bvalid,
    output wire         m0_axi_bready,
    output wire [11:0]  m0_axi_arid,
    output wire [63:0]  m0_axi_araddr,
    output wire [7:0]   m0_axi_arlen,
    output wire [2:0]   m0_axi_arsize,
    output wire [1:0]   m0_axi_arburst,
    output wire         m0_axi_arvalid,
    input  wire         m0_axi_arready,
    input  wire [11:0]  m0_axi_rid,
    input  wire [127:0] m0_axi_rdata,
    input  wire [1:0]   m0_axi_rresp,
    input  wire         m0_axi_rlast,
    input  wire         m0_axi_rvalid,
    output wire         m0_axi_rready
);
    // ---- Registers: bit 12 of an address is the gate. The processor makes one access at a time; the
    // data of a write wait for its address.
    reg  asked, asked_gate;
    wire at_gate = GATED != 0 & s_axil_awaddr[12];
    wire at_gate_read = GATED != 0 & s_axil_araddr[12];
    wire gate_write = s_axil_awvalid ? at_gate : asked_gate;
    wire w_valid = s_axil_wvalid & (s_axil_awvalid | asked);
    always @(posedge clk)
        if (!rst_n) {asked, asked_gate} <= 2'b0;
        else if (s_axil_awvalid) {asked, asked_gate} <= {1'b1, at_gate};
        else if (s_axil_bvalid & s_axil_bready) asked <= 1'b0;
    wire        core_awready, core_wready, core_bvalid, core_arready, core_rvalid;
    wire        gate_awready, gate_wready, gate_bvalid, gate_arready, gate_rvalid;
    wire [1:0]  core_bresp, core_rresp, gate_bresp, gate_rresp;
    wire [31:0] core_rdata, gate_rdata;
    assign s_axil_awready = at_gate ? gate_awready : core_awready;
    assign s_axil_wready = w_valid & (gate_write ? gate_wready : core_wready);
    assign s_axil_arready = at_gate_read ? gate_arready : core_arready;
    assign {s_axil_bvalid, s_axil_rvalid} = {core_bvalid | gate_bvalid, core_rvalid | gate_rvalid};
    assign s_axil_bresp = core_bvalid ? core_bresp : gate_bresp;
    assign {s_axil_rdata, s_axil_rresp} = core_rvalid ? {core_rdata, core_rresp} : {gate_rdata, gate_rresp};

    // ---- The core. It has no IDs.
    wire         gate_aresetn, gate_idle, core_idle;
    wire [63:0]  awaddr, araddr;
    wire [7:0]   awlen, arlen;
    wire [2:0]   awsize, arsize, awprot, arprot;
    wire [1:0]   awburst, arburst, bresp, rresp;
    wire [3:0]   awcache, arcache;
    wire [127:0] wdata, rdata;
    wire [15:0]  wstrb;
    wire         awvalid, awready, wlast, wvalid, wready, bvalid, bready, arvalid, arready, rlast, rvalid, rready;
    assign idle = core_idle & gate_idle;

    gemm8 core (
        .clk(clk), .rst_n(rst_n & gate_aresetn), .interrupt(irq), .idle(core_idle),
        .s_axi_control_awaddr({4'd0, s_axil_awaddr[7:0]}), .s_axi_control_awprot(3'd0),
        .s_axi_control_awvalid(s_axil_awvalid & !at_gate),
        .s_axi_control_awready(core_awready), .s_axi_control_wdata(s_axil_wdata),
        .s_axi_control_wstrb(s_axil_wstrb), .s_axi_control_wvalid(w_valid & !gate_write),
        .s_axi_control_wready(core_wready), .s_axi_control_bresp(core_bresp),
        .s_axi_control_bvalid(core_bvalid), .s_axi_control_bready(s_axil_bready),
        .s_axi_control_araddr({4'd0, s_axil_araddr[7:0]}), .s_axi_control_arprot(3'd0),
        .s_axi_control_arvalid(s_axil_arvalid & !at_gate_read),
        .s_axi_control_arready(core_arready), .s_axi_control_rdata(core_rdata),
        .s_axi_control_rresp(core_rresp), .s_axi_control_rvalid(core_rvalid),
        .s_axi_control_rready(s_axil_rready),
        .m_axi_gmem_awaddr(awaddr), .m_axi_gmem_awlen(awlen), .m_axi_gmem_awsize(awsize),
        .m_axi_gmem_awburst(awburst), .m_axi_gmem_awcache(awcache), .m_axi_gmem_awprot(awprot),
        .m_axi_gmem_awvalid(awvalid), .m_axi_gmem_awready(awready),
        .m_axi_gmem_wdata(wdata), .m_axi_gmem_wstrb(wstrb), .m_axi_gmem_wlast(wlast),
        .m_axi_gmem_wvalid(wvalid), .m_axi_gmem_wready(wready),
        .m_axi_gmem_bresp(bresp), .m_axi_gmem_bvalid(bvalid), .m_axi_gmem_bready(bready),
        .m_axi_gmem_araddr(araddr), .m_axi_gmem_arlen(arlen), .m_axi_gmem_arsize(arsize),
        .m_axi_gmem_arburst(arburst), .m_axi_gmem_arcache(arcache), .m_axi_gmem_arprot(arprot),
        .m_axi_gmem_arvalid(arvalid), .m_axi_gmem_arready(arready),
        .m_axi_gmem_rdata(rdata), .m_axi_gmem_rresp(rresp), .m_axi_gmem_rlast(rlast),
        .m_axi_gmem_rvalid(rvalid), .m_axi_gmem_rready(rready)
    );

    // ---- Its way to memory. Memory of the simulated board looks at no cache, prot or QoS.
    assign {m0_axi_awid[11:1], m0_axi_arid[11:1]} = 22'd0;
    /* verilator lint_off PINCONNECTEMPTY */
    generate
        if (GATED != 0) begin : gated
            axi_gate #(.DATA_BITS(128), .ID_BITS(1), .ADDR_BITS(64), .DEPTH(16)) gate (
                .aclk(clk), .aresetn(rst_n), .core_aresetn(gate_aresetn),
                .s_axil_awaddr(s_axil_awaddr[11:0]), .s_axil_awprot(3'd0), .s_axil_awvalid(s_axil_awvalid & at_gate), .s_axil_awready(gate_awready),
                .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb), .s_axil_wvalid(w_valid & gate_write), .s_axil_wready(gate_wready),
                .s_axil_bresp(gate_bresp), .s_axil_bvalid(gate_bvalid), .s_axil_bready(s_axil_bready),
                .s_axil_araddr(s_axil_araddr[11:0]), .s_axil_arprot(3'd0), .s_axil_arvalid(s_axil_arvalid & at_gate_read), .s_axil_arready(gate_arready),
                .s_axil_rdata(gate_rdata), .s_axil_rresp(gate_rresp), .s_axil_rvalid(gate_rvalid), .s_axil_rready(s_axil_rready),
                .s_axi_awid(1'b0), .s_axi_awaddr(awaddr), .s_axi_awlen(awlen), .s_axi_awsize(awsize), .s_axi_awburst(awburst),
                .s_axi_awlock(1'b0), .s_axi_awcache(awcache), .s_axi_awprot(awprot), .s_axi_awqos(4'd0),
                .s_axi_awvalid(awvalid), .s_axi_awready(awready),
                .s_axi_wdata(wdata), .s_axi_wstrb(wstrb), .s_axi_wlast(wlast), .s_axi_wvalid(wvalid), .s_axi_wready(wready),
                .s_axi_bid(), .s_axi_bresp(bresp), .s_axi_bvalid(bvalid), .s_axi_bready(bready),
                .s_axi_arid(1'b0), .s_axi_araddr(araddr), .s_axi_arlen(arlen), .s_axi_arsize(arsize), .s_axi_arburst(arburst),
                .s_axi_arlock(1'b0), .s_axi_arcache(arcache), .s_axi_arprot(arprot), .s_axi_arqos(4'd0),
                .s_axi_arvalid(arvalid), .s_axi_arready(arready),
                .s_axi_rid(), .s_axi_rdata(rdata), .s_axi_rresp(rresp), .s_axi_rlast(rlast), .s_axi_rvalid(rvalid), .s_axi_rready(rready),
                .m_axi_awid(m0_axi_awid[0]), .m_axi_awaddr(m0_axi_awaddr), .m_axi_awlen(m0_axi_awlen), .m_axi_awsize(m0_axi_awsize),
                .m_axi_awburst(m0_axi_awburst), .m_axi_awlock(), .m_axi_awcache(), .m_axi_awprot(), .m_axi_awqos(),
                .m_axi_awvalid(m0_axi_awvalid), .m_axi_awready(m0_axi_awready),
                .m_axi_wdata(m0_axi_wdata), .m_axi_wstrb(m0_axi_wstrb), .m_axi_wlast(m0_axi_wlast),
                .m_axi_wvalid(m0_axi_wvalid), .m_axi_wready(m0_axi_wready),
                .m_axi_bid(m0_axi_bid[0]), .m_axi_bresp(m0_axi_bresp), .m_axi_bvalid(m0_axi_bvalid), .m_axi_bready(m0_axi_bready),
                .m_axi_arid(m0_axi_arid[0]), .m_axi_araddr(m0_axi_araddr), .m_axi_arlen(m0_axi_arlen), .m_axi_arsize(m0_axi_arsize),
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
            assign {m0_axi_awid[0], m0_axi_awaddr, m0_axi_awlen, m0_axi_awsize} = {1'b0, awaddr, awlen, awsize};
            assign {m0_axi_awburst, m0_axi_awvalid, m0_axi_bready} = {awburst, awvalid, bready};
            assign {m0_axi_wdata, m0_axi_wstrb, m0_axi_wlast, m0_axi_wvalid} = {wdata, wstrb, wlast, wvalid};
            assign {m0_axi_arid[0], m0_axi_araddr, m0_axi_arlen, m0_axi_arsize} = {1'b0, araddr, arlen, arsize};
            assign {m0_axi_arburst, m0_axi_arvalid, m0_axi_rready} = {arburst, arvalid, rready};
            assign {awready, wready, bresp, bvalid} = {m0_axi_awready, m0_axi_wready, m0_axi_bresp, m0_axi_bvalid};
            assign {arready, rdata, rresp, rlast, rvalid} = {m0_axi_arready, m0_axi_rdata, m0_axi_rresp, m0_axi_rlast, m0_axi_rvalid};
        end
    endgenerate
    /* verilator lint_on PINCONNECTEMPTY */
endmodule

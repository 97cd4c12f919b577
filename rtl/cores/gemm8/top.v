// gemm8 (examples/gemm8), with the ports of README.md.
module top (
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
    // It has one ID for all bursts.
    wire awid, arid;
    // Memory of the simulated board looks at none of these.
    wire [3:0] awcache, arcache;
    wire [2:0] awprot, arprot;

    assign m0_axi_awid = {11'd0, awid};
    assign m0_axi_arid = {11'd0, arid};

    gemm8 core (
        .clk(clk), .rst_n(rst_n), .interrupt(irq), .idle(idle),
        .s_axi_control_awaddr(s_axil_awaddr[7:0]), .s_axi_control_awvalid(s_axil_awvalid),
        .s_axi_control_awready(s_axil_awready), .s_axi_control_wdata(s_axil_wdata),
        .s_axi_control_wstrb(s_axil_wstrb), .s_axi_control_wvalid(s_axil_wvalid),
        .s_axi_control_wready(s_axil_wready), .s_axi_control_bresp(s_axil_bresp),
        .s_axi_control_bvalid(s_axil_bvalid), .s_axi_control_bready(s_axil_bready),
        .s_axi_control_araddr(s_axil_araddr[7:0]), .s_axi_control_arvalid(s_axil_arvalid),
        .s_axi_control_arready(s_axil_arready), .s_axi_control_rdata(s_axil_rdata),
        .s_axi_control_rresp(s_axil_rresp), .s_axi_control_rvalid(s_axil_rvalid),
        .s_axi_control_rready(s_axil_rready),
        .m_axi_gmem_awid(awid), .m_axi_gmem_awaddr(m0_axi_awaddr),
        .m_axi_gmem_awlen(m0_axi_awlen), .m_axi_gmem_awsize(m0_axi_awsize),
        .m_axi_gmem_awburst(m0_axi_awburst), .m_axi_gmem_awcache(awcache), .m_axi_gmem_awprot(awprot),
        .m_axi_gmem_awvalid(m0_axi_awvalid), .m_axi_gmem_awready(m0_axi_awready),
        .m_axi_gmem_wdata(m0_axi_wdata), .m_axi_gmem_wstrb(m0_axi_wstrb),
        .m_axi_gmem_wlast(m0_axi_wlast), .m_axi_gmem_wvalid(m0_axi_wvalid),
        .m_axi_gmem_wready(m0_axi_wready), .m_axi_gmem_bresp(m0_axi_bresp),
        .m_axi_gmem_bvalid(m0_axi_bvalid), .m_axi_gmem_bready(m0_axi_bready),
        .m_axi_gmem_arid(arid), .m_axi_gmem_araddr(m0_axi_araddr),
        .m_axi_gmem_arlen(m0_axi_arlen), .m_axi_gmem_arsize(m0_axi_arsize),
        .m_axi_gmem_arburst(m0_axi_arburst), .m_axi_gmem_arcache(arcache), .m_axi_gmem_arprot(arprot),
        .m_axi_gmem_arvalid(m0_axi_arvalid), .m_axi_gmem_arready(m0_axi_arready),
        .m_axi_gmem_rdata(m0_axi_rdata), .m_axi_gmem_rresp(m0_axi_rresp),
        .m_axi_gmem_rlast(m0_axi_rlast), .m_axi_gmem_rvalid(m0_axi_rvalid),
        .m_axi_gmem_rready(m0_axi_rready)
    );
endmodule

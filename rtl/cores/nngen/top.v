// The network that NNgen made (generate.py), with the port names that every core here has. Its
// addresses have 32 bits, and it has one ID.
module top (
    input  wire        clk,
    input  wire        rst_n,
    output wire        irq,
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
    assign m0_axi_awid = 12'd0;
    assign m0_axi_arid = 12'd0;
    assign m0_axi_awaddr[63:32] = 32'd0;
    assign m0_axi_araddr[63:32] = 32'd0;
    // The BUSY register, as a driver reads it.
    assign idle = core._saxi_register_5 == 0;

    mlp core (
        .CLK(clk), .RESETN(rst_n), .irq(irq),
        .maxi_awaddr(m0_axi_awaddr[31:0]), .maxi_awlen(m0_axi_awlen), .maxi_awsize(m0_axi_awsize),
        .maxi_awburst(m0_axi_awburst), .maxi_awlock(), .maxi_awcache(), .maxi_awprot(), .maxi_awqos(), .maxi_awuser(),
        .maxi_awvalid(m0_axi_awvalid), .maxi_awready(m0_axi_awready),
        .maxi_wdata(m0_axi_wdata), .maxi_wstrb(m0_axi_wstrb), .maxi_wlast(m0_axi_wlast), .maxi_wvalid(m0_axi_wvalid),
        .maxi_wready(m0_axi_wready),
        .maxi_bresp(m0_axi_bresp), .maxi_bvalid(m0_axi_bvalid), .maxi_bready(m0_axi_bready),
        .maxi_araddr(m0_axi_araddr[31:0]), .maxi_arlen(m0_axi_arlen), .maxi_arsize(m0_axi_arsize),
        .maxi_arburst(m0_axi_arburst), .maxi_arlock(), .maxi_arcache(), .maxi_arprot(), .maxi_arqos(), .maxi_aruser(),
        .maxi_arvalid(m0_axi_arvalid), .maxi_arready(m0_axi_arready),
        .maxi_rdata(m0_axi_rdata), .maxi_rresp(m0_axi_rresp), .maxi_rlast(m0_axi_rlast), .maxi_rvalid(m0_axi_rvalid),
        .maxi_rready(m0_axi_rready),
        .saxi_awaddr({16'd0, s_axil_awaddr}), .saxi_awcache(4'd0), .saxi_awprot(3'd0), .saxi_awvalid(s_axil_awvalid),
        .saxi_awready(s_axil_awready),
        .saxi_wdata(s_axil_wdata), .saxi_wstrb(s_axil_wstrb), .saxi_wvalid(s_axil_wvalid), .saxi_wready(s_axil_wready),
        .saxi_bresp(s_axil_bresp), .saxi_bvalid(s_axil_bvalid), .saxi_bready(s_axil_bready),
        .saxi_araddr({16'd0, s_axil_araddr}), .saxi_arcache(4'd0), .saxi_arprot(3'd0), .saxi_arvalid(s_axil_arvalid),
        .saxi_arready(s_axil_arready),
        .saxi_rdata(s_axil_rdata), .saxi_rresp(s_axil_rresp), .saxi_rvalid(s_axil_rvalid), .saxi_rready(s_axil_rready)
    );
endmodule

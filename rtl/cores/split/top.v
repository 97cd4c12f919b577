// Three masters, as AXI DMA has: the first only reads, the second only writes. It copies COUNT
// words from FROM to TO, one at a time. Then the third, of 64 bits, adds their sum to the word at
// SUM.
//
// Registers: 0 starts it when it is written, and reads as 1 while it works; 4 FROM, 8 TO, 12 SUM,
// 16 COUNT, at least 1.
module top (
    input  wire        clk,
    input  wire        rst_n,
    output wire        idle,
    input  wire [15:0] s_axil_awaddr,
    input  wire        s_axil_awvalid,
    output wire        s_axil_awready,
    input  wire [31:0] s_axil_wdata,
    input  wire        s_axil_wvalid,
    output wire        s_axil_wready,
    output wire [1:0]  s_axil_bresp,
    output reg         s_axil_bvalid,
    input  wire        s_axil_bready,
    input  wire [15:0] s_axil_araddr,
    input  wire        s_axil_arvalid,
    output wire        s_axil_arready,
    output reg  [31:0] s_axil_rdata,
    output wire [1:0]  s_axil_rresp,
    output reg         s_axil_rvalid,
    input  wire        s_axil_rready,
    output wire [31:0] m0_axi_araddr,
    output wire [7:0]  m0_axi_arlen,
    output wire [2:0]  m0_axi_arsize,
    output wire [1:0]  m0_axi_arburst,
    output wire        m0_axi_arvalid,
    input  wire        m0_axi_arready,
    input  wire [31:0] m0_axi_rdata,
    input  wire [1:0]  m0_axi_rresp,
    input  wire        m0_axi_rlast,
    input  wire        m0_axi_rvalid,
    output wire        m0_axi_rready,
    output wire [31:0] m1_axi_awaddr,
    output wire [7:0]  m1_axi_awlen,
    output wire [2:0]  m1_axi_awsize,
    output wire [1:0]  m1_axi_awburst,
    output wire        m1_axi_awvalid,
    input  wire        m1_axi_awready,
    output wire [31:0] m1_axi_wdata,
    output wire [3:0]  m1_axi_wstrb,
    output wire        m1_axi_wlast,
    output wire        m1_axi_wvalid,
    input  wire        m1_axi_wready,
    input  wire [1:0]  m1_axi_bresp,
    input  wire        m1_axi_bvalid,
    output wire        m1_axi_bready,
    output wire [31:0] m2_axi_awaddr,
    output wire [7:0]  m2_axi_awlen,
    output wire [2:0]  m2_axi_awsize,
    output wire [1:0]  m2_axi_awburst,
    output wire        m2_axi_awvalid,
    input  wire        m2_axi_awready,
    output wire [63:0] m2_axi_wdata,
    output wire [7:0]  m2_axi_wstrb,
    output wire        m2_axi_wlast,
    output wire        m2_axi_wvalid,
    input  wire        m2_axi_wready,
    input  wire [1:0]  m2_axi_bresp,
    input  wire        m2_axi_bvalid,
    output wire        m2_axi_bready,
    output wire [31:0] m2_axi_araddr,
    output wire [7:0]  m2_axi_arlen,
    output wire [2:0]  m2_axi_arsize,
    output wire [1:0]  m2_axi_arburst,
    output wire        m2_axi_arvalid,
    input  wire        m2_axi_arready,
    input  wire [63:0] m2_axi_rdata,
    input  wire [1:0]  m2_axi_rresp,
    input  wire        m2_axi_rlast,
    input  wire        m2_axi_rvalid,
    output wire        m2_axi_rready
);
    localparam REST = 3'd0, READ = 3'd1, WRITE = 3'd2, READ_SUM = 3'd3, WRITE_SUM = 3'd4;
    reg [2:0]  state;
    reg [31:0] from, to, sum_at, left, word;
    reg [63:0] sum;
    // What of this state's transfer was taken: its address, its data.
    reg        addressed, given;

    wire write = s_axil_awvalid && s_axil_wvalid && !s_axil_bvalid;
    wire read = s_axil_arvalid && !s_axil_rvalid;
    assign {s_axil_awready, s_axil_wready, s_axil_arready} = {write, write, read};
    assign {s_axil_bresp, s_axil_rresp} = 4'd0;
    assign idle = state == REST;

    assign {m0_axi_araddr, m1_axi_awaddr, m2_axi_araddr, m2_axi_awaddr} = {from, to, sum_at, sum_at};
    assign {m0_axi_arlen, m1_axi_awlen, m2_axi_arlen, m2_axi_awlen} = 32'd0;
    assign {m0_axi_arsize, m1_axi_awsize, m2_axi_arsize, m2_axi_awsize} = {3'd2, 3'd2, 3'd3, 3'd3};
    assign {m0_axi_arburst, m1_axi_awburst, m2_axi_arburst, m2_axi_awburst} = {4{2'b01}};
    assign m0_axi_arvalid = state == READ && !addressed;
    assign m2_axi_arvalid = state == READ_SUM && !addressed;
    assign {m0_axi_rready, m2_axi_rready} = {state == READ, state == READ_SUM};
    assign {m1_axi_awvalid, m1_axi_wvalid} = {2{state == WRITE}} & {!addressed, !given};
    assign {m2_axi_awvalid, m2_axi_wvalid} = {2{state == WRITE_SUM}} & {!addressed, !given};
    assign {m1_axi_wdata, m2_axi_wdata} = {word, sum};
    assign {m1_axi_wstrb, m2_axi_wstrb} = 12'hfff;
    assign {m1_axi_wlast, m2_axi_wlast} = 2'b11;
    assign {m1_axi_bready, m2_axi_bready} = {state == WRITE, state == WRITE_SUM};

    always @(posedge clk) begin
        if (write) begin
            s_axil_bvalid <= 1'b1;
            case (s_axil_awaddr[4:2])
                3'd0: if (idle) {state, sum} <= {READ, 64'd0};
                3'd1: from <= s_axil_wdata;
                3'd2: to <= s_axil_wdata;
                3'd3: sum_at <= s_axil_wdata;
                default: left <= s_axil_wdata;
            endcase
        end else if (s_axil_bready) s_axil_bvalid <= 1'b0;
        if (read) {s_axil_rvalid, s_axil_rdata} <= {1'b1, 31'd0, !idle};
        else if (s_axil_rready) s_axil_rvalid <= 1'b0;

        if (m0_axi_arvalid && m0_axi_arready || m2_axi_arvalid && m2_axi_arready) addressed <= 1'b1;
        if (m1_axi_awvalid && m1_axi_awready || m2_axi_awvalid && m2_axi_awready) addressed <= 1'b1;
        if (m1_axi_wvalid && m1_axi_wready || m2_axi_wvalid && m2_axi_wready) given <= 1'b1;
        if (m0_axi_rvalid && m0_axi_rready) begin
            {state, addressed, word, from} <= {WRITE, 1'b0, m0_axi_rdata, from + 32'd4};
            sum <= sum + {32'd0, m0_axi_rdata};
        end
        if (m1_axi_bvalid && m1_axi_bready) begin
            {state, addressed, given, to} <= {left == 32'd1 ? READ_SUM : READ, 2'b00, to + 32'd4};
            left <= left - 32'd1;
        end
        if (m2_axi_rvalid && m2_axi_rready) {state, addressed, sum} <= {WRITE_SUM, 1'b0, sum + m2_axi_rdata};
        if (m2_axi_bvalid && m2_axi_bready) {state, addressed, given} <= {REST, 2'b00};
        if (!rst_n) {state, addressed, given, s_axil_bvalid, s_axil_rvalid} <= {REST, 4'd0};
    end
endmodule

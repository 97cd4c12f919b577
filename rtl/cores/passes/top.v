// A core that passes a stream on, a beat a cycle. Register 0 is the number of packets; bit 0 of
// register 1 makes it drop its valid where nothing is ready, bit 1 is a reset of its own, which
// reaches what its streams end in.
module top (
    input  wire        clk,
    input  wire        rst_n,
    output wire        idle,
    output reg         stream_rst_n,
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
    input  wire [63:0] s_axis_tdata,
    input  wire [7:0]  s_axis_tkeep,
    input  wire        s_axis_tlast,
    input  wire        s_axis_tvalid,
    output wire        s_axis_tready,
    output reg  [63:0] m_axis_tdata,
    output reg  [7:0]  m_axis_tkeep,
    output reg         m_axis_tlast,
    output wire        m_axis_tvalid,
    input  wire        m_axis_tready
);
    reg        full, drops, waited, runs;
    reg [31:0] packets;
    wire write = s_axil_awvalid && s_axil_wvalid && !s_axil_bvalid;
    wire read = s_axil_arvalid && !s_axil_rvalid;
    assign {s_axil_awready, s_axil_wready, s_axil_arready} = {write, write, read};
    assign {s_axil_bresp, s_axil_rresp} = 4'd0;
    assign s_axis_tready = runs && (!full || m_axis_tready && m_axis_tvalid);
    assign m_axis_tvalid = full && !(drops && waited);
    assign idle = !full;

    always @(posedge clk) begin
        waited <= m_axis_tvalid && !m_axis_tready && !waited;
        if (write) begin
            s_axil_bvalid <= 1'b1;
            if (s_axil_awaddr[2]) {runs, drops} <= {1'b1, s_axil_wdata[0]};
        end else if (s_axil_bready) s_axil_bvalid <= 1'b0;
        if (read) {s_axil_rvalid, s_axil_rdata} <= {1'b1, packets};
        else if (s_axil_rready) s_axil_rvalid <= 1'b0;
        if (s_axis_tvalid && s_axis_tready) begin
            {full, m_axis_tdata, m_axis_tkeep, m_axis_tlast} <= {1'b1, s_axis_tdata, s_axis_tkeep, s_axis_tlast};
            if (s_axis_tlast) packets <= packets + 32'd1;
        end else if (m_axis_tvalid && m_axis_tready) full <= 1'b0;
        stream_rst_n <= !(write && s_axil_awaddr[2] && s_axil_wdata[1]);
        if (!stream_rst_n) {full, waited, runs} <= 3'd0;
        if (!rst_n) begin
            {full, drops, waited, runs, s_axil_bvalid, s_axil_rvalid} <= 6'd0;
            packets <= 32'd0;
        end
    end
endmodule

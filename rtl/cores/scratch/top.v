// The smallest core: sixteen registers that remember, and an interrupt while the last one is not
// zero. AXI-Lite alone.
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
    output reg         s_axil_bvalid,
    input  wire        s_axil_bready,
    input  wire [15:0] s_axil_araddr,
    input  wire        s_axil_arvalid,
    output wire        s_axil_arready,
    output reg  [31:0] s_axil_rdata,
    output wire [1:0]  s_axil_rresp,
    output reg         s_axil_rvalid,
    input  wire        s_axil_rready
);
    reg [31:0] registers [0:15];
    integer n;

    // Address and data are taken in one cycle, when the last answer is out.
    wire write = s_axil_awvalid && s_axil_wvalid && !s_axil_bvalid;
    wire read = s_axil_arvalid && !s_axil_rvalid;
    assign s_axil_awready = write;
    assign s_axil_wready = write;
    assign s_axil_arready = read;
    assign s_axil_bresp = 2'b00;
    assign s_axil_rresp = 2'b00;
    assign irq = registers[15] != 0;
    assign idle = 1'b1;

    always @(posedge clk) begin
        if (!rst_n) begin
            s_axil_bvalid <= 1'b0;
            s_axil_rvalid <= 1'b0;
            for (n = 0; n < 16; n = n + 1) registers[n] <= 32'd0;
        end else begin
            if (write) begin
                for (n = 0; n < 4; n = n + 1)
                    if (s_axil_wstrb[n]) registers[s_axil_awaddr[5:2]][8 * n +: 8] <= s_axil_wdata[8 * n +: 8];
                s_axil_bvalid <= 1'b1;
            end else if (s_axil_bready) begin
                s_axil_bvalid <= 1'b0;
            end
            if (read) begin
                s_axil_rdata <= registers[s_axil_araddr[5:2]];
                s_axil_rvalid <= 1'b1;
            end else if (s_axil_rready) begin
                s_axil_rvalid <= 1'b0;
            end
        end
    end
endmodule

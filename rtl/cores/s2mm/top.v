// A camera's way to memory: packets of a stream that never waits, each into a buffer of its own. It
// has eight places for buffers. A packet that finds no room is lost, or cut, and both are counted.
//
// | offset | register |
// |---|---|
// | 0x00 | "S2MM" |
// | 0x04 | bit 0: run; 0 stops, and what was taken is written. W bit 1, stopped: forgets buffers and ends |
// | 0x08 | bit 0: stopped, all is answered |
// | 0x0C, 0x10 | the address of the next buffer, a multiple of 8 |
// | 0x14 | W 27:0: its bytes, a multiple of 8; this gives it. R: places that are free |
// | 0x18 | the oldest buffer's end: 31 there is one, 30 bus error, 29 cut, 28 the packet ends here, 27:0 bytes |
// | 0x1C | W: that end was read, and its place is free |
// | 0x20, 0x24, 0x28 | packets lost, packets cut, how often the last buffer ended and no other was there |
// | 0x2C | only with FAULTS, W: a mistake that tests must notice (below) |
//
// The interrupt is high while there is an end.
module top #(
    parameter FAULTS = 0
) (
    input  wire        clk,
    input  wire        rst_n,
    output wire        irq,
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
    output wire [63:0] m0_axi_awaddr,
    output wire [7:0]  m0_axi_awlen,
    output wire [2:0]  m0_axi_awsize,
    output wire [1:0]  m0_axi_awburst,
    output wire        m0_axi_awvalid,
    input  wire        m0_axi_awready,
    output wire [63:0] m0_axi_wdata,
    output wire [7:0]  m0_axi_wstrb,
    output wire        m0_axi_wlast,
    output wire        m0_axi_wvalid,
    input  wire        m0_axi_wready,
    input  wire [1:0]  m0_axi_bresp,
    input  wire        m0_axi_bvalid,
    output wire        m0_axi_bready,
    input  wire [63:0] s_axis_tdata,
    input  wire [7:0]  s_axis_tkeep,
    input  wire        s_axis_tlast,
    input  wire        s_axis_tvalid,
    output wire        s_axis_tready
);
    reg         run;
    reg  [63:0] addr;
    wire        write = s_axil_awvalid & s_axil_wvalid & !s_axil_bvalid;
    wire        read = s_axil_arvalid & !s_axil_rvalid;
    wire [3:0]  to = s_axil_awaddr[5:2];
    wire        clear = write & to == 4'd1 & s_axil_wdata[1];
    wire        stopped, end_valid, valid, last, cut, ready;
    wire [3:0]  room;
    wire [30:0] end_word;
    wire [31:0] losses, cuts, dry;
    wire [63:0] data;
    wire [7:0]  keep;

    // ---- Mistakes. 1: a packet's last beat is counted, and not written. 2: an answer of memory is
    // not waited for. 3: a beat too few is counted.
    reg  [1:0]  mistake;
    wire [1:0]  fault = FAULTS != 0 ? mistake : 2'd0;
    wire        loses = fault == 2'd1 & last;
    wire        early = fault == 2'd2;
    wire        bready;
    wire [27:0] beat_off = fault == 2'd1 & end_word[28] ? 28'd8 : fault == 2'd3 ? -28'd8 : 28'd0;
    assign m0_axi_bready = early | bready;

    assign {s_axil_awready, s_axil_wready, s_axil_arready} = {write, write, read};
    assign {s_axil_bresp, s_axil_rresp} = 4'd0;
    assign {m0_axi_awsize, m0_axi_awburst} = {3'd3, 2'd1};
    assign {irq, idle} = {end_valid, !run & stopped};

    always @(posedge clk)
        if (!rst_n) {s_axil_bvalid, s_axil_rvalid, run, mistake} <= 5'd0;
        else begin
            if (write) begin
                s_axil_bvalid <= 1'b1;
                case (to)
                    4'd1: run <= s_axil_wdata[0];
                    4'd3: addr[31:0] <= s_axil_wdata;
                    4'd4: addr[63:32] <= s_axil_wdata;
                    4'd11: mistake <= s_axil_wdata[1:0];
                    default: ;
                endcase
            end else if (s_axil_bready) s_axil_bvalid <= 1'b0;
            if (read) begin
                s_axil_rvalid <= 1'b1;
                case (s_axil_araddr[5:2])
                    4'd0: s_axil_rdata <= "S2MM";
                    4'd1: s_axil_rdata <= {31'd0, run};
                    4'd2: s_axil_rdata <= {31'd0, stopped};
                    4'd5: s_axil_rdata <= {28'd0, room};
                    4'd6: s_axil_rdata <= end_valid ? {1'b1, end_word[30:28], end_word[27:0] + beat_off} : 32'd0;
                    4'd8: s_axil_rdata <= losses;
                    4'd9: s_axil_rdata <= cuts;
                    4'd10: s_axil_rdata <= dry;
                    default: s_axil_rdata <= 32'd0;
                endcase
            end else if (s_axil_rready) s_axil_rvalid <= 1'b0;
        end

    s2mm_intake intake (
        .clk(clk), .rst_n(rst_n), .on(run),
        .tdata(s_axis_tdata), .tkeep(s_axis_tkeep), .tlast(s_axis_tlast), .tvalid(s_axis_tvalid), .tready(s_axis_tready),
        .valid(valid), .data(data), .keep(keep), .last(last), .cut(cut), .ready(ready), .losses(losses), .cuts(cuts)
    );
    s2mm_writer writer (
        .clk(clk), .rst_n(rst_n), .on(run), .stopped(stopped), .clear(clear),
        .give(write & to == 4'd5), .give_addr(addr), .give_bytes(s_axil_wdata[27:0]), .room(room),
        .end_valid(end_valid), .end_word(end_word), .end_taken(write & to == 4'd7), .dry(dry),
        .valid(valid), .data(data), .keep(loses ? 8'd0 : keep), .last(last), .cut(cut), .ready(ready),
        .awaddr(m0_axi_awaddr), .awlen(m0_axi_awlen), .awvalid(m0_axi_awvalid), .awready(m0_axi_awready),
        .wdata(m0_axi_wdata), .wstrb(m0_axi_wstrb), .wlast(m0_axi_wlast), .wvalid(m0_axi_wvalid), .wready(m0_axi_wready),
        .bresp(early ? 2'd0 : m0_axi_bresp), .bvalid(early | m0_axi_bvalid), .bready(bready)
    );
endmodule

// gemm8, an int8 matrix engine: C = A*B + bias. Its contract is ../README.md.
//
//   s_axi_control --> control --> job --> run, halt: to every unit below
//   m_axi_gmem_ar <-- read <-- bursts, walk, times
//   m_axi_gmem_r  --> feed --> array (rows) --> drain (requantize) --+
//   m_axi_gmem_aw, w, b <---- write <-- bursts, walk, times <--------+
//
// It has no IDs: all reads are of one, and all writes, so that answers come in order.
module gemm8 #(
    parameter       ROWS  = 8,       // of A at a time: 1, 2, 4, 8 or 16
    parameter [3:0] CACHE = 4'b0011  // AxCACHE: modifiable and bufferable
) (
    input          clk,
    input          rst_n,
    // verilator lint_off SYMRSVDWORD
    output         interrupt,        // the contract's name, and a macro on Windows
    // verilator lint_on SYMRSVDWORD
    output         idle,             // AP_IDLE as a wire; it may stay open

    input  [11:0]  s_axi_control_awaddr,  // the low eight count
    input  [2:0]   s_axi_control_awprot,  // ignored, as arprot: Platform Designer wants both
    input          s_axi_control_awvalid,
    output         s_axi_control_awready,
    input  [31:0]  s_axi_control_wdata,
    input  [3:0]   s_axi_control_wstrb,
    input          s_axi_control_wvalid,
    output         s_axi_control_wready,
    output [1:0]   s_axi_control_bresp,
    output         s_axi_control_bvalid,
    input          s_axi_control_bready,
    input  [11:0]  s_axi_control_araddr,
    input  [2:0]   s_axi_control_arprot,
    input          s_axi_control_arvalid,
    output         s_axi_control_arready,
    output [31:0]  s_axi_control_rdata,
    output [1:0]   s_axi_control_rresp,
    output         s_axi_control_rvalid,
    input          s_axi_control_rready,

    output [63:0]  m_axi_gmem_awaddr,
    output [7:0]   m_axi_gmem_awlen,
    output [2:0]   m_axi_gmem_awsize,
    output [1:0]   m_axi_gmem_awburst,
    output [3:0]   m_axi_gmem_awcache,
    output [2:0]   m_axi_gmem_awprot,
    output         m_axi_gmem_awvalid,
    input          m_axi_gmem_awready,
    output [127:0] m_axi_gmem_wdata,
    output [15:0]  m_axi_gmem_wstrb,
    output         m_axi_gmem_wlast,
    output         m_axi_gmem_wvalid,
    input          m_axi_gmem_wready,
    input  [1:0]   m_axi_gmem_bresp,
    input          m_axi_gmem_bvalid,
    output         m_axi_gmem_bready,
    output [63:0]  m_axi_gmem_araddr,
    output [7:0]   m_axi_gmem_arlen,
    output [2:0]   m_axi_gmem_arsize,
    output [1:0]   m_axi_gmem_arburst,
    output [3:0]   m_axi_gmem_arcache,
    output [2:0]   m_axi_gmem_arprot,
    output         m_axi_gmem_arvalid,
    input          m_axi_gmem_arready,
    input  [127:0] m_axi_gmem_rdata,
    input  [1:0]   m_axi_gmem_rresp,
    input          m_axi_gmem_rlast,
    input          m_axi_gmem_rvalid,
    output         m_axi_gmem_rready
);
    `include "gemm8_regs.vh"

    wire        start, abort, busy, clear, run, halt, finish;
    wire [63:0] a_in, b_in, bias_in, c_in, a, b, bias, c;
    wire [31:0] m_in, n_in, k_in, bytes_out;
    wire [9:0]  mode_in, mode;
    wire [4:0]  status;
    wire [12:0] m, k;
    wire [8:0]  tiles;
    wire        raw = mode[MODE_RAW_BIT];

    gemm8_control control (
        .clk(clk), .rst_n(rst_n),
        .s_axi_control_awaddr(s_axi_control_awaddr[7:0]), .s_axi_control_awvalid(s_axi_control_awvalid),
        .s_axi_control_awready(s_axi_control_awready), .s_axi_control_wdata(s_axi_control_wdata),
        .s_axi_control_wstrb(s_axi_control_wstrb), .s_axi_control_wvalid(s_axi_control_wvalid),
        .s_axi_control_wready(s_axi_control_wready), .s_axi_control_bresp(s_axi_control_bresp),
        .s_axi_control_bvalid(s_axi_control_bvalid), .s_axi_control_bready(s_axi_control_bready),
        .s_axi_control_araddr(s_axi_control_araddr[7:0]), .s_axi_control_arvalid(s_axi_control_arvalid),
        .s_axi_control_arready(s_axi_control_arready), .s_axi_control_rdata(s_axi_control_rdata),
        .s_axi_control_rresp(s_axi_control_rresp), .s_axi_control_rvalid(s_axi_control_rvalid),
        .s_axi_control_rready(s_axi_control_rready),
        .interrupt(interrupt), .idle(idle), .start(start), .abort(abort),
        .a(a_in), .b(b_in), .bias(bias_in), .c(c_in), .m(m_in), .n(n_in), .k(k_in), .mode(mode_in),
        .busy(busy), .finish(finish), .status(status), .bytes_out(bytes_out)
    );

    wire read_failed, write_failed, written, reads_quiet, writes_quiet;

    gemm8_job job (
        .clk(clk), .rst_n(rst_n), .start(start), .abort(abort),
        .a_in(a_in), .b_in(b_in), .bias_in(bias_in), .c_in(c_in),
        .m_in(m_in), .n_in(n_in), .k_in(k_in), .mode_in(mode_in),
        .busy(busy), .clear(clear), .run(run), .halt(halt), .finish(finish), .status(status),
        .a(a), .b(b), .bias(bias), .c(c), .m(m), .tiles(tiles), .k(k), .mode(mode),
        .read_failed(read_failed), .write_failed(write_failed),
        .written(written), .quiet(reads_quiet && writes_quiet)
    );

    // Reads: the addresses, and the data one cycle after they were taken.
    wire read_beat = m_axi_gmem_rvalid && m_axi_gmem_rready;
    reg  failed;
    reg  [127:0] data;

    assign read_failed = failed;

    always @(posedge clk) begin
        failed <= read_beat && m_axi_gmem_rresp[1];
        data   <= m_axi_gmem_rdata;
    end

    gemm8_read #(.ROWS(ROWS)) read (
        .clk(clk), .rst_n(rst_n), .run(run), .halt(halt), .quiet(reads_quiet),
        .a(a), .b(b), .bias(bias), .m(m), .tiles(tiles), .k(k),
        .araddr(m_axi_gmem_araddr), .arlen(m_axi_gmem_arlen),
        .arvalid(m_axi_gmem_arvalid), .arready(m_axi_gmem_arready),
        .ended(read_beat && m_axi_gmem_rlast)
    );

    wire        is_bias, is_left, is_right, right_first, right_last, right_ends, freed;
    wire [9:0]  bias_at;
    wire [3:0]  left_row, right_tile;
    wire [7:0]  left_at;
    wire [11:0] right_row;

    gemm8_feed #(.ROWS(ROWS)) feed (
        .clk(clk), .run(run), .halt(halt), .m(m), .tiles(tiles), .k(k),
        .rvalid(m_axi_gmem_rvalid), .rready(m_axi_gmem_rready), .freed(freed),
        .is_bias(is_bias), .bias_at(bias_at),
        .is_left(is_left), .left_row(left_row), .left_at(left_at),
        .is_right(is_right), .right_row(right_row), .right_tile(right_tile),
        .right_first(right_first), .right_last(right_last), .right_ends(right_ends)
    );

    // The sums, and C.
    wire         full, begins, beat_valid, beat_taken;
    wire [3:0]   read_row, read_tile;
    wire [1:0]   read_quarter;
    wire [127:0] read_sums;
    wire [4:0]   rows, width;
    wire [7:0]   tile;

    gemm8_array #(.ROWS(ROWS)) engine (
        .clk(clk), .run(run), .data(data),
        .is_left(is_left), .left_row(left_row), .left_at(left_at),
        .is_right(is_right), .right_row(right_row), .right_tile(right_tile),
        .right_first(right_first), .right_last(right_last), .right_ends(right_ends),
        .full(full), .read_row(read_row), .read_tile(read_tile), .read_quarter(read_quarter),
        .read_sums(read_sums)
    );

    gemm8_drain drain (
        .clk(clk), .run(run), .data(data), .is_bias(is_bias), .bias_at(bias_at),
        .relu(mode[MODE_RELU_BIT]), .raw(raw), .shift(mode[4:0]),
        .begins(begins), .rows(rows), .width(width), .tile(tile), .freed(freed),
        .read_row(read_row), .read_tile(read_tile), .read_quarter(read_quarter),
        .read_sums(read_sums),
        .beat_valid(beat_valid), .beat(m_axi_gmem_wdata), .beat_taken(beat_taken)
    );

    gemm8_write #(.ROWS(ROWS)) write (
        .clk(clk), .rst_n(rst_n), .clear(clear), .run(run), .halt(halt),
        .quiet(writes_quiet), .done(written),
        .c(c), .m(m), .tiles(tiles), .raw(raw),
        .full(full), .begins(begins), .rows(rows), .width(width), .tile(tile),
        .beat_valid(beat_valid), .beat_taken(beat_taken),
        .awaddr(m_axi_gmem_awaddr), .awlen(m_axi_gmem_awlen),
        .awvalid(m_axi_gmem_awvalid), .awready(m_axi_gmem_awready),
        .wvalid(m_axi_gmem_wvalid), .wlast(m_axi_gmem_wlast), .wready(m_axi_gmem_wready),
        .bvalid(m_axi_gmem_bvalid), .bfailed(m_axi_gmem_bresp[1]),
        .failed(write_failed), .bytes(bytes_out)
    );

    assign m_axi_gmem_awsize  = 3'd4;
    assign m_axi_gmem_awburst = 2'd1;
    assign m_axi_gmem_awcache = CACHE;
    assign m_axi_gmem_awprot  = 3'd0;
    assign m_axi_gmem_wstrb   = 16'hFFFF;
    assign m_axi_gmem_bready  = 1'b1;
    assign m_axi_gmem_arsize  = 3'd4;
    assign m_axi_gmem_arburst = 2'd1;
    assign m_axi_gmem_arcache = CACHE;
    assign m_axi_gmem_arprot  = 3'd0;
endmodule

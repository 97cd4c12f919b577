// A core that copies words from SRC to DST in bursts of up to 16 beats, one burst at a time. FAULT
// makes it break one rule of AXI; with 0 it breaks none. The checks are tested with it.
//
//   0x00 CTRL   W 1: start; R bit 0: busy      0x10 WORDS  how many of the bus' words
//   0x04 SRC    low 32 bits                    0x14 ISR    bit 0: done; W 1 clears it
//   0x08 DST    low 32 bits                    0x18 FAULT  see below
//   0x0C HIGH   the high bits of both          0x1C ERRORS responses that were not OKAY
module top #(
    parameter DATA_BITS = 32
) (
    input  wire                   clk,
    input  wire                   rst_n,
    output wire                   irq,
    output wire                   idle,

    input  wire [15:0]            s_axil_awaddr,
    input  wire                   s_axil_awvalid,
    output wire                   s_axil_awready,
    input  wire [31:0]            s_axil_wdata,
    input  wire [3:0]             s_axil_wstrb,
    input  wire                   s_axil_wvalid,
    output wire                   s_axil_wready,
    output wire [1:0]             s_axil_bresp,
    output wire                   s_axil_bvalid,
    input  wire                   s_axil_bready,
    input  wire [15:0]            s_axil_araddr,
    input  wire                   s_axil_arvalid,
    output wire                   s_axil_arready,
    output wire [31:0]            s_axil_rdata,
    output wire [1:0]             s_axil_rresp,
    output wire                   s_axil_rvalid,
    input  wire                   s_axil_rready,

    output wire [11:0]            m0_axi_awid,
    output wire [63:0]            m0_axi_awaddr,
    output wire [7:0]             m0_axi_awlen,
    output wire [2:0]             m0_axi_awsize,
    output wire [1:0]             m0_axi_awburst,
    output wire                   m0_axi_awvalid,
    input  wire                   m0_axi_awready,
    output wire [DATA_BITS-1:0]   m0_axi_wdata,
    output wire [DATA_BITS/8-1:0] m0_axi_wstrb,
    output wire                   m0_axi_wlast,
    output wire                   m0_axi_wvalid,
    input  wire                   m0_axi_wready,
    input  wire [11:0]            m0_axi_bid,
    input  wire [1:0]             m0_axi_bresp,
    input  wire                   m0_axi_bvalid,
    output wire                   m0_axi_bready,
    output wire [11:0]            m0_axi_arid,
    output wire [63:0]            m0_axi_araddr,
    output wire [7:0]             m0_axi_arlen,
    output wire [2:0]             m0_axi_arsize,
    output wire [1:0]             m0_axi_arburst,
    output wire                   m0_axi_arvalid,
    input  wire                   m0_axi_arready,
    input  wire [11:0]            m0_axi_rid,
    input  wire [DATA_BITS-1:0]   m0_axi_rdata,
    input  wire [1:0]             m0_axi_rresp,
    input  wire                   m0_axi_rlast,
    input  wire                   m0_axi_rvalid,
    output wire                   m0_axi_rready
);
    localparam SIZE = $clog2(DATA_BITS / 8);

    localparam F_CROSSES = 1, F_NO_LAST = 2, F_EARLY_LAST = 3, F_AW_DROPS = 4, F_AW_CHANGES = 5, F_W_DROPS = 6,
        F_W_CHANGES = 7, F_AR_DROPS = 8, F_AR_CHANGES = 9, F_RESERVED = 10, F_WIDE = 11, F_WRAP_LENGTH = 12,
        F_WRAP_UNALIGNED = 13, F_STROBES = 14, F_DATA_WAITS = 15, F_NO_DATA = 16, F_NO_ADDRESS = 17, F_NO_BREADY = 18,
        F_NO_RREADY = 19, F_IDLE_EARLY = 20, F_NO_ANSWER = 21, F_R_TWICE = 22, F_B_UNASKED = 23, F_REGISTER_ERROR = 24,
        F_NO_IRQ = 25, F_UNKNOWN = 26, F_R_CHANGES = 27, F_B_DROPS = 28, F_NEVER_IDLE = 29, F_VALID_IN_RESET = 30,
        F_AW_WAITS = 31, F_W_WAITS = 32, F_AR_WAITS = 33, F_B_WAITS = 34, F_R_WAITS = 35, F_ADDRESS_WAITS = 36;

    localparam IDLE = 0, PLAN = 1, ASK = 2, READ = 3, WRITE = 4, ANSWER = 5;

    reg [2:0]  state;
    reg [63:0] src, dst;
    reg [31:0] words, left, errors;
    reg [7:0]  fault;
    reg        done;
    reg        kept_fault;              // outlives a reset, for F_VALID_IN_RESET
    reg        never_set;               // no reset and no write, for F_UNKNOWN
    reg [63:0] from, to;
    reg [4:0]  beats, at;
    reg        aw_taken, w_taken;
    reg        w_waited;
    reg        waited;                  // the channel was valid and not taken in the cycle before
    reg [DATA_BITS-1:0] held [0:15];

    // Registers.
    reg        b_valid, r_valid, r_again;
    reg [31:0] r_data;
    reg        r_waited, b_waited;
    wire reg_write = s_axil_awvalid && s_axil_wvalid && !b_valid;
    wire reg_read = s_axil_arvalid && !r_valid;
    wire silent = fault == F_NO_ANSWER && s_axil_araddr[5:0] == 6'h1C;
    assign s_axil_awready = reg_write;
    assign s_axil_wready = reg_write;
    assign s_axil_arready = reg_read;
    assign s_axil_bvalid = b_valid && !(fault == F_B_DROPS && b_waited) && (fault != F_B_WAITS || s_axil_bready);
    assign s_axil_rvalid = r_valid && (fault != F_R_WAITS || s_axil_rready);
    assign s_axil_rdata = fault == F_R_CHANGES && r_waited ? ~r_data : r_data;
    assign s_axil_bresp = 2'b00;
    assign s_axil_rresp = fault == F_REGISTER_ERROR ? 2'b10 : 2'b00;
    assign irq = done && fault != F_NO_IRQ;
    wire last_sent = state == ANSWER && left == {27'd0, beats};
    assign idle = (state == IDLE || (fault == F_IDLE_EARLY && last_sent)) && fault != F_NEVER_IDLE;

    // Bursts: never over 4 KiB, neither in SRC nor in DST.
    function [12:0] to_page(input [11:0] low);
        to_page = 13'h1000 - {1'b0, low};
    endfunction
    wire [12:0] src_room = to_page(from[11:0]) >> SIZE;
    wire [12:0] dst_room = to_page(to[11:0]) >> SIZE;
    wire [12:0] room = src_room < dst_room ? src_room : dst_room;
    wire [12:0] most = fault == F_CROSSES ? 13'd16 : room > 13'd16 ? 13'd16 : room;
    wire [4:0]  plan = left > {19'd0, most} ? most[4:0] : left[4:0];

    wire drops = waited;
    wire [1:0] read_burst = fault == F_WRAP_LENGTH || fault == F_WRAP_UNALIGNED ? 2'b10 : 2'b01;
    wire ask = state == ASK && !(fault == F_AR_DROPS && drops) && (fault != F_AR_WAITS || m0_axi_arready);
    assign m0_axi_arvalid = ask || (kept_fault && !rst_n);
    assign m0_axi_arid = {11'd0, fault == F_AR_CHANGES && waited};
    assign m0_axi_araddr = fault == F_WRAP_UNALIGNED ? from + 1 : from;
    assign m0_axi_arlen = {3'd0, beats} - 8'd1;
    assign m0_axi_arsize = fault == F_WIDE ? SIZE[2:0] + 3'd1 : SIZE[2:0];
    assign m0_axi_arburst = read_burst;
    assign m0_axi_rready = state == READ && fault != F_NO_RREADY;

    wire address = state == WRITE && !aw_taken && fault != F_NO_ADDRESS && (fault != F_ADDRESS_WAITS || w_taken);
    wire data = state == WRITE && !w_taken && fault != F_NO_DATA && !(fault == F_DATA_WAITS && !aw_taken);
    assign m0_axi_awvalid = address && !(fault == F_AW_DROPS && drops) && (fault != F_AW_WAITS || m0_axi_awready);
    assign m0_axi_awid = {10'd0, fault == F_UNKNOWN && never_set, fault == F_AW_CHANGES && waited};
    assign m0_axi_awaddr = to;
    assign m0_axi_awlen = {3'd0, beats} - 8'd1;
    assign m0_axi_awsize = fault == F_STROBES ? 3'd0 : SIZE[2:0];
    assign m0_axi_awburst = fault == F_RESERVED ? 2'b11 : 2'b01;
    wire last_beat = fault == F_EARLY_LAST ? at + 5'd2 >= beats : at + 5'd1 == beats;
    assign m0_axi_wvalid = data && !(fault == F_W_DROPS && w_waited) && (fault != F_W_WAITS || m0_axi_wready);
    assign m0_axi_wdata = fault == F_W_CHANGES && w_waited ? ~held[at[3:0]] : held[at[3:0]];
    assign m0_axi_wstrb = {(DATA_BITS / 8){1'b1}};
    assign m0_axi_wlast = last_beat && fault != F_NO_LAST;
    assign m0_axi_bready = state == ANSWER && fault != F_NO_BREADY;


    initial kept_fault = 1'b0;

    always @(posedge clk) begin
        never_set <= never_set;
        r_waited <= s_axil_rvalid && !s_axil_rready && !r_waited;
        b_waited <= s_axil_bvalid && !s_axil_bready && !b_waited;
        waited <= (m0_axi_arvalid && !m0_axi_arready || m0_axi_awvalid && !m0_axi_awready) && !waited;
        w_waited <= m0_axi_wvalid && !m0_axi_wready && !w_waited;

        if (reg_write) b_valid <= 1'b1;
        else if (s_axil_bvalid && s_axil_bready) b_valid <= 1'b0;
        if (fault == F_B_UNASKED && reg_read) b_valid <= 1'b1;

        if (reg_read) begin
            r_valid <= !silent;
            r_again <= fault == F_R_TWICE;
            case (s_axil_araddr[5:2])
                4'd0: r_data <= {31'd0, !idle};
                4'd1: r_data <= src[31:0];
                4'd2: r_data <= dst[31:0];
                4'd3: r_data <= src[63:32];
                4'd4: r_data <= words;
                4'd5: r_data <= {31'd0, done};
                4'd6: r_data <= {24'd0, fault};
                4'd7: r_data <= errors;
                default: r_data <= 32'd0;
            endcase
        end else if (s_axil_rvalid && s_axil_rready) begin
            r_valid <= r_again;
            r_again <= 1'b0;
        end

        if (reg_write) begin
            case (s_axil_awaddr[5:2])
                4'd0: if (s_axil_wdata[0] && state == IDLE && words != 0) begin
                    state <= PLAN;
                    from <= src;
                    to <= dst;
                    left <= words;
                    errors <= 32'd0;
                end
                4'd1: src[31:0] <= s_axil_wdata;
                4'd2: dst[31:0] <= s_axil_wdata;
                4'd3: {src[63:32], dst[63:32]} <= {2{s_axil_wdata}};
                4'd4: words <= s_axil_wdata;
                4'd5: if (s_axil_wdata[0]) done <= 1'b0;
                4'd6: begin
                    fault <= s_axil_wdata[7:0];
                    kept_fault <= s_axil_wdata[7:0] == F_VALID_IN_RESET;
                end
                default: ;
            endcase
        end

        case (state)
            PLAN: begin
                beats <= plan;
                at <= 5'd0;
                state <= ASK;
            end
            ASK: if (m0_axi_arvalid && m0_axi_arready) state <= READ;
            READ: if (m0_axi_rvalid && m0_axi_rready) begin
                held[at[3:0]] <= m0_axi_rdata;
                at <= at + 5'd1;
                if (m0_axi_rresp != 0) errors <= errors + 32'd1;
                if (m0_axi_rlast) begin
                    at <= 5'd0;
                    aw_taken <= 1'b0;
                    w_taken <= 1'b0;
                    state <= WRITE;
                end
            end
            WRITE: begin
                if (m0_axi_awvalid && m0_axi_awready) aw_taken <= 1'b1;
                if (m0_axi_wvalid && m0_axi_wready) begin
                    at <= at + 5'd1;
                    if (last_beat) w_taken <= 1'b1;
                end
                if (aw_taken && w_taken) state <= ANSWER;
            end
            ANSWER: if (m0_axi_bvalid && m0_axi_bready) begin
                if (m0_axi_bresp != 0) errors <= errors + 32'd1;
                from <= from + ({59'd0, beats} << SIZE);
                to <= to + ({59'd0, beats} << SIZE);
                left <= left - {27'd0, beats};
                state <= left == {27'd0, beats} ? IDLE : PLAN;
                if (left == {27'd0, beats}) done <= 1'b1;
            end
            default: ;
        endcase

        if (!rst_n) begin
            state <= IDLE;
            {src, dst} <= 128'd0;
            {words, left, errors, r_data} <= 128'd0;
            fault <= 8'd0;
            {done, b_valid, r_valid, r_again, aw_taken, w_taken} <= 6'd0;
            {waited, w_waited, r_waited, b_waited} <= 4'd0;
        end
    end

    wire unused = &{1'b0, m0_axi_bid, m0_axi_rid, s_axil_wstrb};
endmodule

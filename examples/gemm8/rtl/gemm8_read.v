// The addresses of all reads, in the order in which the array takes the data: bias once; then for
// each group of rows A's rows, and for each of its blocks the block's columns of B, row by row.
module gemm8_read #(
    parameter ROWS  = 8,
    parameter READS = 12  // bursts under way at most; with the writer's, 16
) (
    input             clk,
    input             rst_n,
    input             run,
    input             halt,      // no further burst
    output            quiet,     // no burst is under way
    input      [63:0] a,
    input      [63:0] b,
    input      [63:0] bias,
    input      [12:0] m,
    input      [8:0]  tiles,     // N / 16
    input      [12:0] k,
    output reg [63:0] araddr,
    output reg [7:0]  arlen,
    output reg        arvalid,
    input             arready,
    input             ended      // the last beat of a burst has arrived
);
    localparam [1:0] BIAS = 2'd0, LEFT = 2'd1, RIGHT = 2'd2;

    reg [1:0]  phase;
    reg [1:0]  settle;   // the product of sizes is right when it is 3
    reg        loaded;
    reg [63:0] a_at;
    reg [4:0]  owed;

    wire [4:0]  rows;
    wire [4:0]  width;
    wire [7:0]  tile;
    wire        first;
    wire        last;
    wire        done;
    wire [16:0] product;
    wire        empty;
    wire        valid;
    wire [63:0] burst_addr;
    wire [4:0]  burst_beats;

    // The columns of a block are all of B: one segment.
    wire whole  = first && last;
    wire [16:0] segment = phase == LEFT || whole ? product : {12'd0, width};
    wire load   = run && !loaded && settle == 2'd3 && !(phase != BIAS && done);
    wire issued = loaded && empty;
    wire next   = issued && phase == RIGHT;
    wire take   = valid && !halt && owed < READS[4:0] && (!arvalid || arready);

    gemm8_walk #(.ROWS(ROWS)) walk (
        .clk(clk), .run(run), .next(next), .m(m), .tiles(tiles),
        .rows(rows), .width(width), .tile(tile), .first(first), .last(last), .done(done)
    );

    gemm8_times product_of (
        .clk(clk),
        .factor(phase == LEFT ? {4'd0, k[12:4]} : k),
        .times(phase == LEFT ? rows : width),
        .product(product)
    );

    gemm8_bursts bursts (
        .clk(clk), .run(run), .load(load),
        .addr(phase == BIAS ? bias : phase == LEFT ? a_at : b + {52'd0, tile, 4'd0}),
        .beats(phase == BIAS ? {6'd0, tiles, 2'd0} : segment),
        .count(phase == RIGHT && !whole ? k : 13'd1),
        .stride({5'd0, tiles, 4'd0}),
        .empty(empty), .valid(valid),
        .burst_addr(burst_addr), .burst_beats(burst_beats), .next(take)
    );

    assign quiet = owed == 5'd0;

    always @(posedge clk) begin
        if (!run) begin
            phase  <= BIAS;
            settle <= 2'd0;
            loaded <= 1'b0;
            a_at   <= a;
        end else if (load) begin
            loaded <= 1'b1;
        end else if (issued) begin
            loaded <= 1'b0;
            settle <= 2'd0;
            case (phase)
                BIAS: phase <= LEFT;
                LEFT: begin
                    phase <= RIGHT;
                    a_at  <= a_at + {47'd0, product[12:0], 4'd0};
                end
                default: phase <= last ? LEFT : RIGHT;
            endcase
        end else if (settle != 2'd3) begin
            settle <= settle + 2'd1;
        end

        // A burst counts from the cycle in which its address is shown.
        owed <= owed + {4'd0, take} - {4'd0, ended};
        if (take) begin
            arvalid <= 1'b1;
            araddr  <= burst_addr;
            arlen   <= {3'd0, burst_beats} - 8'd1;
        end else if (arready) begin
            arvalid <= 1'b0;
        end
        if (!rst_n) begin
            owed    <= 5'd0;
            arvalid <= 1'b0;
        end
    end
endmodule

// The data of all reads, beat by beat, in the order in which gemm8_read asked for it. It says for
// each beat whether it is bias, part of a row of A, or part of a row of B.
module gemm8_feed #(
    parameter ROWS = 8
) (
    input             clk,
    input             run,
    input             halt,         // sink what still comes
    input      [12:0] m,
    input      [8:0]  tiles,        // N / 16
    input      [12:0] k,
    input             rvalid,
    output            rready,
    input             freed,        // the sums of the block before were read out
    // One cycle after the beat, beside its data:
    output reg        is_bias,
    output reg [9:0]  bias_at,      // four sums each
    output reg        is_left,
    output reg [3:0]  left_row,
    output reg [7:0]  left_at,      // sixteen bytes of the row each
    output reg        is_right,
    output reg [11:0] right_row,    // of B: the byte of A's rows that it is multiplied by
    output reg [3:0]  right_tile,   // in the block
    output reg        right_first,  // the sum begins
    output reg        right_last,   // the sum ends
    output reg        right_ends    // the block ends
);
    localparam [1:0] BIAS = 2'd0, LEFT = 2'd1, RIGHT = 2'd2;

    reg [1:0]  phase;
    reg [9:0]  count;    // beats of bias, or of a row of A
    reg [3:0]  row;      // of A
    reg [12:0] inner;    // row of B
    reg [3:0]  column;   // tile in the block
    reg        last_row; // of B
    reg        pending;  // sums wait to be read out

    wire [4:0] rows;
    wire [4:0] width;
    wire [7:0] tile;
    wire       first;
    wire       last;
    wire       done;

    // A block's last row of B ends its sums, so it waits until the block before was read out.
    wire ready = run && !(phase == RIGHT && last_row && pending) && !(phase != BIAS && done);
    wire beat  = rvalid && ready && !halt;

    wire last_bias   = {1'b0, count} == {tiles, 2'd0} - 11'd1;
    wire last_left   = count[8:0] == k[12:4] - 9'd1;
    wire last_column = {1'b0, column} == width - 5'd1;
    wire ends        = phase == RIGHT && last_row && last_column;

    assign rready = ready || halt;

    gemm8_walk #(.ROWS(ROWS)) walk (
        .clk(clk), .run(run), .next(beat && ends), .m(m), .tiles(tiles),
        .rows(rows), .width(width), .tile(tile), .first(first), .last(last), .done(done)
    );

    always @(posedge clk) begin
        is_bias     <= beat && phase == BIAS;
        is_left     <= beat && phase == LEFT;
        is_right    <= beat && phase == RIGHT;
        bias_at     <= count;
        left_row    <= row;
        left_at     <= count[7:0];
        right_row   <= inner[11:0];
        right_tile  <= column;
        right_first <= inner == 13'd0;
        right_last  <= last_row;
        right_ends  <= ends;

        if (!run) begin
            phase    <= BIAS;
            count    <= 10'd0;
            row      <= 4'd0;
            inner    <= 13'd0;
            column   <= 4'd0;
            last_row <= 1'b0;
            pending  <= 1'b0;
        end else begin
            if (beat && ends)
                pending <= 1'b1;
            else if (freed)
                pending <= 1'b0;
            if (beat) case (phase)
                BIAS: begin
                    count <= last_bias ? 10'd0 : count + 10'd1;
                    if (last_bias) phase <= LEFT;
                end
                LEFT: begin
                    count <= last_left ? 10'd0 : count + 10'd1;
                    if (last_left) begin
                        row <= row + 4'd1;
                        if ({1'b0, row} == rows - 5'd1) begin
                            row   <= 4'd0;
                            phase <= RIGHT;
                        end
                    end
                end
                default: begin
                    column <= last_column ? 4'd0 : column + 4'd1;
                    if (last_column) begin
                        inner    <= last_row ? 13'd0 : inner + 13'd1;
                        last_row <= inner == k - 13'd2;
                        if (last_row) phase <= last ? LEFT : RIGHT;
                    end
                end
            endcase
        end
    end

    wire unused = &{1'b0, tile, first};
endmodule

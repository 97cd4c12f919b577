// The order of a job's blocks. The reader, the array and the writer each walk it by themselves, so
// that the reader can be ahead.
//
// A block is up to ROWS rows of C by up to 16 tiles of 16 columns. The blocks of a group of rows
// follow each other from left to right. No block is narrower than 8 tiles where N has more than 16:
// 17 tiles are 9 and 8, so that bursts stay long.
module gemm8_walk #(
    parameter ROWS = 8
) (
    input             clk,
    input             run,    // low: the walk is at its begin
    input             next,   // to the next block
    input      [12:0] m,
    input      [8:0]  tiles,  // of 16 columns: N / 16
    output     [4:0]  rows,   // of this block
    output     [4:0]  width,  // of this block, in tiles
    output     [7:0]  tile,   // its first
    output            first,  // of its group of rows
    output            last,   // of its group of rows
    output            done    // there is no block left
);
    reg [12:0] rows_left;
    reg [8:0]  tiles_left;
    reg [7:0]  at;

    // Of less than 32 tiles.
    wire [4:0] half = {1'b0, tiles_left[4:1]} + {4'd0, tiles_left[0]};

    assign rows  = rows_left >= ROWS[12:0] ? ROWS[4:0] : rows_left[4:0];
    assign width = tiles_left <= 9'd16 ? tiles_left[4:0] : tiles_left >= 9'd32 ? 5'd16 : half;
    assign tile  = at;
    assign first = at == 8'd0;
    assign last  = tiles_left <= 9'd16;
    assign done  = rows_left == 13'd0;

    always @(posedge clk) begin
        if (!run) begin
            rows_left  <= m;
            tiles_left <= tiles;
            at         <= 8'd0;
        end else if (next && last) begin
            rows_left  <= rows_left - {8'd0, rows};
            tiles_left <= tiles;
            at         <= 8'd0;
        end else if (next) begin
            tiles_left <= tiles_left - {4'd0, width};
            at         <= at + {3'd0, width};
        end
    end
endmodule

// The array: ROWS rows of 16 multipliers. A beat of B passes all rows at once, so that it is used
// ROWS times; one beat a cycle.
module gemm8_array #(
    parameter ROWS = 8
) (
    input              clk,
    input              run,
    input      [127:0] data,         // a beat of A or of B, and what it is:
    input              is_left,
    input      [3:0]   left_row,
    input      [7:0]   left_at,
    input              is_right,
    input      [11:0]  right_row,
    input      [3:0]   right_tile,
    input              right_first,
    input              right_last,
    input              right_ends,
    output             full,         // the sums of a block have ended, and can be read
    input      [3:0]   read_row,
    input      [3:0]   read_tile,
    input      [1:0]   read_quarter,
    output reg [127:0] read_sums     // two cycles later: four sums
);
    // A beat's way: 1 the word of A is read, 2 its byte is taken, 3 the product, 4 the sum.
    reg [127:0] right2, right3;
    reg [3:0]   byte2;
    reg [2:0]   valid, first, last, ends;   // in the steps 2 to 4
    reg [3:0]   tile2, tile3, tile4;
    reg         ended;
    reg [3:0]   row;

    wire [127:0] sums [0:15];

    assign full = ended;

    always @(posedge clk) begin
        right2 <= data;
        right3 <= right2;
        byte2  <= right_row[3:0];
        valid  <= run ? {valid[1:0], is_right} : 3'd0;
        first  <= {first[1:0], right_first};
        last   <= {last[1:0], right_last};
        ends   <= {ends[1:0], right_ends};
        tile2  <= right_tile;
        tile3  <= tile2;
        tile4  <= tile3;
        ended  <= run && valid[2] && ends[2];

        row       <= read_row;
        read_sums <= sums[row];
    end

    genvar r;
    generate
        for (r = 0; r < 16; r = r + 1) begin : rows
            if (r < ROWS) begin : here
                gemm8_row one (
                    .clk(clk),
                    .write(is_left && left_row == r), .write_at(left_at), .write_bytes(data),
                    .word_at(right_row[11:4]), .byte_at(byte2), .right(right3),
                    .add(valid[2]), .first(first[2]), .last(last[2]), .tile(tile4),
                    .read_tile(read_tile), .read_quarter(read_quarter), .read_sums(sums[r])
                );
            end else begin : none
                assign sums[r] = 128'd0;
            end
        end
    endgenerate
endmodule

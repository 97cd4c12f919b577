// One row of the array: a row of A in block RAM, 16 multipliers, and the sums of 16 tiles. Beats of
// B pass by; each is multiplied by one byte of A, and added to the 16 sums of its tile.
module gemm8_row (
    input              clk,
    input              write,        // sixteen bytes of A
    input      [7:0]   write_at,
    input      [127:0] write_bytes,
    input      [7:0]   word_at,      // two cycles before `right`: the word of the byte of A
    input      [3:0]   byte_at,      // one cycle before
    input      [127:0] right,        // sixteen bytes of B
    input              add,          // one cycle after `right`: add the products
    input              first,        // the sums begin
    input              last,         // the sums end here, and can be read
    input      [3:0]   tile,
    input      [3:0]   read_tile,
    input      [1:0]   read_quarter,
    output reg [127:0] read_sums     // one cycle later: four sums
);
    reg [127:0] bytes   [0:255];
    reg [511:0] running [0:15];
    reg [511:0] ended   [0:15];

    reg [127:0]       word;
    reg signed [7:0]  left;
    reg [255:0]       products;

    wire [511:0] held = running[tile];
    wire [511:0] result = ended[read_tile];
    reg  [511:0] after;

    integer c;
    always @* begin
        for (c = 0; c < 16; c = c + 1)
            after[32*c +: 32] = {{16{products[16*c + 15]}}, products[16*c +: 16]}
                              + (first ? 32'd0 : held[32*c +: 32]);
    end

    integer p;
    always @(posedge clk) begin
        if (write) bytes[write_at] <= write_bytes;
        word <= bytes[word_at];
        left <= word[8*byte_at +: 8];
        for (p = 0; p < 16; p = p + 1)
            products[16*p +: 16] <= left * $signed(right[8*p +: 8]);
        if (add) running[tile] <= after;
        if (add && last) ended[tile] <= after;
        read_sums <= result[128*read_quarter +: 128];
    end
endmodule

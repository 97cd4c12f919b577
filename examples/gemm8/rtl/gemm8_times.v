// A product of sizes, two cycles after its factors: the beats of a segment. It uses no multiplier
// block; those belong to the array.
module gemm8_times (
    input             clk,
    input      [12:0] factor,
    input      [4:0]  times,  // 0 to 16
    output reg [16:0] product
);
    reg [16:0] low;
    reg [16:0] high;

    wire [16:0] wide = {4'd0, factor};

    always @(posedge clk) begin
        low     <= (times[0] ? wide : 17'd0) + (times[1] ? wide << 1 : 17'd0);
        high    <= (times[2] ? wide << 2 : 17'd0) + (times[3] ? wide << 3 : 17'd0)
                 + (times[4] ? wide << 4 : 17'd0);
        product <= low + high;
    end
endmodule

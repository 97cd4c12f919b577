// One sum to its result, in five cycles: add the bias, ReLU and the rounding constant, shift in two
// steps, saturate (README.md, "Arithmetic").
module gemm8_requantize (
    input             clk,
    input      [31:0] sum,
    input      [31:0] bias,
    input             relu,
    input             raw,
    input      [4:0]  shift,  // 0 where raw
    input      [31:0] half,   // 2^(shift-1), and 0 where the shift is 0
    output reg [31:0] result  // an int8 in the low byte, or all 32 bits where raw
);
    reg        [31:0] biased;
    reg signed [32:0] rounded;
    reg signed [32:0] coarse;
    reg signed [32:0] shifted;

    wire [31:0] rectified = relu && biased[31] ? 32'd0 : biased;
    // It is an int8 where all bits from the sign of an int8 on are equal.
    wire fits = shifted[32:7] == {26{shifted[32]}};

    always @(posedge clk) begin
        biased  <= sum + bias;
        rounded <= {rectified[31], rectified} + {1'b0, half};
        coarse  <= rounded >>> {shift[4:3], 3'd0};
        shifted <= coarse >>> shift[2:0];
        result  <= raw || fits ? shifted[31:0] : {24'd0, shifted[32], {7{!shifted[32]}}};
    end
endmodule

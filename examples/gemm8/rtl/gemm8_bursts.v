// Segments of memory, cut into bursts: at most 16 beats of 16 bytes each, and none that crosses a
// 4 KiB boundary (Arm IHI 0022, A3.4.1).
module gemm8_bursts (
    input             clk,
    input             run,       // low: nothing is left
    input             load,      // take the segments below
    input      [63:0] addr,      // of the first, a multiple of 16
    input      [16:0] beats,     // of each, not 0
    input      [12:0] count,     // how many, not 0
    input      [17:0] stride,    // from one to the next, in bytes
    output            empty,     // every burst was taken
    output            valid,     // there is a burst
    output     [63:0] burst_addr,
    output     [4:0]  burst_beats,
    input             next       // it was taken
);
    reg [63:0] segment;
    reg [63:0] at;
    reg [16:0] each;
    reg [16:0] left;
    reg [12:0] segments_left;
    reg [17:0] step;
    reg [4:0]  size;
    reg        sized;

    wire [4:0]  most   = left >= 17'd16 ? 5'd16 : left[4:0];
    wire [4:0]  room   = at[11:8] == 4'hF ? 5'd16 - {1'b0, at[7:4]} : 5'd16;
    wire [63:0] beyond = segment + {46'd0, step};

    assign empty       = segments_left == 13'd0;
    assign valid       = sized;
    assign burst_addr  = at;
    assign burst_beats = size;

    always @(posedge clk) begin
        if (!run) begin
            segments_left <= 13'd0;
            sized         <= 1'b0;
        end else if (load) begin
            segment       <= addr;
            at            <= addr;
            each          <= beats;
            left          <= beats;
            segments_left <= count;
            step          <= stride;
            sized         <= 1'b0;
        end else if (sized && next) begin
            sized <= 1'b0;
            if (left == {12'd0, size}) begin
                segments_left <= segments_left - 13'd1;
                segment       <= beyond;
                at            <= beyond;
                left          <= each;
            end else begin
                at   <= at + {55'd0, size, 4'd0};
                left <= left - {12'd0, size};
            end
        end else if (!sized && !empty) begin
            size  <= most < room ? most : room;
            sized <= 1'b1;
        end
    end
endmodule

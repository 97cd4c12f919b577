// The sums of a block, from the array to beats of C, in the order of C's bytes: four sums a cycle.
// They are a beat where C is int32, and a fourth of one where it is int8.
module gemm8_drain (
    input              clk,
    input              run,
    input      [127:0] data,         // a beat of bias
    input              is_bias,
    input      [9:0]   bias_at,
    input              relu,
    input              raw,
    input      [4:0]   shift,
    input              begins,       // read out the block below
    input      [4:0]   rows,
    input      [4:0]   width,
    input      [7:0]   tile,
    output             freed,        // its sums may be overwritten
    output     [3:0]   read_row,
    output     [3:0]   read_tile,
    output     [1:0]   read_quarter,
    input      [127:0] read_sums,
    output             beat_valid,
    output     [127:0] beat,
    input              beat_taken
);
    reg        busy;
    reg [4:0]  rows_left;
    reg [4:0]  block_width;
    reg [7:0]  block_tile;
    reg [3:0]  row;
    reg [3:0]  column;
    reg [1:0]  quarter;

    // So many beats have a place in the queue, or are on their way to it.
    reg [4:0]  credit;
    wire       whole  = raw || quarter == 2'd3;
    wire       issue  = busy && (credit != 5'd0 || !whole);
    wire       last   = quarter == 2'd3 && {1'b0, column} == block_width - 5'd1;
    wire       ends   = last && rows_left == 5'd1;
    wire [7:0] at     = block_tile + {4'd0, column};

    assign read_row     = row;
    assign read_tile    = column;
    assign read_quarter = quarter;

    // Beside the sums: 1, 2 the array is read; 3 to 7 requantize; 8 a beat is put together.
    reg [6:0] valid;
    reg [6:0] completes;
    reg [1:0] frees;
    assign freed = frees[1];

    reg [127:0] biases [0:1023];
    reg [127:0] bias1, bias2;

    // These are constant while a job runs.
    reg [4:0]  by;
    reg [31:0] half;

    wire [127:0] results;
    genvar lane;
    generate
        for (lane = 0; lane < 4; lane = lane + 1) begin : lanes
            gemm8_requantize one (
                .clk(clk), .sum(read_sums[32*lane +: 32]), .bias(bias2[32*lane +: 32]),
                .relu(relu), .raw(raw), .shift(by), .half(half), .result(results[32*lane +: 32])
            );
        end
    endgenerate

    wire [31:0]  packed4 = {results[103:96], results[71:64], results[39:32], results[7:0]};
    reg  [127:0] word;
    reg          word_valid;

    reg [127:0] queue [0:15];
    reg [3:0]   put, get;
    reg [4:0]   queued;

    assign beat_valid = queued != 5'd0;
    assign beat       = queue[get];

    always @(posedge clk) begin
        if (is_bias) biases[bias_at] <= data;
        bias1 <= biases[{at, quarter}];
        bias2 <= bias1;
        by    <= raw ? 5'd0 : shift;
        half  <= (32'd1 << by) >> 1;

        valid     <= run ? {valid[5:0], issue} : 7'd0;
        completes <= {completes[5:0], whole};
        frees     <= run ? {frees[0], issue && ends} : 2'd0;

        // The oldest of four comes to lie lowest.
        if (valid[6]) word <= raw ? results : {packed4, word[127:32]};
        word_valid <= run && valid[6] && completes[6];
        if (word_valid) queue[put] <= word;

        if (!run) begin
            busy   <= 1'b0;
            credit <= 5'd16;
            put    <= 4'd0;
            get    <= 4'd0;
            queued <= 5'd0;
        end else begin
            put    <= put + {3'd0, word_valid};
            get    <= get + {3'd0, beat_taken};
            queued <= queued + {4'd0, word_valid} - {4'd0, beat_taken};
            credit <= credit + {4'd0, beat_taken} - {4'd0, issue && whole};
            if (begins) begin
                busy        <= 1'b1;
                rows_left   <= rows;
                block_width <= width;
                block_tile  <= tile;
                row         <= 4'd0;
                column      <= 4'd0;
                quarter     <= 2'd0;
            end else if (issue) begin
                quarter <= quarter + 2'd1;
                if (quarter == 2'd3) column <= last ? 4'd0 : column + 4'd1;
                if (last) begin
                    row       <= row + 4'd1;
                    rows_left <= rows_left - 5'd1;
                end
                if (ends) busy <= 1'b0;
            end
        end
    end
endmodule

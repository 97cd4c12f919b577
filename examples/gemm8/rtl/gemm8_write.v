// The writes of C: for each block whose sums have ended, its addresses, its data and its answers.
module gemm8_write #(
    parameter ROWS   = 8,
    parameter WRITES = 4  // bursts under way at most; with the reader's, 16
) (
    input             clk,
    input             rst_n,
    input             clear,      // a job begins: no byte is written yet
    input             run,
    input             halt,       // no further burst
    output            quiet,      // no burst is under way
    output            done,       // all of C was written, and every write answered
    input      [63:0] c,
    input      [12:0] m,
    input      [8:0]  tiles,      // N / 16
    input             raw,
    input             full,       // the sums of the next block have ended
    output            begins,     // read this block out
    output     [4:0]  rows,
    output     [4:0]  width,
    output     [7:0]  tile,
    input             beat_valid,
    output            beat_taken,
    output reg [63:0] awaddr,
    output reg [7:0]  awlen,
    output reg        awvalid,
    input             awready,
    output            wvalid,
    output            wlast,
    input             wready,
    input             bvalid,
    input             bfailed,
    output reg        failed,     // a write was answered with an error
    output reg [31:0] bytes       // of the writes that were answered OKAY
);
    reg        waiting;   // a block can be read out
    reg        loaded;
    reg        settling;
    reg [1:0]  settle;    // the product of sizes is right when it is 3
    reg [63:0] c_at;      // of the group of rows
    reg [4:0]  owed;
    reg [4:0]  beats_left;

    wire        first;
    wire        last;
    wire        walked;
    wire [16:0] product;
    wire        empty;
    wire        valid;
    wire [63:0] burst_addr;
    wire [4:0]  burst_beats;

    wire        whole   = first && last;
    wire        load    = settling && settle == 2'd3;
    wire        written = loaded && empty && beats_left == 5'd0;
    wire        take    = valid && !halt && owed < WRITES[4:0] && !awvalid && beats_left == 5'd0;
    wire [63:0] at      = raw ? c_at + {50'd0, tile, 6'd0} : c_at + {52'd0, tile, 4'd0};
    wire [16:0] each    = whole ? product : {12'd0, width};
    wire [17:0] stride  = raw ? {3'd0, tiles, 6'd0} : {5'd0, tiles, 4'd0};

    gemm8_walk #(.ROWS(ROWS)) walk (
        .clk(clk), .run(run), .next(written), .m(m), .tiles(tiles),
        .rows(rows), .width(width), .tile(tile), .first(first), .last(last), .done(walked)
    );

    gemm8_times product_of (.clk(clk), .factor({8'd0, width}), .times(rows), .product(product));

    gemm8_bursts bursts (
        .clk(clk), .run(run), .load(load),
        .addr(at), .beats(raw ? {each[14:0], 2'd0} : each), .count(whole ? 13'd1 : {8'd0, rows}),
        .stride(stride),
        .empty(empty), .valid(valid),
        .burst_addr(burst_addr), .burst_beats(burst_beats), .next(take)
    );

    // How long each burst under way is, the oldest first.
    reg [4:0] lengths [0:15];
    reg [3:0] put, get;
    wire [4:0] answered = lengths[get];

    assign begins     = run && waiting && !loaded && !settling;
    assign wvalid     = beats_left != 5'd0 && beat_valid;
    assign wlast      = beats_left == 5'd1;
    assign beat_taken = wvalid && wready;
    assign quiet      = owed == 5'd0 && !awvalid && beats_left == 5'd0;
    assign done       = walked && quiet;

    always @(posedge clk) begin
        failed <= bvalid && bfailed;
        if (!run) begin
            waiting  <= 1'b0;
            loaded   <= 1'b0;
            settling <= 1'b0;
            c_at     <= c;
        end else begin
            if (full)
                waiting <= 1'b1;
            else if (begins)
                waiting <= 1'b0;
            settle <= begins ? 2'd0 : settle + 2'd1;
            if (begins) settling <= 1'b1;
            if (load) begin
                settling <= 1'b0;
                loaded   <= 1'b1;
            end
            if (written) begin
                loaded <= 1'b0;
                // A group that is not the last has all its rows.
                if (last) c_at <= c_at + ({46'd0, stride} << $clog2(ROWS));
            end
        end

        // A burst counts from the cycle in which its address is shown until it is answered. Its
        // data wait for no address to be taken (Arm IHI 0022, A3.3.1).
        if (take) begin
            awvalid      <= 1'b1;
            awaddr       <= burst_addr;
            awlen        <= {3'd0, burst_beats} - 8'd1;
            lengths[put] <= burst_beats;
            put          <= put + 4'd1;
            beats_left   <= burst_beats;
        end else begin
            if (awready) awvalid <= 1'b0;
            if (beat_taken) beats_left <= beats_left - 5'd1;
        end
        owed <= owed + {4'd0, take} - {4'd0, bvalid};
        if (bvalid) begin
            get <= get + 4'd1;
            if (!bfailed) bytes <= bytes + {23'd0, answered, 4'd0};
        end
        if (clear) bytes <= 32'd0;
        if (!rst_n) begin
            awvalid    <= 1'b0;
            beats_left <= 5'd0;
            owed       <= 5'd0;
            put        <= 4'd0;
            get        <= 4'd0;
            bytes      <= 32'd0;
        end
    end
endmodule

// Memory's side: packets into the buffers of DEPTH descriptors, in their order. A burst has 16 beats
// at most, stays in its 4 KiB, and begins when all of its data are here, so that it never waits for
// the stream. A buffer's end is reported after the answer of its last burst.
module s2mm_writer #(
    parameter DEPTH = 8,
    parameter BITS = 3
) (
    input  wire        clk,
    input  wire        rst_n,
    // While it is 0 nothing is taken. The beats that were taken are written, and then it is stopped.
    input  wire        on,
    output wire        stopped,
    // Forgets the descriptors and the ends, while it is stopped.
    input  wire        clear,
    input  wire        give,
    input  wire [63:0] give_addr,
    input  wire [27:0] give_bytes,
    output wire [BITS:0] room,
    output wire        end_valid,
    // A bus error, the packet was cut, it ends here, and so many bytes.
    output wire [30:0] end_word,
    input  wire        end_taken,
    // The descriptors ran out so often.
    output reg  [31:0] dry,

    input  wire        valid,
    input  wire [63:0] data,
    input  wire [7:0]  keep,
    input  wire        last,
    input  wire        cut,
    output wire        ready,

    output reg  [63:0] awaddr,
    output reg  [7:0]  awlen,
    output reg         awvalid,
    input  wire        awready,
    output wire [63:0] wdata,
    output wire [7:0]  wstrb,
    output wire        wlast,
    output reg         wvalid,
    input  wire        wready,
    input  wire [1:0]  bresp,
    input  wire        bvalid,
    output wire        bready
);
    function [27:0] bytes_of(input [7:0] lanes);
        integer lane;
        begin
            bytes_of = 28'd0;
            for (lane = 0; lane < 8; lane = lane + 1) bytes_of = bytes_of + {27'd0, lanes[lane]};
        end
    endfunction

    // ---- Descriptors. A place is free when its end was taken.
    reg [91:0]   given [0:DEPTH-1];
    reg [BITS:0] given_to, given_from, used;
    wire         has_given = given_to != given_from;
    assign room = DEPTH[BITS:0] - used;

    // ---- Beats to bursts.
    reg         open;
    reg  [63:0] at, start;
    reg  [27:0] left, got;
    reg  [4:0]  beats;
    reg  [71:0] held [0:31];
    reg  [5:0]  held_to, held_from;
    reg  [99:0] bursts [0:3];
    reg  [2:0]  bursts_to, bursts_from;
    wire        has_burst = bursts_to != bursts_from;
    wire        bursts_room = bursts_to - bursts_from != 3'd4;
    wire [63:0] next = at + 64'd8;
    wire        is_end = cut | last | left == 28'd8;
    wire        closes = is_end | beats == 5'd15 | next[11:0] == 12'd0;
    wire [4:0]  beats_now = cut ? beats : beats + 5'd1;
    wire [27:0] got_now = cut ? got : got + bytes_of(keep);
    wire        take = valid & ready;
    // What was taken is written after a stop, too.
    wire        flush = !on & beats != 5'd0 & bursts_room;
    assign ready = on & open & bursts_room & held_to - held_from != 6'd32;

    // ---- Bursts to memory: {address, beats, end, cut, last, bytes}, then {no answer, end, cut, last,
    // bytes} until the answer.
    reg  [31:0] waits [0:3];
    reg  [2:0]  waits_to, waits_from;
    reg  [4:0]  w_left;
    reg         failed;
    wire        has_wait = waits_to != waits_from;
    wire [99:0] burst = bursts[bursts_from[1:0]];
    wire        send = has_burst & !awvalid & !wvalid & waits_to - waits_from != 3'd4;
    wire [31:0] wait_for = waits[waits_from[1:0]];
    wire        answered = has_wait & (wait_for[31] | bvalid);
    wire        failed_now = failed | bvalid & bready & bresp[1];
    assign bready = has_wait & !wait_for[31];
    assign {wstrb, wdata} = held[held_from[4:0]];
    assign wlast = w_left == 5'd1;

    // ---- Ends.
    reg  [30:0] ends [0:DEPTH-1];
    reg  [BITS:0] ends_to, ends_from;
    assign end_valid = ends_to != ends_from;
    assign end_word = ends[ends_from[BITS-1:0]];
    assign stopped = !on & !open & beats == 5'd0 & !has_burst & !has_wait & !awvalid & !wvalid;

    always @(posedge clk)
        if (!rst_n) begin
            {given_to, given_from, used, ends_to, ends_from} <= {5 * (BITS + 1){1'b0}};
            {open, beats, held_to, held_from, bursts_to, bursts_from} <= 24'd0;
            {waits_to, waits_from, w_left, failed, awvalid, wvalid} <= 14'd0;
            dry <= 32'd0;
        end else begin
            if (give) begin
                given[given_to[BITS-1:0]] <= {give_addr, give_bytes};
                given_to <= given_to + 1'b1;
            end
            used <= used + {{BITS{1'b0}}, give} - {{BITS{1'b0}}, end_taken & end_valid};

            if (on & !open & has_given) begin
                {open, at, left} <= {1'b1, given[given_from[BITS-1:0]]};
                got <= 28'd0;
                given_from <= given_from + 1'b1;
            end else if (!on) open <= 1'b0;
            if (take) begin
                got <= got_now;
                if (!cut) begin
                    held[held_to[4:0]] <= {keep, data};
                    held_to <= held_to + 6'd1;
                    {at, left} <= {next, left - 28'd8};
                    if (beats == 5'd0) start <= at;
                end
                beats <= closes ? 5'd0 : beats_now;
                if (is_end) open <= 1'b0;
                if (is_end & !has_given) dry <= dry + 32'd1;
            end
            if (take & closes) bursts[bursts_to[1:0]] <= {beats == 5'd0 ? at : start, beats_now, is_end, cut, last & !cut, got_now};
            else if (flush) begin
                bursts[bursts_to[1:0]] <= {start, beats, 31'd0};
                beats <= 5'd0;
            end
            if (take & closes | flush) bursts_to <= bursts_to + 3'd1;

            if (send) begin
                bursts_from <= bursts_from + 3'd1;
                waits[waits_to[1:0]] <= {burst[35:31] == 5'd0, burst[30:0]};
                waits_to <= waits_to + 3'd1;
                if (burst[35:31] != 5'd0) begin
                    {awvalid, wvalid, w_left} <= {2'b11, burst[35:31]};
                    {awaddr, awlen} <= {burst[99:36], {3'd0, burst[35:31]} - 8'd1};
                end
            end
            if (awvalid & awready) awvalid <= 1'b0;
            if (wvalid & wready) begin
                held_from <= held_from + 6'd1;
                w_left <= w_left - 5'd1;
                if (wlast) wvalid <= 1'b0;
            end
            if (answered) begin
                waits_from <= waits_from + 3'd1;
                failed <= failed_now & !wait_for[30];
                if (wait_for[30]) begin
                    ends[ends_to[BITS-1:0]] <= {failed_now, wait_for[29:0]};
                    ends_to <= ends_to + 1'b1;
                end
            end
            if (end_taken & end_valid) ends_from <= ends_from + 1'b1;
            if (clear & stopped) begin
                {given_from, ends_from, used} <= {given_to, ends_to, {BITS{1'b0}}, 1'b0};
                failed <= 1'b0;
            end
        end
endmodule

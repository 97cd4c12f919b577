// The stream's side: a FIFO of 64 beats. The source never waits, so every beat is taken in the cycle
// in which it comes. A packet that finds no room is lost whole while none of it has left the FIFO.
// Otherwise a mark takes the place of its rest: it is cut. Both are counted.
module s2mm_intake (
    input  wire        clk,
    input  wire        rst_n,
    // While it is 0 the FIFO is empty, and nothing is taken. The rest of a packet that was under way
    // then, or that was offered, goes nowhere.
    input  wire        on,
    input  wire [63:0] tdata,
    input  wire [7:0]  tkeep,
    input  wire        tlast,
    input  wire        tvalid,
    output wire        tready,
    output wire        valid,
    output wire [63:0] data,
    output wire [7:0]  keep,
    output wire        last,
    // The packet ends here because its rest was dropped; this is no beat.
    output wire        cut,
    input  wire        ready,
    output reg  [31:0] losses,
    output reg  [31:0] cuts
);
    reg [73:0] places [0:63];
    reg [6:0]  from, to, first;
    reg        midway, gone, dropping, owes_cut;
    wire [6:0] used = to - from;
    // Where this packet begins; its beginning is gone once that has left the FIFO.
    wire [6:0] begin_at = midway ? first : to;
    wire       pop = valid & ready;
    wire       room = used != 7'd64 | pop;
    wire       beat = on & tvalid;
    wire       wanted = beat & !dropping & !owes_cut;
    assign tready = on;
    assign valid = used != 7'd0;
    assign {cut, last, keep, data} = places[from[5:0]];

    always @(posedge clk)
        if (!rst_n) begin
            {from, to, first} <= 21'd0;
            {midway, gone, dropping, owes_cut} <= 4'd0;
            {losses, cuts} <= 64'd0;
        end else if (!on) begin
            {from, to} <= 14'd0;
            {dropping, owes_cut} <= {dropping | midway | tvalid, 1'b0};
        end else begin
            if (pop) from <= from + 7'd1;
            if (beat & !midway) gone <= 1'b0;
            else if (pop & from == first) gone <= 1'b1;
            if (beat) begin
                {midway, first} <= {!tlast, begin_at};
                dropping <= !tlast & (dropping | owes_cut | !room);
            end
            if (owes_cut & room) begin
                places[to[5:0]] <= {2'b11, 72'd0};
                {to, owes_cut} <= {to + 7'd1, 1'b0};
            end else if (wanted & room) begin
                places[to[5:0]] <= {1'b0, tlast, tkeep, tdata};
                to <= to + 7'd1;
            end else if (wanted & midway & gone) {owes_cut, cuts} <= {1'b1, cuts + 32'd1};
            else if (wanted) {to, losses} <= {begin_at, losses + 32'd1};
            // The first beat of a packet, while the mark of the one before waits.
            if (beat & owes_cut & !dropping) losses <= losses + 32'd1;
        end
endmodule

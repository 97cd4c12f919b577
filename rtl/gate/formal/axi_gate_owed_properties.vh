// SPDX-License-Identifier: MIT OR Apache-2.0
// What is proved of the list of bursts under way, for one ID and one burst that the solver chooses.

reg p_past = 1'b0;
always @(posedge aclk) p_past <= 1'b1;
initial assume (!aresetn);

// The gate's properties prove this of both lists: `owed_refuses`.
always @* if (aresetn) assume (!(push & count == DEPTH));

(* anyconst *) reg [ID_BITS-1:0] p_id;
(* anyseq *) reg p_pick;

// How many bursts of this ID wait; one of them, its address, and how many of them are older.
reg [COUNT_BITS-1:0] p_waiting, p_ahead;
reg p_tracked;
reg [ADDR_BITS-1:0] p_addr;
wire p_in = push & push_id == p_id;
wire p_out = pop & id == p_id & p_waiting != 0;
wire p_picked = p_in & p_pick & !p_tracked;
always @(posedge aclk)
    if (!aresetn) begin
        p_waiting <= 0;
        p_tracked <= 1'b0;
    end else begin
        p_waiting <= p_waiting + p_in - p_out;
        if (p_picked) begin
            p_tracked <= 1'b1;
            p_ahead <= p_waiting - p_out;
            p_addr <= push_addr;
        end else if (p_tracked & p_out) begin
            if (p_ahead == 0) p_tracked <= 1'b0;
            p_ahead <= p_ahead - 1'b1;
        end
    end

// For the induction: how many entries of this ID there are, and up to each of them.
reg [COUNT_BITS-1:0] p_found;
reg p_distinct, p_inside, p_kept;
integer p, q;
always @* begin
    p_found = 0;
    p_distinct = 1'b1;
    p_inside = 1'b1;
    p_kept = 1'b1;
    for (p = 0; p < DEPTH; p = p + 1) begin
        if (slots[p*SLOT_BITS +: SLOT_BITS] > DEPTH - 1) p_inside = 1'b0;
        for (q = 0; q < p; q = q + 1)
            if (slots[p*SLOT_BITS +: SLOT_BITS] == slots[q*SLOT_BITS +: SLOT_BITS]) p_distinct = 1'b0;
        if (p < count && ids[p*ID_BITS +: ID_BITS] == p_id) begin
            if (p_found == p_ahead && addresses[slots[p*SLOT_BITS +: SLOT_BITS]] != p_addr) p_kept = 1'b0;
            p_found = p_found + 1'b1;
        end
    end
end

always @(posedge aclk)
    if (p_past & aresetn) begin
        owed_bounded: assert (count <= DEPTH);
        owed_permutation: assert (p_distinct & p_inside);
        owed_counts: assert (p_found == p_waiting);
        // An answer hits where a burst of its ID waits, and only there.
        if (id == p_id) owed_hits: assert (hit == (p_waiting != 0));
        // Its address is the one of the oldest burst of its ID.
        if (p_tracked) owed_tracked: assert (p_ahead < p_waiting & p_kept);
        if (p_tracked & id == p_id & p_ahead == 0) owed_address: assert (hit & addr == p_addr);
    end

// SPDX-License-Identifier: MIT OR Apache-2.0
// The bursts of one direction that have passed and are not answered yet.
//
// An answer belongs to the oldest burst of its ID. `addr` is the address of that burst, and `hit`
// says that there is one. Addresses lie in a small memory; by age only IDs and slots move.
module axi_gate_owed #(
    parameter ID_BITS = 4,
    parameter ADDR_BITS = 32,
    parameter DEPTH = 8,
    parameter SLOT_BITS = 3, // holds DEPTH - 1
    parameter COUNT_BITS = 4 // holds DEPTH
) (
    input  wire                  aclk,
    input  wire                  aresetn,
    // A burst passes; never while `count` is DEPTH.
    input  wire                  push,
    input  wire [ID_BITS-1:0]    push_id,
    input  wire [ADDR_BITS-1:0]  push_addr,
    // An answer, and the burst that it belongs to.
    input  wire [ID_BITS-1:0]    id,
    output reg                   hit,
    output wire [ADDR_BITS-1:0]  addr,
    // It was the burst's last answer.
    input  wire                  pop,
    output reg  [COUNT_BITS-1:0] count
);
    /* verilator lint_off WIDTH */ // indices are integers
    // Entry 0 is the oldest burst. The slots of the entries from `count` on are free, so all slots
    // together stay a permutation of 0 to DEPTH - 1.
    reg [DEPTH*ID_BITS-1:0]   ids;
    reg [DEPTH*SLOT_BITS-1:0] slots;
    reg [ADDR_BITS-1:0]       addresses [0:DEPTH-1];

    // The oldest entry of this ID, and its slot.
    reg [SLOT_BITS-1:0] at, slot;
    integer i;
    always @* begin
        hit = 1'b0;
        at = {SLOT_BITS{1'b0}};
        slot = slots[0 +: SLOT_BITS];
        for (i = DEPTH - 1; i >= 0; i = i - 1)
            if (i < count && ids[i*ID_BITS +: ID_BITS] == id) begin
                hit = 1'b1;
                at = i;
                slot = slots[i*SLOT_BITS +: SLOT_BITS];
            end
    end
    assign addr = addresses[slot];

    // The slot that the next burst takes: the first free one.
    reg [SLOT_BITS-1:0] free;
    integer j;
    always @* begin
        free = slots[0 +: SLOT_BITS];
        for (j = 1; j < DEPTH; j = j + 1)
            if (j == count) free = slots[j*SLOT_BITS +: SLOT_BITS];
    end

    wire gone = pop & hit;
    integer k;
    always @(posedge aclk)
        if (!aresetn) begin
            count <= {COUNT_BITS{1'b0}};
            for (k = 0; k < DEPTH; k = k + 1) slots[k*SLOT_BITS +: SLOT_BITS] <= k;
        end else begin
            if (push & !gone) count <= count + 1'b1;
            if (gone & !push) count <= count - 1'b1;
            for (k = 0; k < DEPTH; k = k + 1)
                if (gone && k >= at) begin
                    // What is younger moves up, and the slot that became free is the last.
                    if (k == DEPTH - 1) slots[k*SLOT_BITS +: SLOT_BITS] <= slot;
                    else slots[k*SLOT_BITS +: SLOT_BITS] <= slots[(k+1)*SLOT_BITS +: SLOT_BITS];
                    if (push && k + 1 == count) ids[k*ID_BITS +: ID_BITS] <= push_id;
                    else if (k != DEPTH - 1) ids[k*ID_BITS +: ID_BITS] <= ids[(k+1)*ID_BITS +: ID_BITS];
                end else if (push && k == count) ids[k*ID_BITS +: ID_BITS] <= push_id;
        end

    always @(posedge aclk) if (push) addresses[free] <= push_addr;

`ifdef FORMAL_OWED
`include "axi_gate_owed_properties.vh"
`endif
endmodule

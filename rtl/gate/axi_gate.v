// SPDX-License-Identifier: MIT OR Apache-2.0
// A gate between the AXI4 master of any core and the interconnect, which makes the core stoppable.
//
// CONTROL.STOP lets no new address pass. STATUS.IDLE says that every burst that has passed was
// answered. CONTROL.RESET holds the core in reset; the gate then gives the beats that the core owed
// (without strobes, so that they write nothing), takes the answers, and lets the core go only when
// nothing is owed and the bit was cleared. README.md is the page for users.
//
// Towards the interconnect, everything except the readies of answers comes from registers here.
// So a core that dies in the middle of a cycle breaks no rule of AXI there.
//
// Reference: IHI 0022, "AMBA AXI Protocol Specification", A3.2 (handshakes), A3.3 (dependencies).
module axi_gate #(
    parameter DATA_BITS = 64, // 32, 64, 128, 256 or 512
    parameter ID_BITS = 4,    // 1 to 12
    parameter ADDR_BITS = 32, // 12 to 64
    parameter DEPTH = 8,      // bursts under way in each direction, 2 to 32
    parameter RESET_CYCLES = 16 // that the core's reset lasts at least, 2 to 16
) (
    (* X_INTERFACE_INFO = "xilinx.com:signal:clock:1.0 aclk CLK",
       X_INTERFACE_PARAMETER = "ASSOCIATED_BUSIF s_axi:m_axi:s_axil, ASSOCIATED_RESET aresetn:core_aresetn" *)
    input  wire                   aclk,
    (* X_INTERFACE_INFO = "xilinx.com:signal:reset:1.0 aresetn RST", X_INTERFACE_PARAMETER = "POLARITY ACTIVE_LOW" *)
    input  wire                   aresetn,
    // The core's reset.
    (* X_INTERFACE_INFO = "xilinx.com:signal:reset:1.0 core_aresetn RST", X_INTERFACE_PARAMETER = "POLARITY ACTIVE_LOW" *)
    output wire                   core_aresetn,

    // Registers.
    input  wire [11:0]            s_axil_awaddr,
    input  wire [2:0]             s_axil_awprot, // ignored, as arprot: Platform Designer wants both
    input  wire                   s_axil_awvalid,
    output wire                   s_axil_awready,
    input  wire [31:0]            s_axil_wdata,
    input  wire [3:0]             s_axil_wstrb,
    input  wire                   s_axil_wvalid,
    output wire                   s_axil_wready,
    output wire [1:0]             s_axil_bresp,
    output wire                   s_axil_bvalid,
    input  wire                   s_axil_bready,
    input  wire [11:0]            s_axil_araddr,
    input  wire [2:0]             s_axil_arprot,
    input  wire                   s_axil_arvalid,
    output wire                   s_axil_arready,
    output wire [31:0]            s_axil_rdata,
    output wire [1:0]             s_axil_rresp,
    output wire                   s_axil_rvalid,
    input  wire                   s_axil_rready,

    // The core's master.
    input  wire [ID_BITS-1:0]     s_axi_awid,
    input  wire [ADDR_BITS-1:0]   s_axi_awaddr,
    input  wire [7:0]             s_axi_awlen,
    input  wire [2:0]             s_axi_awsize,
    input  wire [1:0]             s_axi_awburst,
    input  wire                   s_axi_awlock,
    input  wire [3:0]             s_axi_awcache,
    input  wire [2:0]             s_axi_awprot,
    input  wire [3:0]             s_axi_awqos,
    input  wire                   s_axi_awvalid,
    output wire                   s_axi_awready,
    input  wire [DATA_BITS-1:0]   s_axi_wdata,
    input  wire [DATA_BITS/8-1:0] s_axi_wstrb,
    input  wire                   s_axi_wlast,
    input  wire                   s_axi_wvalid,
    output wire                   s_axi_wready,
    output wire [ID_BITS-1:0]     s_axi_bid,
    output wire [1:0]             s_axi_bresp,
    output wire                   s_axi_bvalid,
    input  wire                   s_axi_bready,
    input  wire [ID_BITS-1:0]     s_axi_arid,
    input  wire [ADDR_BITS-1:0]   s_axi_araddr,
    input  wire [7:0]             s_axi_arlen,
    input  wire [2:0]             s_axi_arsize,
    input  wire [1:0]             s_axi_arburst,
    input  wire                   s_axi_arlock,
    input  wire [3:0]             s_axi_arcache,
    input  wire [2:0]             s_axi_arprot,
    input  wire [3:0]             s_axi_arqos,
    input  wire                   s_axi_arvalid,
    output wire                   s_axi_arready,
    output wire [ID_BITS-1:0]     s_axi_rid,
    output wire [DATA_BITS-1:0]   s_axi_rdata,
    output wire [1:0]             s_axi_rresp,
    output wire                   s_axi_rlast,
    output wire                   s_axi_rvalid,
    input  wire                   s_axi_rready,

    // The interconnect.
    output wire [ID_BITS-1:0]     m_axi_awid,
    output wire [ADDR_BITS-1:0]   m_axi_awaddr,
    output wire [7:0]             m_axi_awlen,
    output wire [2:0]             m_axi_awsize,
    output wire [1:0]             m_axi_awburst,
    output wire                   m_axi_awlock,
    output wire [3:0]             m_axi_awcache,
    output wire [2:0]             m_axi_awprot,
    output wire [3:0]             m_axi_awqos,
    output wire                   m_axi_awvalid,
    input  wire                   m_axi_awready,
    output wire [DATA_BITS-1:0]   m_axi_wdata,
    output wire [DATA_BITS/8-1:0] m_axi_wstrb,
    output wire                   m_axi_wlast,
    output wire                   m_axi_wvalid,
    input  wire                   m_axi_wready,
    input  wire [ID_BITS-1:0]     m_axi_bid,
    input  wire [1:0]             m_axi_bresp,
    input  wire                   m_axi_bvalid,
    output wire                   m_axi_bready,
    output wire [ID_BITS-1:0]     m_axi_arid,
    output wire [ADDR_BITS-1:0]   m_axi_araddr,
    output wire [7:0]             m_axi_arlen,
    output wire [2:0]             m_axi_arsize,
    output wire [1:0]             m_axi_arburst,
    output wire                   m_axi_arlock,
    output wire [3:0]             m_axi_arcache,
    output wire [2:0]             m_axi_arprot,
    output wire [3:0]             m_axi_arqos,
    output wire                   m_axi_arvalid,
    input  wire                   m_axi_arready,
    input  wire [ID_BITS-1:0]     m_axi_rid,
    input  wire [DATA_BITS-1:0]   m_axi_rdata,
    input  wire [1:0]             m_axi_rresp,
    input  wire                   m_axi_rlast,
    input  wire                   m_axi_rvalid,
    output wire                   m_axi_rready
);
    localparam SLOT_BITS = $clog2(DEPTH);
    localparam COUNT_BITS = $clog2(DEPTH + 1);
    // An address as it is kept: ID, address, length, size, burst, lock, cache, prot, QoS.
    localparam ASK_BITS = ID_BITS + ADDR_BITS + 8 + 3 + 2 + 1 + 4 + 3 + 4;

    /* verilator lint_off WIDTH */ // parameters have 32 bits
    localparam [COUNT_BITS-1:0] FULL = DEPTH;
    localparam [3:0] CYCLES = RESET_CYCLES - 1;
    /* verilator lint_on WIDTH */

    // Other parameters end the elaboration: there are no such modules.
    generate
        if (DATA_BITS != 32 & DATA_BITS != 64 & DATA_BITS != 128 & DATA_BITS != 256 & DATA_BITS != 512) begin : refused_data
            axi_gate_takes_DATA_BITS_32_64_128_256_or_512 refused ();
        end
        if (ID_BITS < 1 | ID_BITS > 12) begin : refused_ids
            axi_gate_takes_ID_BITS_1_to_12 refused ();
        end
        if (ADDR_BITS < 12 | ADDR_BITS > 64) begin : refused_addresses
            axi_gate_takes_ADDR_BITS_12_to_64 refused ();
        end
        if (DEPTH < 2 | DEPTH > 32) begin : refused_depth
            axi_gate_takes_DEPTH_2_to_32 refused ();
        end
        if (RESET_CYCLES < 2 | RESET_CYCLES > 16) begin : refused_cycles
            axi_gate_takes_RESET_CYCLES_2_to_16 refused ();
        end
    endgenerate

    wire stop, hold;

    // ---- The core's reset. It lasts until nothing is owed, and RESET_CYCLES at least.
    reg       dead;
    reg [3:0] cycles;
    wire      idle;
    always @(posedge aclk)
        if (!aresetn) begin
            dead <= 1'b1;
            cycles <= CYCLES;
        end else if (hold) begin
            dead <= 1'b1;
            cycles <= CYCLES;
        end else begin
            if (cycles != 4'd0) cycles <= cycles - 1'b1;
            else if (idle) dead <= 1'b0;
        end
    assign core_aresetn = !dead;
    wire open = !stop & !dead;

    // ---- Addresses of writes. The next one passes with the last beat of the one before.
    wire [COUNT_BITS-1:0] writes;
    reg  [8:0]            beats; // that the burst under way still owes
    reg                   aw_full;
    reg  [ASK_BITS-1:0]   aw;
    wire w_given = m_axi_wvalid & m_axi_wready;
    wire w_free = beats == 9'd0 | (beats == 9'd1 & w_given);
    assign s_axi_awready = open & w_free & writes != FULL & (!aw_full | m_axi_awready);
    wire aw_taken = s_axi_awvalid & s_axi_awready;
    always @(posedge aclk)
        if (!aresetn) aw_full <= 1'b0;
        else if (aw_taken) aw_full <= 1'b1;
        else if (m_axi_awready) aw_full <= 1'b0;
    always @(posedge aclk)
        if (aw_taken)
            aw <= {s_axi_awid, s_axi_awaddr, s_axi_awlen, s_axi_awsize, s_axi_awburst, s_axi_awlock, s_axi_awcache, s_axi_awprot, s_axi_awqos};
    assign m_axi_awvalid = aw_full;
    assign {m_axi_awid, m_axi_awaddr, m_axi_awlen, m_axi_awsize, m_axi_awburst, m_axi_awlock, m_axi_awcache, m_axi_awprot, m_axi_awqos} = aw;

    // ---- Data of writes: exactly as many beats as were promised. One may come before its address
    // and waits here. The strobes are 0 where no beat is kept.
    reg                    w_full, w_last;
    reg  [DATA_BITS-1:0]   w_data;
    reg  [DATA_BITS/8-1:0] w_strb;
    assign m_axi_wvalid = (w_full | dead) & beats != 9'd0;
    assign m_axi_wlast = beats == 9'd1;
    assign m_axi_wdata = w_data;
    assign m_axi_wstrb = w_strb;
    assign s_axi_wready = !dead & (!w_full | w_given);
    wire w_taken = s_axi_wvalid & s_axi_wready;
    // A beat of a core that died, for an address that it never gave.
    wire w_dropped = dead & beats == 9'd0;
    always @(posedge aclk)
        if (!aresetn) begin
            w_full <= 1'b0;
            w_strb <= {(DATA_BITS/8){1'b0}};
            beats <= 9'd0;
        end else begin
            if (w_taken) begin
                w_full <= 1'b1;
                w_strb <= s_axi_wstrb;
            end else if (w_given | w_dropped) begin
                w_full <= 1'b0;
                w_strb <= {(DATA_BITS/8){1'b0}};
            end
            if (aw_taken) beats <= s_axi_awlen + 9'd1;
            else if (w_given) beats <= beats - 9'd1;
        end
    always @(posedge aclk)
        if (w_taken) begin
            w_data <= s_axi_wdata;
            w_last <= s_axi_wlast;
        end
    // The core's WLAST is not where its own length says.
    wire misframed = w_given & w_full & w_last != m_axi_wlast;

    // ---- Answers to writes: the core takes them, or the gate drops them.
    assign s_axi_bid = m_axi_bid;
    assign s_axi_bresp = m_axi_bresp;
    assign s_axi_bvalid = m_axi_bvalid & !dead;
    assign m_axi_bready = s_axi_bready | dead;
    wire b_taken = m_axi_bvalid & m_axi_bready;
    wire b_hit;
    wire [ADDR_BITS-1:0] b_addr;
    axi_gate_owed #(.ID_BITS(ID_BITS), .ADDR_BITS(ADDR_BITS), .DEPTH(DEPTH), .SLOT_BITS(SLOT_BITS), .COUNT_BITS(COUNT_BITS)) owed_writes (
        .aclk(aclk), .aresetn(aresetn),
        .push(aw_taken), .push_id(s_axi_awid), .push_addr(s_axi_awaddr),
        .id(m_axi_bid), .hit(b_hit), .addr(b_addr), .pop(b_taken), .count(writes)
    );

    // ---- Addresses of reads.
    wire [COUNT_BITS-1:0] reads;
    reg                   ar_full;
    reg  [ASK_BITS-1:0]   ar;
    assign s_axi_arready = open & reads != FULL & (!ar_full | m_axi_arready);
    wire ar_taken = s_axi_arvalid & s_axi_arready;
    always @(posedge aclk)
        if (!aresetn) ar_full <= 1'b0;
        else if (ar_taken) ar_full <= 1'b1;
        else if (m_axi_arready) ar_full <= 1'b0;
    always @(posedge aclk)
        if (ar_taken)
            ar <= {s_axi_arid, s_axi_araddr, s_axi_arlen, s_axi_arsize, s_axi_arburst, s_axi_arlock, s_axi_arcache, s_axi_arprot, s_axi_arqos};
    assign m_axi_arvalid = ar_full;
    assign {m_axi_arid, m_axi_araddr, m_axi_arlen, m_axi_arsize, m_axi_arburst, m_axi_arlock, m_axi_arcache, m_axi_arprot, m_axi_arqos} = ar;

    // ---- Answers to reads: the core takes them, or the gate drops them.
    assign s_axi_rid = m_axi_rid;
    assign s_axi_rdata = m_axi_rdata;
    assign s_axi_rresp = m_axi_rresp;
    assign s_axi_rlast = m_axi_rlast;
    assign s_axi_rvalid = m_axi_rvalid & !dead;
    assign m_axi_rready = s_axi_rready | dead;
    wire r_taken = m_axi_rvalid & m_axi_rready;
    wire r_hit;
    wire [ADDR_BITS-1:0] r_addr;
    axi_gate_owed #(.ID_BITS(ID_BITS), .ADDR_BITS(ADDR_BITS), .DEPTH(DEPTH), .SLOT_BITS(SLOT_BITS), .COUNT_BITS(COUNT_BITS)) owed_reads (
        .aclk(aclk), .aresetn(aresetn),
        .push(ar_taken), .push_id(s_axi_arid), .push_addr(s_axi_araddr),
        .id(m_axi_rid), .hit(r_hit), .addr(r_addr), .pop(r_taken & m_axi_rlast), .count(reads)
    );

    // Everything that passed was answered.
    assign idle = writes == 0 & reads == 0 & beats == 9'd0 & !aw_full & !ar_full;

    axi_gate_registers #(.DATA_BITS(DATA_BITS), .ID_BITS(ID_BITS), .ADDR_BITS(ADDR_BITS), .DEPTH(DEPTH), .COUNT_BITS(COUNT_BITS)) registers (
        .aclk(aclk), .aresetn(aresetn),
        .s_axil_awaddr(s_axil_awaddr), .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready),
        .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb), .s_axil_wvalid(s_axil_wvalid), .s_axil_wready(s_axil_wready),
        .s_axil_bresp(s_axil_bresp), .s_axil_bvalid(s_axil_bvalid), .s_axil_bready(s_axil_bready),
        .s_axil_araddr(s_axil_araddr), .s_axil_arvalid(s_axil_arvalid), .s_axil_arready(s_axil_arready),
        .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp), .s_axil_rvalid(s_axil_rvalid), .s_axil_rready(s_axil_rready),
        .stop(stop), .hold(hold), .idle(idle), .held(dead), .reads(reads), .writes(writes), .beats(beats),
        .b_taken(b_taken), .b_resp(m_axi_bresp), .b_id(m_axi_bid), .b_hit(b_hit), .b_addr(b_addr),
        .r_taken(r_taken), .r_resp(m_axi_rresp), .r_id(m_axi_rid), .r_hit(r_hit), .r_addr(r_addr),
        .aw_taken(aw_taken), .ar_taken(ar_taken), .w_given(w_given), .misframed(misframed)
    );

`ifdef FORMAL_GATE
`include "axi_gate_properties.vh"
`endif
endmodule

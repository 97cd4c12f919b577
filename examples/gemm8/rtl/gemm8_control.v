// The registers (README.md, "Registers"), behind an AXI4-Lite slave. One access of each direction
// at a time; every access is answered OKAY.
module gemm8_control (
    input             clk,
    input             rst_n,
    input      [7:0]  s_axi_control_awaddr,
    input             s_axi_control_awvalid,
    output            s_axi_control_awready,
    input      [31:0] s_axi_control_wdata,
    input      [3:0]  s_axi_control_wstrb,
    input             s_axi_control_wvalid,
    output            s_axi_control_wready,
    output     [1:0]  s_axi_control_bresp,
    output reg        s_axi_control_bvalid,
    input             s_axi_control_bready,
    input      [7:0]  s_axi_control_araddr,
    input             s_axi_control_arvalid,
    output            s_axi_control_arready,
    output reg [31:0] s_axi_control_rdata,
    output     [1:0]  s_axi_control_rresp,
    output reg        s_axi_control_rvalid,
    input             s_axi_control_rready,
    output            interrupt,
    output            idle,
    output reg        start,
    output reg        abort,
    output reg [63:0] a,
    output reg [63:0] b,
    output reg [63:0] bias,
    output reg [63:0] c,
    output reg [31:0] m,
    output reg [31:0] n,
    output reg [31:0] k,
    output reg [9:0]  mode,
    input             busy,
    input             finish,
    input      [4:0]  status,
    input      [31:0] bytes_out
);
    `include "gemm8_regs.vh"

    // A write waits for both halves.
    reg        aw_held, w_held;
    reg [5:0]  aw_word;
    reg [31:0] value;
    reg [3:0]  strobes;

    reg        gie;
    reg [1:0]  ier, isr;
    reg        done, ready, status_vld, bytes_out_vld;

    wire       write   = aw_held && w_held && !s_axi_control_bvalid;
    wire       read    = s_axi_control_arvalid && s_axi_control_arready;
    wire [7:0] written = {aw_word, 2'd0};
    wire [7:0] seen    = {s_axi_control_araddr[7:2], 2'd0};
    wire       low     = write && strobes[0];
    // Between its write and the cycle in which the job takes it, a start is a job already.
    wire       taken   = busy || start;

    assign s_axi_control_awready = !aw_held;
    assign s_axi_control_wready  = !w_held;
    assign s_axi_control_arready = !s_axi_control_rvalid;
    assign s_axi_control_bresp   = 2'd0;
    assign s_axi_control_rresp   = 2'd0;
    assign idle                  = !taken;
    assign interrupt             = gie && (isr & ier) != 2'd0;

    function [31:0] merged(input [31:0] older, input [31:0] newer, input [3:0] lanes);
        merged = {lanes[3] ? newer[31:24] : older[31:24], lanes[2] ? newer[23:16] : older[23:16],
                  lanes[1] ? newer[15:8] : older[15:8], lanes[0] ? newer[7:0] : older[7:0]};
    endfunction

    always @(posedge clk) begin
        if (s_axi_control_awvalid && s_axi_control_awready) begin
            aw_held <= 1'b1;
            aw_word <= s_axi_control_awaddr[7:2];
        end
        if (s_axi_control_wvalid && s_axi_control_wready) begin
            w_held  <= 1'b1;
            value   <= s_axi_control_wdata;
            strobes <= s_axi_control_wstrb;
        end
        if (s_axi_control_bready) s_axi_control_bvalid <= 1'b0;
        start <= 1'b0;
        if (write) begin
            aw_held              <= 1'b0;
            w_held               <= 1'b0;
            s_axi_control_bvalid <= 1'b1;
            case (written)
                A:           a[31:0]     <= merged(a[31:0], value, strobes);
                A_HIGH:      a[63:32]    <= merged(a[63:32], value, strobes);
                B:           b[31:0]     <= merged(b[31:0], value, strobes);
                B_HIGH:      b[63:32]    <= merged(b[63:32], value, strobes);
                BIAS:        bias[31:0]  <= merged(bias[31:0], value, strobes);
                BIAS_HIGH:   bias[63:32] <= merged(bias[63:32], value, strobes);
                C:           c[31:0]     <= merged(c[31:0], value, strobes);
                C_HIGH:      c[63:32]    <= merged(c[63:32], value, strobes);
                M:           m           <= merged(m, value, strobes);
                N:           n           <= merged(n, value, strobes);
                K:           k           <= merged(k, value, strobes);
                default: ;
            endcase
            if (written == MODE) begin
                if (strobes[0]) mode[4:0] <= value[4:0];
                if (strobes[1]) mode[9:8] <= value[9:8];
            end
        end
        if (low) case (written)
            CTRL:    start <= value[CTRL_AP_START_BIT] && !taken;
            GIE:     gie   <= value[0];
            IER:     ier   <= value[1:0];
            ABORT:   abort <= value[0];
            default: ;
        endcase

        if (s_axi_control_rready) s_axi_control_rvalid <= 1'b0;
        if (read) begin
            s_axi_control_rvalid <= 1'b1;
            s_axi_control_rdata  <= 32'd0;
            case (seen)
                CTRL: begin
                    s_axi_control_rdata[CTRL_AP_START_BIT] <= taken;
                    s_axi_control_rdata[CTRL_AP_DONE_BIT]  <= done;
                    s_axi_control_rdata[CTRL_AP_IDLE_BIT]  <= idle;
                    s_axi_control_rdata[CTRL_AP_READY_BIT] <= ready;
                end
                GIE:           s_axi_control_rdata[0]   <= gie;
                IER:           s_axi_control_rdata[1:0] <= ier;
                ISR:           s_axi_control_rdata[1:0] <= isr;
                A:             s_axi_control_rdata      <= a[31:0];
                A_HIGH:        s_axi_control_rdata      <= a[63:32];
                B:             s_axi_control_rdata      <= b[31:0];
                B_HIGH:        s_axi_control_rdata      <= b[63:32];
                BIAS:          s_axi_control_rdata      <= bias[31:0];
                BIAS_HIGH:     s_axi_control_rdata      <= bias[63:32];
                C:             s_axi_control_rdata      <= c[31:0];
                C_HIGH:        s_axi_control_rdata      <= c[63:32];
                M:             s_axi_control_rdata      <= m;
                N:             s_axi_control_rdata      <= n;
                K:             s_axi_control_rdata      <= k;
                MODE:          s_axi_control_rdata[9:0] <= mode;
                ABORT:         s_axi_control_rdata[0]   <= abort;
                STATUS:        s_axi_control_rdata[4:0] <= status;
                STATUS_VLD:    s_axi_control_rdata[0]   <= status_vld;
                BYTES_OUT:     s_axi_control_rdata      <= bytes_out;
                BYTES_OUT_VLD: s_axi_control_rdata[0]   <= bytes_out_vld;
                ID:            s_axi_control_rdata      <= ID_RESET;
                default: ;
            endcase
        end

        // What clears when it is read, and is set by a job's end, which wins.
        if (finish)
            {done, ready} <= 2'b11;
        else if (read && seen == CTRL)
            {done, ready} <= 2'b00;
        if (finish)
            status_vld <= 1'b1;
        else if (read && seen == STATUS_VLD)
            status_vld <= 1'b0;
        if (finish)
            bytes_out_vld <= 1'b1;
        else if (read && seen == BYTES_OUT_VLD)
            bytes_out_vld <= 1'b0;
        isr <= (low && written == ISR ? isr ^ value[1:0] : isr) | (finish ? ier : 2'd0);

        if (!rst_n) begin
            {aw_held, w_held, s_axi_control_bvalid, s_axi_control_rvalid} <= 4'd0;
            {start, abort, gie, ier, isr} <= 7'd0;
            {done, ready, status_vld, bytes_out_vld} <= 4'd0;
            a    <= {A_HIGH_RESET, A_RESET};
            b    <= {B_HIGH_RESET, B_RESET};
            bias <= {BIAS_HIGH_RESET, BIAS_RESET};
            c    <= {C_HIGH_RESET, C_RESET};
            m    <= M_RESET;
            n    <= N_RESET;
            k    <= K_RESET;
            mode <= MODE_RESET[9:0];
        end
    end
endmodule

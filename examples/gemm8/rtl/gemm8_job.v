// A job from its start to its end: the arguments are taken and checked, the units run, and the job
// ends when C was written, or when an error or ABORT has stopped the units. Either way it ends only
// when every burst was answered.
module gemm8_job (
    input             clk,
    input             rst_n,
    input             start,         // while idle; ignored while a job runs
    input             abort,
    input      [63:0] a_in,
    input      [63:0] b_in,
    input      [63:0] bias_in,
    input      [63:0] c_in,
    input      [31:0] m_in,
    input      [31:0] n_in,
    input      [31:0] k_in,
    input      [9:0]  mode_in,
    output reg        busy,
    output            clear,         // the job begins
    output reg        run,           // the units work
    output reg        halt,          // the units begin no burst
    output reg        finish,        // one cycle: the job has ended, and the status is right
    output reg [4:0]  status,
    output reg [63:0] a,
    output reg [63:0] b,
    output reg [63:0] bias,
    output reg [63:0] c,
    output reg [12:0] m,
    output reg [8:0]  tiles,         // N / 16
    output reg [12:0] k,
    output reg [9:0]  mode,
    input             read_failed,
    input             write_failed,
    input             written,       // all of C
    input             quiet          // no burst is under way
);
    `include "gemm8_regs.vh"

    reg checked;
    reg bad_m, bad_n, bad_k, bad_pointer;

    // 1 to 4096; `steps`: a multiple of 16.
    function outside(input [31:0] size, input steps);
        outside = size == 32'd0 || size > 32'd4096 || (steps && size[3:0] != 4'd0);
    endfunction

    assign clear = start && !busy;

    always @(posedge clk) begin
        finish  <= 1'b0;
        checked <= 1'b0;
        if (clear) begin
            busy        <= 1'b1;
            checked     <= 1'b1;
            halt        <= 1'b0;
            status      <= 5'd0;
            a           <= a_in;
            b           <= b_in;
            bias        <= bias_in;
            c           <= c_in;
            m           <= m_in[12:0];
            tiles       <= n_in[12:4];
            k           <= k_in[12:0];
            mode        <= mode_in;
            bad_m       <= outside(m_in, 1'b0);
            bad_n       <= outside(n_in, 1'b1);
            bad_k       <= outside(k_in, 1'b1);
            bad_pointer <= (a_in[5:0] | b_in[5:0] | bias_in[5:0] | c_in[5:0]) != 6'd0;
        end else if (checked) begin
            status[STATUS_DIMENSION_BIT] <= bad_m || bad_n || bad_k;
            status[STATUS_ALIGNMENT_BIT] <= bad_pointer;
            status[STATUS_ABORTED_BIT]   <= abort;
            halt                         <= abort;
            // The units begin one cycle after they have seen the arguments.
            run    <= !(bad_m || bad_n || bad_k || bad_pointer);
            finish <= bad_m || bad_n || bad_k || bad_pointer;
        end else if (run) begin
            if (abort) begin
                halt                       <= 1'b1;
                status[STATUS_ABORTED_BIT] <= 1'b1;
            end
            if (read_failed) begin
                halt                    <= 1'b1;
                status[STATUS_READ_BIT] <= 1'b1;
            end
            if (write_failed) begin
                halt                     <= 1'b1;
                status[STATUS_WRITE_BIT] <= 1'b1;
            end
            // A burst's last answer and its failure are seen in the same cycle.
            if ((written || halt) && quiet) begin
                run    <= 1'b0;
                finish <= 1'b1;
            end
        end
        if (finish) busy <= 1'b0;
        if (!rst_n) begin
            busy    <= 1'b0;
            run     <= 1'b0;
            halt    <= 1'b0;
            checked <= 1'b0;
            finish  <= 1'b0;
            status  <= 5'd0;
        end
    end
endmodule

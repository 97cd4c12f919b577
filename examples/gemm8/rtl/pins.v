// gemm8 behind four pins, for place and route alone: it has more wires than any package has pins.
// Every input comes from a shift register, and every output goes into another.
module pins (
    input  clk,
    input  shift_in,
    input  take,       // the outputs are taken, not shifted
    output shift_out
);
    localparam INPUTS = 197 - 1, OUTPUTS = 361;

    reg  [INPUTS-1:0]  in;
    reg  [OUTPUTS-1:0] out;
    wire [OUTPUTS-1:0] seen;

    assign shift_out = out[OUTPUTS-1];

    always @(posedge clk) begin
        in  <= {in[INPUTS-2:0], shift_in};
        out <= take ? seen : {out[OUTPUTS-2:0], 1'b0};
    end

    gemm8 core (
        .clk(clk), .rst_n(in[0]),
        .s_axi_control_awaddr({4'd0, in[8:1]}), .s_axi_control_awvalid(in[9]),
        .s_axi_control_wdata(in[41:10]), .s_axi_control_wstrb(in[45:42]),
        .s_axi_control_wvalid(in[46]), .s_axi_control_bready(in[47]),
        .s_axi_control_araddr({4'd0, in[55:48]}), .s_axi_control_arvalid(in[56]),
        .s_axi_control_rready(in[57]), .s_axi_control_awprot(3'd0), .s_axi_control_arprot(3'd0),
        .m_axi_gmem_awready(in[58]), .m_axi_gmem_wready(in[59]), .m_axi_gmem_bresp(in[61:60]),
        .m_axi_gmem_bvalid(in[62]), .m_axi_gmem_arready(in[63]), .m_axi_gmem_rdata(in[191:64]),
        .m_axi_gmem_rresp(in[193:192]), .m_axi_gmem_rlast(in[194]), .m_axi_gmem_rvalid(in[195]),

        .interrupt(seen[0]), .idle(seen[1]), .s_axi_control_awready(seen[2]),
        .s_axi_control_wready(seen[3]), .s_axi_control_bresp(seen[5:4]),
        .s_axi_control_bvalid(seen[6]), .s_axi_control_arready(seen[7]),
        .s_axi_control_rdata(seen[39:8]), .s_axi_control_rresp(seen[41:40]),
        .s_axi_control_rvalid(seen[42]),
        .m_axi_gmem_rready(seen[43]), .m_axi_gmem_awaddr(seen[107:44]),
        .m_axi_gmem_awlen(seen[115:108]), .m_axi_gmem_awsize(seen[118:116]),
        .m_axi_gmem_awburst(seen[120:119]), .m_axi_gmem_awcache(seen[124:121]),
        .m_axi_gmem_awprot(seen[127:125]), .m_axi_gmem_awvalid(seen[128]),
        .m_axi_gmem_wdata(seen[256:129]), .m_axi_gmem_wstrb(seen[272:257]),
        .m_axi_gmem_wlast(seen[273]), .m_axi_gmem_wvalid(seen[274]),
        .m_axi_gmem_bready(seen[275]), .m_axi_gmem_arvalid(seen[276]),
        .m_axi_gmem_araddr(seen[340:277]), .m_axi_gmem_arlen(seen[348:341]),
        .m_axi_gmem_arsize(seen[351:349]), .m_axi_gmem_arburst(seen[353:352]),
        .m_axi_gmem_arcache(seen[357:354]), .m_axi_gmem_arprot(seen[360:358])
    );
endmodule

# gemm8 as a component of Intel's Platform Designer, for the HPS of a Cyclone V.
# NEVER RUN: written from the Quartus Prime handbook (Component Interface Tcl Reference); no Quartus
# was at hand.
#
#   qsys-edit --search-path="examples/gemm8/rtl,$"
package require -exact qsys 16.1

set_module_property NAME gemm8
set_module_property DISPLAY_NAME "gemm8, an int8 matrix engine"
set_module_property VERSION 1.0

add_fileset synthesis QUARTUS_SYNTH
set_fileset_property synthesis TOP_LEVEL gemm8
foreach file {gemm8 gemm8_array gemm8_bursts gemm8_control gemm8_drain gemm8_feed gemm8_job
              gemm8_read gemm8_requantize gemm8_row gemm8_times gemm8_walk gemm8_write} {
    add_fileset_file $file.v VERILOG PATH $file.v
}
add_fileset_file gemm8_regs.vh VERILOG_INCLUDE PATH gemm8_regs.vh

add_interface clock clock end
add_interface_port clock clk clk Input 1
add_interface reset reset end
set_interface_property reset associatedClock clock
add_interface_port reset rst_n reset_n Input 1

# Ports of an interface: what they are called without its prefix, the direction, the bits.
proc ports {interface prefix list} {
    foreach {role direction bits} $list {
        add_interface_port $interface ${prefix}_$role $role $direction $bits
    }
    set_interface_property $interface associatedClock clock
    set_interface_property $interface associatedReset reset
}

add_interface control axi4lite end
ports control s_axi_control {
    awaddr Input 12 awprot Input 3 awvalid Input 1 awready Output 1 wdata Input 32 wstrb Input 4
    wvalid Input 1 wready Output 1 bresp Output 2 bvalid Output 1 bready Input 1
    araddr Input 12 arprot Input 3 arvalid Input 1 arready Output 1 rdata Output 32 rresp Output 2
    rvalid Output 1 rready Input 1
}

add_interface gmem axi4 start
set_interface_property gmem readIssuingCapability 12
set_interface_property gmem writeIssuingCapability 4
set_interface_property gmem combinedIssuingCapability 16
ports gmem m_axi_gmem {
    awaddr Output 64 awlen Output 8 awsize Output 3 awburst Output 2 awcache Output 4
    awprot Output 3 awvalid Output 1 awready Input 1 wdata Output 128 wstrb Output 16
    wlast Output 1 wvalid Output 1 wready Input 1 bresp Input 2 bvalid Input 1 bready Output 1
    araddr Output 64 arlen Output 8 arsize Output 3 arburst Output 2 arcache Output 4
    arprot Output 3 arvalid Output 1 arready Input 1 rdata Input 128 rresp Input 2 rlast Input 1
    rvalid Input 1 rready Output 1
}

add_interface irq interrupt end
add_interface_port irq interrupt irq Output 1
set_interface_property irq associatedClock clock
set_interface_property irq associatedAddressablePoint control

add_interface idle conduit end
add_interface_port idle idle idle Output 1

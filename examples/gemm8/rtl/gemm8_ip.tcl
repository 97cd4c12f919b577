# Packages gemm8 as an IP for Vivado's block designs, in the folder gemm8_ip/ where it runs.
# NEVER RUN: written from UG1118 (Creating and Packaging Custom IP); no Vivado was at hand.
#
#   vivado -mode batch -source examples/gemm8/rtl/gemm8_ip.tcl
set here [file dirname [file normalize [info script]]]

create_project gemm8 gemm8_ip/project -part xc7z020clg400-1 -force
add_files [concat [glob $here/gemm8*.v] $here/gemm8_regs.vh]
set_property file_type {Verilog Header} [get_files gemm8_regs.vh]
set_property top gemm8 [current_fileset]

ipx::package_project -root_dir gemm8_ip -vendor contigo -library user -taxonomy /UserIP \
    -import_files -set_current true
set core [ipx::current_core]
# Every family, not that of the project's part alone (UG1118, "Automatic Family Support").
set_property supported_families {} $core
set_property auto_family_support_level level_2 $core
# The names of the ports are those that the packager infers AXI interfaces from.
ipx::infer_bus_interface clk xilinx.com:signal:clock_rtl:1.0 $core
ipx::infer_bus_interface rst_n xilinx.com:signal:reset_rtl:1.0 $core
ipx::infer_bus_interface interrupt xilinx.com:signal:interrupt_rtl:1.0 $core
foreach interface {s_axi_control m_axi_gmem} {
    ipx::associate_bus_interfaces -busif $interface -clock clk $core
}
ipx::associate_bus_interfaces -clock clk -reset rst_n $core
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::save_core $core

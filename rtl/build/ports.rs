//! The ports of a core's `top`, as Verilator's header has them. A misspelled one would be left out,
//! and a bus of another width would look like a core that breaks AXI.

/// The widths of data on AXI4 and on streams here; AXI4 has 1,024 bits too (IHI 0022 A1.2.1).
const DATA_BITS: [u32; 5] = [32, 64, 128, 256, 512];

const ALONE: [&str; 5] = ["clk", "rst_n", "irq", "idle", "stream_rst_n"];
const LITE: &[&str] = &[
    "awaddr", "awvalid", "awready", "awprot", "wdata", "wstrb", "wvalid", "wready", "bresp",
    "bvalid", "bready", "araddr", "arvalid", "arready", "arprot", "rdata", "rresp", "rvalid",
    "rready",
];
/// With those that memory here does not look at.
const MASTER: &[&str] = &[
    "awid", "awaddr", "awlen", "awsize", "awburst", "awvalid", "awready", "wdata", "wstrb",
    "wlast", "wvalid", "wready", "bid", "bresp", "bvalid", "bready", "arid", "araddr", "arlen",
    "arsize", "arburst", "arvalid", "arready", "rid", "rdata", "rresp", "rlast", "rvalid",
    "rready", "awlock", "awcache", "awprot", "awqos", "awregion", "arlock", "arcache", "arprot",
    "arqos", "arregion",
];
const STREAM: &[&str] = &["tdata", "tkeep", "tlast", "tvalid", "tready"];
const GROUPS: [(&str, &[&str]); 6] = [
    ("s_axil_", LITE),
    ("m0_axi_", MASTER),
    ("m1_axi_", MASTER),
    ("m2_axi_", MASTER),
    ("s_axis_", STREAM),
    ("m_axis_", STREAM),
];

/// A port's name and bits, of a line like `VL_OUTW(&m0_axi_wdata,127,0,4);`.
fn port(line: &str) -> Option<(&str, u32)> {
    let rest = line.trim().strip_prefix("VL_IN").or_else(|| line.trim().strip_prefix("VL_OUT"))?;
    let (name, bits) = rest.split_once("(&")?.1.split_once(',')?;
    let (high, low) = bits.split_once(',')?;
    let low = low.split([',', ')']).next()?;
    Some((name, high.parse::<u32>().ok()?.checked_sub(low.parse().ok()?)?.checked_add(1)?))
}

fn is_known(name: &str) -> bool {
    ALONE.contains(&name)
        || GROUPS.iter().any(|(group, ports)| {
            name.strip_prefix(group).is_some_and(|port| ports.contains(&port))
        })
}

/// Refuses the first port of `header` that no core here has, and data of a width that none has.
pub(crate) fn check(header: &str) -> Result<(), String> {
    let ports: Vec<_> = header.lines().filter_map(port).collect();
    for &(name, bits) in &ports {
        if !is_known(name) {
            return Err(format!(
                "top has the port {name}, and README.md's table of ports does not: is it \
                 misspelled?"
            ));
        }
        let is_data = ["_wdata", "_rdata", "_tdata"].iter().any(|data| name.ends_with(data))
            && !name.starts_with("s_axil_");
        if is_data
            && !DATA_BITS.contains(&bits)
            && !(name.ends_with("_tdata") && bits < 32 && bits % 8 == 0)
        {
            return Err(format!("{name} has {bits} bits; it may have one of {DATA_BITS:?}"));
        }
    }
    for master in ["m0_axi_", "m1_axi_", "m2_axi_"] {
        let bits = |data: &str| {
            ports
                .iter()
                .find(|(name, _)| name.strip_prefix(master) == Some(data))
                .map(|&(_, bits)| bits)
        };
        if let (Some(written), Some(read)) = (bits("wdata"), bits("rdata"))
            && written != read
        {
            return Err(format!(
                "{master}wdata has {written} bits and {master}rdata {read}; a bus has one width"
            ));
        }
    }
    Ok(())
}

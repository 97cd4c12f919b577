//! Verdicts that depend on a device tree and on the clocks.

use super::*;
use crate::machine::fake::Root;

#[test]
fn a_tree_that_asks_for_the_ports_to_the_sdram() -> Outcome {
    let folder = tempfile::tempdir()?;
    let root = Root(folder.path().to_owned());
    let asks = || Cores::of(&root.machine(), Family::CycloneV).asks_for_sdram;
    root.node("soc/fpga-bridge@ffc25080", "altr,socfpga-fpga2sdram-bridge");
    root.cells("soc/fpga-bridge@ffc25080/phandle", &[7]);
    root.cells("soc/region/fpga-bridges", &[6, 7]);
    // Linux opens a region's bridges when it loads a bitstream there.
    assert!(!asks());
    root.put("sys/firmware/devicetree/base/soc/region/firmware-name", "top.rbf\0");
    for (file, value, asked) in [
        ("phandle", 5, false),
        ("phandle", 7, true),
        ("phandle", 8, false),
        ("bridge-enable", 0, false),
        ("bridge-enable", 1, true),
    ] {
        root.cells(&format!("soc/fpga-bridge@ffc25080/{file}"), &[value]);
        assert_eq!(asks(), asked, "{file} {value}");
    }
    Ok(())
}

#[test]
fn a_tree_says_what_its_cores_need() -> Outcome {
    let folder = tempfile::tempdir()?;
    let root = Root(folder.path().to_owned());
    let tree = root.0.join("sys/firmware/devicetree/base");
    let cores = || Cores::of(&root.machine(), Family::CycloneV);
    let node = |path: &str, compatible: &str, coherent: bool| -> std::io::Result<()> {
        root.node(path, compatible);
        let file = tree.join(path).join("dma-coherent");
        if coherent { fs::write(file, "") } else { fs::remove_file(file).or(Ok(())) }
    };
    assert_eq!(cores(), Cores::default());
    // A core of the processor itself, and the bridges' nodes, which have other addresses.
    node("soc/dma@ffe01000", "contigo,engine", true)?;
    node("soc/fpga_bridge@ff400000", "altr,socfpga-lwhps2fpga-bridge", false)?;
    assert_eq!(cores(), Cores::default());
    node("soc/gpio@ff200000", "generic-uio", false)?;
    assert_eq!(cores(), Cores { behind_lw: true, ..Cores::default() });
    fs::write(tree.join("soc/gpio@ff200000/status"), "disabled\0")?;
    assert_eq!(cores(), Cores::default());
    node("soc/bus@c0000000/fir@c0010000", "contigo,engine", false)?;
    assert_eq!(cores(), Cores { behind_h2f: true, ..Cores::default() });
    node("soc/bus@c0000000/fir@c0010000", "contigo,engine", true)?;
    assert_eq!(cores(), Cores { behind_h2f: true, coherent: true, ..Cores::default() });
    node("soc/bus@c0000000/fir@c0010000", "contigo,engine", false)?;
    node("block0", "ikwzm,u-dma-buf-0.10", true)?;
    assert_eq!(cores(), Cores { behind_h2f: true, coherent: true, ..Cores::default() });
    fs::remove_dir_all(&tree)?;
    // The bridges of Intel's reference design are one bus. Its children have two cells: the bridge,
    // and the offset behind it. A bus declares all its children coherent.
    let cells = |path: &str, cells: &[u32]| {
        root.cells(&format!("soc/bridge@0xc0000000/{path}"), cells);
    };
    node("soc/bridge@0xc0000000", "altr,bridge-21.1\0simple-bus", false)?;
    root.cells("soc/#address-cells", &[1]);
    cells("#address-cells", &[2]);
    cells("#size-cells", &[1]);
    cells("ranges", &[0, 0, 0xc000_0000, 0x2000_0000, 1, 0, 0xff20_0000, 0x20_0000]);
    assert_eq!(cores(), Cores::default());
    node("soc/bridge@0xc0000000/gpio@0x100010000", "altr,pio-1.0", false)?;
    node("soc/bridge@0xc0000000/none@0x200000000", "altr,pio-1.0", false)?;
    assert_eq!(cores(), Cores { behind_lw: true, ..Cores::default() });
    node("soc/bridge@0xc0000000/ram@0x000000000", "generic-uio", false)?;
    assert_eq!(cores(), Cores { behind_h2f: true, behind_lw: true, ..Cores::default() });
    fs::write(tree.join("soc/dma-coherent"), "")?;
    fs::write(tree.join("soc/bridge@0xc0000000/dma-noncoherent"), "")?;
    assert!(!cores().coherent);
    fs::remove_file(tree.join("soc/bridge@0xc0000000/dma-noncoherent"))?;
    assert!(cores().coherent);
    fs::remove_dir_all(&tree)?;
    // A block without a node, from the module's parameter.
    root.put("sys/class/u-dma-buf/udmabuf0/dma_coherent", "0\n");
    assert_eq!(cores(), Cores::default());
    root.put("sys/class/u-dma-buf/udmabuf0/dma_coherent", "1\n");
    assert_eq!(cores(), Cores { coherent: true, ..Cores::default() });
    Ok(())
}

/// If the kernel reports every fabric clock as off, no port has a clock.
#[test]
fn clocks_that_are_all_off_stop_the_fabric() -> Outcome {
    let folder = tempfile::tempdir()?;
    let root = Root(folder.path().to_owned());
    assert!(!is_stopped(&root.machine()));
    for (first, second, stopped) in [("N", "N", true), ("N", "Y", false)] {
        let row = |name: &str, runs: &str| format!(" {name} 1 1 0 5 0 0 50000 {runs}\n");
        let rows = [row("ps", "Y"), row("fclk0", first), row("fclk1", second)].concat();
        let summary = format!("protect hardware\n---\n{rows}");
        root.put("sys/kernel/debug/clk/clk_summary", summary);
        assert_eq!(is_stopped(&root.machine()), stopped);
    }
    Ok(())
}

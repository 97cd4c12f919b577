//! `contigo clocks` as a program, on a machine with no clock of a fabric's, and on copies.

use super::overlay::ZYNQ;
use super::{Answer, Copied, Outcome, Run};

const SUMMARY: &str = "sys/kernel/debug/clk/clk_summary";
const TREE: &str = "sys/firmware/devicetree/base";

/// The kernel's table of these clocks: name, rate, and whether each runs.
fn summary(rows: &[(&str, u32, char)]) -> String {
    let row = |(name, hz, runs): &_| format!(" {name} 1 1 0 {hz} 0 0 50000 {runs}\n");
    format!(" protect hardware\n---\n{}", rows.iter().map(row).collect::<String>())
}

#[test]
fn a_clock_that_cannot_be_set_is_status_1() -> Outcome {
    Run::of(&["clocks", "--set", "fclk0=100000000"])?
        .refuses("this kernel has no way to set clock 0 of the fabric");
    Run::of(&["clocks", "--design", "nowhere.hwh"])?.refuses("contigo: nowhere.hwh: ");
    for (setting, words) in [
        ("fclk4=1", "fclk0 to fclk3"),
        ("fclk0", "CLOCK=HZ"),
        ("pl0=fast", "in Hz"),
        ("fclk0=-1", "in Hz"),
    ] {
        Run::of(&["clocks", "--set", setting])?.ends(2).complains(&[words]);
    }
    Ok(())
}

/// The clocks of the design: FCLK0 of 100 MHz for its cores, and FCLK1 of 50 MHz for a generator.
#[test]
fn design_is_compared_with_copys_clocks() -> Outcome {
    let copy = Copied::new()?;
    for (hz, runs, words, status) in [
        (99_999_999, 'Y', " right ", 0),
        (99_999_999, 'N', " off: ", 1),
        (142_857_142, 'Y', "too fast", 1),
    ] {
        copy.root.put(SUMMARY, summary(&[("fclk0", hz, runs), ("fclk1", 50_000_000, 'Y')]));
        copy.run(&["clocks", "--design", ZYNQ])?
            .ends(status)
            .says(&[words, "axi_dma_0 m_axi_mm2s_aclk"]);
    }
    copy.run(&["clocks", "--set", "fclk0=1"])?.ends(2);
    Ok(())
}

/// A copy of a Zynq-7000 of no board, with its clock controller.
fn zynq() -> Answer<Copied> {
    let copy = Copied::new()?;
    copy.root.put(&format!("{TREE}/compatible"), "xlnx,zynq-7000\0");
    copy.root.node("clkc", "xlnx,ps7-clkc");
    Ok(copy)
}

/// A PYNQ-Z2 with the tree of another Zynq board: the kernel takes its crystal for another one.
#[test]
fn a_crystal_of_another_board_is_status_1() -> Outcome {
    let copy = zynq()?;
    for (model, hz, status) in [
        ("PYNQ-Z2", 50_000_000, 0),
        ("PYNQ-Z2", 33_333_333, 1),
        ("Zynq ZC702 Board", 33_333_333, 0),
        ("Zynq", 1, 0),
    ] {
        copy.root.put(&format!("{TREE}/model"), format!("{model}\0"));
        copy.root.cells("clkc/ps-clk-frequency", &[hz]);
        let rows = [("ps_clk", hz, 'Y'), ("fclk0", 99_999_999, 'Y'), ("fclk1", 1, 'Y')];
        copy.root.put(SUMMARY, summary(&rows));
        for more in [&[][..], &["--json"], &["--design", ZYNQ]] {
            let run = copy.run(&[&["clocks"], more].concat())?.ends(status);
            let said =
                "the crystal of pynq-z2 has 50000000 Hz, and ps-clk-frequency of /clkc is 33333333";
            assert_eq!(run.stderr().contains(said), status == 1, "{model} {hz}: {}", run.stderr());
            let known = run.stdout().contains("the crystal of ");
            assert_eq!(known, model != "Zynq" && !more.contains(&ZYNQ), "{model} {hz} {more:?}");
        }
    }
    Ok(())
}

/// Without a number in the tree the kernel takes 33.3 MHz. On ZynqMP the clock has the tree's name.
#[test]
fn crystal_has_default_rate_and_tree_name() -> Outcome {
    let copy = zynq()?;
    copy.root.put(SUMMARY, summary(&[("pss-ref-clk", 33_333_333, 'Y')]));
    copy.root.put(&format!("{TREE}/model"), "PYNQ-Z2\0");
    copy.run(&["clocks"])?
        .ends(1)
        .complains(&["which is absent: the kernel's default is 33333333"]);
    copy.root.put(&format!("{TREE}/compatible"), "xlnx,zynqmp\0");
    copy.root.put(&format!("{TREE}/model"), "ZCU102\0");
    // One of an FMC card, and the processor's own.
    for (node, hz) in [("osc1", 25_000_000), ("pss-ref-clk", 33_333_000)] {
        copy.root.node(node, "fixed-clock");
        copy.root.cells(&format!("{node}/clock-frequency"), &[hz]);
    }
    copy.run(&["clocks", "--json"])?.ends(0).says(&["the crystal of zcu102"]);
    Ok(())
}

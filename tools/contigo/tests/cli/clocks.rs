//! `contigo clocks` as a program, on a machine with no clock of a fabric's.

use super::{Outcome, Run, overlay::ZYNQ};
use std::{fs, io};
use tempfile::TempDir;

#[test]
fn a_clock_that_cannot_be_set_is_status_1() -> Outcome {
    let run = Run::of(&["clocks", "--set", "fclk0=100000000"])?;
    assert_eq!((run.status(), run.stdout().as_str()), (Some(1), ""));
    assert!(
        run.stderr().starts_with("contigo: this kernel has no way to set clock 0 of the fabric"),
        "{}",
        run.stderr()
    );
    let run = Run::of(&["clocks", "--design", "nowhere.hwh"])?;
    assert!(
        run.status() == Some(1) && run.stderr().starts_with("contigo: nowhere.hwh: "),
        "{}",
        run.stderr()
    );
    Ok(())
}

#[test]
fn a_wrong_setting_is_status_2() -> Outcome {
    for (setting, words) in [
        ("fclk4=1", "fclk0 to fclk3"),
        ("fclk0", "CLOCK=HZ"),
        ("pl0=fast", "in Hz"),
        ("fclk0=-1", "in Hz"),
    ] {
        let run = Run::of(&["clocks", "--set", setting])?;
        assert_eq!(run.status(), Some(2), "{setting}");
        assert!(run.stderr().contains(words), "{setting}: {}", run.stderr());
    }
    Ok(())
}

/// The clocks of the design: FCLK0 of 100 MHz for its cores, and FCLK1 of 50 MHz for a generator.
#[test]
fn design_is_compared_with_copys_clocks() -> Outcome {
    let folder = tempfile::tempdir()?;
    let place = folder.path().to_str().ok_or("a path that is not text")?;
    let clk = folder.path().join("sys/kernel/debug/clk");
    fs::create_dir_all(&clk)?;
    let rows = [
        (99_999_999, 'Y', " right ", 0),
        (99_999_999, 'N', " off: ", 1),
        (142_857_142, 'Y', "too fast", 1),
    ];
    for (hz, runs, words, status) in rows {
        let summary = format!(
            " protect hardware\n---\n fclk0 1 1 0 {hz} 0 0 50000 {runs}\n fclk1 1 1 0 50000000 0 0 \
             50000 Y\n"
        );
        fs::write(clk.join("clk_summary"), summary)?;
        let run = Run::of(&["clocks", "--machine", place, "--design", ZYNQ])?;
        assert_eq!(run.status(), Some(status), "{}{}", run.stdout(), run.stderr());
        assert!(
            run.stdout().contains(words) && run.stdout().contains("axi_dma_0 m_axi_mm2s_aclk"),
            "{}",
            run.stdout()
        );
    }
    assert_eq!(Run::of(&["clocks", "--machine", place, "--set", "fclk0=1"])?.status(), Some(2));
    Ok(())
}

const CLK: &str = "sys/kernel/debug/clk";
const TREE: &str = "sys/firmware/devicetree/base";

/// A copy of a Zynq-7000 of no board, with its clock controller and no clock.
fn zynq() -> Result<TempDir, io::Error> {
    let folder = tempfile::tempdir()?;
    let tree = folder.path().join(TREE);
    fs::create_dir_all(folder.path().join(CLK))?;
    fs::create_dir_all(tree.join("clkc"))?;
    fs::write(tree.join("compatible"), "xlnx,zynq-7000\0")?;
    fs::write(tree.join("clkc/compatible"), "xlnx,ps7-clkc\0")?;
    Ok(folder)
}

/// A PYNQ-Z2 with the tree of another Zynq board: the kernel takes its crystal for another one.
#[test]
fn a_crystal_of_another_board_is_status_1() -> Outcome {
    let folder = zynq()?;
    let place = folder.path().to_str().ok_or("a path that is not text")?;
    let (clk, tree) = (folder.path().join(CLK), folder.path().join(TREE));
    for (model, hz, status) in [
        ("PYNQ-Z2", 50_000_000_u32, 0),
        ("PYNQ-Z2", 33_333_333, 1),
        ("Zynq ZC702 Board", 33_333_333, 0),
        ("Zynq", 1, 0),
    ] {
        fs::write(tree.join("model"), format!("{model}\0"))?;
        fs::write(tree.join("clkc/ps-clk-frequency"), hz.to_be_bytes())?;
        let row = |name: &str, hz| format!(" {name} 1 1 0 {hz} 0 0 50000 Y\n");
        fs::write(
            clk.join("clk_summary"),
            format!(
                " protect hardware\n---\n{}{}{}",
                row("ps_clk", hz),
                row("fclk0", 99_999_999),
                row("fclk1", 1)
            ),
        )?;
        for more in [&[][..], &["--json"], &["--design", ZYNQ]] {
            let run = Run::of(&[&["clocks", "--machine", place], more].concat())?;
            assert_eq!(
                run.status(),
                Some(status),
                "{model} {hz} {more:?}: {}{}",
                run.stdout(),
                run.stderr()
            );
            let said =
                "the crystal of pynq-z2 has 50000000 Hz, and ps-clk-frequency of /clkc is 33333333";
            assert_eq!(run.stderr().contains(said), status == 1, "{}", run.stderr());
        }
        let json = Run::of(&["clocks", "--machine", place, "--json"])?.stdout();
        assert_eq!(json.contains("the crystal of "), model != "Zynq", "{json}");
        let known = Run::of(&["clocks", "--machine", place])?.stdout().contains("the crystal of ");
        assert_eq!(known, model != "Zynq", "{model}");
    }
    Ok(())
}

/// Without a number in the tree the kernel takes 33.3 MHz. On ZynqMP the clock has the tree's name.
#[test]
fn crystal_has_default_rate_and_tree_name() -> Outcome {
    let folder = zynq()?;
    let place = folder.path().to_str().ok_or("a path that is not text")?;
    let (clk, tree) = (folder.path().join(CLK), folder.path().join(TREE));
    fs::write(
        clk.join("clk_summary"),
        " protect hardware\n---\n pss-ref-clk 1 1 0 33333333 0 0 50000 Y\n",
    )?;
    fs::write(tree.join("model"), "PYNQ-Z2\0")?;
    let run = Run::of(&["clocks", "--machine", place])?;
    assert!(
        run.status() == Some(1)
            && run.stderr().contains("which is absent: the kernel's default is 33333333"),
        "{}",
        run.stderr()
    );
    fs::write(tree.join("compatible"), "xlnx,zynqmp\0")?;
    fs::write(tree.join("model"), "ZCU102\0")?;
    // One of an FMC card, and the processor's own.
    for node in ["osc1", "pss-ref-clk"] {
        fs::create_dir_all(tree.join(node))?;
        fs::write(tree.join(node).join("compatible"), "fixed-clock\0")?;
        fs::write(
            tree.join(node).join("clock-frequency"),
            (if node == "osc1" { 25_000_000_u32 } else { 33_333_000 }).to_be_bytes(),
        )?;
    }
    let run = Run::of(&["clocks", "--machine", place, "--json"])?;
    assert!(
        run.status() == Some(0) && run.stdout().contains("the crystal of zcu102"),
        "{}{}",
        run.stdout(),
        run.stderr()
    );
    Ok(())
}

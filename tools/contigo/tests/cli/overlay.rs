//! A block design: its table, its JSON, its overlay for the device tree, and files that are none.

use super::{Answer, Outcome, Run};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

pub(crate) const ZYNQ: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tests/design/zynq.hwh");
pub(crate) const ZYNQMP: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tests/design/zynqmp.hwh");

#[test]
fn a_design_is_a_table() -> Outcome {
    Run::of(&["overlay", ZYNQ])?.ends(0).says(&[
        "loop: 7z020 (Zynq-7000), Vivado 2022.1; 4 cores",
        "0x40400000",
        "FCLK1 150 MHz",
        "zynq-acp",
        "fabric: ",
    ]);
    for (columns, most) in [("60", 60), ("200", 100)] {
        let text = Run::with(&["overlay", ZYNQ], &[("COLUMNS", columns)])?.stdout();
        let rows = text.lines().filter(|line| line.starts_with(['│', '┌']));
        assert!(rows.clone().count() > 4, "{text}");
        assert!(rows.into_iter().all(|line| line.chars().count() <= most), "{text}");
    }
    Ok(())
}

#[test]
fn a_design_is_json() -> Outcome {
    let report = Run::of(&["overlay", "--json", ZYNQMP])?.json()?;
    let dma = core(&report, "axi_dma_0")?;
    for (pointer, value) in [
        ("/node", json!("axi_dma_0@a0000000")),
        ("/interrupts/0/spi", json!(104)),
        ("/masters/0/port/name", json!("zynqmp-hpc0")),
        ("/masters/0/port/snoops", json!(false)),
        ("/masters/1/port/window_last", json!("0x87fffffff")),
    ] {
        assert_eq!(dma.pointer(pointer), Some(&value), "{pointer}");
    }
    let writer = core(&report, "capture_writer")?;
    assert!(writer["masters"][0]["port"]["snoops"].is_null(), "the file does not tell");
    assert!(writer["path"] == "capture/writer" && writer["interrupts"][0]["edge"] == true);
    let one = Run::of(&["overlay", "--json", "--core", "scale_0", ZYNQ])?.json()?;
    assert_eq!(one["cores"].as_array().map(Vec::len), Some(1));
    assert_eq!(one["cores"][0]["driver"], "ap_ctrl");
    Ok(())
}

/// The core of this name in a report.
fn core<'a>(report: &'a Value, name: &str) -> Answer<&'a Value> {
    let cores = report["cores"].as_array().ok_or("no cores")?;
    Ok(cores.iter().find(|core| core["name"] == name).ok_or_else(|| format!("no {name}"))?)
}

/// Rates in words, registers outside of the block design, and a master of two ports.
#[test]
fn a_design_of_another_shape_is_told_whole() -> Outcome {
    let clock = |said: &str| format!("CLKFREQUENCY=\"{said}\" DIR=\"I\" NAME=\"s_axi_aclk\"");
    let design = fs::read_to_string(ZYNQ)?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("odd.hwh").display().to_string();
    let outside = "<MEMRANGE BASEVALUE=\"0x50000000\" HIGHVALUE=\"0x5000FFFF\" \
                   INSTANCE=\"M01_AXI_0\" SLAVEBUSINTERFACE=\"M01_AXI_0\"/>";
    let module = format!(
        "<MODULE FULLNAME=\"/odd\" INSTANCE=\"odd\" VLNV=\"me:user:odd:1.0\"><PORTS><PORT {} \
         SIGIS=\"clk\"><CONNECTIONS>\
        <CONNECTION INSTANCE=\"ps7\" PORT=\"FCLK_CLK0\"/></CONNECTIONS></PORT></PORTS></MODULE>",
        clock("1.5e+08")
    );
    let second = module.replace("odd", "sly").replace("1.5e+08", "150 MHz");
    let window = |name: &str, at: u32| {
        format!(
            "<MEMRANGE BASEVALUE=\"{at:#x}\" HIGHVALUE=\"{:#x}\" INSTANCE=\"{name}\"/>",
            at + 0xFFF
        )
    };
    let first = design.find("<MEMRANGE").ok_or("no range")?;
    let processor = design.find("processing_system7:").ok_or("no processor")?;
    let first = first.max(
        processor
            + design.get(processor..).and_then(|rest| rest.find("<MEMRANGE")).ok_or("no range")?,
    );
    let (before, behind) = design.split_at(first);
    let text = format!(
        "{before}{outside}{}{}{behind}",
        window("odd", 0x6000_0000),
        window("sly", 0x6100_0000)
    );
    fs::write(&path, text.replacen("<MODULES>", &format!("<MODULES>{module}{second}"), 1))?;
    let report = Run::of(&["overlay", "--json", &path])?.json()?;
    assert_eq!(core(&report, "odd")?["clocks"][0]["hz"], 150_000_000);
    let clock = &core(&report, "sly")?["clocks"][0];
    assert!(clock["hz"] == 0 && clock["no_rate"] == "150 MHz", "{clock}");
    let outside = core(&report, "M01_AXI_0")?;
    assert!(outside["outside"] == true && outside["node"] == "M01_AXI_0@50000000", "{outside}");
    // The table breaks its lines.
    Run::of(&["overlay", &path])?.says(&["FCLK0 150 MHz", "(`150", "registers,"]);
    let (nodes, _) = compiled(&path, &[])?;
    assert!(nodes.contains("M01_AXI_0@50000000 {"), "{nodes}");
    Ok(())
}

/// A pipe would be waited for, and a device has no end: nothing is read of either.
#[test]
fn design_is_a_regular_file_up_to_32_mib() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (pipe, long) = (path("pipe.hwh"), path("long.hwh"));
    assert!(Command::new("mkfifo").arg(&pipe).status()?.success());
    fs::File::create(&long)?.set_len((32 << 20) + 1)?;
    let odd = "it is no file, but a folder, a pipe or a device";
    let too_long = "it has 33554433 bytes, and no file of its kind has more than 33554432";
    let files = [(pipe.as_str(), odd), ("/dev/zero", odd), (&path(""), odd), (&long, too_long)];
    for (file, why) in files {
        for words in [
            vec!["overlay"],
            vec!["clocks", "--design"],
            vec!["board", "--registers", "--design"],
            vec!["doctor", "--probe", "--design"],
        ] {
            Run::of(&[words.as_slice(), &[file]].concat())?.refuses(why);
        }
    }
    Ok(())
}

/// The overlay for `file`, with `more` options, compiled without a warning where dtc is here; and
/// standard error.
fn compiled(file: &str, more: &[&str]) -> Answer<(String, String)> {
    let mut args = vec!["overlay", file, "--dtso", "design.dtso"];
    args.extend(more);
    let run = Run::of(&args)?.ends(0);
    let source = run.file("design.dtso");
    let blob = run.file("design.dtbo");
    let dtc = ["-@", "-W", "no-avoid_unnecessary_addr_size", "-I", "dts", "-O", "dtb", "-o"];
    match Command::new("dtc").args(dtc).args([&blob, &source]).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && said.is_empty(), "{said}");
        }
        Err(error) => contigo_testkit::skipped("cli::overlay::compiled", &format!("dtc: {error}")),
    }
    Ok((fs::read_to_string(source)?, run.stderr()))
}

#[test]
fn a_dash_is_standard_output_and_no_file() -> Outcome {
    let (text, _) = compiled(ZYNQ, &[])?;
    let run = Run::of(&["overlay", ZYNQ, "--dtso", "-"])?.ends(0);
    assert_eq!((run.stdout(), run.file("-").exists()), (text, false));
    Run::of(&["overlay", ZYNQ, "--dtso", "-", "--json"])?.ends(1).complains(&["--json"]);
    Ok(())
}

#[test]
fn an_overlay_has_a_node_for_each_core() -> Outcome {
    let (text, notes) = compiled(ZYNQ, &[])?;
    let node = "\taxi_dma_0@40400000 {\n\t\tcompatible = \"contigo,engine\";\n\
                \t\treg = <0x40400000 0x10000>;\n\
        \t\tinterrupt-parent = <&intc>;\n\t\tinterrupts = <0 29 4>, <0 30 4>;\n\
        \t\tinterrupt-names = \"mm2s_introut\", \"s2mm_introut\";\n\t\tclocks = <&clkc 15>;\n\
        \t\tcontigo,stop-windows = <0>;\n\t};\n";
    assert!(text.contains(node), "{text}");
    assert!(
        text.contains("\tscale_0@43c00000 {") && text.contains("dma-coherent;"),
        "it asks the ACP to snoop"
    );
    assert!(!text.contains("interrupt-controller"), "the kernel would not start it");
    assert!(notes.contains(
        "scale_0: its interrupt interrupt is input 2 of axi_intc_0, whose \
                            driver the kernel starts at boot only"
    ));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    let (text, notes) = compiled(ZYNQ, &["--at-boot"])?;
    assert!(notes.is_empty(), "{notes}");
    assert!(
        text.contains("axi_intc_0: interrupt-controller@41800000")
            && text.contains("interrupts-extended = <&axi_intc_0 2 4>;")
    );
    assert!(
        text.contains("interrupts = <0 31 4>;") && text.contains("xlnx,num-intr-inputs = <0x3>;")
    );
    Ok(())
}

#[test]
fn an_overlay_says_what_it_cannot_have() -> Outcome {
    let (text, notes) = compiled(ZYNQMP, &[])?;
    assert!(
        text.contains("reg = <0x0 0xa0000000 0x0 0x10000>;")
            && text.contains("clocks = <&zynqmp_clk 71>, <&zynqmp_clk 72>;")
    );
    assert!(
        !text.contains("both_0@")
            && notes.contains("both_0: a port of it snoops and another does not")
    );
    assert!(
        !text.contains("capture_writer@")
            && notes.contains("--coherent capture_writer, or --not-coherent capture_writer")
    );
    let (text, notes) =
        compiled(ZYNQMP, &["--not-coherent", "capture_writer", "--core", "capture_writer"])?;
    assert!(
        text.contains("capture_writer@400000000 {")
            && text.contains("reg = <0x4 0x0 0x0 0x10000>;")
    );
    assert!(text.contains("interrupts = <0 89 1>;") && !text.contains("dma-coherent"), "it rises");
    assert!(notes.contains("its clock aclk comes from the fabric itself"));
    Ok(())
}

#[test]
fn an_interrupt_that_goes_nowhere_is_said() -> Outcome {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("cut.hwh");
    let whole = fs::read_to_string(ZYNQ)?;
    let changed = |from: &str, to: &str| -> Answer<(String, String, String)> {
        assert!(whole.contains(from), "{from}");
        fs::write(&file, whole.replace(from, to))?;
        let path = file.to_str().ok_or("no text")?;
        let (text, notes) = compiled(path, &[])?;
        Ok((text, notes, Run::of(&["overlay", path])?.stdout()))
    };
    let (text, notes, _) = changed("<CONNECTION INSTANCE=\"irqs\" PORT=\"In0\"/>", "")?;
    assert!(
        text.contains("interrupts = <0 30 4>;")
            && notes.contains("its interrupt mm2s_introut is not connected"),
        "{notes}"
    );
    let (text, notes, table) = changed("NAME=\"IRQ_F2P\"", "NAME=\"IRQ_F2Q\"")?;
    assert!(
        !text.contains("<0 29 4>") && notes.contains("its interrupt mm2s_introut goes into ps7"),
        "{notes}"
    );
    assert!(table.contains("irq into ps7") && !table.contains("SPI 29"), "{table}");
    Ok(())
}

#[test]
fn coherency_option_against_file_is_refused() -> Outcome {
    for (option, name, why) in [
        (
            "--coherent",
            "nix",
            "`nix`: the design has no instance of this name; the nearest of its cores (4): \
             `audio/gain`, ",
        ),
        ("--coherent", "audio_gain", "no port snoops for a core that reaches no memory"),
        ("--coherent", "axi_dma_0", "its port zynq-hp0 does not snoop for it"),
        ("--not-coherent", "scale_0", "its port zynq-acp snoops for it"),
    ] {
        Run::of(&["overlay", ZYNQ, option, name])?.refuses(why);
    }
    Ok(())
}

#[test]
fn a_file_that_is_none_is_refused_with_its_line() -> Outcome {
    let refused = |text: &[u8], why: &str| -> Outcome {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("design.hwh");
        fs::write(&file, text)?;
        Run::of(&["overlay", file.to_str().ok_or("no text")?])?.refuses(why);
        Ok(())
    };
    let whole = fs::read_to_string(ZYNQ)?;
    refused(&whole.as_bytes()[..9_000], "the file ends before </EDKSYSTEM>")?;
    refused(b"<EnsembleReport/>", "this is no hardware hand-off of Vivado's")?;
    let lie = whole.replace(
        "NAME=\"C_S_AXI_HP0_DATA_WIDTH\" VALUE=\"64\"",
        "NAME=\"C_S_AXI_HP0_DATA_WIDTH\" VALUE=\"32\"",
    );
    refused(lie.as_bytes(), "`S_AXI_HP0`: 64 bits here, and 32 elsewhere in the file")?;
    Run::of(&["overlay", "none.bit"])?.refuses("contigo: none.hwh: ");
    Run::of(&["overlay", "--core", "axi_dma_9", ZYNQ])?.refuses(
        "`axi_dma_9`: the design has no instance of this name; the nearest of its cores (4): \
         `axi_dma_0`, ",
    );
    Ok(())
}

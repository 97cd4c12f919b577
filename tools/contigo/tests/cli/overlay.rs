//! A block design: its table, its JSON, its overlay for the device tree, and files that are none.

use super::{Outcome, Run};
use contigo_testkit::emulated;
use std::{error::Error, fs, path::Path, process::Command};

pub(crate) const ZYNQ: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tests/design/zynq.hwh");
pub(crate) const ZYNQMP: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tests/design/zynqmp.hwh");

#[test]
fn a_design_is_a_table() -> Outcome {
    let run = Run::of(&["overlay", ZYNQ])?;
    assert_eq!(run.status(), Some(0), "{}", run.stderr());
    for said in [
        "loop: 7z020 (Zynq-7000), Vivado 2022.1; 4 cores",
        "0x40400000",
        "FCLK1 150 MHz",
        "zynq-acp",
        "fabric: ",
    ] {
        assert!(run.stdout().contains(said), "{said}:\n{}", run.stdout());
    }
    let narrow = Run::within(Some(60), &["overlay", ZYNQ])?;
    assert!(
        narrow
            .stdout()
            .lines()
            .skip(1)
            .filter(|line| line.starts_with(['│', '┌']))
            .all(|line| line.chars().count() <= 60)
    );
    Ok(())
}

#[test]
fn a_design_is_json() -> Outcome {
    let report = Run::of(&["overlay", "--json", ZYNQMP])?.json()?;
    let core = |name: &str| {
        report["cores"].as_array().and_then(|cores| cores.iter().find(|core| core["name"] == name))
    };
    let dma = core("axi_dma_0").ok_or("no AXI DMA")?;
    assert_eq!(
        (&dma["node"], &dma["interrupts"][0]["spi"]),
        (&"axi_dma_0@a0000000".into(), &104.into())
    );
    assert_eq!(
        (&dma["masters"][0]["port"]["name"], &dma["masters"][0]["port"]["snoops"]),
        (&"zynqmp-hpc0".into(), &false.into())
    );
    assert_eq!(dma["masters"][1]["port"]["window_last"], "0x87fffffff");
    let writer = core("capture_writer").ok_or("no writer")?;
    assert!(writer["masters"][0]["port"]["snoops"].is_null(), "the file does not tell");
    assert_eq!(
        (&writer["path"], &writer["interrupts"][0]["edge"]),
        (&"capture/writer".into(), &true.into())
    );
    let one = Run::of(&["overlay", "--json", "--core", "scale_0", ZYNQ])?.json()?;
    assert_eq!(
        (one["cores"].as_array().map(Vec::len), &one["cores"][0]["driver"]),
        (Some(1), &"ap_ctrl".into())
    );
    Ok(())
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
    let core = |name: &str| {
        report["cores"]
            .as_array()
            .and_then(|cores| cores.iter().find(|core| core["name"] == name))
            .cloned()
    };
    let core = |name: &str| core(name).ok_or(format!("no {name}"));
    assert_eq!(core("odd")?["clocks"][0]["hz"], 150_000_000);
    assert_eq!(
        (&core("sly")?["clocks"][0]["hz"], &core("sly")?["clocks"][0]["no_rate"]),
        (&0.into(), &"150 MHz".into())
    );
    assert_eq!(
        (&core("M01_AXI_0")?["outside"], &core("M01_AXI_0")?["node"]),
        (&true.into(), &"M01_AXI_0@50000000".into())
    );
    // The table breaks its lines.
    let table = Run::of(&["overlay", &path])?;
    for said in ["FCLK0 150 MHz", "(`150", "registers,"] {
        assert!(table.stdout().contains(said), "{said}:\n{}", table.stdout());
    }
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
            let run = Run::of(&[words.as_slice(), &[file]].concat())?;
            assert_ne!(run.status(), Some(0), "{words:?} {file}");
            assert!(
                run.stderr().contains(why) && run.stderr().lines().count() == 1,
                "{words:?} {file}: {}",
                run.stderr()
            );
        }
    }
    Ok(())
}

/// The overlay for `file`, with `more` options, compiled without a warning where dtc is here; and
/// standard error.
fn compiled(file: &str, more: &[&str]) -> Result<(String, String), Box<dyn Error>> {
    let mut args = vec!["overlay", file, "--dtso", "design.dtso"];
    args.extend(more);
    let run = Run::of(&args)?;
    assert_eq!(run.status(), Some(0), "{}", run.stderr());
    let source = run.file("design.dtso");
    let blob = run.file("design.dtbo");
    let dtc = ["-@", "-W", "no-avoid_unnecessary_addr_size", "-I", "dts", "-O", "dtb", "-o"];
    match Command::new("dtc").args(dtc).args([&blob, &source]).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && said.is_empty(), "{said}");
        }
        Err(error) => emulated::skipped("cli::overlay::compiled", &format!("dtc: {error}")),
    }
    Ok((fs::read_to_string(source)?, run.stderr()))
}

#[test]
fn a_dash_is_standard_output_and_no_file() -> Outcome {
    let (text, _) = compiled(ZYNQ, &[])?;
    let run = Run::of(&["overlay", ZYNQ, "--dtso", "-"])?;
    assert_eq!(
        (run.status(), run.stdout(), run.file("-").exists()),
        (Some(0), text, false),
        "{}",
        run.stderr()
    );
    let both = Run::of(&["overlay", ZYNQ, "--dtso", "-", "--json"])?;
    assert!(both.status() == Some(1) && both.stderr().contains("--json"), "{}", both.stderr());
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
    let changed = |from: &str, to: &str| -> Result<(String, String, String), Box<dyn Error>> {
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
    for (file, option, name, why) in [
        (
            ZYNQ,
            "--coherent",
            "nix",
            "`nix`: the design has no instance of this name; the nearest of its cores (4): \
             `audio/gain`, ",
        ),
        (
            ZYNQ,
            "--coherent",
            "audio_gain",
            "--coherent audio_gain: no port snoops for a core that reaches no memory",
        ),
        (
            ZYNQ,
            "--coherent",
            "axi_dma_0",
            "--coherent axi_dma_0: the file says that its port zynq-hp0 does not snoop for it",
        ),
        (
            ZYNQ,
            "--not-coherent",
            "scale_0",
            "--not-coherent scale_0: the file says that its port zynq-acp snoops for it",
        ),
    ] {
        let run = Run::of(&["overlay", file, option, name])?;
        assert!(run.status() == Some(1) && run.stderr().contains(why), "{}", run.stderr());
    }
    Ok(())
}

#[test]
fn a_file_that_is_none_is_refused_with_its_line() -> Outcome {
    let refused = |name: &str, text: &[u8]| -> Result<String, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join(name);
        fs::write(&file, text)?;
        let run = Run::of(&["overlay", file.to_str().ok_or("no text")?])?;
        assert_eq!((run.status(), run.stderr().lines().count()), (Some(1), 1), "{}", run.stderr());
        Ok(run.stderr())
    };
    let whole = fs::read(ZYNQ)?;
    assert!(
        refused("cut.hwh", whole.get(..9_000).ok_or("short")?)?
            .contains("the file ends before </EDKSYSTEM>")
    );
    assert!(
        refused("soc.hwh", b"<EnsembleReport/>")?
            .contains("this is no hardware hand-off of Vivado's")
    );
    let lie = String::from_utf8(whole)?.replace(
        "NAME=\"C_S_AXI_HP0_DATA_WIDTH\" VALUE=\"64\"",
        "NAME=\"C_S_AXI_HP0_DATA_WIDTH\" VALUE=\"32\"",
    );
    assert!(
        refused("lie.hwh", lie.as_bytes())?
            .contains("`S_AXI_HP0`: 64 bits here, and 32 elsewhere in the file")
    );
    assert!(!Path::new("none.hwh").exists());
    let missing = Run::of(&["overlay", "none.bit"])?;
    assert!(missing.stderr().starts_with("contigo: none.hwh: "), "{}", missing.stderr());
    let unknown = Run::of(&["overlay", "--core", "axi_dma_9", ZYNQ])?;
    assert!(unknown.stderr().contains(
        "`axi_dma_9`: the design has no instance of this name; the \
        nearest of its cores (4): `axi_dma_0`, "
    ));
    Ok(())
}

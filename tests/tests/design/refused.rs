//! Files that are none, or at odds with themselves.

use super::{ZYNQ, ZYNQMP};
use contigo::design::{Design, DesignError, DesignRule};
use fastrand::Rng;
use std::time::{Duration, Instant};

/// The rule that is broken; its line is where `at` stands.
fn rule(error: DesignError, text: &str, at: &str) -> DesignRule {
    let line = text[..text.find(at).unwrap()].matches('\n').count() + 1;
    assert_eq!(error.line as usize, line, "{error}");
    assert!(
        error.to_string().starts_with(&format!("line {}, byte {}: ", error.line, error.byte)),
        "{error}"
    );
    error.rule
}

/// Reading `ZYNQ` with `from` replaced.
fn read(from: &str, to: &str) -> DesignError {
    assert!(ZYNQ.contains(from), "{from}");
    Design::read(ZYNQ.replace(from, to).as_bytes()).unwrap_err()
}

#[test]
fn a_file_of_another_tool_is_refused() {
    let others = [
        "",
        "\x7FELF",
        "<?xml version=\"1.0\"?>\n<Project Version=\"7\" Minor=\"61\"/>",
        "<EnsembleReport name=\"soc_system\"></EnsembleReport>",
        "{\"ip\": {}}",
        "</EDKSYSTEM>",
    ];
    for text in others {
        let error = Design::read(text.as_bytes()).unwrap_err();
        assert_eq!(error.rule, DesignRule::NotAHandOff, "{text}");
    }
    assert_eq!(Design::read(&vec![b' '; (32 << 20) + 1]).unwrap_err().rule, DesignRule::TooLong);
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused() {
    for text in [ZYNQ, ZYNQMP] {
        let whole = text.trim_end().len();
        for end in (0..whole).step_by(101).chain(whole - 40..whole) {
            let error = Design::read(&text.as_bytes()[..end]).unwrap_err();
            let known = matches!(error.rule, DesignRule::Truncated | DesignRule::NotAHandOff);
            assert!(known, "{end}: {error}");
        }
        assert!(Design::read(&text.as_bytes()[..whole]).is_ok());
    }
    // The tag that is cut off begins there.
    let tag = ZYNQ.rfind("<PORT ").unwrap();
    let error = Design::read(&ZYNQ.as_bytes()[..tag + 9]).unwrap_err();
    assert_eq!(
        (error.rule, error.line as usize),
        (DesignRule::Truncated, ZYNQ[..tag].matches('\n').count() + 1)
    );
}

#[test]
fn a_file_that_is_at_odds_with_itself_is_refused() {
    assert_eq!(read("INSTANCE=\"slice\"", "INSTANCE=\"smc\"").rule, DesignRule::SameName);
    assert_eq!(
        read(":ip:smartconnect:1.0", ":ip:processing_system7:5.5").rule,
        DesignRule::SecondProcessor
    );
    let other = read("DEVICE=\"7z020\"", "DEVICE=\"xc7a35t\"");
    assert_eq!((other.rule, other.name.as_str()), (DesignRule::OtherChip, "xc7a35t"));
    assert!(matches!(
        read("    </MODULE>\n    <MODULE", "    <MODULE").rule,
        DesignRule::Expected(_)
    ));
    let many = (0..600).map(|each| format!("<MODULE INSTANCE=\"i{each}\"/>\n")).collect::<String>();
    let many = ZYNQ.replace("  </MODULES>", &format!("{many}  </MODULES>"));
    assert!(matches!(
        Design::read(many.as_bytes()).unwrap_err().rule,
        DesignRule::TooMany { most: 512, .. }
    ));
}

#[test]
fn a_width_that_is_said_twice_is_the_same_twice() {
    let port = |from: &str, to: &str| {
        let text = ZYNQ.replace(from, to);
        let design = Design::read(text.as_bytes()).unwrap();
        let error = design.core("axi_dma_0").unwrap().masters().unwrap_err();
        assert_eq!(error.name.as_str(), "S_AXI_HP0");
        (error.found, rule(error, &text, "NAME=\"S_AXI_HP0\""))
    };
    let bus = "BUSNAME=\"mem_M00_AXI\" DATAWIDTH=\"64\" NAME=\"S_AXI_HP0\"";
    let parameter = "NAME=\"C_S_AXI_HP0_DATA_WIDTH\" VALUE=\"64\"";
    assert_eq!(port(bus, &bus.replace("64", "32")), (32, DesignRule::Disagrees { elsewhere: 64 }));
    assert_eq!(
        port(parameter, &parameter.replace("64", "32")),
        (64, DesignRule::Disagrees { elsewhere: 32 })
    );
    // All three say a width that an HP port of this chip cannot have.
    let wide = ZYNQ.replace("\"64\"", "\"128\"");
    let design = Design::read(wide.as_bytes()).unwrap();
    let error = design.core("axi_dma_0").unwrap().port().unwrap_err();
    assert_eq!((error.rule, error.found), (DesignRule::Width, 128));
    // The bus is missing, and only the parameter says it.
    let alone = ZYNQ
        .replace("NAME=\"S_AXI_HP0\"", "NAME=\"S_AXI_HP9\"")
        .replace(parameter, &parameter.replace("64", "48"));
    let found =
        Design::read(alone.as_bytes()).unwrap().core("axi_dma_0").unwrap().port().unwrap_err();
    assert_eq!((found.rule, found.found), (DesignRule::Width, 48));
    let told = "`S_AXI_HP0`: 128 bits: a bus has 32 to 1024 bits, a power of two";
    assert!(error.to_string().ends_with(told), "{error}");
}

#[test]
fn addresses_that_cannot_be_are_refused() {
    let windows = |from: &str, to: &str| {
        let text = ZYNQ.replace(from, to);
        let design = Design::read(text.as_bytes()).unwrap();
        let error = design.core("axi_dma_0").unwrap().windows().unwrap_err();
        (error.found, rule(error, &text, "INSTANCE=\"axi_dma_0\" IS_DATA"))
    };
    for (from, to, found, rule) in [
        ("0x4040FFFF", "0x403FFFFF", 0x4040_0000, DesignRule::Window { last: 0x403F_FFFF }),
        ("0x4040FFFF", "0x4040FFFE", 0x4040_0000, DesignRule::Window { last: 0x4040_FFFE }),
        ("0x40400000", "4o400000", 0, DesignRule::NotANumber("BASEVALUE")),
        ("0x4040FFFF", "0xFFFFFFFFFFFFFFFFF", 0, DesignRule::NotANumber("HIGHVALUE")),
    ] {
        assert_eq!(windows(from, to), (found, rule));
    }
}

#[test]
fn unknown_core_name_gets_the_nearest() {
    let design = Design::read(ZYNQ.as_bytes()).unwrap();
    let asked = |name: &str| design.core(name).unwrap_err().to_string();
    let nearest = "`axi_dma_0`, `audio/gain`, `axi_intc_0`, `scale_0`";
    assert!(asked("AXI_DMA").starts_with("`AXI_DMA`: the design has no instance of this name"));
    assert!(asked("AXI_DMA").ends_with(&format!("(4): {nearest}")), "{}", asked("AXI_DMA"));
    for (name, nearest) in
        [("gain", "audio/gain"), ("scale0", "scale_0"), ("axi_intc", "axi_intc_0")]
    {
        assert!(asked(name).contains(&format!("(4): `{nearest}`, ")), "{}", asked(name));
    }
    // More cores than a line has room for, and longer names than an error has.
    let names = (0..300).map(|each| format!("{}_{each:03}", "x".repeat(60))).collect::<Vec<_>>();
    let each = |tag: fn(&str) -> String| names.iter().map(|name| tag(name)).collect::<String>();
    let modules = each(|name| {
        format!("<MODULE FULLNAME=\"/{name}\" INSTANCE=\"{name}\" VLNV=\"me:user:gain:1.0\"/>")
    });
    let windows = each(|name| {
        format!(
            "<MEMRANGE BASEVALUE=\"0x0\" HIGHVALUE=\"0xFFF\" INSTANCE=\"{name}\" \
             MEMTYPE=\"REGISTER\"/>"
        )
    });
    let many = format!(
        "<EDKSYSTEM><MODULES>{modules}<MODULE INSTANCE=\"ps\" \
         VLNV=\"xilinx.com:ip:processing_system7:5.5\">\
         <MEMORYMAP>{windows}</MEMORYMAP></MODULE></MODULES></EDKSYSTEM>"
    );
    let none = Design::read(many.as_bytes()).unwrap().core("y\u{7}").unwrap_err();
    let DesignRule::NoSuchCore { near } = none.rule else { panic!("{none}") };
    assert_eq!((none.name.as_str(), none.found, near.names().count()), ("y?", 300, 4));
    assert!(near.names().all(|name| name == "x".repeat(47)));
    let bare =
        Design::read(b"<EDKSYSTEM><MODULES></MODULES></EDKSYSTEM>").unwrap().core("a").unwrap_err();
    assert_eq!(bare.to_string(), "`a`: the design has no instance of this name, and no core");
}

/// Asks a design everything.
fn ask(design: &Design<'_>) -> usize {
    let mut answers = 0;
    for core in design.instances() {
        answers += usize::from(core.windows().is_ok())
            + usize::from(core.masters().is_ok())
            + usize::from(core.port().is_ok());
        answers += core.interrupts().map_or(0, |interrupts| interrupts.len())
            + core.clocks().count()
            + core.registers().count();
        answers += usize::from(contigo::names::driver_of(&core).is_some())
            + usize::from(contigo::names::settings_of(&core).is_ok())
            + usize::from(contigo::names::device_of(&core).is_ok());
        answers += usize::from(core.controller_goes().is_ok());
        std::hint::black_box((core.parameter("C_SG_LENGTH_WIDTH"), contigo::names::node_of(&core)));
    }
    answers
}

#[test]
fn damaged_files_are_errors_or_designs() {
    let mut rng = Rng::with_seed(1);
    let (mut designs, mut errors, mut answers) = (0, 0, 0);
    for round in 0..200 {
        let mut bytes = if round % 2 == 0 { ZYNQ } else { ZYNQMP }.as_bytes().to_vec();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            match rng.u8(..4) {
                0 => bytes[at] = rng.u8(..),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, *rng.choice(b"<>\"'/=0123456789-x\n\0\xFF").unwrap()),
                _ => {
                    let end = rng.usize(at..bytes.len().min(at + 400));
                    let part = bytes[at..end].to_vec();
                    let to = rng.usize(..bytes.len());
                    bytes.splice(to..to, part);
                }
            }
        }
        match Design::read(&bytes) {
            Ok(design) => {
                answers += ask(&design);
                designs += 1;
            }
            Err(error) => {
                assert!(error.line > 0 && error.byte as usize <= bytes.len(), "{error}");
                errors += 1;
            }
        }
    }
    assert!(designs > 60 && errors > 15 && answers > designs * 50, "{designs} {errors} {answers}");
}

/// Wires that lead in circles, and concatenations of concatenations, end.
#[test]
fn circles_end() {
    let circle = ZYNQ.replace(
        "<CONNECTION INSTANCE=\"ps7\" PORT=\"IRQ_F2P\"/>",
        "<CONNECTION INSTANCE=\"irqs\" PORT=\"In0\"/><CONNECTION INSTANCE=\"irqs\" PORT=\"In1\"/>",
    );
    let circle = circle.replace("BUSNAME=\"slice_M_AXI\"", "BUSNAME=\"scale_0_m_axi_gmem\"");
    let begin = Instant::now();
    let design = Design::read(circle.as_bytes()).unwrap();
    assert!(ask(&design) > 0);
    assert!(
        design.core("scale_0").unwrap().port().is_err()
            || design.core("axi_dma_0").unwrap().interrupts().is_ok()
    );
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

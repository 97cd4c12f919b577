//! Large designs: each query reads each byte a few times, however large the file is. The tests
//! count bytes, not time.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

use super::budget::MAX_PASSES;
use super::{visits, *};
use std::format;
use std::string::{String, ToString as _};
use std::vec::Vec;

/// The size of these tests' files, which does not affect how often a byte is read.
const BYTES: usize = 1 << 20;

/// A design of `cores` and a Zynq that sees `ranges` and has `pins`.
fn design(cores: &str, pins: &str, ranges: &str) -> String {
    format!(
        "<EDKSYSTEM><SYSTEMINFO NAME=\"large\"/><MODULES>{cores}\n\
         <MODULE FULLNAME=\"/ps\" INSTANCE=\"ps\" VLNV=\"x:ip:processing_system7:5.5\"><PORTS>{pins}</PORTS><BUSINTERFACES>\
         <BUSINTERFACE BUSNAME=\"to_hp0\" DATAWIDTH=\"64\" NAME=\"S_AXI_HP0\" TYPE=\"SLAVE\" VLNV=\"x:interface:aximm:1.0\"/>\
         </BUSINTERFACES><MEMORYMAP>{ranges}</MEMORYMAP></MODULE></MODULES></EDKSYSTEM>"
    )
}

fn module(name: &str, kind: &str, inside: &str) -> String {
    format!(
        "<MODULE FULLNAME=\"/{name}\" INSTANCE=\"{name}\" MODCLASS=\"{kind}\" \
         VLNV=\"x:ip:{kind}:1.0\">{inside}</MODULE>\n"
    )
}

fn bus(net: &str, name: &str, kind: &str) -> String {
    format!(
        "<BUSINTERFACE BUSNAME=\"{net}\" DATAWIDTH=\"64\" NAME=\"{name}\" TYPE=\"{kind}\" \
         VLNV=\"x:interface:aximm:1.0\"/>\n"
    )
}

fn pin(name: &str, direction: &str, kind: &str, to: &[(&str, &str)]) -> String {
    let to = to
        .iter()
        .map(|(instance, pin)| format!("<CONNECTION INSTANCE=\"{instance}\" PORT=\"{pin}\"/>"))
        .collect::<String>();
    format!(
        "<PORT DIR=\"{direction}\" NAME=\"{name}\" \
         SIGIS=\"{kind}\"><CONNECTIONS>{to}</CONNECTIONS></PORT>\n"
    )
}

/// As many of `each` as make a file of `BYTES`.
fn many(each: impl Fn(usize) -> String) -> String {
    let mut text = String::with_capacity(BYTES);
    let mut number = 0;
    while text.len() < BYTES {
        text += &each(number);
        number += 1;
    }
    text
}

/// Reading the design, and each query about these cores, reads each byte of `text` at most four
/// times: a tool could have written it.
fn few(text: &str, cores: &[&str]) {
    let (read, bytes) = visits::of(|| Design::read(text.as_bytes()));
    let mut most = (bytes, "read");
    let design = read.unwrap();
    let mut count = |what, bytes| most = most.max((bytes, what));
    count("cores", visits::of(|| design.cores().count()).1);
    count("near", visits::of(|| design.core("nothing").unwrap_err()).1);
    for name in cores {
        let (core, bytes) = visits::of(|| design.core(name).unwrap());
        count("core", bytes);
        count("windows", visits::of(|| core.windows().unwrap()).1);
        count("masters", visits::of(|| core.masters().unwrap()).1);
        count("port", visits::of(|| core.port()).1);
        count("interrupts", visits::of(|| core.interrupts().unwrap()).1);
        count("controller", visits::of(|| core.controller_goes().unwrap()).1);
        count("clocks", visits::of(|| core.clocks().count()).1);
        count("registers", visits::of(|| core.registers().count()).1);
        count("parameter", visits::of(|| core.parameter("C_NONE").is_some()).1);
    }
    let ((bytes, what), len) = (most, text.len() as u64);
    std::eprintln!("{len} bytes: {bytes} are read by `{what}`, the most");
    assert!(bytes <= 4 * len, "{what} reads {bytes} bytes of {len}");
}

#[test]
fn a_bridge_with_many_masters() {
    let core = module("dma", "dma", &bus("in", "M_AXI", "MASTER"));
    let bridge = bus("in", "S_AXI", "SLAVE")
        + &many(|at| bus(&format!("out_{at}"), "M_AXI", "MASTER"))
        + &bus("to_hp0", "M_AXI", "MASTER");
    let text = design(&(core + &module("bridge", "BUS", &bridge)), "", "");
    few(&text, &["dma"]);
    let design = Design::read(text.as_bytes()).unwrap();
    let masters = design.core("dma").unwrap().masters().unwrap();
    assert!(
        matches!(masters[0].reaches, Reaches::Memory { interface: "S_AXI_HP0", .. }),
        "{masters:?}"
    );
}

/// The core with most masters, each of which goes through a chain of interconnects.
#[test]
fn many_masters_without_a_map() {
    let buses = (0..16)
        .map(|at| bus(&format!("in_{at}"), &format!("M_{at}"), "MASTER"))
        .collect::<String>();
    let entries =
        (0..16).map(|at| bus(&format!("in_{at}"), &format!("S_{at}"), "SLAVE")).collect::<String>();
    let mut chain = module("smc", "BUS", &(entries + &bus("link_0", "M", "MASTER")));
    for at in 0..40 {
        let net = if at == 39 { "to_hp0".into() } else { format!("link_{}", at + 1) };
        chain += &module(
            &format!("link{at}"),
            "BUS",
            &(bus(&format!("link_{at}"), "S", "SLAVE") + &bus(&net, "M", "MASTER")),
        );
    }
    let rest = many(|at| pin(&format!("p{at}"), "O", "undef", &[("led", "d")]));
    let text =
        design(&(module("dma", "dma", &buses) + &chain + &module("other", "other", &rest)), "", "");
    few(&text, &["dma", "other"]);
    let design = Design::read(text.as_bytes()).unwrap();
    assert_eq!(design.core("dma").unwrap().port().unwrap().name, "zynq-hp0");
}

#[test]
fn many_pins_and_interrupts() {
    let irqs = (0..16)
        .map(|at| pin(&format!("irq{at}"), "O", "INTERRUPT", &[("irqs", &format!("In{at}"))]))
        .collect::<String>();
    let pins = many(|at| pin(&format!("p{at}"), "O", "undef", &[("probe", "probe"), ("led", "d")]));
    let inputs = (0..16)
        .map(|at| pin(&format!("In{at}"), "I", "undef", &[("core", &format!("irq{at}"))]))
        .collect::<String>();
    let output = "<PORT DIR=\"O\" LEFT=\"15\" NAME=\"dout\" RIGHT=\"0\"><CONNECTIONS><CONNECTION \
        INSTANCE=\"ps\" PORT=\"IRQ_F2P\"/></CONNECTIONS></PORT>";
    let concat = module("irqs", "xlconcat", &(inputs + output));
    let line = "<PORT DIR=\"I\" LEFT=\"15\" NAME=\"IRQ_F2P\" RIGHT=\"0\"/>";
    let core = module("core", "core", &(pins + &irqs));
    let text = design(
        &(core + &concat + &module("probe", "ila", "") + &module("led", "led", "")),
        line,
        "",
    );
    few(&text, &["core", "irqs"]);
    let design = Design::read(text.as_bytes()).unwrap();
    let interrupts = design.core("core").unwrap().interrupts().unwrap();
    let lines: Vec<_> = interrupts.iter().map(|interrupt| interrupt.wired).collect();
    assert_eq!(lines, (0..16).map(|line| Wired::Processor { line }).collect::<Vec<_>>());
}

/// Names that differ in their last letters, and each is an instance with registers.
#[test]
fn many_instances_with_long_names() {
    let name = |at: usize| format!("{}_{at:03}", "n".repeat(4000));
    let cores = (0..500).map(|at| module(&name(at), "core", "")).collect::<String>();
    let range = |at: usize| {
        let address = 0x4000_0000 + at * 0x1000;
        format!(
            "<MEMRANGE BASEVALUE=\"{address:#x}\" HIGHVALUE=\"{:#x}\" INSTANCE=\"{}\"/>\n",
            address + 0xFFF,
            name(at)
        )
    };
    let text = design(&cores, "", &(0..500).map(range).collect::<String>());
    few(&text, &[&name(0), &name(250), &name(499)]);
    let design = Design::read(text.as_bytes()).unwrap();
    // All of them together, too, read the file only a few times.
    let (windows, bytes) = visits::of(|| {
        design.cores().map(|core| core.windows().unwrap()[0].address).collect::<Vec<_>>()
    });
    assert_eq!((windows.len(), windows[499]), (500, 0x4000_0000 + 499 * 0x1000));
    assert!(bytes < 8 * text.len() as u64, "{bytes} of {}", text.len());
}

#[test]
fn many_clocks_of_one_generator() {
    let clocks = many(|at| pin(&format!("clk{at}"), "I", "clk", &[("wiz0", "clk_out1")]));
    let mut makers = String::new();
    for at in 0..200 {
        let from =
            if at == 199 { ("ps", "FCLK_CLK1") } else { (&*format!("wiz{}", at + 1), "clk_out1") };
        makers += &module(&format!("wiz{at}"), "clk_wiz", &pin("clk_in1", "I", "clk", &[from]));
    }
    let text = design(&(module("core", "core", &clocks) + &makers), "", "");
    few(&text, &["core", "wiz0"]);
    let design = Design::read(text.as_bytes()).unwrap();
    assert!(design.core("core").unwrap().clocks().all(|clock| clock.fabric == Some(1)));
}

#[test]
fn many_registers_and_parameters() {
    let parameters = many(|at| format!("<PARAMETER NAME=\"C_{at}\" VALUE=\"{at}\"/>\n"));
    let core = module("dma", "axi_dma", &format!("<PARAMETERS>{parameters}</PARAMETERS>"));
    few(&design(&core, "", ""), &["dma"]);
    let registers = many(|at| {
        format!(
            "<REGISTER NAME=\"R{at}\"><PROPERTY NAME=\"ADDRESS_OFFSET\" \
             VALUE=\"{at}\"/></REGISTER>\n"
        )
    });
    few(&design(&module("core", "core", &registers), "", ""), &["core"]);
}

/// A design that no tool writes is refused before its bytes are read too often.
#[test]
fn a_tangle_is_refused() {
    let text = {
        // Each pin goes into one concatenation of as many inputs, which leads into itself.
        let pins = many(|at| pin(&format!("p{at}"), "O", "undef", &[("knot", &format!("In{at}"))]));
        let inputs = many(|at| pin(&format!("In{at}"), "I", "undef", &[]));
        let knot = inputs
            + &pin("dout", "O", "undef", &[("knot", "In1"), ("knot", "In2"), ("knot", "In3")]);
        design(&(module("core", "core", &pins) + &module("knot", "xlconcat", &knot)), "", "")
    };
    let design = Design::read(text.as_bytes()).unwrap();
    let (answer, bytes) = visits::of(|| design.core("core").unwrap().interrupts());
    assert_eq!(answer.unwrap_err().rule, DesignRule::Tangled);
    // And the line of the error, and the pin whose wire is followed.
    assert!(bytes <= (MAX_PASSES + 2) * text.len() as u64, "{bytes} of {}", text.len());
    let words = design.core("core").unwrap().interrupts().unwrap_err().to_string();
    assert!(words.contains("`core`: its buses or wires lead through more of the file"), "{words}");
}

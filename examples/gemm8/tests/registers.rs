//! The contract's table of registers is the only one: the driver's constants are compared with it,
//! and the Verilog's are made from it. The scripts for vendors' tools have the Verilog's ports.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

use contigo_gemm8::{MAP, regs};
use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fmt::Write as _,
    fs,
    io::{ErrorKind, Write as _},
    path::Path,
    process::{Command, Stdio},
};

/// Commands of Platform Designer and Vivado that print what they are given. All others do nothing.
const STUBS: &str = r#"
proc unknown args {}
proc package args {}
proc add_fileset_file {name kind word path} {puts "file $path"}
proc add_interface {name type direction} {puts "interface $name $type"}
proc add_interface_port {interface port role direction bits} {
    puts "port $port $direction $bits $interface $role"
}
proc add_files paths {foreach path $paths {puts "file [file tail $path]"}}
proc set_property {name value object} {puts "set $name $value"}
namespace eval ipx {}
proc ipx::infer_bus_interface {port type core} {puts "port $port"}
proc ipx::associate_bus_interfaces {kind name clock port core} {
    puts "associate $kind $name $clock $port"
}
"#;

/// Every signal of AXI4-Lite (IHI 0022, table B1-1). Intel's and ADI's components have them all.
const AXI_LITE: &str = "araddr arprot arready arvalid awaddr awprot awready awvalid bready bresp \
                        bvalid rdata rready rresp rvalid wdata wready wstrb wvalid";

/// The table of README.md: offsets, values after reset, and the numbers of bits that have a name.
#[derive(Default)]
struct Contract {
    offsets: Vec<(String, usize)>,
    resets: BTreeMap<String, u32>,
    bits: Vec<(String, u32)>,
}

fn number(text: &str) -> u32 {
    match text {
        "all ones" => u32::MAX,
        _ => text
            .strip_prefix("0x")
            .map_or_else(|| text.parse(), |digits| u32::from_str_radix(digits, 16))
            .unwrap(),
    }
}

impl Contract {
    fn read() -> Self {
        let page =
            fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
        let mut contract = Self::default();
        for line in page.lines().filter(|line| line.starts_with('|')) {
            let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
            match *cells {
                [offsets, name, _, reset, bits] if offsets.starts_with("0x") => {
                    contract.register(offsets, name, reset, bits)
                }
                // A row of "Errors".
                [bit, name, _] if bit.parse::<u32>().is_ok() => {
                    contract.bits.push((format!("STATUS_{name}"), number(bit)))
                }
                _ => {}
            }
        }
        contract
    }

    fn register(&mut self, offsets: &str, name: &str, reset: &str, bits: &str) {
        for (offset, suffix) in offsets.split(", ").zip(["", "_HIGH"]) {
            self.offsets.push((format!("{name}{suffix}"), number(offset) as usize));
            self.resets.insert(format!("{name}{suffix}"), number(reset));
        }
        for bit in bits.split(" · ") {
            let mut quoted = bit.split('`');
            if let (Some(before), Some(bit)) = (quoted.next(), quoted.next()) {
                self.bits
                    .push((format!("{name}_{bit}"), number(before.split(' ').next().unwrap())));
            }
        }
    }

    fn offset(&self, name: &str) -> usize {
        self.offsets.iter().find(|(known, _)| known == name).unwrap().1
    }

    fn mask(&self, name: &str) -> u32 {
        1 << self.bits.iter().find(|(known, _)| known == name).unwrap().1
    }

    /// `rtl/gemm8_regs.vh`.
    fn verilog(&self) -> String {
        let mut text = String::from(
            "// Made from the tables in ../README.md by tests/registers.rs. A module takes of it what \
             it uses.\n\
             // verilator lint_off UNUSED\n",
        );
        for (name, offset) in &self.offsets {
            writeln!(text, "localparam [7:0]  {name} = 8'h{offset:02X};").unwrap();
        }
        for (name, _) in &self.offsets {
            writeln!(text, "localparam [31:0] {name}_RESET = 32'h{:08X};", self.resets[name])
                .unwrap();
        }
        for (name, bit) in &self.bits {
            writeln!(text, "localparam        {name}_BIT = {bit};").unwrap();
        }
        text + "// verilator lint_on UNUSED\n"
    }
}

#[test]
fn the_driver_has_the_contracts_numbers() {
    let contract = Contract::read();
    for (name, offset) in [
        ("CTRL", regs::CTRL.offset()),
        ("GIE", regs::GIE.offset()),
        ("IER", regs::IER.offset()),
        ("ISR", regs::ISR.offset()),
        ("M", regs::M.offset()),
        ("N", regs::N.offset()),
        ("K", regs::K.offset()),
        ("MODE", regs::MODE.offset()),
        ("ABORT", regs::ABORT.offset()),
        ("STATUS", regs::STATUS.offset()),
        ("BYTES_OUT", regs::BYTES_OUT.offset()),
        ("ID", regs::ID.offset()),
    ] {
        assert_eq!(contract.offset(name), offset, "{name}");
    }
    for (name, register) in ["A", "B", "BIAS", "C"].into_iter().zip(regs::POINTERS) {
        assert_eq!(
            (contract.offset(name), contract.offset(&format!("{name}_HIGH"))),
            (register.offset(), register.offset() + 4),
            "{name}"
        );
    }
    for (name, mask) in [
        ("CTRL_AP_START", regs::AP_START),
        ("CTRL_AP_DONE", regs::AP_DONE),
        ("CTRL_AP_IDLE", regs::AP_IDLE),
        ("CTRL_AP_READY", regs::AP_READY),
        ("IER_DONE", regs::INT_DONE),
        ("ISR_DONE", regs::INT_DONE),
        ("MODE_RELU", regs::MODE_RELU),
        ("MODE_RAW", regs::MODE_RAW),
        ("STATUS_DIMENSION", regs::STATUS_DIMENSION),
        ("STATUS_ALIGNMENT", regs::STATUS_ALIGNMENT),
        ("STATUS_READ", regs::STATUS_READ),
        ("STATUS_WRITE", regs::STATUS_WRITE),
        ("STATUS_ABORTED", regs::STATUS_ABORTED),
    ] {
        assert_eq!(contract.mask(name), mask, "{name}");
    }
    assert_eq!(contract.resets["ID"], regs::ID_VALUE);
    let results: Vec<_> = MAP.results().iter().map(|result| result.offset as usize + 4).collect();
    assert_eq!(results, [contract.offset("STATUS_VLD"), contract.offset("BYTES_OUT_VLD")]);
}

#[test]
fn the_verilog_has_the_contracts_numbers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("rtl/gemm8_regs.vh");
    let text = Contract::read().verilog();
    if env::var_os("CONTIGO_WRITE_DOCS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert!(
        fs::read_to_string(&path).is_ok_and(|old| old == text),
        "CONTIGO_WRITE_DOCS=1 cargo test -p contigo-gemm8 --test registers"
    );
}

/// The folder of the Verilog and of the tools' scripts.
fn rtl() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/rtl"))
}

/// The words of each line that a script of `rtl/` prints with `STUBS`; none without `tclsh`.
fn said(test: &str, script: &str) -> Option<Vec<Vec<String>>> {
    let mut tclsh = match Command::new("tclsh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            contigo_testkit::skipped(test, "tclsh is not here (Debian: tcl)");
            return None;
        }
        started => started.unwrap(),
    };
    let path = rtl().join(script);
    write!(
        tclsh.stdin.take().unwrap(),
        "{STUBS}if {{[catch {{source {{{}}}}} why]}} {{puts stderr $why; exit 1}}",
        path.display()
    )
    .unwrap();
    let done = tclsh.wait_with_output().unwrap();
    assert!(done.status.success(), "{script}");
    let text = String::from_utf8(done.stdout).unwrap();
    Some(text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect())
}

/// The direction and the bits of each port of `gemm8.v`, by its name.
fn ports() -> BTreeMap<String, (String, u32)> {
    let text = fs::read_to_string(rtl().join("gemm8.v")).unwrap();
    let list = text.split("\n) (\n").nth(1).unwrap().split("\n);").next().unwrap();
    let lines = list
        .lines()
        .filter_map(|line| line.split("//").next())
        .map(|line| line.trim().trim_end_matches(','));
    let port = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        assert!((2..=3).contains(&words.len()), "no port: {line}");
        let (direction, name) = (words[0], words[words.len() - 1]);
        let high = words[1].strip_prefix('[').and_then(|range| range.strip_suffix(":0]"));
        let bits = high.map_or(1, |high| number(high) + 1);
        let direction = BTreeMap::from([("input", "Input"), ("output", "Output")])[direction];
        (name.to_owned(), (direction.to_owned(), bits))
    };
    lines.filter(|line| !line.is_empty()).map(port).collect()
}

/// Fails unless a script has every source of the engine, and no other.
fn has_the_sources(said: &[Vec<String>]) {
    let names =
        fs::read_dir(rtl()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let sources: BTreeSet<_> =
        names.filter(|name| name.starts_with("gemm8") && !name.ends_with("tcl")).collect();
    assert_eq!(
        said.iter()
            .filter(|line| line[0] == "file")
            .map(|line| line[1].clone())
            .collect::<BTreeSet<_>>(),
        sources
    );
}

#[test]
fn platform_designer_gets_whole_interfaces() {
    let Some(said) = said("platform_designer_gets_whole_interfaces", "gemm8_hw.tcl") else {
        return;
    };
    has_the_sources(&said);
    let declared = said.iter().filter(|line| line[0] == "port");
    assert_eq!(
        declared
            .map(|line| (line[1].clone(), (line[2].clone(), number(&line[3]))))
            .collect::<BTreeMap<_, _>>(),
        ports()
    );
    for interface in said.iter().filter(|line| line[0] == "interface") {
        let of_it = said.iter().filter(|line| line[0] == "port" && line[4] == interface[1]);
        let bits: BTreeMap<_, _> = of_it.map(|line| (line[5].as_str(), number(&line[3]))).collect();
        match interface[2].as_str() {
            "axi4lite" => {
                assert!(bits.keys().copied().eq(AXI_LITE.split(' ')), "{bits:?}");
                // Intel 683609, "AMBA 4 AXI-Lite Slave Requirements": 12 bits at least.
                assert!(bits["awaddr"] >= 12 && bits["araddr"] >= 12, "{bits:?}");
            }
            "axi4" => assert!(
                [("awid", "bid"), ("arid", "rid")]
                    .iter()
                    .all(|(asked, answered)| bits.get(asked) == bits.get(answered)),
                "an ID comes back, or there is none: {bits:?}"
            ),
            _ => {}
        }
    }
}

#[test]
fn vivado_gets_interfaces_for_all_families() {
    let Some(said) = said("vivado_gets_interfaces_for_all_families", "gemm8_ip.tcl") else {
        return;
    };
    has_the_sources(&said);
    let ports = ports();
    assert!(said.iter().filter(|line| line[0] == "port").all(|line| ports.contains_key(&line[1])));
    let clocked = said.iter().filter(|line| {
        line[0] == "associate" && line[1] == "-busif" && line[3..] == ["-clock", "clk"]
    });
    let interfaces =
        ports.keys().filter_map(|name| name.strip_suffix("_awaddr").map(str::to_owned));
    assert_eq!(clocked.map(|line| line[2].clone()).collect::<BTreeSet<_>>(), interfaces.collect());
    // Else only the family of the project's part has the IP (UG1118, "Automatic Family Support").
    assert!(said.iter().any(|line| line[1..] == ["auto_family_support_level", "level_2"]));
}

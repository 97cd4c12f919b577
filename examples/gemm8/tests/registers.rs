//! The contract's table of registers is the only one: the driver's constants are compared with it,
//! and the Verilog's are made from it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has failed, which is its purpose")]

use contigo_gemm8::{MAP, regs};
use std::{collections::BTreeMap, env, fmt::Write as _, fs, path::Path};

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
        _ => text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u32::from_str_radix(digits, 16)).unwrap(),
    }
}

impl Contract {
    fn read() -> Self {
        let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
        let mut contract = Self::default();
        for line in page.lines().filter(|line| line.starts_with('|')) {
            let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
            match *cells {
                [offsets, name, _, reset, bits] if offsets.starts_with("0x") => contract.register(offsets, name, reset, bits),
                // A row of "Errors".
                [bit, name, _] if bit.parse::<u32>().is_ok() => contract.bits.push((format!("STATUS_{name}"), number(bit))),
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
                self.bits.push((format!("{name}_{bit}"), number(before.split(' ').next().unwrap())));
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
            "// Made from the tables in ../README.md by tests/registers.rs. A module takes of it what it uses.\n\
             // verilator lint_off UNUSED\n",
        );
        for (name, offset) in &self.offsets {
            writeln!(text, "localparam [7:0]  {name} = 8'h{offset:02X};").unwrap();
        }
        for (name, _) in &self.offsets {
            writeln!(text, "localparam [31:0] {name}_RESET = 32'h{:08X};", self.resets[name]).unwrap();
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
        assert_eq!((contract.offset(name), contract.offset(&format!("{name}_HIGH"))), (register.offset(), register.offset() + 4), "{name}");
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
    let results: Vec<_> = MAP.results().iter().map(|result| result.offset() + 4).collect();
    assert_eq!(results, [contract.offset("STATUS_VLD"), contract.offset("BYTES_OUT_VLD")]);
}

#[test]
fn the_verilog_has_the_contracts_numbers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("rtl/gemm8_regs.vh");
    let text = Contract::read().verilog();
    if env::var_os("CONTIGO_WRITE_DOCS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert!(fs::read_to_string(&path).is_ok_and(|old| old == text), "CONTIGO_WRITE_DOCS=1 cargo test -p contigo-gemm8 --test registers");
}

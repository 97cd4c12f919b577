//! Cores are found by name, and one that is missing says why.

use crate::skip;
use contigo_rtl::{Core, NoCore, PowerOn, ports::In};

#[test]
fn an_unknown_name_is_refused() {
    assert_eq!(Core::open("unknown", PowerOn::Zeros).err(), Some(NoCore::Unknown));
}

/// The outputs are those before the edge: an answer comes one cycle after its question.
#[test]
fn a_register_remembers() {
    let core = Core::open("scratch", PowerOn::Random(7));
    let Some(mut core) = skip::or_skip(core) else { return };
    let mut inputs = In::default();
    core.step(&inputs);
    inputs.rst_n = 1;
    core.step(&inputs);
    (
        inputs.lite.awvalid,
        inputs.lite.awaddr,
        inputs.lite.wvalid,
        inputs.lite.wdata,
        inputs.lite.wstrb,
    ) = (1, 60, 1, 0xABCD_EF01, 0b0110);
    let taken = core.step(&inputs);
    assert_eq!((taken.lite.awready, taken.lite.wready, taken.lite.bvalid, taken.irq), (1, 1, 0, 0));
    (inputs.lite.awvalid, inputs.lite.wvalid, inputs.lite.bready) = (0, 0, 1);
    (inputs.lite.arvalid, inputs.lite.araddr, inputs.lite.rready) = (1, 60, 1);
    let asked = core.step(&inputs);
    assert_eq!((asked.lite.bvalid, asked.lite.arready, asked.lite.rvalid, asked.irq), (1, 1, 0, 1));
    inputs.lite.arvalid = 0;
    let answer = core.step(&inputs);
    assert_eq!((answer.lite.bvalid, answer.lite.rvalid, answer.lite.rdata), (0, 1, 0x00CD_EF00));
}

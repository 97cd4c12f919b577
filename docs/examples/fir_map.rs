use contigo::OperandSpec;
use contigo::design::kernel::{KernelMap, Protocol};

pub const FIR: KernelMap = {
    let map = KernelMap::named("FIR", Protocol::Hs)
        .window(0x34)
        .interrupt(true)
        .result("ap_return", 0x10, 32)
        .pointer("x", 0x18, OperandSpec { align_bytes: 64, ..OperandSpec::to_device() }, "4*n")
        .pointer("y", 0x24, OperandSpec { align_bytes: 64, ..OperandSpec::from_device() }, "4*n")
        .scalar("n", 0x30, 32);
    match map.build() {
        Ok(map) => map,
        Err(_) => panic!("the map is wrong"),
    }
};
